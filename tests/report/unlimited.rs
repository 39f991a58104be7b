//! What no limit of the plan covers is told, and nothing else.

use std::path::Path;

use railgauge::analysis::{journal, results::results, rows::rows, verdict::verdicts};
use railgauge_model::{
    journal::event::Event,
    plan::{
        Plan,
        model::{Expectation, Limit},
    },
};
use railgauge_wire::{terms::Metric, unit::Bytes};

use crate::support::{self, Scenario};

/// Leaves the first demand of the bandwidth test alone.
fn limited(plan: &mut Plan) {
    for test in &mut plan.tests {
        test.expect.truncate(usize::from(test.name == "write-bw"));
        for demand in &mut test.expect {
            (demand.limit, demand.sizes) = (Limit::AtLeast(1.0), None);
        }
    }
}

#[test]
fn what_no_limit_covers_is_told_by_metric_and_size_and_not_of_tests_that_never_ran() {
    let told = |plan: &dyn Fn(&mut Plan), without: &str| {
        let mut lines = Scenario { sizes: vec![1 << 24], repeats: 1, ..Scenario::healthy(4, 1) }.lines();
        let mut cases = Vec::new();
        lines.retain_mut(|line| match &mut line.event {
            Event::Started { resolved, .. } => {
                plan(resolved);
                true
            }
            Event::Planned { cases: all } => {
                cases = all.iter().filter(|case| &*case.test == without).map(|case| case.id).collect();
                true
            }
            Event::Outcome(outcome) => !cases.contains(&outcome.case),
            _ => true,
        });
        let journal = journal::parse(support::text(&lines).as_bytes(), Path::new("records.jsonl")).unwrap();
        let results = results(&journal).unwrap();
        verdicts(&journal, &results, &rows(&journal, &results), Vec::new()).unlimited().unwrap()
    };
    let plan = |metric: Metric, sizes: Option<(Bytes, Bytes)>| {
        move |plan: &mut Plan| {
            limited(plan);
            (plan.tests[0].expect[0].metric, plan.tests[0].expect[0].sizes) = (metric, sizes);
        }
    };
    let all = told(&plan(Metric::Bandwidth, None), "");
    assert_eq!(all, "The plan sets no limit for write-lat, tcp-baseline: their values are not judged.");
    let cpu = told(&plan(Metric::CpuTimePerGib, None), "tcp-baseline");
    assert_eq!(cpu, "The plan sets no limit for bandwidth of write-bw, write-lat: their values are not judged.");
    let sizes = |plan: &mut Plan| {
        limited(plan);
        let demand = plan.tests[0].expect.remove(0);
        let demand = Expectation { metric: Metric::LatencyP99, sizes: Some((Bytes(2), Bytes(64))), ..demand };
        plan.tests[1].expect.push(demand.clone());
        plan.tests[0].expect.push(Expectation { metric: Metric::Bandwidth, sizes: None, rails: vec![3], ..demand });
    };
    assert_eq!(
        told(&sizes, "tcp-baseline"),
        "The plan sets no limit for write-bw at 16 MiB outside of the groups and rails that its limits name; write-lat at 1 KiB, 4 KiB: \
         these values are not judged."
    );
}

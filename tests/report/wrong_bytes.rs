//! Wrong bytes come first: what to do about them, and which host all of them have in common.

use std::path::Path;

use railgauge_analysis::journal;
use railgauge_model::{
    journal::event::{Case, Event, Line},
    plan::model::Limit,
};
use railgauge_report::{draw, view::View};
use railgauge_wire::unit::Bytes;

use crate::{
    soak::made::{Made, judged, status},
    support::{self, Scenario},
};

fn view(lines: &[Line]) -> View {
    let path = Path::new("records.jsonl");
    draw(&journal::parse(support::text(lines).as_bytes(), path).unwrap(), path).unwrap().view
}

/// A run of six hosts in which these cases of the bandwidth test have wrong bytes.
fn corrupt(scenario: &Scenario, limit: f64, is_wrong: impl Fn(&Case) -> bool) -> Vec<Line> {
    let mut lines = scenario.lines();
    let mut known = Vec::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => {
                for test in &mut resolved.tests {
                    test.expect.truncate(usize::from(test.name == "write-bw"));
                    test.expect.iter_mut().for_each(|demand| demand.limit = Limit::AtLeast(limit));
                }
            }
            Event::Planned { cases } => known.clone_from(cases),
            Event::Outcome(outcome) => {
                let case = known.iter().find(|case| case.id == outcome.case).unwrap();
                if let Ok(sample) = &mut outcome.result
                    && &*case.test == "write-bw"
                    && is_wrong(case)
                {
                    (sample.checked.wrong, sample.checked.first_wrong) = (Bytes(17), Some(0));
                }
            }
            _ => {}
        }
    }
    lines
}

fn of_host(host: &'static str) -> impl Fn(&Case) -> bool {
    move |case| case.flow.hosts().iter().any(|one| &***one == host)
}

fn step(lines: &[Line]) -> (String, String) {
    let first = view(lines).banner.remedy.unwrap();
    (first.about, first.text)
}

#[test]
fn wrong_bytes_come_before_a_bad_part_and_before_a_limit_that_all_break() {
    let small = |slow| Scenario { sizes: vec![1 << 24], repeats: 1, slow, ..Scenario::healthy(6, 1) };
    let is_one = |case: &Case| of_host("gpu001")(case) && of_host("gpu002")(case);
    for (scenario, limit) in [(small(None), 1.0), (small(None), 9000.0), (small(Some(4)), 1.0)] {
        let (about, text) = step(&corrupt(&scenario, limit, is_one));
        assert!(text.ends_with("[wrong-bytes]"), "{about}: {text}");
        assert_eq!(about, "1 case (wrong bytes) between gpu[001-002]");
    }
}

#[test]
fn a_host_that_all_wrong_cases_share_is_named() {
    let scenario = Scenario { sizes: vec![1 << 12, 1 << 24], repeats: 1, ..Scenario::healthy(6, 1) };
    let (about, text) = step(&corrupt(&scenario, 1.0, of_host("gpu003")));
    assert!(text.ends_with("[wrong-bytes]"), "{about}: {text}");
    assert_eq!(about, "10 cases (wrong bytes), all of them with gpu003");
    // One that lacks it, and none has all.
    let also = |case: &Case| of_host("gpu003")(case) || of_host("gpu001")(case) && of_host("gpu002")(case);
    let (about, _) = step(&corrupt(&scenario, 1.0, also));
    assert_eq!(about, "12 cases (wrong bytes) between gpu[001-006]");
}

#[test]
fn wrong_bytes_of_a_soak_have_their_first_step() {
    let mut journal = Made::healthy().journal();
    journal.soaked[1].flows[0].checked.wrong = Bytes(10);
    let (found, all) = judged(&journal);
    let flow = found.flows.iter().find(|flow| flow.wrong > Bytes::ZERO).unwrap().flow.clone();
    let (_, reason) = status(&all, "bytes");
    assert!(reason.starts_with(&format!("10 wrong bytes in {flow};")), "{reason}");
    let first = draw(&journal, Path::new("records.jsonl")).unwrap().view.banner.remedy.unwrap();
    assert!(first.about == format!("10 wrong bytes in {flow}") && first.text.ends_with("[wrong-bytes]"), "{first:?}");
    // All flows of one host.
    let cases: Vec<u64> = journal.cases.iter().filter(|case| of_host("gpu003")(case)).map(|case| case.id).collect();
    for flow in journal.soaked.iter_mut().flat_map(|part| &mut part.flows) {
        flow.checked.wrong = Bytes(u64::from(cases.contains(&flow.case)));
    }
    let first = draw(&journal, Path::new("records.jsonl")).unwrap().view.banner.remedy.unwrap();
    assert!(first.about.ends_with(" more, all with gpu003"), "{first:?}");
}

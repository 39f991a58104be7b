//! What stands out, by itself and beside named parts.

use std::{path::Path, sync::Arc};

use railgauge_analysis::{
    journal::{Journal, Try, parse},
    outliers::Look,
    status::Status,
    verdict::Kind,
};
use railgauge_model::plan::model::Waiver;
use railgauge_report::{draw, view::View};
use railgauge_wire::unit::{Bytes, GigabitsPerSecond, Nanoseconds};

use crate::support::Scenario;

fn journal(scenario: &Scenario) -> Journal {
    parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap()
}

fn view(journal: &Journal) -> View {
    draw(journal, Path::new("records.jsonl")).unwrap().view
}

/// Changes every sample of the cases that are picked.
pub(super) fn change(journal: &mut Journal, picked: impl Fn(&str, u64, [&str; 2]) -> bool, factor: f64) {
    let cases = journal.cases.clone();
    let mine = |one: &&mut Try| {
        // Further cases stay as they are.
        let Some(case) = cases.get(one.case as usize) else { return false };
        picked(&case.test, case.cell.size.0, [&case.flow.from.host, &case.flow.to.host])
    };
    // Links with room for what becomes faster, all alike: links of other rates are no peers.
    for one in journal.tries.iter_mut().filter(|_| factor > 1.0) {
        if let Some(link) = &mut one.link {
            Arc::make_mut(link).rate_gbps = Some(GigabitsPerSecond(400.0));
        }
    }
    for one in journal.tries.iter_mut().filter(mine) {
        let Ok(sample) = &mut one.result else { continue };
        let end = &mut sample.initiator;
        end.bytes = Bytes((end.bytes.as_f64() * factor) as u64);
        if end.latency.is_none() {
            end.operations = (end.operations as f64 * factor) as u64;
        } else {
            end.bytes = cases[one.case as usize].cell.size * end.operations;
        }
        let lanes = end.lanes.iter_mut().map(|lane| &mut lane.bytes);
        lanes.chain(&mut end.slices).for_each(|bytes| *bytes = Bytes((bytes.as_f64() * factor) as u64));
        if let Some(latency) = &mut end.latency {
            end.elapsed = Nanoseconds((end.elapsed.as_f64() * factor) as u64);
            let edges = latency.histogram.iter_mut().map(|(edge, _)| edge);
            for time in edges.chain([
                &mut latency.min,
                &mut latency.p50,
                &mut latency.p90,
                &mut latency.p99,
                &mut latency.p999,
                &mut latency.max,
            ]) {
                *time = Nanoseconds((time.as_f64() * factor) as u64);
            }
            (latency.mean, latency.stdev) = (latency.mean * factor, latency.stdev * factor);
        }
    }
}

fn healthy(hosts: usize) -> Scenario {
    Scenario { sizes: vec![4096, 65536, 1 << 20], ..Scenario::healthy(hosts, 1) }
}

#[test]
fn a_link_that_is_slow_at_one_size_only_is_said_wherever_something_is_said() {
    for hosts in [5, 8] {
        let mut journal = journal(&healthy(hosts));
        let (a, b) = {
            let case = journal.cases.iter().find(|case| &*case.test == "write-bw").unwrap();
            (case.flow.from.host.to_string(), case.flow.to.host.to_string())
        };
        // Parts are looked for at the largest size first, where nothing stands out.
        change(&mut journal, |test, size, ends| test == "write-bw" && size == 65536 && ends == [&a, &b], 0.6);
        let view = view(&journal);
        let parts = view.parts.as_ref().unwrap();
        assert_eq!(parts.named.len(), 1, "{}", parts.reasons.concat().join(" "));
        assert!(
            [&a, &b].iter().all(|host| parts.reasons.concat().join(" ").contains(host.as_str())),
            "{}",
            parts.reasons.concat().join(" ")
        );
        let map = view.tests[0].map().unwrap();
        let row = &map.links.as_ref().unwrap().rows[0];
        assert_eq!((row[1].as_str(), row[5].as_str()), ("64 KiB", "1 of 3"));
        assert!(row[6].starts_with("path between") && row[6].ends_with("(suspect)"), "{row:?}");
        assert!(row[4].starts_with("−40.") || row[4].starts_with("−39."), "{row:?}");
        assert_eq!(map.cells.iter().filter(|cell| cell.look.stands_out()).count(), 1);
        assert!(map.sentence.contains("at 64 KiB"), "{}", map.sentence);
    }
}

#[test]
fn what_is_better_is_never_listed_as_worst() {
    for (test, factor) in [("write-lat", 0.69), ("write-bw", 1.4)] {
        let mut journal = journal(&healthy(8));
        // One link: a host that is better than most would be a cluster of its own, and the others the bad one.
        let pair = |ends: [&str; 2]| ends.contains(&"gpu003") && ends.contains(&"gpu005");
        change(&mut journal, |of, _, ends| of == test && pair(ends), factor);
        let view = view(&journal);
        let shown = view.tests.iter().find(|view| view.name == test).unwrap();
        let map = shown.map().unwrap();
        assert!(map.links.is_none(), "{test}: {:?}", map.links);
        assert!(map.cells.iter().any(|cell| cell.look == Look::Better), "{test}");
        let parts = view.parts.as_ref().unwrap();
        assert!(parts.named.is_empty(), "{}", parts.reasons.concat().join(" "));
    }
}

#[test]
fn a_healthy_cluster_has_nothing_that_stands_out() {
    let mut said = 0;
    for (seed, hosts) in (0..15).zip([4, 5, 6, 8, 9].into_iter().cycle()) {
        let view = view(&journal(&Scenario { seed, ..healthy(hosts) }));
        let cells = view.tests.iter().filter_map(|test| test.map()).flat_map(|map| &map.cells);
        let parts = view.parts.unwrap();
        said += usize::from(!parts.named.is_empty() || cells.into_iter().any(|cell| cell.look.stands_out()));
    }
    // One in a hundred for each of two tests.
    assert!(said <= 1, "{said} of 15");
}

#[test]
fn the_answer_of_tests_in_turn_is_no_verdict() {
    let scenario = Scenario { in_turn: Some(0.9), sizes: vec![1 << 20], ..Scenario::healthy(4, 1) };
    let view = view(&journal(&scenario));
    assert_eq!((view.status, view.interleaved[0].comparison.word), (Status::Pass, "regressed"));
    let page_words = [Status::Pass, Status::Fail, Status::Inconclusive, Status::NotRun].map(Status::word);
    assert!(!page_words.contains(&view.interleaved[0].comparison.word));
}

/// Of three hosts no part can be told: what stands out among their links is not measured again.
#[test]
fn links_that_stand_out_and_were_not_measured_again_are_no_pass_unless_waived() {
    let pair = ["gpu001", "gpu002"];
    // The path between both is named where others are compared with it; else its links stand out by themselves.
    for (waive, exit_code, by_name) in [
        (Vec::new(), 3, 1),
        (vec![Waiver::Host("gpu001".into())], 0, 0),
        (vec![Waiver::Host("gpu003".into())], 3, 0),
        (vec![Waiver::Rail(0)], 3, 1),
        (vec![Waiver::All], 0, 0),
    ] {
        let mut journal = journal(&Scenario { sizes: vec![1 << 20], ..Scenario::healthy(3, 4) });
        journal.plan.localise.waive = waive.clone();
        journal.plan.tests.iter_mut().for_each(|test| test.expect.clear());
        change(&mut journal, |test, _, ends| test == "write-bw" && ends.iter().all(|end| pair.contains(end)), 0.5);
        let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
        let parts = drawn.verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).unwrap();
        assert_eq!((parts.status, parts.test.as_str()), (Status::Inconclusive, "write-bw"));
        assert_eq!(drawn.verdicts.exit_code, exit_code, "{waive:?}: {}", parts.reason);
        let shown = drawn.view.parts.unwrap();
        assert_eq!(shown.named.len(), by_name, "{waive:?}: {}", shown.reasons.concat().join(" "));
        assert_eq!(parts.parts.iter().any(|part| !part.waived), exit_code == 3, "{:?}", parts.parts);
    }
}

//! Soaks of runs that go on: what agents have not told yet is not known, and is no time without a watch.

use railgauge_analysis::{
    journal::{Journal, JournalEnd},
    soak::span::Span,
    status::Status,
};
use railgauge_model::journal::event::Soaked;
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    unit::Nanoseconds,
};

use super::made::{Made, at, judged, status};

/// A soak of ten minutes that goes on, and of which this host has told until then.
fn told(host: &str, until: u64) -> Journal {
    let mut journal = Made::healthy().journal();
    journal.end = JournalEnd::Running;
    journal.watched.retain(|seen| seen.host != host || seen.seen.until <= at(until));
    journal
}

#[test]
fn the_last_part_is_asked_for_once_agents_have_told_of_it() {
    let mut journal = told("gpu002", 540_000);
    let (found, all) = judged(&journal);
    assert_eq!(found.lasted, Nanoseconds::from_secs(600));
    assert!(found.holes.is_empty(), "{:?}", found.holes);
    assert!(found.coverage.iter().all(|port| port.percent == 100.0), "{:?}", found.coverage);
    assert_eq!(status(&all, "watched").0, Status::Pass);
    // Of a run that is over nothing more comes.
    journal.end = JournalEnd::Finished;
    let (found, all) = judged(&journal);
    assert_eq!(found.holes[0].span, Span::new(at(540_000), at(600_000)));
    assert_eq!(status(&all, "watched").0, Status::Inconclusive);
}

#[test]
fn an_agent_that_is_late_by_more_than_a_part_is_told() {
    let (found, all) = judged(&told("gpu002", 480_000));
    let [hole] = found.holes.as_slice() else { panic!("{:?}", found.holes) };
    // Beside the last part it has 5 s to be asked and 10 s to answer.
    assert_eq!((hole.port.host.as_str(), hole.span), ("gpu002", Span::new(at(480_000), at(525_000))));
    assert_eq!(status(&all, "watched").0, Status::Inconclusive);
}

#[test]
fn a_host_that_was_lost_is_not_waited_for() {
    let mut journal = told("gpu001", 540_000);
    journal.lost.insert("gpu001".to_owned(), Failure::new(Stage::Measure, Kind::Lost, "no answer"));
    let (found, _) = judged(&journal);
    let [hole] = found.holes.as_slice() else { panic!("{:?}", found.holes) };
    assert_eq!((hole.port.host.as_str(), hole.span), ("gpu001", Span::new(at(540_000), at(600_000))));
}

#[test]
fn before_any_agent_has_told_no_port_is_said_to_be_unwatched() {
    let mut journal = told("gpu001", 600_000);
    journal.watched.clear();
    let first = Soaked { from: at(0), until: at(20_000), ..journal.soaked.remove(0) };
    journal.soaked = vec![first];
    let (found, all) = judged(&journal);
    assert!(found.coverage.is_empty() && found.holes.is_empty(), "{found:?}");
    let (status, reason) = status(&all, "watched");
    assert_eq!(status, Status::Inconclusive);
    assert!(!reason.contains("0 ends"), "{reason}");
}

/// A port that no flow of the soak uses is watched beside the others, too. Its holes are not counted among theirs.
#[test]
fn holes_are_counted_by_the_ports_of_the_flows() {
    let mut journal = Made::healthy().journal();
    journal.watched.retain(|seen| seen.host != "gpu002" || seen.seen.from < at(300_000));
    for seen in journal.watched.iter_mut().filter(|seen| seen.host == "gpu002") {
        let mut beside = seen.seen.ports[0].clone();
        beside.device = "eth9".to_owned();
        seen.seen.ports.push(beside);
    }
    let (found, all) = judged(&journal);
    assert_eq!((found.counts.watched_ports, found.counts.ports), (9, 8));
    assert_eq!((found.holes.len(), found.holes[0].ports), (1, 2));
    assert_eq!(status(&all, "watched").0, Status::Inconclusive);
}

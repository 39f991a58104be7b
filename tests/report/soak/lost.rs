//! Hosts that are lost in a soak: their flows are silent to its end, whoever's turn it was, and that is told as what it is.

use std::path::Path;

use railgauge_analysis::{
    journal::Journal,
    soak::Soaking,
    status::Status,
    verdict::{Kind, Verdicts},
};
use railgauge_model::journal::event::{Event, Line, Stall};
use railgauge_report::text::Screen;
use railgauge_report::{draw, text, view::View};
use railgauge_wire::{
    failure::{Failure, Kind as Why, Stage},
    remedy,
    unit::Nanoseconds,
};

use super::made::{Made, at, events, flow, judged, line_at, read, status};

/// When the agent of `gpu002` is gone, in milliseconds from the begin of the soak.
const GONE: u64 = 300_000;

fn gone() -> Failure {
    let cause = "the agent is gone: killed by signal 9 (SIGKILL)";
    Failure::new(Stage::Converse, Why::Lost, cause).at("gpu002").remedy(remedy::FIND_KILLER)
}

/// A soak in rounds. The agent of `gpu002` is killed in the middle, and its flows are tried in their turns: 2 s of every 6 s, as a run
/// loop records them.
fn made() -> Made {
    let mut made = Made::healthy();
    let journal = made.journal();
    let (turn, wait) = (2_000, 6_000);
    for (number, other) in [0, 2, 3].into_iter().enumerate() {
        let first = GONE - 1_000 + turn * number as u64;
        let turns = (first..600_000 - turn).step_by(wait);
        let hit = flow(&journal, 1, other, 0);
        made.stalls.extend(turns.map(|from| (hit, from, from + turn, true)));
    }
    made
}

/// Its events: the loss stands where a run loop writes it, and nobody looks at the ports of the host afterwards.
fn killed(made: &Made) -> Vec<Line> {
    let mut events = events(made);
    events.retain(
        |line| !matches!(&line.event, Event::Watched { host, seen, .. } if host == "gpu002" && seen.from >= at(GONE)),
    );
    let is_behind = |line: &Line| matches!(&line.event, Event::Soaked(part) if part.until > at(GONE));
    let place = events.iter().position(is_behind).unwrap();
    events.insert(place, line_at(GONE, Event::HostLost { host: "gpu002".into(), failure: gone() }));
    events
}

fn found(events: &[Line]) -> (Soaking, Verdicts, View) {
    let journal = read(events);
    let (found, verdicts) = judged(&journal);
    (found, verdicts, draw(&journal, Path::new("records.jsonl")).unwrap().view)
}

#[test]
fn a_flow_of_a_lost_host_is_silent_to_the_end_of_the_soak_whoevers_turn_it_was() {
    for (longest, wanted) in [(7_000, Status::Fail), (290_000, Status::Fail), (400_000, Status::Inconclusive)] {
        let (found, verdicts, _) = found(&killed(&made().longest(longest)));
        let (status, reason) = status(&verdicts, "longest_outage");
        assert_eq!(status, wanted, "{longest}: {reason}");
        let [stall] = found.stalls.as_slice() else { panic!("{:?}", found.stalls) };
        let longest = stall.hit.longest_stall.as_ref().unwrap();
        assert!(longest.length.saturating_sub(longest.length_error) >= Nanoseconds::from_secs(300), "{longest:?}");
        assert!(stall.hit.flows_hit >= 6, "also flows that had no turn since then: {:?}", stall.hit);
    }
}

/// A turn that was cut off with the traffic is told behind its end. It is of the same loss.
#[test]
fn a_turn_that_was_cut_off_is_no_stall_by_itself() {
    let mut journal = read(&killed(&made().longest(7_000)));
    let part = journal.soaked.last_mut().unwrap();
    let flow = part.flows.iter_mut().find(|flow| !flow.stalls.is_empty()).unwrap();
    flow.stalls.push(Stall { from: at(600_005), until: at(601_000), failed: true, ..Stall::default() });
    let (found, _) = judged(&journal);
    assert_eq!(found.stalls.len(), 1, "{:?}", found.stalls);
    assert_eq!(found.stalls[0].lost.as_ref().map(|lost| lost.host.as_str()), Some("gpu002"));
}

/// The agent is dead: that is said, before any flow, and nothing of the network is blamed.
#[test]
fn a_stall_after_a_lost_host_says_so_first() {
    let (_, verdicts, view) = found(&killed(&made().longest(7_000)));
    let (_, reason) = status(&verdicts, "longest_outage");
    assert!(reason.starts_with("gpu002: agent lost at 2026-11-21 02:15:00.0 UTC"), "{reason}");
    assert!(!reason.contains("watched port"), "{reason}");
    let (_, reason) = status(&verdicts, "bytes");
    assert!(reason.starts_with("gpu002: agent lost"), "{reason}");
    assert!(verdicts.sentence.contains("gpu002: agent lost at"), "{}", verdicts.sentence);
    assert!(!view.soak.as_ref().unwrap().sentence.contains("no watched port down"), "{:?}", view.soak);
    // Nothing shows that the host is bad: no list of hosts to drain has it.
    assert!(view.banner.causes[0].contains("gpu002: agent lost"), "{:?}", view.banner);
    assert_eq!(view.banner.remedy.as_ref().unwrap().about, "gpu002 was lost");
}

/// The begin, the length and its error are those of one stall.
#[test]
fn the_stall_that_is_told_has_its_own_begin_and_length() {
    let made = Made::healthy();
    let (short, long) = (flow(&made.journal(), 0, 1, 0), flow(&made.journal(), 2, 3, 1));
    // Two stalls that overlap: the second is the longer one.
    let made = Made { stalls: vec![(short, 100_000, 103_000, false), (long, 102_000, 110_000, false)], ..made };
    let (found, all) = made.found();
    let (_, reason) = status(&all, "longest_outage");
    let [stall] = found.stalls.as_slice() else { panic!("{:?}", found.stalls) };
    let flow = &stall.hit.longest_stall.as_ref().unwrap().flow;
    let wanted = format!("{flow} stalled for 8.00 ± 0.02 s from 2026-11-21 02:11:42.0 UTC");
    assert!(reason.contains(&wanted), "{reason}");
    // The table tells the event: from its first begin to its last end.
    let view = draw(&made.journal(), Path::new("records.jsonl")).unwrap().view.soak.unwrap();
    let row = &view.events.table.rows[0];
    assert_eq!((row[2].as_str(), row[3].as_str()), ("2026-11-21 02:11:40.0 UTC", "10.00 ± 0.02 s"), "{row:?}");
}

#[test]
fn of_ports_that_nobody_watched_nothing_is_said() {
    let made = Made::healthy();
    let hit = flow(&made.journal(), 0, 1, 0);
    let made = Made { stalls: vec![(hit, 100_000, 103_000, false)], ..made };
    let mut journal = made.journal();
    let said = |journal: &Journal| {
        let (_, all) = judged(journal);
        let view = draw(journal, Path::new("records.jsonl")).unwrap().view.soak.unwrap();
        (status(&all, "longest_outage").1, view.sentence, view.events.table.rows[0].join(" "))
    };
    let (reason, sentence, row) = said(&journal);
    assert!(reason.contains("no watched port of theirs was down"), "{reason}");
    assert!(sentence.contains("1 stall with no watched port down"), "{sentence}");
    assert!(row.contains("all watched ports of theirs were up"), "{row}");
    journal.watched.clear();
    let (reason, sentence, row) = said(&journal);
    assert!(reason.contains("none of their ports was watched") && !reason.contains("down"), "{reason}");
    assert!(sentence.contains("1 stall of flows whose ports were not watched"), "{sentence}");
    assert!(!row.contains("were up"), "{row}");
}

/// A flow is no part, and what failed in the soak is not hidden behind "No component stands out".
#[test]
fn the_banner_and_the_section_of_parts_agree() {
    let made = Made::healthy();
    let hit = flow(&made.journal(), 0, 1, 0);
    let stalled = Made { stalls: vec![(hit, 100_000, 103_000, false)], ..made.clone() };
    let down = Made { flaps: vec![(1, 0, 100_000, 102_000)], ..made };
    for (made, named) in [(stalled, false), (down, true)] {
        let view = draw(&read(&events(&made)), Path::new("records.jsonl")).unwrap().view;
        let part = &view.banner.causes[0];
        assert_eq!(part.contains(" down for "), named, "{part}");
        assert!(named || part.contains(" stalled for "), "{part}");
        assert!(view.parts.unwrap().named.is_empty());
    }
}

/// The controller is interrupted behind the loss and taken up again: the host answers, and has the rest of the soak.
fn resumed(events: Vec<Line>) -> Vec<Line> {
    let is_up = |line: &&Line| matches!(&line.event, Event::HostUp { host, .. } if host == "gpu002");
    let up = events.iter().find(is_up).unwrap().event.clone();
    let place = events.iter().position(|line| matches!(&line.event, Event::HostLost { .. })).unwrap();
    let mut events = events;
    let behind = events.split_off(place + 1);
    let mut spent = Vec::new();
    let mut rest = Vec::new();
    for line in behind {
        let early = matches!(&line.event, Event::Soaked(part) if part.from < at(360_000));
        if early { spent.push(line) } else { rest.push(line) }
    }
    events.extend(spent);
    events.extend([
        line_at(360_000, Event::Interrupted),
        line_at(420_000, Event::Resumed { unread: Vec::new() }),
        line_at(420_000, up),
    ]);
    events.extend(rest);
    events
}

#[test]
fn a_host_that_was_lost_stays_told_when_the_run_was_taken_up_again() {
    let mut made = made();
    made.stalls.retain(|(_, from, ..)| *from < 360_000);
    let (found, verdicts, view) = found(&resumed(killed(&made.longest(7_000))));
    let hosts = verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Hosts).expect("a verdict on the hosts");
    // What it missed of the soak is not measured again.
    assert_eq!(hosts.status, Status::Inconclusive);
    let reason = hosts.reason.to_string();
    assert!(reason.contains("lost in the soak and back"), "{reason}");
    assert!(reason.contains("killed by signal 9"), "{reason}");
    let (outage, reason) = status(&verdicts, "longest_outage");
    assert_eq!(outage, Status::Fail, "{reason}");
    let [stall] = found.stalls.as_slice() else { panic!("{:?}", found.stalls) };
    let length = stall.hit.longest_stall.as_ref().unwrap().length;
    assert!(length < Nanoseconds::from_secs(130), "not after it came back: {length}");
    let said = text::summary(&view, Path::new("report.html"), &Screen::PLAIN);
    assert!(said.contains("was lost and came back: gpu002"), "{said}");
}

/// Tests measure again what is missing: a host that came back for all of it is told and is no reason to doubt.
#[test]
fn a_host_that_came_back_to_the_tests_is_told_and_passes() {
    let mut events = events(&Made::healthy());
    let place = events.iter().position(|line| matches!(&line.event, Event::Outcome(_))).unwrap();
    let is_up = |line: &&Line| matches!(&line.event, Event::HostUp { host, .. } if host == "gpu002");
    let up = events.iter().find(is_up).unwrap().clone();
    let time = events[place].at.clone();
    let line = |event| Line { at: time.clone(), event };
    let between = [
        line(Event::HostLost { host: "gpu002".into(), failure: gone() }),
        line(Event::Interrupted),
        line(Event::Resumed { unread: Vec::new() }),
        line(up.event),
    ];
    events.splice(place..place, between);
    let (_, verdicts, view) = found(&events);
    let hosts = verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Hosts).expect("a verdict on the hosts");
    assert_eq!(hosts.status, Status::Pass, "{}", hosts.reason);
    assert!(hosts.reason.to_string().contains("lost and back: gpu002"), "{}", hosts.reason);
    let said = text::summary(&view, Path::new("report.html"), &Screen::PLAIN);
    assert!(said.contains("was lost and came back: gpu002"), "{said}");
}

/// Where all hosts are lost, or all flows fail, it is hardly one of them.
#[test]
fn what_all_share_is_looked_at_where_all_hosts_or_flows_failed() {
    let hosts = ["gpu001", "gpu002", "gpu003", "gpu004"];
    let mut events = killed(&made().longest(7_000));
    let place = events.iter().position(|line| matches!(&line.event, Event::HostLost { .. })).unwrap();
    for host in hosts.into_iter().filter(|host| *host != "gpu002") {
        events.insert(place + 1, line_at(GONE, Event::HostLost { host: host.into(), failure: gone().at(host) }));
    }
    let (.., view) = found(&events);
    assert!(view.banner.causes.iter().any(|cause| cause.contains("4 hosts lost: gpu[001-004]")), "{:?}", view.banner);
    let first = view.banner.remedy.unwrap();
    assert_eq!(first.about, "all 4 hosts were lost");
    assert!(first.text.ends_with("[failed-alike]"), "{first:?}");
    // Flows of which every window fails while all ports are up.
    let mut journal = read(&super::made::events(&Made::healthy()));
    for flow in journal.soaked.iter_mut().flat_map(|part| &mut part.flows) {
        (flow.failed, flow.failure) = (1, Some(gone().at("gpu001")));
    }
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    assert!(view.banner.causes[0].contains(" and 11 more failed"), "{:?}", view.banner);
    let first = view.banner.remedy.unwrap();
    assert!(first.text.ends_with("[failed-alike]"), "{first:?}");
}

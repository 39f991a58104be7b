//! Soaks of made-up runs: what is judged, what is said.

mod degraded;
mod forged;
mod going_on;
mod levels;
mod lost;
pub mod made;
mod on_gpus;
mod unseen;

use std::{fs, path::Path, time::Duration};

use railgauge_analysis::{
    soak::{LISTED, outages::Scope, soaking},
    status::Status,
    verdict::Kind,
};
use railgauge_model::journal::event::Soaked;
use railgauge_model::plan::model::Pattern;
use railgauge_report::text::Screen;
use railgauge_report::{draw, text};
use railgauge_wire::{
    step::Checked,
    unit::{Bytes, Nanoseconds},
};

use crate::kept::write;
use crate::support::Scenario;
use made::{ANSWER, Made, at, flow, flows, judged, lines, nic, status, switch, topology};

#[test]
fn a_healthy_soak_passes_and_says_for_how_long() {
    let (found, all) = Made::healthy().found();
    for key in ["for", "watched", "longest_outage", "longest_degraded", "bytes"] {
        assert_eq!(status(&all, key).0, Status::Pass, "{key}: {}", status(&all, key).1);
    }
    assert_eq!((found.lasted, found.demanded), (Nanoseconds::from_secs(600), Nanoseconds::from_secs(600)));
    assert_eq!((found.counts.flows, found.counts.ports, found.counts.watched_ports), (12, 8, 8));
    assert!(found.coverage.iter().all(|port| port.percent == 100.0), "{:?}", found.coverage);
    assert!(found.holes.is_empty() && found.pauses.is_empty() && found.outages.is_empty());
}

#[test]
fn a_soak_of_which_nothing_was_recorded_is_never_a_pass() {
    let mut journal = Made::healthy().journal();
    (journal.watched, journal.soaked) = Default::default();
    let (_, all) = judged(&journal);
    assert_eq!(status(&all, "for").0, Status::Inconclusive);
    assert_eq!(all.verdicts.iter().filter(|verdict| verdict.kind == Kind::Soak).count(), 1);
    assert_ne!(all.status, Status::Pass);
}

#[test]
fn a_soak_that_is_too_short_says_what_is_missing() {
    let (found, all) = Made { spans: vec![(0, 540_000)], ..Made::healthy() }.found();
    assert_eq!(found.missing(Nanoseconds::from_secs(10)), Some(Nanoseconds::from_secs(60)));
    assert_eq!(status(&all, "for").0, Status::Inconclusive);
    // The last window may be missing.
    let (_, all) = Made { spans: vec![(0, 595_000)], ..Made::healthy() }.found();
    assert_eq!(status(&all, "for").0, Status::Pass);
}

#[test]
fn ports_that_nobody_watched_are_named() {
    let mut journal = Made::healthy().journal();
    journal.watched.retain(|seen| seen.host != "gpu002" || seen.seen.from < at(300_000));
    let (found, all) = judged(&journal);
    let (status, reason) = status(&all, "watched");
    assert_eq!(status, Status::Inconclusive);
    assert!(reason.contains("gpu002 mlx5_0") && reason.contains("50.00 %"), "{reason}");
    assert_eq!((found.holes.len(), found.holes[0].ports), (1, 2));
    journal.watched.retain(|seen| seen.host != "gpu002");
    let (found, _) = judged(&journal);
    assert_eq!((found.coverage[0].port.host.as_str(), found.coverage[0].percent), ("gpu002", 0.0));
}

/// The controller was killed before it could record a part: what agents had told by then is known, and counts.
#[test]
fn an_outage_in_a_part_that_was_lost_is_told() {
    let made = Made { flaps: vec![(1, 0, 100_000, 112_000)], ..Made::healthy() };
    let mut journal = made.journal();
    let begin = journal.soaked.remove(1);
    assert!(begin.from <= at(100_000) && at(112_000) <= begin.until);
    let (found, all) = judged(&journal);
    assert_eq!((found.lasted, found.counts.pauses), (Nanoseconds::from_secs(540), 1));
    assert_eq!(found.outages.len(), 1, "{:?}", found.outages);
    assert_eq!(status(&all, "longest_outage").0, Status::Fail);
    assert!(found.coverage.iter().all(|port| port.percent == 100.0), "of the traffic that is known");
    // So does one before the first part was recorded, once the begin of the soak was.
    let made = Made { flaps: vec![(1, 0, 20_000, 32_000)], ..Made::healthy() };
    let mut journal = made.journal();
    journal.soaked[0] = Soaked { from: at(0), until: at(0), ..Soaked::default() };
    let (found, all) = judged(&journal);
    assert_eq!(found.outages.len(), 1, "{:?}", found.outages);
    assert_eq!(status(&all, "longest_outage").0, Status::Fail);
    // What agents saw during the tests is none of the soak.
    journal.soaked.remove(0);
    assert_eq!(judged(&journal).0.outages.len(), 0);
}

#[test]
fn an_outage_hits_the_flows_of_its_port_and_fails_by_its_length() {
    let made = Made::healthy();
    let journal = made.journal();
    let (hit, beside) = (flow(&journal, 0, 1, 0), flow(&journal, 0, 1, 1));
    let made = Made {
        flaps: vec![(1, 0, 100_000, 102_000)],
        stalls: vec![(hit, 100_050, 104_000, false), (beside, 300_000, 300_500, false)],
        ..made
    };
    let (found, all) = made.found();
    let [outage] = found.outages.as_slice() else { panic!("{:?}", found.outages) };
    assert_eq!((outage.name.as_str(), outage.scope), ("gpu002 mlx5_0", Scope::Port));
    assert!(outage.length.abs_diff(Nanoseconds::from_secs(2)) <= outage.length_error, "{outage:?}");
    assert!(outage.length_error <= Nanoseconds::from_millis(200), "{outage:?}");
    assert_eq!(outage.hit.flows_hit, 1);
    assert_eq!(outage.hit.longest_stall.as_ref().unwrap().length, Nanoseconds::from_millis(3_950));
    assert_eq!(found.breaks.len(), 0, "the counter counts the same break");
    assert_eq!((found.stalls.len(), found.stalls[0].hit.flows_hit), (1, 1));
    assert_eq!(status(&all, "longest_outage").0, Status::Fail);
    // The flow stalled for longer than its port was down: that is judged too.
    for (longest, wanted) in [(3_000, Status::Fail), (3_955, Status::Inconclusive), (5_000, Status::Pass)] {
        let (_, all) = made.clone().longest(longest).found();
        let (status, reason) = status(&all, "longest_outage");
        assert_eq!(status, wanted, "{longest}: {reason}");
        assert!(reason.contains("gpu002 mlx5_0"), "shorter ones are told: {reason}");
    }
}

/// A flow that stalls three times while its port is down has three stalls, and what is judged is the longest that is certain.
#[test]
fn every_stall_of_an_event_is_kept_and_the_longest_certain_one_is_judged() {
    let made = Made::healthy();
    let journal = made.journal();
    let hit = flow(&journal, 0, 1, 0);
    let stalls = vec![(hit, 100_050, 101_000, false), (hit, 101_500, 105_500, false), (hit, 106_000, 107_000, false)];
    let made = Made { flaps: vec![(1, 0, 100_000, 107_500)], stalls, ..made };
    let mut journal = made.journal();
    let (found, _) = judged(&journal);
    let [outage] = found.outages.as_slice() else { panic!("{:?}", found.outages) };
    assert_eq!((outage.hit.flows_hit, outage.hit.stall_count), (1, 3));
    assert_eq!(outage.hit.stalled, Nanoseconds::from_millis(5_950));
    assert_eq!(outage.hit.flow_stalls.len(), 3);
    // Without the port nothing explains them: three events, as they do not overlap.
    journal.watched.retain(|seen| seen.host != "gpu002");
    assert_eq!(judged(&journal).0.stalls.len(), 3);
    // The longest one may be off by more than its length: a shorter one is certain.
    for part in journal.soaked.iter_mut() {
        for stall in part.flows.iter_mut().flat_map(|flow| &mut flow.stalls) {
            if stall.until.saturating_sub(stall.from) > Nanoseconds::from_secs(3) {
                stall.error = Nanoseconds::from_millis(1_900);
            }
        }
    }
    let (found, _) = judged(&journal);
    let longest = found.stalls.iter().map(|stall| stall.hit.longest_stall.as_ref().unwrap());
    assert!(longest.clone().any(|stall| stall.length == Nanoseconds::from_secs(1)), "{:?}", found.stalls);
    journal.plan.soak.as_mut().unwrap().longest_outage = std::time::Duration::from_millis(900);
    let (found, all) = judged(&journal);
    let (status, reason) = status(&all, "longest_outage");
    assert_eq!((status, found.stalls.len()), (Status::Fail, 1), "they overlap within their errors: {reason}");
    assert!(reason.contains("3 stalls"), "{reason}");
    assert!(reason.contains("0.95") || reason.contains("1.00"), "a certain one is told: {reason}");
}

#[test]
fn an_outage_of_unknown_end_is_no_pass() {
    let made = Made { flaps: vec![(1, 0, 595_000, 900_000)], ..Made::healthy() };
    for (longest, wanted) in [(60_000, Status::Inconclusive), (1_000, Status::Fail)] {
        assert_eq!(status(&made.clone().longest(longest).found().1, "longest_outage").0, wanted, "{longest}");
    }
}

#[test]
fn two_ends_of_one_cable_are_one_outage() {
    let mut made = Made::healthy();
    made.scenario.hosts = 2;
    made.flaps = vec![(0, 1, 50_000, 53_000), (1, 1, 50_200, 53_100), (1, 1, 200_000, 201_000)];
    let mut journal = made.journal();
    journal.plan.topology = Some(topology(vec![[nic(0, 0), nic(1, 0)], [nic(0, 1), nic(1, 1)]]));
    let (found, _) = judged(&journal);
    let [both, one] = found.outages.as_slice() else { panic!("{:?}", found.outages) };
    assert_eq!((both.scope, both.ports.len()), (Scope::Cable, 2));
    assert!(both.name.contains("gpu001 mlx5_1") && both.name.contains("gpu002 mlx5_1"), "{}", both.name);
    assert_eq!((one.scope, one.ports.len()), (Scope::Port, 1));
    // Without a topology nobody knows that it is one cable.
    journal.plan.topology = None;
    assert_eq!(judged(&journal).0.outages.len(), 3);
}

#[test]
fn a_cable_is_named_where_a_technician_finds_it() {
    let made = Made { flaps: vec![(1, 0, 100_000, 102_000)], ..Made::healthy() };
    let mut journal = made.journal();
    let cables = (0..4)
        .flat_map(|host| (0..2).map(move |rail| [nic(host, rail), switch("leaf12", 7 + host + 4 * rail as usize)]));
    journal.plan.topology = Some(topology(cables.collect()));
    assert_eq!(judged(&journal).0.outages[0].name, "leaf12 port 8, cable to gpu002 mlx5_0");
}

#[test]
fn all_ports_of_a_host_at_once_are_no_cable() {
    let flaps = vec![(2, 0, 100_000, 102_000), (2, 1, 100_300, 102_500), (2, 1, 400_000, 401_000)];
    let (found, _) = Made { flaps, ..Made::healthy() }.found();
    let scopes: Vec<Scope> = found.outages.iter().map(|outage| outage.scope).collect();
    assert_eq!(scopes, [Scope::Host, Scope::Port]);
    assert_eq!(found.outages[0].length.abs_diff(Nanoseconds::from_millis(2_200)), Nanoseconds::ZERO);
}

#[test]
fn a_break_of_0_3_s_that_only_a_counter_saw_is_found_and_explains_a_stall() {
    let made = Made::healthy();
    let hit = flow(&made.journal(), 0, 3, 1);
    let made = Made {
        gap: 500,
        rises: vec![(3, 1, 77_300, "netdev/carrier_down_count", 1), (3, 1, 77_300, "counters/link_downed", 1)],
        stalls: vec![(hit, 77_300, 77_600, false)],
        ..made
    };
    let (found, all) = made.found();
    let [one] = found.breaks.as_slice() else { panic!("{:?}", found.breaks) };
    assert_eq!((one.name.as_str(), one.hidden.breaks, one.hit.flows_hit), ("gpu004 mlx5_1", 1, 1));
    assert!(found.outages.is_empty() && found.stalls.is_empty());
    assert_eq!(status(&all, "longest_outage").0, Status::Fail);
    for (longest, wanted) in [(400, Status::Inconclusive), (600, Status::Pass)] {
        let (_, all) = made.clone().longest(longest).found();
        assert_eq!(status(&all, "longest_outage").0, wanted, "{longest}");
    }
}

#[test]
fn stalls_without_an_outage_are_one_event_and_fail() {
    let made = Made::healthy();
    let mut journal = made.journal();
    // One round: hosts 0 and 3, 1 and 2, or others; all its flows between the leaves stall.
    let crosses = |case: &&u64| {
        let flow = &journal.cases[**case as usize].flow;
        let leaf = |host: &str| host >= "gpu003";
        leaf(&flow.from.host) != leaf(&flow.to.host)
    };
    let all = flows(&journal);
    let round = journal.cases[*all.iter().find(crosses).unwrap() as usize].round;
    let of_round = |case: &u64| journal.cases[*case as usize].round == round;
    let hit: Vec<usize> = (0..all.len()).filter(|at| of_round(&all[*at]) && crosses(&&all[*at])).collect();
    assert!(hit.len() > 1, "{hit:?}");
    let made = Made { stalls: hit.iter().map(|at| (*at, 200_000, 203_000, true)).collect(), ..made };
    journal.soaked = made.soaked(&all);
    let (found, verdicts) = judged(&journal);
    let [stall] = found.stalls.as_slice() else { panic!("{:?}", found.stalls) };
    assert_eq!((stall.hit.flows_hit, stall.failed), (hit.len(), true));
    assert_eq!(status(&verdicts, "longest_outage").0, Status::Fail);
    assert_eq!(status(&verdicts, "bytes").0, Status::Fail, "no outage explains the windows that failed");
}

#[test]
fn a_resumed_soak_says_when_nobody_watched_and_bridges_nothing() {
    let made = Made {
        spans: vec![(0, 300_000), (540_000, 840_000)],
        flaps: vec![(0, 0, 298_000, 545_000)],
        ..Made::healthy()
    };
    let (found, all) = made.found();
    assert_eq!((found.lasted, found.counts.pauses, found.counts.holes), (Nanoseconds::from_secs(600), 1, 1));
    assert_eq!(found.pauses[0].length(), Nanoseconds::from_secs(240));
    let [behind, before] = found.outages.as_slice() else { panic!("{:?}", found.outages) };
    assert!(before.begin.seen && !before.end.seen && !behind.begin.seen && behind.end.seen);
    assert!(before.length < Nanoseconds::from_secs(3) && behind.length < Nanoseconds::from_secs(6));
    assert_eq!(status(&all, "for").0, Status::Pass);
    let (watched, reason) = status(&all, "watched");
    assert_eq!(watched, Status::Pass);
    assert!(reason.contains("not watched for 4 min 00 s"), "{reason}");
}

#[test]
fn limits_are_rates_of_one_reading_and_what_nobody_counts_is_no_pass() {
    let limits =
        [("symbol_error", 10.0), ("counters/port_rcv_errors", 5.0), ("rx_discards_phy", 1.0), ("link_dwned", 1.0)];
    let mut made = Made::healthy();
    made.soak.limits = limits.map(|(name, limit)| (name.to_owned(), limit)).into();
    made.rises = vec![
        (0, 0, 10_000, "counters/port_rcv_errors", 6),
        (2, 1, 20_000, "ethtool/rx_discards_phy", 1),
        (2, 1, 30_000, "ethtool/rx_corrected_bits_phy", 1_000_000),
    ];
    let (found, all) = made.found();
    let wanted = [
        // It stood still, and rows say that it is there.
        ("limits.symbol_error", Status::Pass, "never rose"),
        ("limits.counters/port_rcv_errors", Status::Fail, "gpu001 mlx5_0: 6/s"),
        // What the other ports would have counted nobody knows.
        ("limits.rx_discards_phy", Status::Inconclusive, "1 of 8 watched ports count it"),
        ("limits.link_dwned", Status::Inconclusive, "0 of 8 watched ports count it"),
    ];
    for (key, wanted, words) in wanted {
        let (status, reason) = status(&all, key);
        assert_eq!(status, wanted, "{key}: {reason}");
        assert!(reason.contains(words), "{reason}");
    }
    assert!(found.counters[0].is_over() && found.counters.len() == 3, "{:?}", found.counters);
    // Errors that were corrected stand last.
    assert!(found.families.last().unwrap().family.is_normal(), "{:?}", found.families);
}

#[test]
fn a_counter_at_its_largest_value_counts_no_more() {
    let mut made = Made::healthy();
    made.soak.limits = [("symbol_error".to_owned(), 10.0)].into();
    let mut journal = made.journal();
    let row = &mut journal.watched[0].seen.ports[0].rows[0];
    row.gauges.insert("saturated/counters/symbol_error".into(), 65_535.0);
    assert_eq!(status(&judged(&journal).1, "limits.symbol_error").0, Status::Inconclusive);
}

/// A break excuses the windows that failed in it, and no others of the same part.
#[test]
fn a_window_that_fails_at_another_time_is_not_explained() {
    let made = Made { flaps: vec![(1, 0, 100_000, 100_200)], ..Made::healthy() }.longest(60_000);
    let journal = made.journal();
    let hit = flow(&journal, 0, 1, 0);
    for (begin, wanted) in [(100_100, Status::Pass), (115_000, Status::Fail)] {
        let made = Made { stalls: vec![(hit, begin, begin + 3_000, true)], ..made.clone() };
        assert_eq!(status(&made.found().1, "bytes").0, wanted, "{begin}");
    }
    // Wrong bytes are no matter of an outage.
    let made = Made { stalls: vec![(hit, 100_100, 103_000, true)], ..made };
    let mut journal = made.journal();
    let failed = journal.soaked.iter_mut().flat_map(|part| &mut part.flows).find(|flow| flow.failed > 0).unwrap();
    failed.corrupted = 1;
    assert_eq!(status(&judged(&journal).1, "bytes").0, Status::Fail);
}

#[test]
fn wrong_bytes_fail_whatever_was_down() {
    let made = Made { flaps: vec![(1, 0, 100_000, 102_000)], ..Made::healthy() }.longest(60_000);
    let mut journal = made.journal();
    journal.soaked[1].flows[0].checked.wrong = Bytes(8);
    let (_, all) = judged(&journal);
    assert_eq!(status(&all, "bytes").0, Status::Fail);
    let mut journal = made.journal();
    journal.soaked.iter_mut().for_each(|part| part.flows[0].checked = Checked::default());
    assert_eq!(status(&judged(&journal).1, "bytes").0, Status::Inconclusive, "nothing was verified");
}

#[test]
fn windows_that_fail_in_an_outage_of_their_ports_are_explained() {
    let made = Made::healthy();
    let hit = flow(&made.journal(), 1, 2, 0);
    let made = Made {
        flaps: vec![(1, 0, 100_000, 102_000)],
        stalls: vec![(hit, 100_000, 110_000, true)],
        ..made.longest(60_000)
    };
    let (found, all) = made.found();
    assert_eq!(status(&all, "bytes").0, Status::Pass, "{}", status(&all, "bytes").1);
    let flow = found.flows.iter().find(|flow| flow.failed > 0).unwrap();
    assert_eq!((flow.failed, flow.failed_unexplained), (1, 0));
}

#[test]
fn a_flow_that_never_had_traffic_is_no_pass() {
    let mut journal = Made::healthy().journal();
    journal.soaked.iter_mut().for_each(|part| drop(part.flows.remove(0)));
    let (found, all) = judged(&journal);
    assert_eq!((status(&all, "for").0, found.counts.flows), (Status::Inconclusive, 11));
}

/// Drawings are for the eye.
fn without_drawings(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if text.starts_with("<svg") => *text = "<svg>".into(),
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_drawings),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(without_drawings),
        _ => {}
    }
}

/// A soak with one of everything.
fn troubled() -> Made {
    let mut made = Made::healthy();
    let journal = made.journal();
    let place = |from, to, rail| flow(&journal, from, to, rail);
    made.soak.limits = [("symbol_error".to_owned(), 10.0)].into();
    Made {
        spans: vec![(0, 300_000), (420_000, 700_000)],
        flaps: vec![(1, 0, 100_000, 102_000), (2, 0, 200_000, 201_000), (2, 1, 200_100, 201_300)],
        stalls: vec![
            (place(0, 1, 0), 100_050, 104_000, true),
            (place(0, 3, 0), 500_000, 500_900, false),
            (place(1, 2, 0), 500_100, 500_800, false),
        ],
        rises: vec![
            (3, 1, 250_300, "netdev/carrier_down_count", 2),
            (0, 1, 120_000, "counters/symbol_error", 12),
            (0, 1, 130_000, "ethtool/rx_prio3_pause", 7000),
        ],
        ..made
    }
}

#[test]
fn the_section_of_a_troubled_soak() {
    let drawn = draw(&troubled().journal(), Path::new("records.jsonl")).unwrap();
    let mut view = serde_json::to_value(drawn.view.soak.as_ref().unwrap()).unwrap();
    without_drawings(&mut view);
    insta::assert_json_snapshot!(view);
    let summary = text::summary(&drawn.view, Path::new("report.html"), &Screen { verbose: true, ..Screen::PLAIN });
    let begin = summary.find("soak: ").unwrap();
    let end = begin + summary[begin..].find("\n\n").unwrap();
    insta::assert_snapshot!(&summary[begin..end]);
}

#[test]
fn a_soak_goes_through_journal_page_verdicts_and_junit() {
    let dir = tempfile::tempdir().unwrap();
    let made = troubled();
    let lines = lines(&made);
    fs::write(dir.path().join("records.jsonl"), lines).unwrap();
    let written = write(dir.path()).unwrap();
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let document: serde_json::Value = serde_json::from_str(&read("verdicts.json")).unwrap();
    assert_eq!(document["soak"]["counts"]["outages"], 2);
    assert_eq!(document["soak"]["outages"][0]["scope"], "port");
    let kinds: Vec<&str> =
        document["verdicts"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "soak").count(), 6);
    assert!(read("report.html").contains("id=\"soak\"") && read("report.html").contains("class=\"t-down\""));
    assert!(
        read("junit.xml").contains("<testsuite name=\"soak\"") && read("junit.xml").contains("limits.symbol_error")
    );
    assert_eq!(written.verdicts.soak, soaking(&made.journal()));
}

/// The journal of a soak with something in every section.
pub fn faulty() -> String {
    lines(&troubled())
}

/// Draws a soak to look at: `RAILGAUGE_SAMPLES=DIR cargo test --test report -- --ignored soak_sample`.
#[test]
#[ignore = "draws a page for the eye"]
fn by_hand_soak_sample() {
    let dir = std::path::PathBuf::from(std::env::var("RAILGAUGE_SAMPLES").expect("a directory in RAILGAUGE_SAMPLES"));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("records.jsonl"), lines(&troubled())).unwrap();
    write(&dir).unwrap();
}

/// Days of a thousand hosts: what is told stays a page, and what is judged is all of it.
#[test]
fn three_days_of_a_thousand_hosts_stay_readable() {
    let hours = 72;
    let mut made = Made::healthy();
    made.scenario =
        Scenario { pattern: Some(Pattern::Neighbours), sizes: vec![1 << 24], repeats: 1, ..Scenario::healthy(1024, 1) };
    made.soak.lasts = Duration::from_secs(3_600 * hours);
    let mut journal = made.journal();
    (journal.watched, journal.soaked) = Default::default();
    let hour = 3_600_000;
    for at_hour in 0..hours {
        let (from, until) = (at_hour * hour, (at_hour + 1) * hour);
        // One answer an hour, with one row of counters; ten flaps of one host in each.
        for host in 0..1024 {
            let flaps = made.flaps.clone();
            if at_hour * 14 % 1024 == host as u64 {
                made.flaps =
                    (0..10).map(|n| (host, 0, from + 60_000 * (n + 1), from + 60_000 * (n + 1) + 400)).collect();
            }
            let mut seen = made.seen(host, from, from + 1_000, at_hour == 0);
            if !made.flaps.is_empty() {
                seen.seen.ports[0].states = made.port((host, 0), from, until, at_hour == 0).states;
            }
            let port = &mut seen.seen.ports[0];
            port.looks = 36_000;
            port.rows[0].until = at(until);
            port.rows[0].counted.insert("netdev/carrier_down_count".into(), made.flaps.len() as u64);
            seen.seen.until = at(until);
            journal.watched.push(seen);
            made.flaps = flaps;
        }
        made.spans = vec![(from, from + ANSWER)];
        let mut parts = made.soaked(&flows(&journal));
        parts[0].until = at(until);
        journal.soaked.append(&mut parts);
    }
    let found = soaking(&journal).unwrap();
    assert_eq!((found.counts.outages, found.counts.breaks, found.counts.watched_ports), (720, 0, 1024));
    assert_eq!(found.lasted, Nanoseconds::from_secs(3_600 * hours));
    let document = serde_json::to_value(&found).unwrap();
    assert_eq!(document["outages"].as_array().unwrap().len(), LISTED);
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let view = drawn.view.soak.unwrap();
    assert_eq!((view.events.table.rows.len(), view.events.more), (LISTED, 720 - LISTED));
    assert!(serde_json::to_string(&view).unwrap().len() < 200_000);
}

//! Journals of permutations among eight hosts with 1 and 16 streams, computed by hand.

use railgauge_wire::Lane;

use super::*;
use crate::{
    journal::{Journal, Try},
    made_test as made,
    results::results,
    rows::rows,
    verdict::verdicts,
};

/// Rates of the flow out of a host with one stream and with sixteen, in parts of 80 Gb/s.
type Shares = [(f64, f64); 8];

const FULL: (f64, f64) = (1.0, 0.97);
const HALF: (f64, f64) = (0.5, 0.96);

/// Equal repeats: a few would not be enough.
const REPEATS: u32 = 30;

fn journal(pattern: &str, shares: &Shares) -> Journal {
    repeated(pattern, shares, REPEATS)
}

fn repeated(pattern: &str, shares: &Shares, repeats: u32) -> Journal {
    let text = format!(
        "name = \"t\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [\"h[0-7]\"] }}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n\
         transport = \"tcp\"\nsizes = [\"64KiB\"]\nverify = false\nwarm_up = \"0s\"\nrepeats = {repeats}\nqps = [1, 16]\n{pattern}\n"
    );
    let mut journal = made::journal(&text, 8, |case| {
        let (few, many) = shares[case.flow.from.host[1..].parse::<usize>().unwrap()];
        made::sample(Bytes((1e9 * if case.cell.qps == 1 { few } else { many }) as u64))
    });
    let first = journal.tries.clone();
    journal.tries.extend((1..repeats).flat_map(|repeat| first.iter().map(move |of| Try { repeat, ..of.clone() })));
    journal
}

fn said(shares: &Shares) -> Collisions {
    said_of(&journal("pattern = \"neighbours\"", shares))
}

fn said_of(journal: &Journal) -> Collisions {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    let found = collisions(&journal.plan.tests, &results, &rows);
    let [one] = found.as_slice() else { panic!("{found:?}") };
    let judged = verdicts(journal, &results, &rows, Vec::new());
    assert_eq!(judged.collisions, found);
    assert!(judged.json().unwrap().contains("\"colliding\""));
    one.clone()
}

fn of_flows(flows: [(f64, f64); 4]) -> Shares {
    let [a, b, c, d] = flows;
    [a, a, b, b, c, c, d, d]
}

#[test]
fn colliding_flows_are_told_with_their_share() {
    let found = said(&of_flows([FULL, HALF, HALF, FULL]));
    let n = REPEATS as usize;
    assert_eq!(
        (found.flows, found.colliding, found.normal, found.suspects.len()),
        (4 * n, 2 * n, 2 * n, 0),
        "{found:?}"
    );
    assert_eq!((found.answer, found.repeated), (Answer::Collisions, 0));
    assert!(found.explains_all(), "{found:?}");
}

#[test]
fn few_passes_tell_nothing_and_say_how_many_would() {
    let found = said_of(&repeated("pattern = \"neighbours\"", &of_flows([FULL, HALF, HALF, FULL]), 3));
    assert_eq!((found.colliding, found.not_told.get(&Why::FewPasses)), (0, Some(&6)), "{found:?}");
    let needed = found.needed_passes.unwrap();
    assert!(needed > 3 && needed <= REPEATS as usize, "{found:?}");
}

#[test]
fn flows_that_lost_packets_take_the_all_clear_away() {
    let mut journal = journal("pattern = \"neighbours\"", &of_flows([FULL, HALF, HALF, FULL]));
    let lost = journal.tries.iter_mut().find(|attempt| attempt.case == 0).unwrap().result.as_mut().unwrap();
    lost.from_counters.insert("tcp/RetransSegs".into(), 100_000);
    lost.from_counters.insert("hw_counters/packet_seq_err".into(), 100_000);
    let found = said_of(&journal);
    assert!(found.colliding > 0 && found.lossy > 0 && !found.explains_all(), "{found:?}");
}

#[test]
fn a_flow_that_is_low_with_both_stays_a_suspect() {
    let found = said(&of_flows([FULL, (0.5, 0.5), FULL, FULL]));
    assert_eq!((found.colliding, found.suspects.len()), (0, 1), "{found:?}");
    assert!(found.suspects[0].flow.starts_with("h2:0"), "{found:?}");
    // It is so in every pass: the ports at its ends are named.
    assert_eq!((found.answer, &*found.ports), (Answer::SlowPort, &["h2:0".to_owned(), "h3:0".to_owned()][..]));
}

#[test]
fn a_flow_that_recovers_without_company_is_not_cleared() {
    let found = said(&of_flows([FULL, HALF, FULL, FULL]));
    assert_eq!((found.colliding, found.not_told.get(&Why::NoCompany)), (0, Some(&(REPEATS as usize))), "{found:?}");
}

#[test]
fn one_of_four_paths_that_is_slow_is_not_cleared_by_sixteen_queue_pairs() {
    // One flow on the path at half; with 16 queue pairs each flow has a quarter of its queue pairs there.
    let found = said(&of_flows([(1.0, 0.87), (0.5, 0.87), (1.0, 0.88), (1.0, 0.87)]));
    assert_eq!(found.colliding, 0, "{found:?}");
    assert_eq!(found.not_told.values().sum::<usize>(), REPEATS as usize);
    assert_ne!(found.answer, Answer::Collisions, "{found:?}");
}

#[test]
fn what_was_not_measured_is_said() {
    let mut journal = repeated("pattern = \"neighbours\"", &of_flows([FULL, HALF, HALF, FULL]), 1);
    let gone = journal.cases.iter().find(|case| case.cell.qps == 16).unwrap().id;
    journal.tries.retain(|attempt| attempt.case != gone);
    let results = results(&journal).unwrap();
    let found = collisions(&journal.plan.tests, &results, &rows(&journal, &results)).remove(0);
    // Three flows with both values are too few.
    assert_eq!(found.not_told.get(&Why::TooFew), Some(&4), "{found:?}");
    assert_eq!((found.colliding, found.loss_percent), (0, None));
}

#[test]
fn tests_of_shared_ports_and_of_one_number_say_nothing() {
    for pattern in ["pattern = \"incast\"", "pattern = \"all-to-all\"", "bidirectional = true"] {
        let journal = journal(pattern, &of_flows([FULL; 4]));
        let results = results(&journal).unwrap();
        assert!(collisions(&journal.plan.tests, &results, &rows(&journal, &results)).is_empty(), "{pattern}");
    }
}

/// Flows with all paths to themselves, and the answers without a counter of packets out of order, with one that did not rise, and with one
/// that did.
#[test]
fn packets_out_of_order_distinguish_spraying() {
    for (times, answer, percent) in
        [(None, Answer::Even, None), (Some(3), Answer::Even, Some(0.0)), (Some(100_000), Answer::Sprayed, Some(100.0))]
    {
        let mut journal = journal("pattern = \"neighbours\"", &of_flows([FULL; 4]));
        for attempt in &mut journal.tries {
            let counters = &mut attempt.result.as_mut().unwrap().to_counters;
            counters.extend(times.map(|times| ("hw_counters/out_of_sequence".to_owned(), times)));
        }
        let found = said_of(&journal);
        assert_eq!((found.answer, found.reordered_percent), (answer, percent), "{times:?}: {found:?}");
    }
}

/// The hash places the same flows with the same source ports on the same paths.
#[test]
fn passes_with_the_source_ports_of_earlier_ones_do_not_count() {
    let mut journal = journal("pattern = \"neighbours\"", &of_flows([FULL, HALF, HALF, FULL]));
    let cases = journal.cases.clone();
    for attempt in &mut journal.tries {
        if cases.iter().any(|case| case.id == attempt.case && case.cell.qps > 1) {
            continue;
        }
        let port = 49_152 + attempt.case as u16 + 100 * (attempt.repeat as u16 / 2);
        let initiator = &mut attempt.result.as_mut().unwrap().initiator;
        let bytes = initiator.bytes;
        initiator.lanes = vec![Lane { bytes, source_port: Some(SourcePort::PredictedUdp(port)) }].into();
    }
    let found = said_of(&journal);
    assert_eq!((found.passes, found.repeated), (REPEATS as usize / 2, REPEATS as usize / 2));
}

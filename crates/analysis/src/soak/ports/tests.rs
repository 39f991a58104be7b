use std::collections::BTreeMap;

use proptest::prelude::*;
use railgauge_wire::{CounterRow, Gap, GigabitsPerSecond, Nanoseconds, PortSeen, PortState, Watched};

use super::*;

/// Since 1970.
fn ms(milliseconds: u64) -> Nanoseconds {
    Nanoseconds::from_millis(milliseconds)
}

fn state(after: u64, at: u64, up: bool) -> PortState {
    PortState { after: ms(after), at: ms(at), up, ..PortState::default() }
}

fn row(from: u64, until: u64, counted: &[(&str, u64)]) -> CounterRow {
    let counted = counted.iter().map(|(name, rise)| ((*name).to_owned(), *rise)).collect();
    CounterRow { from: ms(from), until: ms(until), counted, ..CounterRow::default() }
}

/// Looks every 100 ms at one port, with a first look at the start if requested.
fn seen(from: u64, until: u64, states: Vec<PortState>, rows: Vec<CounterRow>) -> Seen {
    let port = PortSeen {
        device: "mlx5_0".into(),
        port: 1,
        looks: (until - from) / 100,
        longest_gap: ms(110),
        gaps: Vec::new(),
        states,
        rows,
        failure: None,
    };
    let seen = Watched { from: ms(from), until: ms(until), cpu: Nanoseconds::ZERO, ports: vec![port] };
    Seen { host: "gpu1".into(), error: Nanoseconds(50_000), seen }
}

fn journal(watched: Vec<Seen>) -> Journal {
    let plan = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"gpu[1-2]\"] }\n[[test]]\nop = \"write\"\nmetric = \
                \"bandwidth\"\n";
    let (plan, _) = railgauge_model::plan::parse("t.toml", plan, std::path::Path::new(".")).unwrap();
    Journal { watched, ..Journal::of(plan) }
}

fn of(watched: Vec<Seen>, from: u64, until: u64) -> Port {
    let mut ports = over_time(&journal(watched), &[Span::new(ms(from), ms(until))], &|_| false);
    assert_eq!(ports.len(), 1);
    ports.remove(0)
}

#[test]
fn every_long_gap_in_a_record_is_a_hole_of_its_own() {
    let gap = |from, until| Gap { from: ms(from), until: ms(until) };
    let mut first = seen(0, 300_000, vec![state(0, 0, true)], Vec::new());
    first.seen.ports[0].gaps = vec![gap(50_000, 53_000), gap(200_000, 207_000), gap(298_000, 300_000)];
    // The last one continued: the next record has it whole.
    let mut second = seen(300_000, 600_000, Vec::new(), Vec::new());
    second.seen.ports[0].gaps = vec![gap(298_000, 304_000)];
    let port = of(vec![first, second], 0, 600_000);
    let hole = |from, until| Span::new(ms(from), ms(until));
    assert_eq!(port.holes, [hole(50_000, 53_000), hole(200_000, 207_000), hole(298_000, 304_000)]);
    assert_eq!(port.watched, ms(600_000 - 3_000 - 7_000 - 6_000));
}

#[test]
fn an_outage_has_begin_end_and_an_error() {
    let states = vec![state(0, 0, true), state(1_000, 1_100, false), state(3_000, 3_100, true)];
    let port = of(vec![seen(0, 10_000, states, Vec::new())], 0, 10_000);
    let [down] = port.outages.as_slice() else { panic!("{port:?}") };
    assert_eq!((down.begin.at, down.length(), down.length_error()), (ms(1_050), ms(2_000), ms(100)));
    assert!(down.is_whole() && port.holes.is_empty() && port.breaks.is_empty());
    assert_eq!(port.watched, ms(10_000));
}

#[test]
fn what_is_down_at_the_end_is_at_least_so_long() {
    let states = vec![state(0, 0, false), state(500, 600, true), state(9_000, 9_100, false)];
    let port = of(vec![seen(0, 10_000, states, Vec::new())], 0, 10_000);
    let [first, last] = port.outages.as_slice() else { panic!("{port:?}") };
    assert!(!first.begin.seen && first.end.seen && last.begin.seen && !last.end.seen);
    assert_eq!(last.end.at, ms(10_000));
}

#[test]
fn an_outage_is_not_bridged_over_a_hole() {
    let first = seen(0, 10_000, vec![state(0, 0, true), state(8_000, 8_100, false)], Vec::new());
    let second = |up| seen(250_000, 260_000, vec![state(250_000, 250_000, up)], Vec::new());
    let port = of(vec![first.clone(), second(false)], 0, 260_000);
    let [before, behind] = port.outages.as_slice() else { panic!("{port:?}") };
    assert_eq!(
        (before.end.at, before.end.seen, behind.begin.at, behind.begin.seen),
        (ms(10_000), false, ms(250_000), false)
    );
    assert_eq!(port.holes, [Span::new(ms(10_000), ms(250_000))]);
    assert_eq!(port.watched, ms(20_000));
    // It came back at an unwatched, and thus unknown, time.
    let port = of(vec![first, second(true)], 0, 260_000);
    assert_eq!(port.outages.len(), 1);
    assert!(!port.outages[0].end.seen);
}

#[test]
fn a_break_that_only_a_counter_saw_is_told_with_the_longest_it_can_have_been() {
    let rows = vec![
        row(0, 1_000, &[]),
        row(1_000, 2_000, &[("netdev/carrier_down_count", 1), ("counters/link_downed", 1), ("netdev/rx_bytes", 7)]),
        row(2_000, 3_000, &[]),
    ];
    let port = of(vec![seen(0, 10_000, vec![state(0, 0, true)], rows)], 0, 10_000);
    let [hidden] = port.breaks.as_slice() else { panic!("{port:?}") };
    assert_eq!((hidden.breaks, hidden.shorter_than, hidden.span), (1, ms(110), Span::new(ms(1_000), ms(2_000))));
    assert!(port.outages.is_empty() && !port.counters.contains_key("netdev/rx_bytes"));
}

#[test]
fn what_looks_saw_is_no_second_break_by_its_counters() {
    let states = vec![state(0, 0, true), state(1_900, 2_000, false), state(2_300, 2_400, true)];
    // Each counter shows it in another row.
    let rows = vec![
        row(1_000, 2_000, &[("netdev/carrier_down_count", 1)]),
        row(2_000, 3_000, &[("counters/link_downed", 1), ("ethtool/link_down_events_phy", 1)]),
    ];
    let port = of(vec![seen(0, 10_000, states.clone(), rows)], 0, 10_000);
    assert_eq!((port.outages.len(), port.breaks.len()), (1, 0), "{port:?}");
    // Two more within the same second are two more.
    let rows = vec![row(1_000, 3_000, &[("netdev/carrier_down_count", 3)])];
    let port = of(vec![seen(0, 10_000, states, rows)], 0, 10_000);
    assert_eq!(port.breaks.iter().map(|hidden| hidden.breaks).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_port_nobody_looked_at_for_long_was_not_watched() {
    let mut long = seen(0, 10_000, vec![state(0, 0, true)], Vec::new());
    long.seen.ports[0].longest_gap = ms(4_000);
    assert_eq!(of(vec![long.clone()], 0, 10_000).watched, ms(6_000));
    long.seen.ports[0].looks = 2;
    assert_eq!(of(vec![long.clone()], 0, 10_000).watched, ms(4_000));
    (long.seen.ports[0].looks, long.seen.ports[0].failure) = (0, Some("it is gone".into()));
    let port = of(vec![long], 0, 10_000);
    assert_eq!((port.watched, port.failure.as_deref()), (Nanoseconds::ZERO, Some("it is gone")));
}

#[test]
fn a_port_that_comes_back_with_fewer_lanes_is_told() {
    let speed = |state: PortState, rate: f64, lanes| PortState {
        rate_gbps: Some(GigabitsPerSecond(rate)),
        lanes: Some(lanes),
        ..state
    };
    let states = vec![
        speed(state(0, 0, true), 400.0, 4),
        state(1_000, 1_100, false),
        speed(state(2_000, 2_100, true), 200.0, 2),
        speed(state(5_000, 5_100, true), 400.0, 4),
    ];
    let port = of(vec![seen(0, 10_000, states, Vec::new())], 0, 10_000);
    let [lower] = port.lower.as_slice() else { panic!("{port:?}") };
    assert_eq!((lower.lanes, lower.best_lanes, lower.span), (Some(2), Some(4), Span::new(ms(2_100), ms(5_100))));
    assert!(!lower.open, "both its ends were seen");
    assert_eq!(port.outages.len(), 1);
}

#[test]
fn peaks_of_joined_rows_are_the_highest_rates() {
    let mut joined = row(0, 60_000, &[("counters/symbol_error", 30)]);
    joined.peaks = BTreeMap::from([("counters/symbol_error".to_owned(), 12.0)]);
    let rows = vec![joined, row(60_000, 60_200, &[("counters/symbol_error", 3)])];
    let port = of(vec![seen(0, 61_000, vec![state(0, 0, true)], rows)], 0, 61_000);
    let counted = port.counters["counters/symbol_error"];
    assert_eq!((counted.total, counted.most_per_second, counted.most_at), (33, 12.0, ms(60_000)));
}

/// Starts and ends of outages, in milliseconds, from gaps and lengths.
fn flaps(steps: &[(u64, u64)]) -> Vec<PortState> {
    let mut states = vec![state(0, 0, true)];
    let mut at = 0;
    for (up, down) in steps {
        let begin = at + 300 + up;
        let end = begin + 200 + down;
        states.extend([state(begin, begin + 100, false), state(end, end + 100, true)]);
        at = end + 100;
    }
    states
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn splitting_spans_loses_and_makes_no_outage(
        steps in prop::collection::vec((0_u64..5_000, 0_u64..5_000), 0..12),
        mut cuts in prop::collection::vec(1_u64..120_000, 0..20),
        overlap in 0_u64..3,
    ) {
        let states = flaps(&steps);
        let end = 130_000;
        let whole = of(vec![seen(0, end, states.clone(), Vec::new())], 0, end);
        prop_assert_eq!(whole.outages.len(), steps.len());
        cuts.sort_unstable();
        cuts.dedup();
        let edges: Vec<u64> = [0].into_iter().chain(cuts).chain([end]).collect();
        let pieces = edges.windows(2).map(|edge| {
            let inside = |state: &&PortState| state.at >= ms(edge[0]) && state.at < ms(edge[1]);
            // Repeated comparison of clocks makes spans overlap a little.
            seen(edge[0].saturating_sub(overlap), edge[1], states.iter().filter(inside).cloned().collect(), Vec::new())
        });
        let split = of(pieces.collect(), 0, end);
        let spans = |port: &Port| port.outages.iter().map(|down| (down.span(), down.is_whole())).collect::<Vec<_>>();
        prop_assert_eq!(spans(&split), spans(&whole));
        prop_assert!(split.watched <= ms(end) && split.holes.is_empty());
    }
}

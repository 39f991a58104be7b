use super::*;

fn secs(seconds: u64) -> Nanoseconds {
    Nanoseconds::from_secs(seconds)
}

fn mailbox(ports: u8) -> Mailbox {
    let port = |port| WatchedPort { device: "mlx5_0".into(), port };
    Mailbox::new((1..=ports).map(port).collect(), secs(100))
}

fn look(at: Nanoseconds, change: Option<PortState>) -> Look {
    Look { begun: at, ended: at, changes: change.into_iter().collect(), failure: None }
}

#[test]
fn gaps_reach_over_answers() {
    let mailbox = mailbox(1);
    mailbox.looked(0, look(secs(101), None));
    let seen = mailbox.take(secs(103));
    assert_eq!((seen.from, seen.until), (secs(100), secs(103)));
    assert_eq!((seen.ports[0].looks, seen.ports[0].longest_gap), (1, secs(2)));
    // The next look is 4 s after the last one, which was in the span before.
    mailbox.looked(0, look(secs(105), None));
    let seen = mailbox.take(secs(106));
    assert_eq!((seen.from, seen.ports[0].looks, seen.ports[0].longest_gap), (secs(103), 1, secs(4)));
}

#[test]
fn every_long_gap_of_an_answer_is_told_with_its_begin_and_end() {
    let mailbox = mailbox(1);
    for at in [101, 105, 106, 112] {
        mailbox.looked(0, look(secs(at), None));
    }
    let gap = |from, until| Gap { from: secs(from), until: secs(until) };
    assert_eq!(mailbox.take(secs(113)).ports[0].gaps, [gap(101, 105), gap(106, 112)]);
    // One that continues is reported so far, and whole when it is over.
    assert_eq!(mailbox.take(secs(116)).ports[0].gaps, [gap(112, 116)]);
    mailbox.looked(0, look(secs(118), None));
    assert_eq!(mailbox.take(secs(119)).ports[0].gaps, [gap(112, 118)]);
    assert_eq!(mailbox.take(secs(120)).ports[0].gaps, []);
    // Not without end.
    let far = |number: u64| secs(1_000 + 10 * number);
    (0..3_000).for_each(|number| mailbox.looked(0, look(far(number), None)));
    let seen = mailbox.take(far(3_000) - secs(9));
    assert_eq!(seen.ports[0].gaps.len(), GAPS);
    assert!(seen.ports[0].failure.as_ref().unwrap().starts_with("1000 more"), "{:?}", seen.ports[0].failure);
}

#[test]
fn looks_that_fail_do_not_count() {
    let mailbox = mailbox(1);
    mailbox.looked(0, look(secs(101), None));
    for second in 102..110 {
        mailbox.looked(0, Look { failure: Some("gone".into()), ..look(secs(second), None) });
    }
    let seen = mailbox.take(secs(110));
    let port = &seen.ports[0];
    assert_eq!((port.looks, port.longest_gap, port.failure.as_deref()), (1, secs(9), Some("gone")));
    assert_eq!(mailbox.take(secs(110)).ports[0].failure, None);
}

#[test]
fn a_read_that_hangs_is_told() {
    let mailbox = mailbox(2);
    mailbox.reading(1, secs(101));
    let quick = mailbox.take(secs(101) + Nanoseconds::from_millis(500));
    assert!(quick.ports.iter().all(|port| port.failure.is_none()), "{quick:?}");
    let hanging = mailbox.take(secs(111));
    for port in &hanging.ports {
        let words = port.failure.as_ref().unwrap();
        assert!(words.contains("mlx5_0, port 2") && words.contains("10.0 s"), "{words}");
        assert_eq!((port.looks, port.longest_gap), (0, secs(11)));
    }
    mailbox.sleeps(Nanoseconds(7));
    let over = mailbox.take(secs(112));
    assert!(over.ports.iter().all(|port| port.failure.is_none()) && over.cpu == Nanoseconds(7), "{over:?}");
}

#[test]
fn changes_beyond_the_cap_are_counted_and_the_latest_is_kept() {
    let mailbox = mailbox(4);
    for at in 0..1000 {
        mailbox.looked(0, look(secs(100 + at), Some(PortState { at: secs(100 + at), ..PortState::default() })));
    }
    let seen = mailbox.take(secs(1100));
    let port = &seen.ports[0];
    assert_eq!(port.states.len(), CHANGES / 4);
    assert_eq!((port.states[0].at, port.states.last().unwrap().at), (secs(100), secs(1099)));
    assert!(port.failure.as_ref().unwrap().starts_with("500 changes"), "{port:?}");
}

fn row(from: u64, until: u64, statistics: bool) -> CounterRow {
    let names =
        (0..60).map(|name| format!("{}/some_counter_of_a_port_{name}", if statistics { "ethtool" } else { "hw" }));
    let gauges = statistics.then(|| ("ethtool/statistics".to_owned(), 60.0));
    CounterRow {
        from: secs(from),
        until: secs(until),
        counted: names.map(|name| (name, 1 + from % 3)).collect(),
        gauges: gauges.into_iter().collect(),
        ..CounterRow::default()
    }
}

#[test]
fn hours_without_a_question_take_bounded_memory_and_lose_no_count() {
    let mailbox = mailbox(2);
    let end = 3600;
    for second in 0..end {
        for port in 0..2 {
            mailbox.counted(port, row(second, second + 1, false));
            if second % 10 == 9 {
                mailbox.counted(port, row(second - 9, second + 1, true));
            }
        }
    }
    let seen = mailbox.take(secs(100 + end));
    let text = serde_json::to_string(&seen).unwrap();
    assert!(text.len() < 1 << 20, "{} bytes", text.len());
    for port in &seen.ports {
        for statistics in [false, true] {
            let rows: Vec<_> = port.rows.iter().filter(|row| row.is_of_statistics() == statistics).collect();
            assert!(rows.len() > 2 && rows[0].from == secs(0) && rows.last().unwrap().until == secs(end));
            assert!(rows.windows(2).all(|pair| pair[0].until == pair[1].from));
            let name = rows[0].counted.keys().next().unwrap();
            let sum: u64 = rows.iter().map(|row| row.counted[name]).sum();
            let step = if statistics { 10 } else { 1 };
            assert_eq!(sum, (0..end).step_by(step).map(|second| 1 + second % 3).sum::<u64>());
            let longest = rows.iter().map(|row| row.until - row.from).max().unwrap();
            assert_eq!(rows[0].until - rows[0].from, longest, "the oldest are the longest");
            let peak = rows[0].peaks[name];
            assert_eq!(peak, if statistics { 0.3 } else { 3.0 });
        }
    }
}

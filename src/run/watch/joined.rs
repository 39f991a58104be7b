use std::collections::BTreeSet;

use railgauge_wire::{CounterRow, Gap, Nanoseconds, NanosecondsI64, PortSeen, Watched, WatchedPort};

/// Most changes, rows, and names in a row of a port in an answer: more than an agent of ours ever sends.
const MOST: usize = 10_000;

/// Limits an answer to the requested ports, each once, to the time that it covers, and to a bounded size.
pub(super) fn bounded(mut seen: Watched, asked: &BTreeSet<WatchedPort>) -> Watched {
    seen.from = seen.from.min(seen.until);
    let mut left = asked.clone();
    seen.ports.retain(|port| left.remove(&WatchedPort { device: port.device.clone(), port: port.port }));
    let (from, until) = (seen.from, seen.until);
    for port in &mut seen.ports {
        port.states.truncate(MOST);
        port.gaps.truncate(MOST);
        for gap in &mut port.gaps {
            // It may have begun in the time before.
            gap.until = gap.until.min(until);
            gap.from = gap.from.min(gap.until);
        }
        port.rows.truncate(MOST);
        for state in &mut port.states {
            // The look before may be of the time before.
            state.at = state.at.clamp(from, until);
            state.after = state.after.min(state.at);
        }
        for row in &mut port.rows {
            row.until = row.until.min(until);
            row.from = row.from.min(row.until);
            for names in [row.counted.len(), row.peaks.len(), row.gauges.len()] {
                if names > MOST {
                    *row = CounterRow { from: row.from, until: row.until, ..CounterRow::default() };
                    break;
                }
            }
        }
    }
    seen
}

pub(super) fn moved(mut seen: Watched, offset: NanosecondsI64) -> Watched {
    let shift = |at: &mut Nanoseconds| *at = at.saturating_add_signed(offset);
    shift(&mut seen.from);
    shift(&mut seen.until);
    for port in &mut seen.ports {
        for gap in &mut port.gaps {
            shift(&mut gap.from);
            shift(&mut gap.until);
        }
        for state in &mut port.states {
            shift(&mut state.after);
            shift(&mut state.at);
        }
        for row in &mut port.rows {
            shift(&mut row.from);
            shift(&mut row.until);
        }
    }
    seen
}

/// Joins the next span; the rows of a port become one. `slip` is how much more the clock of the next one was moved than that of
/// the previous one: it is estimated again for every answer.
pub(super) fn join(before: Option<Watched>, seen: Watched, slip: NanosecondsI64) -> Watched {
    let Some(mut all) = before else {
        return Watched { ports: seen.ports.into_iter().map(thinned).collect(), ..seen };
    };
    let joined = Gap { from: all.from, until: seen.from };
    all.until = seen.until;
    all.cpu = all.cpu.saturating_add(seen.cpu);
    for mut port in seen.ports {
        match all.ports.iter_mut().find(|known| (&known.device, known.port) == (&port.device, port.port)) {
            Some(known) => join_port(known, port, slip),
            None => {
                // A port that is watched only since later was not observed before.
                port.gaps.insert(0, joined);
                all.ports.push(thinned(port));
            }
        }
    }
    all
}

fn thinned(port: PortSeen) -> PortSeen {
    PortSeen { rows: one_row(port.rows), ..port }
}

fn join_port(all: &mut PortSeen, port: PortSeen, slip: NanosecondsI64) {
    all.looks = all.looks.saturating_add(port.looks);
    all.longest_gap = all.longest_gap.max(port.longest_gap);
    // A gap that continues after an answer is complete in the next. On the agent's clock both begin at the same moment.
    let began = |known: &Gap| known.from.saturating_add_signed(slip);
    all.gaps.retain(|known| !port.gaps.iter().any(|gap| gap.from == began(known)));
    all.gaps.extend(port.gaps);
    all.states.extend(port.states);
    all.rows.extend(port.rows);
    all.rows = one_row(std::mem::take(&mut all.rows));
    all.failure = port.failure.or(all.failure.take());
}

fn one_row(rows: Vec<CounterRow>) -> Vec<CounterRow> {
    let (statistics, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(CounterRow::is_of_statistics);
    [others, statistics].into_iter().filter_map(|rows| rows.into_iter().reduce(CounterRow::joined)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use railgauge_wire::PortState;

    use super::*;

    const S: Nanoseconds = Nanoseconds::from_secs(1);

    fn row(from: u64, until: u64, rise: u64) -> CounterRow {
        let counted = BTreeMap::from([("symbol_error".to_owned(), rise)]);
        CounterRow { from: S * from, until: S * until, counted, ..CounterRow::default() }
    }

    fn span(from: u64, until: u64, rows: Vec<CounterRow>) -> Watched {
        let state = PortState { at: S * from, up: from.is_multiple_of(2), ..PortState::default() };
        let port = PortSeen {
            device: "a".into(),
            port: 1,
            looks: 10,
            longest_gap: S * from,
            states: vec![state],
            rows,
            ..PortSeen::default()
        };
        Watched { from: S * from, until: S * until, cpu: S, ports: vec![port] }
    }

    #[test]
    fn spans_add_up_and_keep_their_peaks_and_states() {
        let first = join(None, span(1, 3, vec![row(1, 2, 5), row(2, 3, 1)]), NanosecondsI64(0));
        let all = join(Some(first), span(3, 4, vec![row(3, 4, 7)]), NanosecondsI64(0));
        assert_eq!((all.from, all.until, all.cpu), (S, S * 4, S * 2));
        let port = &all.ports[0];
        assert_eq!((port.looks, port.longest_gap, port.states.len(), port.rows.len()), (20, S * 3, 2, 1));
        let row = &port.rows[0];
        assert_eq!((row.from, row.until), (S, S * 4));
        assert_eq!((row.counted["symbol_error"], row.peaks["symbol_error"]), (13, 7.0));
    }

    #[test]
    fn gaps_of_all_answers_are_kept_and_one_that_went_on_once() {
        let with = |from, until, gaps: &[(u64, u64)]| {
            let mut seen = span(from, until, Vec::new());
            seen.ports[0].gaps = gaps.iter().map(|(from, until)| Gap { from: S * *from, until: S * *until }).collect();
            seen
        };
        let first = join(None, with(0, 10, &[(1, 4), (7, 10)]), NanosecondsI64(0));
        let all = join(Some(first), with(10, 20, &[(7, 12), (15, 18)]), NanosecondsI64(0));
        let known: Vec<(Nanoseconds, Nanoseconds)> =
            all.ports[0].gaps.iter().map(|gap| (gap.from, gap.until)).collect();
        assert_eq!(known, [(S, S * 4), (S * 7, S * 12), (S * 15, S * 18)]);
        let moved_by = |seen, offset| moved(seen, NanosecondsI64(offset));
        let first = join(None, moved_by(with(0, 10, &[(7, 10)]), 1_000), NanosecondsI64(0));
        let second = join(Some(first), moved_by(with(10, 20, &[(7, 20)]), 1_700), NanosecondsI64(700));
        let all = join(Some(second), moved_by(with(20, 30, &[(7, 24), (26, 30)]), 900), NanosecondsI64(-800));
        let gaps = &all.ports[0].gaps;
        assert_eq!(gaps.len(), 2, "{gaps:?}");
        assert_eq!((gaps[0].from, gaps[0].until), (S * 7 + Nanoseconds(900), S * 24 + Nanoseconds(900)));
        let later = moved(with(0, 10, &[(1, 4)]), NanosecondsI64(1_000_000_000));
        assert_eq!((later.ports[0].gaps[0].from, later.ports[0].gaps[0].until), (S * 2, S * 5));
    }

    /// A link that reports a port late does not make it watched from the start.
    #[test]
    fn a_port_that_is_watched_since_later_has_a_gap_before() {
        let mut late = span(4, 6, Vec::new());
        late.ports.push(PortSeen { device: "b".into(), ..late.ports[0].clone() });
        let all = join(Some(join(None, span(0, 4, Vec::new()), NanosecondsI64(0))), late, NanosecondsI64(0));
        assert_eq!(all.ports[0].gaps, []);
        assert_eq!(all.ports[1].gaps, [Gap { from: Nanoseconds::ZERO, until: S * 4 }]);
    }

    #[test]
    fn every_time_moves_to_the_other_clock() {
        let moved = moved(span(1, 3, vec![row(1, 2, 5)]), NanosecondsI64(1_000_000_000));
        assert_eq!((moved.from, moved.until), (S * 2, S * 4));
        assert_eq!(
            (moved.ports[0].states[0].at, moved.ports[0].rows[0].from, moved.ports[0].rows[0].until),
            (S * 2, S * 2, S * 3)
        );
    }
}

//! What an agent saw in several spans, as one.

use std::collections::btree_map::Entry;

use railgauge_wire::{
    unit::{Nanoseconds, NanosecondsI64},
    watch::{CounterRow, PortSeen, Watched},
};

/// The same on another clock, which shows so much more.
pub(super) fn moved(mut seen: Watched, offset: NanosecondsI64) -> Watched {
    let shift = |at: &mut Nanoseconds| *at = at.saturating_add_signed(offset);
    shift(&mut seen.from);
    shift(&mut seen.until);
    for port in &mut seen.ports {
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

/// Joins a span to those before it. The rows of a port become one.
pub(super) fn join(before: &mut Option<Watched>, seen: Watched) {
    let Some(all) = before else {
        let mut seen = seen;
        seen.ports.iter_mut().for_each(|port| port.rows = one_row(std::mem::take(&mut port.rows)));
        *before = Some(seen);
        return;
    };
    all.until = seen.until;
    all.cpu = all.cpu.saturating_add(seen.cpu);
    for port in seen.ports {
        match all.ports.iter_mut().find(|known| (&known.device, known.port) == (&port.device, port.port)) {
            Some(known) => join_port(known, port),
            None => all.ports.push(PortSeen { rows: one_row(port.rows.clone()), ..port }),
        }
    }
}

fn join_port(all: &mut PortSeen, port: PortSeen) {
    all.looks = all.looks.saturating_add(port.looks);
    all.longest_gap = all.longest_gap.max(port.longest_gap);
    all.states.extend(port.states);
    all.rows.extend(port.rows);
    all.rows = one_row(std::mem::take(&mut all.rows));
    all.failure = port.failure.or(all.failure.take());
}

/// All rows as one: sums, and the largest rise per second of any of them.
fn one_row(rows: Vec<CounterRow>) -> Vec<CounterRow> {
    let mut rows = rows.into_iter();
    let Some(mut all) = rows.next().map(with_peaks) else { return Vec::new() };
    for row in rows.map(with_peaks) {
        all.until = row.until;
        for (name, rise) in row.counted {
            let sum = all.counted.entry(name).or_default();
            *sum = sum.saturating_add(rise);
        }
        for (name, peak) in row.peaks {
            match all.peaks.entry(name) {
                Entry::Vacant(first) => drop(first.insert(peak)),
                Entry::Occupied(mut known) => drop(known.insert(known.get().max(peak))),
            }
        }
        all.gauges.extend(row.gauges);
    }
    vec![all]
}

/// A row with the largest rises per second of what it was joined from: of a single reading its own.
fn with_peaks(mut row: CounterRow) -> CounterRow {
    let seconds = row.until.saturating_sub(row.from).seconds();
    if row.peaks.is_empty() && seconds > 0.0 {
        row.peaks = row.counted.iter().map(|(name, rise)| (name.clone(), *rise as f64 / seconds)).collect();
    }
    row
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use railgauge_wire::watch::PortState;

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
        let mut all = None;
        join(&mut all, span(1, 3, vec![row(1, 2, 5), row(2, 3, 1)]));
        join(&mut all, span(3, 4, vec![row(3, 4, 7)]));
        let all = all.unwrap();
        assert_eq!((all.from, all.until, all.cpu), (S, S * 4, S * 2));
        let port = &all.ports[0];
        assert_eq!((port.looks, port.longest_gap, port.states.len(), port.rows.len()), (20, S * 3, 2, 1));
        let row = &port.rows[0];
        assert_eq!((row.from, row.until), (S, S * 4));
        assert_eq!((row.counted["symbol_error"], row.peaks["symbol_error"]), (13, 7.0));
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

//! Times in which nothing of a flow arrived, from the slices of its windows.

use railgauge_wire::{Measurement, Nanoseconds, measure::SLICE};

/// Shortest time without an arrival that is a stall. A retransmission timeout of TCP is 200 ms at least (Linux `TCP_RTO_MIN`), and those of
/// RDMA's acknowledgements are usually shorter than this.
pub(super) const SHORTEST: Nanoseconds = Nanoseconds::from_millis(500);

/// A stall is longer than this many usual silences of its window: large messages at a low rate arrive in bursts.
const USUAL: u64 = 4;

/// The stalls in a window, on the clock of the measuring end: start and end, each accurate to a slice.
pub(super) fn within(window: &Measurement) -> Vec<(Nanoseconds, Nanoseconds)> {
    let mut silences: Vec<(Nanoseconds, Nanoseconds)> = Vec::new();
    let mut at = window.started;
    for run in window.slices.chunk_by(|one, next| one.is_zero() == next.is_zero()) {
        let end = at.saturating_add(SLICE * run.len() as u64);
        if run.first().is_some_and(|bytes| bytes.is_zero()) {
            silences.push((at, end));
        }
        at = end;
    }
    let least = SHORTEST.max(usual(&silences) * USUAL);
    silences.retain(|(from, until)| until.saturating_sub(*from) >= least);
    silences
}

/// The median silence of a window without its longest one, which may be the stall. A flow that is usually silent between its messages has
/// many of one length; one that stalls once or twice has hardly any other.
fn usual(silences: &[(Nanoseconds, Nanoseconds)]) -> Nanoseconds {
    let mut lengths: Vec<Nanoseconds> = silences.iter().map(|(from, until)| until.saturating_sub(*from)).collect();
    lengths.sort_unstable();
    lengths.pop();
    if lengths.len() < 3 { Nanoseconds::ZERO } else { lengths[lengths.len() / 2] }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::Bytes;

    use super::*;

    const MS: Nanoseconds = Nanoseconds::from_millis(1);

    fn window(slices: &[u64], operations: u64) -> Measurement {
        Measurement {
            started: MS * 5_000,
            elapsed: SLICE * slices.len() as u64,
            operations,
            slices: slices.iter().copied().map(Bytes).collect(),
            ..Measurement::default()
        }
    }

    #[test]
    fn a_silence_is_a_stall_with_its_begin_and_end() {
        let slices = [vec![9; 10], vec![0; 7], vec![9; 10]].concat();
        assert_eq!(within(&window(&slices, 1_000)), [(MS * 6_000, MS * 6_700)]);
    }

    #[test]
    fn short_silences_and_rare_large_messages_are_none() {
        let short = [vec![9; 10], vec![0; 4], vec![9; 10]].concat();
        assert_eq!(within(&window(&short, 1_000)), []);
        let rare: Vec<u64> = (0..70).map(|slice| u64::from(slice % 7 == 0)).collect();
        assert_eq!(within(&window(&rare, 10)), []);
    }

    #[test]
    fn silences_at_both_edges_count() {
        let slices = [vec![0; 6], vec![9; 10], vec![0; 8]].concat();
        // However few operations there were: the window's own silence does not count as usual.
        let dead = [vec![9; 1], vec![0; 600]].concat();
        assert_eq!(within(&window(&dead, 8)), [(MS * 5_100, MS * 65_100)]);
        assert_eq!(within(&window(&slices, 1_000)), [(MS * 5_000, MS * 5_600), (MS * 6_600, MS * 7_400)]);
        assert_eq!(within(&window(&[], 0)), []);
    }
}

//! Flows of an exchange, timed by their receivers: all together in a round, and each alone while the other ranks wait. Ranks leave the
//! barrier before a round some message latencies apart, and both times contain that.

use railgauge_wire::{Failure, FlowTimes, Nanoseconds};

use super::Operation;
use crate::{
    bench::{clock, control::Control},
    collective::{
        bench::Group,
        engine::{self, Wire},
        script::Script,
    },
};

/// Fewest passes: a round of all flows, and then each flow alone.
const LEAST: usize = 5;
/// Most passes; the test's window ends them before.
const MOST: usize = 100;

impl Operation<'_> {
    /// Those of `alone`, sender and receiver, that this rank receives.
    pub(super) fn flows(&mut self, alone: &[(u32, u32)]) -> Result<Vec<FlowTimes>, Failure> {
        let (rank, window) = (self.bench.rank, self.ready.collective.window.at_most().into());
        let Some(round) = self.ready.parts.first().map(|part| &part.script) else { return Ok(Vec::new()) };
        let scripts: Vec<Script> = alone.iter().map(|(from, to)| round.only(rank, *from, *to)).collect();
        let mut times = vec![(Vec::new(), Vec::new()); alone.len()];
        let (begin, mut elapsed) = (clock::now(), Nanoseconds::ZERO);
        for pass in 0..MOST {
            if pass >= LEAST && elapsed >= window {
                break;
            }
            let together = self.arrivals(round)?;
            for ((script, (from, _)), times) in scripts.iter().zip(alone).zip(&mut times) {
                let from = *from as usize;
                times.0.extend(together.get(from));
                times.1.extend(self.arrivals(script)?.get(from));
            }
            elapsed = self.largest(clock::now() - begin)?;
        }
        let own = alone.iter().zip(times).filter(|((_, to), _)| *to == rank);
        Ok(own
            .map(|((from, _), (together, alone))| FlowTimes {
                from: *from,
                together: median(together),
                alone: median(alone),
            })
            .collect())
    }

    /// Time from a barrier to the last byte from each rank.
    fn arrivals(&mut self, script: &Script) -> Result<Vec<Nanoseconds>, Failure> {
        self.largest(Nanoseconds::ZERO)?;
        let Self { bench, ready, control } = self;
        let mut sides = bench.memory.sides(0..ready.collective.size.as_usize());
        let mut wire = Clocked { wire: bench.wire.as_mut(), last: vec![Nanoseconds::ZERO; bench.ranks as usize] };
        let (begin, width) = (clock::now(), ready.layout.width as usize);
        engine::play::<dyn Wire>(script, &mut sides, None, width, &mut wire, control)?;
        Ok(wire.last.into_iter().map(|last| last.saturating_sub(begin).max(Nanoseconds(1))).collect())
    }
}

fn median(mut times: Vec<Nanoseconds>) -> Nanoseconds {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Notes when the last bytes from each rank arrived.
struct Clocked<'w> {
    wire: &'w mut dyn Wire,
    last: Vec<Nanoseconds>,
}

impl Wire for Clocked<'_> {
    fn offer(&mut self, to: usize, bytes: &[u8]) -> Result<usize, Failure> {
        self.wire.offer(to, bytes)
    }

    fn take(&mut self, from: usize, into: &mut [u8]) -> Result<usize, Failure> {
        let bytes = self.wire.take(from, into)?;
        if let Some(last) = self.last.get_mut(from).filter(|_| bytes > 0) {
            *last = clock::now();
        }
        Ok(bytes)
    }

    /// An exchange reduces nothing.
    fn lend(
        &mut self,
        from: usize,
        most: usize,
        width: usize,
        reader: &mut dyn FnMut(&[u8]),
    ) -> Result<usize, Failure> {
        self.wire.lend(from, most, width, reader)
    }

    fn rest(&mut self, from: Option<usize>, to: Option<usize>, tries: u32, control: &Control) -> Result<(), Failure> {
        self.wire.rest(from, to, tries, control)
    }

    fn name(&self, rank: usize) -> &str {
        self.wire.name(rank)
    }
}

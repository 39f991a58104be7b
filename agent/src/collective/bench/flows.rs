//! Flows of an exchange, timed by their receivers: all together in a round, and each alone while the other ranks wait.
//!
//! A rank may leave the barrier before a round long after its peers, if its processor is busy. So each receiver starts its clock, and then
//! releases its senders by a message: no byte arrives before the clock runs. Both times contain the latency of that message.

use railgauge_wire::{Failure, FlowTimes, Nanoseconds};

use super::Operation;
use crate::{
    bench::{clock, control::Control},
    collective::{
        bench::Group,
        engine::{self, Sides, Wire},
        script::{How, Script, Side, Stretch},
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
            let together = self.arrivals(round, alone)?;
            for ((script, flow), times) in scripts.iter().zip(alone).zip(&mut times) {
                let from = flow.0 as usize;
                times.0.extend(together.get(from));
                times.1.extend(self.arrivals(script, std::slice::from_ref(flow))?.get(from));
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

    /// Time from a barrier to the last byte from each rank, for the `flows` that end here.
    fn arrivals(&mut self, script: &Script, flows: &[(u32, u32)]) -> Result<Vec<Nanoseconds>, Failure> {
        self.largest(Nanoseconds::ZERO)?;
        let Self { bench, ready, control } = self;
        let (release, mut output) = (release(bench.rank, flows), vec![0; flows.len()]);
        let mut words = Sides { input: &[0], output: &mut output, scratch: &mut [] };
        let begin = clock::now();
        engine::play(&release, &mut words, None, 1, bench.wire.as_mut(), control)?;
        let mut sides = bench.memory.sides(0..ready.collective.size.as_usize());
        let mut wire = Clocked { wire: bench.wire.as_mut(), last: vec![Nanoseconds::ZERO; bench.ranks as usize] };
        let width = ready.layout.width as usize;
        engine::play::<dyn Wire>(script, &mut sides, None, width, &mut wire, control)?;
        Ok(wire.last.into_iter().map(|last| last.saturating_sub(begin).max(Nanoseconds(1))).collect())
    }
}

/// A byte from the receiver of each flow to its sender.
fn release(rank: u32, flows: &[(u32, u32)]) -> Script {
    let mut script = Script::default();
    for (number, (from, to)) in flows.iter().enumerate() {
        if *to == rank {
            script.send(*from as usize, Stretch { side: Side::Input, at: 0..1 }, None);
        } else if *from == rank {
            script.receive(*to as usize, Stretch::output(number..number + 1), How::Place, None);
        }
    }
    script
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

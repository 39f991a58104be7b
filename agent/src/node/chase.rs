//! Memory latency of a NUMA node: a processor reads line after line, each holding the place of the next, so that reads cannot overlap.

use std::hint::black_box;

use railgauge_wire::{
    Bytes, Checked, Failure, Kind, Measurement, Nanoseconds, NodeAccount, NodeSpec, Pattern, SLICE, Stage, Window,
    node::LINE,
};

use super::{
    mover::Mover,
    processors::{LEAD, Room, account, at_home, on, settings},
};
use crate::{
    bench::{clock, control::Control},
    memory::{host::Buffer, pattern, place},
    system::tree::Tree,
    worker::on_each,
};

/// Reads between two clock readings: 0.4 ms of memory at 100 ns, thousands of times a clock reading.
const STEPS: u64 = 4096;

pub(super) struct Chase {
    node: u32,
    processor: u32,
    buffer: Buffer,
    has_order: bool,
}

fn lines_of(buffer: &mut Buffer) -> &mut [[u8; LINE.0 as usize]] {
    buffer.bytes_mut().as_chunks_mut().0
}

impl Chase {
    /// On huge pages if possible: with small ones most reads also wait for the page table.
    pub(super) fn open(tree: &Tree, node: u32, spec: &NodeSpec) -> Result<(Self, NodeAccount), Failure> {
        let Room { processors, caches } = Room::of(tree, node, spec)?;
        // The kernel uses processor 0 more than others.
        let processor = processors.last().copied().unwrap_or_default();
        let size = spec.size.0;
        let (buffer, huge) = seated(processor, move || {
            let buffer = Buffer::on_large_pages(size)?;
            let huge = buffer.on_huge(&Tree::host());
            Ok((buffer, huge))
        })?;
        let pages = at_home(node, &place::nodes(buffer.bytes()))?;
        let mut settings = settings(node, 1, caches, pages);
        settings.insert("processor".to_owned(), processor.to_string());
        let huge = huge.map_or_else(|| "unknown".to_owned(), |huge| format!("{} of {size} bytes", huge.min(size)));
        settings.insert("on_huge_pages".to_owned(), huge);
        Ok((Self { node, processor, buffer, has_order: false }, account(settings, node)))
    }
}

impl Mover for Chase {
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure> {
        let (processor, buffer) = (self.processor, &mut self.buffer);
        let first = !std::mem::replace(&mut self.has_order, true);
        let checked = seated(processor, || {
            pattern::fill(buffer.bytes_mut(), pattern, 0);
            let checked = pattern::check(buffer.bytes(), pattern, 0);
            control.check(Stage::Verify)?;
            if first {
                let order = Order::of(buffer.len());
                order.write(lines_of(buffer));
            }
            Ok(checked)
        })?;
        control.check(Stage::Verify)?;
        Ok(checked)
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        let (node, buffer) = (self.node, &mut self.buffer);
        seated(self.processor, || {
            let (order, lines) = (Order::of(buffer.len()), &*lines_of(buffer));
            let start = clock::now().saturating_add(LEAD).saturating_add(spec.warm_up);
            timed(lines, order, (start, spec.window), control)?.ok_or_else(|| {
                let cause =
                    format!("reads of the memory of NUMA node {node} brought other bytes than were written there");
                Failure::new(Stage::Measure, Kind::Corruption, cause)
            })
        })
    }
}

/// Reads before `start` do not count. `None` if the reads ended at a wrong line.
fn timed(
    lines: &[[u8; LINE.0 as usize]],
    order: Order,
    (start, window): (Nanoseconds, Window),
    control: &Control,
) -> Result<Option<Measurement>, Failure> {
    let mut at = 0;
    let mut looks = 0_u64;
    let mut walk = |at: u64, steps: u64| {
        looks += 1;
        if looks.is_multiple_of(64) {
            control.check(Stage::Measure)?;
        }
        Ok::<_, Failure>(black_box(walked(lines, at, steps)))
    };
    while clock::now() < start {
        let Some(next) = walk(at, STEPS)? else { return Ok(None) };
        at = next;
    }
    let (stop, most) = match window {
        Window::Iterations(reads) => (None, reads),
        window => (Some(start.saturating_add(window.at_most().into())), u64::MAX),
    };
    // The first clock reading may be late; earlier reads are warm-up.
    let (cpu, started, first) = (clock::cpu(), clock::now(), at);
    let (mut reads, mut last, mut slices, mut times) = (0, started, Vec::new(), Vec::new());
    while reads < most && stop.is_none_or(|stop| last < stop) {
        let steps = STEPS.min(most - reads);
        let Some(next) = walk(at, steps)? else { return Ok(None) };
        let now = clock::now();
        times.push((now - last).as_f64() / steps as f64);
        (at, last, reads) = (next, now, reads + steps);
        let slice = (last.saturating_sub(started) / SLICE) as usize;
        slices.resize(slices.len().max(slice + 1), Bytes::ZERO);
        slices[slice] += LINE * steps;
    }
    slices.resize((last.saturating_sub(started) / SLICE) as usize, Bytes::ZERO);
    let measurement = Measurement {
        started,
        elapsed: last.saturating_sub(started),
        operations: reads,
        bytes: LINE * reads,
        cpu: clock::cpu().saturating_sub(cpu),
        slices: slices.into(),
        each: median(times).map(Box::new),
        ..Measurement::default()
    };
    Ok((order.after(first, reads) == at).then_some(measurement))
}

/// The median excludes times during which the processor did something else.
fn median(mut times: Vec<f64>) -> Option<f64> {
    let middle = times.len() / 2;
    (!times.is_empty()).then(|| *times.select_nth_unstable_by(middle, f64::total_cmp).1)
}

/// Final line after so many reads; `None` for an invalid link.
fn walked(lines: &[[u8; LINE.0 as usize]], mut at: u64, steps: u64) -> Option<u64> {
    for _ in 0..steps {
        let (words, _) = lines.get(usize::try_from(at).ok()?)?.as_chunks::<8>();
        at = u64::from_le_bytes(words[0]);
    }
    Some(at)
}

/// A permutation of 2^`bits` lines in one cycle that no prefetcher follows.
///
/// A linear congruential generator modulo a power of two has the full period where its addend is odd and its factor is 1 modulo 4 (Knuth,
/// "The Art of Computer Programming", volume 2, 3.2.1.2, theorem A); both are those of his MMIX (3.3.4). Its low bits have short periods,
/// so each number is mixed with its own upper half, which is its own inverse.
#[derive(Debug, Clone, Copy)]
struct Order {
    bits: u32,
}

const STEP: (u64, u64) = (6_364_136_223_846_793_005, 1_442_695_040_888_963_407);

impl Order {
    fn of(bytes: usize) -> Self {
        Self { bits: (bytes as u64 / LINE.0).max(1).ilog2() }
    }

    fn mask(self) -> u64 {
        (1 << self.bits) - 1
    }

    fn mixed(self, line: u64) -> u64 {
        line ^ (line >> self.bits.div_ceil(2).max(1))
    }

    /// The line so many steps later: the step is squared for each bit of their number.
    fn after(self, line: u64, mut steps: u64) -> u64 {
        let (mut factor, mut addend) = STEP;
        let mut x = self.mixed(line);
        while steps > 0 {
            if steps & 1 == 1 {
                x = x.wrapping_mul(factor).wrapping_add(addend);
            }
            addend = addend.wrapping_mul(factor).wrapping_add(addend);
            factor = factor.wrapping_mul(factor);
            steps >>= 1;
        }
        self.mixed(x & self.mask())
    }

    fn write(self, lines: &mut [[u8; LINE.0 as usize]]) {
        for (line, bytes) in (0..=self.mask()).zip(lines) {
            bytes[..8].copy_from_slice(&self.after(line, 1).to_le_bytes());
        }
    }
}

fn seated<T: Send>(processor: u32, work: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    let mut done = on_each("memory", [work], |work| {
        on(processor)?;
        work()
    });
    done.swap_remove(0)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        time::{Duration, Instant},
    };

    use super::*;

    fn lines(count: usize) -> Vec<[u8; 64]> {
        vec![[0; 64]; count]
    }

    #[test]
    fn an_order_comes_to_every_line_once() {
        for bits in 0..14 {
            let mut lines = lines(1 << bits);
            let order = Order::of(64 << bits);
            order.write(&mut lines);
            let mut seen = vec![false; 1 << bits];
            let mut at = 0;
            for step in 0..1_u64 << bits {
                assert!(!std::mem::replace(&mut seen[at as usize], true), "{bits}: {step}");
                assert_eq!(order.after(0, step), at, "{bits}");
                at = walked(&lines, at, 1).unwrap();
            }
            assert_eq!(at, 0, "{bits}");
        }
    }

    #[test]
    fn no_distance_from_line_to_line_is_a_usual_one() {
        let (bits, mut lines) = (16, lines(1 << 16));
        Order::of(64 << bits).write(&mut lines);
        let mut distances = std::collections::BTreeMap::new();
        for line in 0..1_u64 << bits {
            *distances.entry(walked(&lines, line, 1).unwrap().wrapping_sub(line)).or_insert(0) += 1;
        }
        // Of 65,536, hits of a prefetcher with one constant distance.
        assert!(distances.values().max() < Some(&64), "{:?}", distances.values().max());
    }

    fn pass(lines: &[[u8; 64]], window: Window) -> Option<Measurement> {
        let control = Control::new(Arc::default(), Arc::default(), Instant::now() + Duration::from_secs(60));
        timed(lines, Order::of(lines.len() * 64), (clock::now(), window), &control).unwrap()
    }

    #[test]
    fn a_processor_that_does_something_else_for_a_while_does_not_move_the_latency() {
        let times: Vec<f64> = (0..100).map(|look| if look % 3 == 0 { 4000.0 } else { 100.0 }).collect();
        assert_eq!((median(times), median(Vec::new())), (Some(100.0), None));
    }

    #[test]
    fn what_was_read_is_what_came_next_to_the_last_read() {
        let mut lines = lines(1 << 10);
        Order::of(64 << 10).write(&mut lines);
        let measured = pass(&lines, Window::Iterations(10_001)).unwrap();
        assert_eq!((measured.operations, measured.bytes), (10_001, Bytes(640_064)));
        assert!(measured.each.as_deref().is_some_and(|each| *each > 0.0), "{measured:?}");
        let (begun, window) = (clock::now(), Nanoseconds::from_millis(120));
        let measured = pass(&lines, Window::Duration(window)).unwrap();
        // The window begins before the thread first reads.
        let ended = measured.started + measured.elapsed;
        assert!(ended >= begun + window && measured.operations.is_multiple_of(STEPS), "{measured:?}");
        assert!(measured.slices.iter().fold(Bytes::ZERO, |sum, slice| sum + *slice) <= measured.bytes);
        // A wrong bit leads elsewhere, or out of memory.
        for byte in [1, 7] {
            let mut wrong = lines.clone();
            wrong[77][byte] ^= 1;
            assert!(pass(&wrong, Window::Iterations(10_001)).is_none(), "{byte}");
        }
    }
}

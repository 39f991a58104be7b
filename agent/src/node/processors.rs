//! Host memory of a NUMA node, used by all of its processors that are allowed to this process, a thread on each.

use std::{collections::BTreeMap, hint::black_box, ops::ControlFlow};

use railgauge_bulk::sum::sum;
use railgauge_wire::{
    Bytes, Carrier, Checked, Failure, Kind, LinkLayer, Measurement, Nanoseconds, NodeAccount, NodeSpec, Op, Pattern,
    SLICE, Stage, TestMetric, Window, gather::named, remedy,
};

use super::mover::{Mover, opened, twice};
use crate::{
    bench::{clock, control::Control},
    facts::machine,
    memory::{host::Buffer, pattern, place},
    system::{
        affinity,
        tree::{Tree, list},
    },
    worker::on_each,
};

/// Ratio of the memory in use to the caches of the processors (STREAM's rule for each of its arrays).
const OVER_CACHES: u64 = 4;
const LEAST: u64 = 4096;
pub(super) const LEAD: Nanoseconds = Nanoseconds::from_millis(20);

pub(super) struct Processors(Vec<(u32, Stretch)>);

/// At most one page in this number may be on another node.
const MOST_AWAY: usize = 20;

impl Processors {
    pub(super) fn open(tree: &Tree, node: u32, spec: &NodeSpec) -> Result<(Self, NodeAccount), Failure> {
        let Room { processors, caches } = Room::of(tree, node, spec)?;
        let buffers = if spec.op == Op::MemoryCopy { 2 } else { 1 };
        let wanted = spec.size.saturating_mul(buffers);
        // The sum, before any is allocated.
        if let Some(available) = place::bytes(tree).filter(|available| wanted.0 > *available) {
            let cause =
                format!("{wanted} bytes are wanted on NUMA node {node}, {available} bytes of memory are available");
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::SMALLER_BUFFERS));
        }
        let threads = (spec.size.0 / LEAST).clamp(1, processors.len() as u64);
        let share = spec.size.0 / threads;
        let length = |number: u64| if number + 1 == threads { spec.size.0 - share * (threads - 1) } else { share };
        let seats = processors.into_iter().zip(0..threads);
        let stretches = on_each("memory", seats, |(processor, number)| {
            on(processor)?;
            Ok((processor, Stretch::new(spec.op, number as u32, length(number))?))
        });
        let stretches = stretches.into_iter().collect::<Result<Vec<_>, _>>()?;
        let nodes: Vec<u32> = stretches.iter().flat_map(|(_, stretch)| stretch.nodes()).collect();
        let account = account(settings(node, stretches.len(), caches, at_home(node, &nodes)?), node);
        Ok((Self(stretches), account))
    }

    fn on_all<T: Send>(&mut self, work: impl Fn(&mut Stretch) -> Result<T, Failure> + Sync) -> Result<Vec<T>, Failure> {
        let all = on_each("memory", &mut self.0, |(processor, stretch)| {
            on(*processor)?;
            work(stretch)
        });
        all.into_iter().collect()
    }
}

impl Mover for Processors {
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure> {
        let all = self.on_all(|stretch| Ok(stretch.verify(pattern)))?;
        control.check(Stage::Verify)?;
        let mut checked = Checked::default();
        all.into_iter().for_each(|one| checked += one);
        Ok(checked)
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        // Earlier work of a thread is warm-up, so that all share one window.
        let start = clock::now().saturating_add(LEAD).saturating_add(spec.warm_up);
        let all = self.on_all(|stretch| one(stretch, start, spec.window, control))?;
        let stopped = all.iter().map(|one| one.stopped).max().unwrap_or(start);
        let slices = all.iter().map(|one| one.slices.len()).min().unwrap_or(0);
        let bytes = all.iter().fold(Bytes::ZERO, |sum, one| sum.saturating_add(one.bytes));
        let of_slice = |slice: usize| all.iter().fold(Bytes::ZERO, |sum, one| sum.saturating_add(one.slices[slice]));
        Ok(Measurement {
            started: start,
            elapsed: stopped.saturating_sub(start),
            // A pass over the whole memory is one operation; the last may be incomplete.
            operations: bytes.0.div_ceil(spec.size.0.max(1)),
            bytes,
            cpu: all.iter().fold(Nanoseconds::ZERO, |sum, one| sum.saturating_add(one.cpu)),
            slices: (0..slices).map(of_slice).collect(),
            ..Measurement::default()
        })
    }
}

pub(super) struct Room {
    /// Processors allowed to this process, at least one.
    pub processors: Vec<u32>,
    /// Sum of their last-level caches.
    pub caches: Option<Bytes>,
}

impl Room {
    pub(super) fn of(tree: &Tree, node: u32, spec: &NodeSpec) -> Result<Self, Failure> {
        let processors = processors(tree, node)?;
        let caches = machine::caches(tree, &processors);
        if let Some(caches) = caches.filter(|caches| !spec.cached && spec.size < *caches * OVER_CACHES) {
            let least = caches * OVER_CACHES;
            // Latency reads span a power of two.
            let least = if spec.metric == TestMetric::Latency { Bytes(least.0.next_power_of_two()) } else { least };
            let cause = format!(
                "{} bytes lie in the caches of NUMA node {node}, which hold {caches} bytes: memory is measured from {least} bytes on",
                spec.size
            );
            let remedy = remedy::BEYOND_CACHES.with([("bytes", least.to_string())]);
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy));
        }
        Ok(Self { processors, caches })
    }
}

/// Pages of `nodes` on `node`, and their total; `None` without data from the kernel.
pub(super) fn at_home(node: u32, nodes: &[u32]) -> Result<Option<(usize, usize)>, Failure> {
    let away = nodes.iter().filter(|of| **of != node).count();
    if away * MOST_AWAY > nodes.len() {
        let cause = format!(
            "{away} of {} pages that were asked for lie on other NUMA nodes than {node}: it has too little free memory, or the agent is \
             bound to other nodes",
            nodes.len()
        );
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::SMALLER_BUFFERS));
    }
    Ok((!nodes.is_empty()).then(|| (nodes.len() - away, nodes.len())))
}

pub(super) fn account(settings: BTreeMap<String, String>, node: u32) -> NodeAccount {
    opened(LinkLayer::Memory, Carrier::Cpu, twice(&format!("node{node}")), settings)
}

pub(super) fn settings(
    node: u32,
    threads: usize,
    caches: Option<Bytes>,
    pages: Option<(usize, usize)>,
) -> BTreeMap<String, String> {
    let unknown = || "unknown".to_owned();
    named(vec![
        ("numa_node", node.to_string()),
        ("threads", threads.to_string()),
        ("last_level_caches", caches.map_or_else(unknown, |caches| caches.to_string())),
        ("pages_on_node", pages.map_or_else(unknown, |(here, all)| format!("{here} of {all} asked for"))),
    ])
}

struct Share {
    stopped: Nanoseconds,
    bytes: Bytes,
    slices: Vec<Bytes>,
    cpu: Nanoseconds,
}

/// The timed pass of one processor: data before `start` does not count.
fn one(stretch: &mut Stretch, start: Nanoseconds, window: Window, control: &Control) -> Result<Share, Failure> {
    moved(stretch, control, |now, _| if now >= start { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })?;
    let cpu = clock::cpu();
    let (stop, most) = match window {
        Window::Iterations(passes) => (None, passes.saturating_mul(stretch.length())),
        window => (Some(start.saturating_add(window.at_most().into())), u64::MAX),
    };
    let (mut bytes, mut last, mut slices) = (0, start, Vec::new());
    moved(stretch, control, |now, amount| {
        // Data after the end does not count.
        if stop.is_some_and(|stop| now > stop) {
            return ControlFlow::Break(());
        }
        (bytes, last) = (bytes + amount, now);
        let slice = (now.saturating_sub(start) / SLICE) as usize;
        slices.resize(slices.len().max(slice + 1), Bytes::ZERO);
        slices[slice] += Bytes(amount);
        if bytes >= most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    let stopped = stop.unwrap_or(last);
    slices.resize((stopped.saturating_sub(start) / SLICE) as usize, Bytes::ZERO);
    Ok(Share { stopped, bytes: Bytes(bytes), slices, cpu: clock::cpu().saturating_sub(cpu) })
}

/// Moves chunks until `next`, called with the time and size of each, ends it.
fn moved(
    stretch: &mut Stretch,
    control: &Control,
    mut next: impl FnMut(Nanoseconds, u64) -> ControlFlow<()>,
) -> Result<(), Failure> {
    for chunk in 1_u64.. {
        let amount = stretch.step();
        if next(clock::now(), amount).is_break() {
            break;
        }
        if chunk.is_multiple_of(64) {
            control.check(Stage::Measure)?;
        }
    }
    Ok(())
}

/// Processors of a node allowed to this process. Kernels without NUMA have one node with all.
fn processors(tree: &Tree, node: u32) -> Result<Vec<u32>, Failure> {
    let refused = |cause: String| Failure::new(Stage::Open, Kind::Configuration, cause);
    let allowed = affinity::allowed().map_err(|error| refused(format!("the processors are not known: {error}")))?;
    let nodes = "sys/devices/system/node";
    if !tree.has(nodes) && node == 0 {
        return Ok(allowed);
    }
    let of_node = tree.text(format!("{nodes}/node{node}/cpulist")).and_then(|text| list(&text));
    let Some(of_node) = of_node else {
        return Err(refused(format!("this host has no NUMA node {node} with processors")));
    };
    let usable: Vec<u32> = of_node.iter().copied().filter(|processor| allowed.contains(processor)).collect();
    match (usable.is_empty(), of_node.is_empty()) {
        (false, _) => Ok(usable),
        (true, true) => Err(refused(format!("NUMA node {node} has no processors"))),
        (true, false) => Err(refused(format!("the agent may use none of the processors of NUMA node {node}"))),
    }
}

pub(super) fn on(processor: u32) -> Result<(), Failure> {
    affinity::allow(&[processor]).map_err(|error| {
        let cause = format!("cannot run on processor {processor}: {error}");
        Failure::new(Stage::Open, Kind::Configuration, cause)
    })
}

/// Bytes between two clock readings. An unfinished chunk does not count, so it is short: 0.2 ms where 128 threads share 200 GB/s, and
/// thousands of times a clock reading.
const CHUNK: usize = 1 << 18;

pub(super) struct Stretch {
    op: Op,
    number: u32,
    here: Buffer,
    there: Option<Buffer>,
    at: usize,
}

impl Stretch {
    /// Allocates `length` bytes, twice for a copy, on the node of the calling thread's processor.
    pub(super) fn new(op: Op, number: u32, length: u64) -> Result<Self, Failure> {
        let there = if op == Op::MemoryCopy { Some(Buffer::new(length, false)?) } else { None };
        Ok(Self { op, number, here: Buffer::new(length, false)?, there, at: 0 })
    }

    pub(super) fn length(&self) -> u64 {
        self.here.len() as u64
    }

    /// NUMA nodes of sampled pages; empty without data from the kernel.
    pub(super) fn nodes(&self) -> Vec<u32> {
        let all = [Some(&self.here), self.there.as_ref()].into_iter().flatten();
        all.flat_map(|buffer| place::nodes(buffer.bytes())).collect()
    }

    /// Moves a pattern once and compares it.
    pub(super) fn verify(&mut self, pattern: &Pattern) -> Checked {
        let pattern = &Pattern { size: Bytes(self.length()), ..*pattern };
        let sink = match &mut self.there {
            Some(there) => {
                pattern::fill(self.here.bytes_mut(), pattern, self.number);
                pattern::poison(there.bytes_mut(), pattern, self.number);
                there.bytes_mut().copy_from_slice(self.here.bytes());
                there
            }
            None => {
                pattern::poison(self.here.bytes_mut(), pattern, self.number);
                pattern::fill(self.here.bytes_mut(), pattern, self.number);
                &self.here
            }
        };
        pattern::check(sink.bytes(), pattern, self.number)
    }

    /// Returns the number of bytes.
    pub(super) fn step(&mut self) -> u64 {
        let end = self.here.len().min(self.at + CHUNK);
        let range = self.at..end;
        self.at = if end == self.here.len() { 0 } else { end };
        let moved = range.len() as u64;
        match (self.op, &mut self.there) {
            (Op::MemoryCopy, Some(there)) => {
                there.bytes_mut()[range.clone()].copy_from_slice(&self.here.bytes()[range])
            }
            (Op::MemoryWrite, _) => black_box(&mut self.here.bytes_mut()[range]).fill(black_box(0xa5)),
            _ => {
                black_box(sum(&self.here.bytes()[range]));
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_moved_and_compared() {
        let pattern = Pattern { size: Bytes(9), seed: 7, iteration: 1 };
        for op in [Op::MemoryRead, Op::MemoryWrite, Op::MemoryCopy] {
            let length = CHUNK as u64 + 5;
            let mut stretch = Stretch::new(op, 3, length).unwrap();
            let right = Checked { verified: Bytes(length), wrong: Bytes::ZERO, first_wrong: None };
            assert_eq!(stretch.verify(&pattern), right, "{op}");
            assert_eq!([stretch.step(), stretch.step(), stretch.step()], [CHUNK as u64, 5, CHUNK as u64], "{op}");
        }
    }
}

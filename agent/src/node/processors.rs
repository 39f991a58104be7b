//! Host memory of a NUMA node, read, written or copied by all of its processors that this process may use, a thread on each.

use std::{collections::BTreeMap, ops::ControlFlow, thread};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    gather::Gather,
    measure::{Measurement, SLICE},
    node::NodeSpec,
    remedy,
    step::{Checked, Pattern, Window},
    terms::{Carrier, LinkLayer, Op, TestMetric},
    unit::{Bytes, Nanoseconds},
};

use super::{Mover, Opened, stretch::Stretch};
use crate::{
    bench::{clock, control::Control, cpu},
    facts::machine,
    memory::available,
    system::{
        affinity,
        tree::{Tree, list},
    },
};

/// Memory that is moved, over the caches of its processors (STREAM's rule for each of its arrays).
const OVER_CACHES: u64 = 4;
/// Least bytes of a thread.
const LEAST: u64 = 4096;
/// Time in which the threads of a pass are started.
pub(super) const LEAD: Nanoseconds = Nanoseconds::from_millis(20);

/// The memory of a node and what moves it.
pub(super) struct Processors {
    node: u32,
    stretches: Vec<(u32, Stretch)>,
    caches: Option<Bytes>,
    /// As [`at_home`] tells.
    pages: Option<(usize, usize)>,
}

/// At most one page in so many may lie on another node.
const MOST_AWAY: usize = 20;

impl Processors {
    pub(super) fn open(tree: &Tree, node: u32, spec: &NodeSpec) -> Result<Self, Failure> {
        let Room { processors, caches } = Room::of(tree, node, spec)?;
        let buffers = if spec.op == Op::MemoryCopy { 2 } else { 1 };
        let wanted = spec.size.saturating_mul(buffers);
        // All together, before the first of them is taken.
        if let Some(available) = available::bytes(tree).filter(|available| wanted.0 > *available) {
            let cause =
                format!("{wanted} bytes are wanted on NUMA node {node}, {available} bytes of memory are available");
            return Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::SMALLER_BUFFERS));
        }
        let threads = (spec.size.0 / LEAST).clamp(1, processors.len() as u64);
        let share = spec.size.0 / threads;
        let length = |number: u64| if number + 1 == threads { spec.size.0 - share * (threads - 1) } else { share };
        let seats = processors.into_iter().zip(0..threads);
        let stretches = thread::scope(|scope| {
            let opening: Vec<_> = seats
                .map(|(processor, number)| {
                    let work = move || {
                        on(processor)?;
                        Ok((processor, Stretch::new(spec.op, number as u32, length(number))?))
                    };
                    thread::Builder::new().name("memory".into()).spawn_scoped(scope, work)
                })
                .collect();
            opening.into_iter().map(|thread| joined(thread.map_err(no_thread)?.join())).collect::<Result<Vec<_>, _>>()
        })?;
        let nodes: Vec<u32> = stretches.iter().flat_map(|(_, stretch)| stretch.nodes()).collect();
        Ok(Self { node, stretches, caches, pages: at_home(node, &nodes)? })
    }

    /// Does the same for every stretch, each on its processor, at the same time.
    fn on_all<T: Send>(&mut self, work: impl Fn(&mut Stretch) -> Result<T, Failure> + Sync) -> Result<Vec<T>, Failure> {
        let work = &work;
        thread::scope(|scope| {
            let running: Vec<_> = self
                .stretches
                .iter_mut()
                .map(|(processor, stretch)| {
                    let moving = move || {
                        on(*processor)?;
                        work(stretch)
                    };
                    thread::Builder::new().name("memory".into()).spawn_scoped(scope, moving)
                })
                .collect();
            running.into_iter().map(|thread| joined(thread.map_err(no_thread)?.join())).collect()
        })
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
        // Whatever a thread does before is warm-up, so that the window of all of them is one stretch of time.
        let start = clock::now().saturating_add(LEAD).saturating_add(spec.warm_up);
        let all = self.on_all(|stretch| one(stretch, start, spec.window, control))?;
        let stopped = all.iter().map(|one| one.stopped).max().unwrap_or(start);
        let slices = all.iter().map(|one| one.slices.len()).min().unwrap_or(0);
        let bytes = all.iter().fold(Bytes::ZERO, |sum, one| sum.saturating_add(one.bytes));
        let of_slice = |slice: usize| all.iter().fold(Bytes::ZERO, |sum, one| sum.saturating_add(one.slices[slice]));
        Ok(Measurement {
            started: start,
            elapsed: stopped.saturating_sub(start),
            // A pass over the whole memory is one operation; the last may not have come to its end.
            operations: bytes.0.div_ceil(spec.size.0.max(1)),
            bytes,
            cpu: all.iter().fold(Nanoseconds::ZERO, |sum, one| sum.saturating_add(one.cpu)),
            slices: (0..slices).map(of_slice).collect(),
            ..Measurement::default()
        })
    }

    fn opened(&self) -> Opened {
        let name = format!("node{}", self.node);
        let settings = settings(self.node, self.stretches.len(), self.caches, self.pages);
        Opened { link_layer: LinkLayer::Memory, carrier: Carrier::Cpu, devices: (name.clone(), name), settings }
    }
}

/// What a node has to measure its memory with.
pub(super) struct Room {
    /// Its processors that this process may use, one at least.
    pub processors: Vec<u32>,
    /// What their last caches hold together.
    pub caches: Option<Bytes>,
}

impl Room {
    pub(super) fn of(tree: &Tree, node: u32, spec: &NodeSpec) -> Result<Self, Failure> {
        let processors = processors(tree, node)?;
        let caches = machine::caches(tree, &processors);
        if let Some(caches) = caches.filter(|caches| !spec.cached && spec.size < *caches * OVER_CACHES) {
            let least = caches * OVER_CACHES;
            // Reads of a latency are spread over a power of two.
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

/// How many of the pages of `nodes` lie on `node`, and how many there are; `None` where the kernel does not tell.
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

/// The settings that both kinds of tests of a node's memory tell.
pub(super) fn settings(
    node: u32,
    threads: usize,
    caches: Option<Bytes>,
    pages: Option<(usize, usize)>,
) -> BTreeMap<String, String> {
    let unknown = || "unknown".to_owned();
    let settings = [
        ("numa_node", node.to_string()),
        ("threads", threads.to_string()),
        ("last_level_caches", caches.map_or_else(unknown, |caches| caches.to_string())),
        ("pages_on_node", pages.map_or_else(unknown, |(here, all)| format!("{here} of {all} asked for"))),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).gathered()
}

/// What one processor did in the timed pass.
struct Share {
    stopped: Nanoseconds,
    bytes: Bytes,
    slices: Vec<Bytes>,
    cpu: Nanoseconds,
}

/// The timed pass of one processor: what it moves until `start` does not count.
fn one(stretch: &mut Stretch, start: Nanoseconds, window: Window, control: &Control) -> Result<Share, Failure> {
    moved(stretch, control, |now, _| if now >= start { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })?;
    let cpu = cpu::thread();
    let (stop, most) = match window {
        Window::Iterations(passes) => (None, passes.saturating_mul(stretch.length())),
        window => (Some(start.saturating_add(window.at_most().into())), u64::MAX),
    };
    let (mut bytes, mut last, mut slices) = (0, start, Vec::new());
    moved(stretch, control, |now, amount| {
        // What is moved when the time is over is not of it.
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
    Ok(Share { stopped, bytes: Bytes(bytes), slices, cpu: cpu::thread().saturating_sub(cpu) })
}

/// Moves chunk after chunk until `next`, which is told when each was done and how large it was, says that it is enough.
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

/// Processors of a node that this process may use. Kernels without NUMA have one node, which has them all.
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

fn joined<T>(outcome: thread::Result<Result<T, Failure>>) -> Result<T, Failure> {
    outcome.unwrap_or_else(|_| Err(Failure::new(Stage::Measure, Kind::Internal, "a thread of the agent panicked")))
}

fn no_thread(error: std::io::Error) -> Failure {
    Failure::new(Stage::Open, Kind::Internal, format!("no thread could be started: {error}"))
}

//! Copies of a GPU: from and to page-locked host memory, within its own memory, and to another GPU.
//!
//! Method of nvbandwidth's copy-engine tests: large copies queued in sequence on one stream, timed by events on the GPU's own clock, as
//! are matrix products. The value is the mean over the whole window. Host memory is on the GPU's NUMA node.

use std::{collections::BTreeMap, sync::Arc};

use railgauge_wire::{
    Bytes, Checked, Failure, Gather, Kind, LinkLayer, Measurement, Nanoseconds, NodeAccount, NodeSpec, Op, Pattern,
    Stage, Window,
};

use super::mover::{Mover, opened};
use crate::{
    bench::{clock, control::Control},
    gpu::{Buffer, Device, Event, Pinned, Stream, device, kernels},
    memory::{host, pattern, place},
    system::tree::Tree,
};

/// Fields are dropped in order: streams wait for copies of a pass that was given up, before the memory is freed.
pub(super) struct Copier {
    op: Op,
    stream: Stream,
    /// A stream of the destination GPU, if that differs.
    remote: Option<Stream>,
    from: End,
    to: End,
}

enum End {
    Host(Pinned),
    Gpu(Buffer),
}

impl Copier {
    pub(super) fn open(tree: &Tree, from: &str, to: &str, spec: &NodeSpec) -> Result<(Self, NodeAccount), Failure> {
        let mut settings = place::settle(tree, None, &format!("sys/bus/pci/devices/{from}/numa_node"))?;
        let own = device::at(from)?;
        let remote_record = |device: &Device| -> BTreeMap<String, String> {
            device.record().into_iter().map(|(name, value)| (format!("{name}_remote"), value)).gathered()
        };
        if spec.op != Op::HostToGpu {
            settings.extend(own.record());
        }
        if matches!(spec.op, Op::HostToGpu | Op::GpuCopy) {
            settings.extend(remote_record(&own));
        }
        let stream = Stream::new(&own)?;
        let length = spec.size.0;
        let on = |device: &Arc<Device>| Buffer::new(device, length).map(End::Gpu);
        let host = || Ok::<_, Failure>(End::Host(Pinned::new(&own, host::Buffer::new(length, false)?)?));
        let (memory, gpu) = ("memory".to_owned(), own.pci().to_owned());
        let mut remote = None;
        let (ends, link_layer, devices) = match spec.op {
            Op::HostToGpu => ((host()?, on(&own)?), below(&own), (memory, gpu)),
            Op::GpuToHost => ((on(&own)?, host()?), below(&own), (gpu, memory)),
            Op::GpuCopy => ((on(&own)?, on(&own)?), LinkLayer::Memory, (gpu.clone(), gpu)),
            _ => {
                let other = device::at(to)?;
                let access = own.reach(&other)?;
                settings.insert("peer_access".to_owned(), access.to_string());
                settings.extend(remote_record(&other));
                remote = Some(Stream::new(&other)?);
                let layer = between(&own, &other, access);
                ((on(&own)?, on(&other)?), layer, (gpu, other.pci().to_owned()))
            }
        };
        let account = opened(link_layer, own.vendor().copies(), devices, settings);
        Ok((Self { op: spec.op, stream, remote, from: ends.0, to: ends.1 }, account))
    }

    fn copy(&self, length: u64) -> Result<(), Failure> {
        match (&self.from, &self.to) {
            (End::Host(from), End::Gpu(to)) => self.stream.deliver(to, from, 0, length),
            (End::Gpu(from), End::Host(to)) => self.stream.fetch(to, from, 0, length),
            (End::Gpu(from), End::Gpu(to)) => self.stream.on_device(to, from, length),
            (End::Host(_), End::Host(_)) => {
                Err(Failure::new(Stage::Measure, Kind::Internal, format!("{} copies from host to host", self.op)))
            }
        }
    }

    fn queued(&self, length: u64) -> Queued<'_, impl Fn() -> Result<(), Failure>> {
        Queued { stream: &self.stream, queue: move || self.copy(length) }
    }
}

impl Mover for Copier {
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure> {
        self.stream.device().enter()?;
        // For copies of a pass that was given up.
        self.stream.wait()?;
        match &mut self.from {
            End::Host(pinned) => pattern::fill(pinned.bytes()?, pattern, 0),
            End::Gpu(buffer) => kernels::fill(&self.stream, buffer, 0, pattern, 0)?,
        }
        let far = self.remote.as_ref().unwrap_or(&self.stream);
        match &mut self.to {
            End::Host(pinned) => pattern::poison(pinned.bytes()?, pattern, 0),
            End::Gpu(buffer) => kernels::poison(far, buffer, 0, pattern, 0)?,
        }
        control.check(Stage::Verify)?;
        self.stream.device().enter()?;
        self.queued(pattern.size.0).once()?;
        control.check(Stage::Verify)?;
        Ok(match &mut self.to {
            End::Host(pinned) => pattern::check(pinned.bytes()?, pattern, 0),
            End::Gpu(buffer) => kernels::check(far, buffer, 0, pattern, 0)?,
        })
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        self.stream.device().enter()?;
        let copies = self.queued(spec.size.0);
        let one = copies.warm_up(spec, control)?;
        copies.time(spec, control, one)
    }
}

/// Link between two GPUs. CUDA does not report it; the controller has it from the facts.
fn between(one: &Device, other: &Device, reach: bool) -> LinkLayer {
    match one.link_to(other.ordinal) {
        // Copies of GPUs that do not reach each other pass through the host.
        Some(LinkLayer::Xgmi) if !reach => LinkLayer::Pcie,
        told => told.unwrap_or(LinkLayer::Unknown),
    }
}

/// Link between a GPU and host memory: PCIe on x86-64, elsewhere possibly another.
fn below(_: &Device) -> LinkLayer {
    if cfg!(target_arch = "x86_64") { LinkLayer::Pcie } else { LinkLayer::Unknown }
}

/// Minimum time of a batch, so that the queue never runs empty between two looks.
const BATCH: Nanoseconds = Nanoseconds::from_millis(10);
/// Most operations of a batch: drivers queue about a thousand commands before a call waits.
const MOST: u64 = 256;

/// `queue` queues the operation once.
pub(super) struct Queued<'s, Q> {
    pub(super) stream: &'s Stream,
    pub(super) queue: Q,
}

impl<Q: Fn() -> Result<(), Failure>> Queued<'_, Q> {
    pub(super) fn once(&self) -> Result<Nanoseconds, Failure> {
        let begun = clock::now();
        (self.queue)()?;
        self.stream.wait()?;
        Ok((clock::now() - begun).max(Nanoseconds(1)))
    }

    pub(super) fn warm_up(&self, spec: &NodeSpec, control: &Control) -> Result<Nanoseconds, Failure> {
        let warm = clock::now().saturating_add(spec.warm_up);
        let mut one = self.once()?;
        while clock::now() < warm {
            one = one.min(self.once()?);
            control.check(Stage::Measure)?;
        }
        Ok(one)
    }

    /// `one` is the approximate time of an operation. Returns their number and time.
    pub(super) fn time(&self, spec: &NodeSpec, control: &Control, one: Nanoseconds) -> Result<Measurement, Failure> {
        self.time_at_least(spec, control, one, 1)
    }

    /// With a minimum number of operations, however short the window.
    pub(super) fn time_at_least(
        &self,
        spec: &NodeSpec,
        control: &Control,
        one: Nanoseconds,
        fewest: u64,
    ) -> Result<Measurement, Failure> {
        let batch = (BATCH / one).clamp(1, MOST);
        let first = self.batch(0)?;
        first.wait()?;
        let started = clock::now();
        let (stop, most) = match spec.window {
            Window::Iterations(operations) => (Nanoseconds::MAX, operations),
            window => (started.saturating_add(window.at_most().into()), u64::MAX),
        };
        let mut done = 0;
        let mut last = None;
        while done < most && (done < fewest || clock::now() < stop) {
            let now = batch.min(most - done);
            let next = self.batch(now)?;
            done += now;
            // One batch is always queued after the awaited one.
            if let Some(earlier) = last.replace(next) {
                Event::wait(&earlier)?;
            }
            control.check(Stage::Measure)?;
        }
        let nothing = || Failure::new(Stage::Measure, Kind::Internal, "a window of no operations");
        let last = last.ok_or_else(nothing)?;
        last.wait()?;
        let bytes = Bytes(spec.size.0.saturating_mul(done));
        Ok(Measurement { started, elapsed: last.since(&first)?, operations: done, bytes, ..Measurement::default() })
    }

    fn batch(&self, operations: u64) -> Result<Event, Failure> {
        (0..operations).try_for_each(|_| (self.queue)())?;
        let event = Event::new(self.stream.device())?;
        event.record(self.stream)?;
        Ok(event)
    }
}

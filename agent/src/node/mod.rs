//! Tests within this host (see [`railgauge_wire::node`]): all flows of a cell at the same time, each on a thread of its own.
//!
//! | file | holds |
//! | --- | --- |
//! | `gate` | where flows wait for each other |
//! | `processors` | host memory of a NUMA node, moved by its processors |
//! | `stretch` | one processor's part of it |
//! | `chase` | its latency: one read after the other |
//! | `copier` | copies of a GPU |
//! | `loopback` | writes through an RDMA port and back |
//! | `multiplier` | matrix products of a GPU |
//! | `patterns` | a test of its memory |
//! | `queued` | how work of a GPU is queued and timed |

mod chase;
mod copier;
mod gate;
mod loopback;
mod multiplier;
mod patterns;
mod processors;
mod queued;
mod stretch;

use std::{
    collections::BTreeMap,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use railgauge_wire::{
    case::{CaseAccount, Spent},
    failure::{Failure, Kind, Stage},
    measure::Measurement,
    node::{NodeAccount, NodeFlow, NodeSpec, Part},
    remedy,
    step::{Checked, Pattern},
    terms::{Carrier, GpuPath, LinkLayer, Op, TestMetric},
    unit::Nanoseconds,
};

use crate::{
    bench::control::Control,
    memory::available,
    system::tree::Tree,
    watch::{self, gpus::Span},
};
use chase::Chase;
use copier::Copier;
use gate::{Gate, Pass};
use loopback::Loopback;
use multiplier::Multiplier;
use patterns::Patterns;
use processors::Processors;

/// What moves the bytes of a flow.
trait Mover {
    /// Fills what is moved, moves it once and compares.
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure>;

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure>;

    fn checked(&self) -> Checked {
        Checked::default()
    }

    fn opened(&self) -> Opened;

    /// How an RDMA port that takes part reaches GPU memory, and whether it is an emulation in software; `None` without one.
    fn port(&self) -> Option<(GpuPath, bool)> {
        None
    }
}

#[derive(Clone)]
struct Opened {
    link_layer: LinkLayer,
    carrier: Carrier,
    devices: (String, String),
    settings: BTreeMap<String, String>,
}

/// One request at a time: one that its controller no longer waits for still takes memory and bandwidth.
static TURN: Mutex<()> = Mutex::new(());

/// Runs one cell on all its flows; the accounts are in their order.
pub(crate) fn run(spec: &NodeSpec) -> Vec<NodeAccount> {
    let _turn = TURN.lock();
    if let Some(failure) = too_much(spec, available::bytes(&Tree::host())) {
        return spec.flows.iter().map(|_| failed(failure.clone())).collect();
    }
    let span = Span::begin(spec.flows.iter().flat_map(gpus).map(str::to_owned), spec.window);
    let mut accounts = all(spec);
    let Some(read) = span.map(Span::end) else { return accounts };
    for (flow, NodeAccount { account, .. }) in spec.flows.iter().zip(&mut accounts) {
        let pass = account.measured.as_deref().map(watch::gpus::pass);
        account.gpus = gpus(flow).map(|pci| read.seen(pci, pass)).collect();
        account.failure = account.failure.take().map(|failure| read.explained(failure, gpus(flow)));
    }
    accounts
}

/// The PCI addresses of the GPUs of a flow, each once.
fn gpus(flow: &NodeFlow) -> impl Iterator<Item = &str> {
    let other = (flow.to != flow.from).then_some(&flow.to);
    std::iter::once(&flow.from).chain(other).filter_map(|part| match part {
        Part::Gpu(pci) => Some(pci.as_str()),
        Part::Nic(nic) => nic.gpu.as_ref()?.pci.as_deref(),
        Part::Processors(_) => None,
    })
}

/// All flows at the same time; the accounts are in their order.
fn all(spec: &NodeSpec) -> Vec<NodeAccount> {
    let gate = Gate::new(spec.flows.len());
    thread::scope(|scope| {
        let start = |flow| {
            let pass = gate.pass();
            thread::Builder::new().name("node".into()).spawn_scoped(scope, move || one(spec, flow, &pass))
        };
        // All are started before the first is waited for.
        let running: Vec<_> = spec.flows.iter().map(start).collect();
        running
            .into_iter()
            .map(|thread| match thread.map(|thread| thread.join()) {
                Ok(Ok(account)) => account,
                Ok(Err(_)) => failed(Failure::new(Stage::Measure, Kind::Internal, "the agent panicked")),
                Err(error) => {
                    let cause = format!("no thread could be started: {error}");
                    failed(Failure::new(Stage::Open, Kind::Internal, cause))
                }
            })
            .collect()
    })
}

/// Host memory of all flows together, where there is less: they take it at the same time, so none of them sees what the others take.
fn too_much(spec: &NodeSpec, available: Option<u64>) -> Option<Failure> {
    let buffers = |flow: &NodeFlow| match (&flow.from, spec.op) {
        (Part::Processors(_), Op::MemoryCopy) => 2,
        (Part::Processors(_), _) | (Part::Gpu(_), Op::HostToGpu | Op::GpuToHost) => 1,
        (Part::Nic(nic), _) if nic.gpu.is_none() => loopback::BUFFERS,
        _ => 0,
    };
    let wanted = spec.size.saturating_mul(spec.flows.iter().map(buffers).sum());
    let available = available.filter(|available| wanted.0 > *available)?;
    let count = spec.flows.len();
    let cause =
        format!("{wanted} bytes are wanted by {count} flows at once, {available} bytes of memory are available");
    Some(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::SMALLER_BUFFERS))
}

fn failed(failure: Failure) -> NodeAccount {
    NodeAccount { account: CaseAccount { failure: Some(failure), ..CaseAccount::default() }, ..NodeAccount::default() }
}

/// One flow. Its pass is given back at the end, however that comes, so that the others wait for it no longer.
fn one(spec: &NodeSpec, flow: &NodeFlow, pass: &Pass<'_>) -> NodeAccount {
    let begun = Instant::now();
    let mut account = NodeAccount::default();
    if let Err(failure) = steps(spec, flow, pass, &mut account) {
        account.account.failure = Some(failure);
    }
    account.account.took = begun.elapsed().into();
    account
}

fn steps(spec: &NodeSpec, flow: &NodeFlow, pass: &Pass<'_>, account: &mut NodeAccount) -> Result<(), Failure> {
    let begun = Instant::now();
    let limit = Duration::from_millis(spec.deadline_ms) + spec.window.at_most() + Duration::from(spec.warm_up);
    let control = &Control::new(Arc::default(), Arc::default(), begun + limit);
    let mut mover = open(spec, flow, control)?;
    let Opened { link_layer, carrier, devices, settings } = mover.opened();
    (account.link_layer, account.carrier) = (Some(link_layer), Some(carrier));
    (account.devices, account.settings) = (devices, settings);
    if let Some((gpu_path, software)) = mover.port() {
        (account.gpu_path, account.software) = (Some(gpu_path), software);
    }
    verify(spec, mover.as_mut(), 1, control, &mut account.account)?;
    account.account.spent.verify = begun.elapsed().into();
    let waits = Instant::now();
    pass.meet(control)?;
    let timed = Instant::now();
    let measured = mover.time(spec, control);
    account.account.checked += mover.checked();
    let measured = measured?;
    let Spent { window, warm_up, waiting, .. } = &mut account.account.spent;
    *window = measured.elapsed;
    *warm_up = Nanoseconds::from(timed.elapsed()).saturating_sub(measured.elapsed);
    *waiting = (timed - waits).into();
    account.account.measured = Some(Box::new(measured));
    // Comparing would disturb those whose pass is still under way.
    let waits = Instant::now();
    pass.meet(control)?;
    *waiting = waiting.saturating_add(waits.elapsed().into());
    let verifying = Instant::now();
    verify(spec, mover.as_mut(), 2, control, &mut account.account)?;
    let spent = &mut account.account.spent.verify;
    *spent = spent.saturating_add(verifying.elapsed().into());
    Ok(())
}

/// One verify pass, if any is wanted; `iteration` makes its bytes differ from those of other passes.
fn verify(
    spec: &NodeSpec,
    mover: &mut dyn Mover,
    iteration: u64,
    control: &Control,
    account: &mut CaseAccount,
) -> Result<(), Failure> {
    let Some(seed) = spec.verify else {
        // Pages of zeros may travel faster than data.
        if iteration == 1 {
            mover.verify(&Pattern { size: spec.size, seed: 0, iteration }, control)?;
        }
        return Ok(());
    };
    account.checked += mover.verify(&Pattern { size: spec.size, seed, iteration }, control)?;
    Ok(())
}

fn open(spec: &NodeSpec, flow: &NodeFlow, control: &Control) -> Result<Box<dyn Mover>, Failure> {
    let tree = Tree::host();
    Ok(match (&flow.from, &flow.to) {
        (Part::Processors(node), Part::Processors(other)) if node == other && spec.metric == TestMetric::Latency => {
            Box::new(Chase::open(&tree, *node, spec)?)
        }
        (Part::Processors(node), Part::Processors(other)) if node == other => {
            Box::new(Processors::open(&tree, *node, spec)?)
        }
        (Part::Gpu(gpu), Part::Gpu(_)) if spec.op == Op::Matmul => Box::new(Multiplier::open(gpu, spec)?),
        (Part::Gpu(gpu), Part::Gpu(_)) if spec.op == Op::GpuMemoryTest => Box::new(Patterns::open(gpu, spec)?),
        (Part::Gpu(from), Part::Gpu(to)) => Box::new(Copier::open(&tree, from, to, spec)?),
        (Part::Nic(nic), Part::Nic(other)) if nic == other => Box::new(Loopback::open(&tree, nic, spec, control)?),
        _ => {
            let cause = format!("{} has no such ends: {flow:?}", spec.op);
            return Err(Failure::new(Stage::Open, Kind::Internal, cause));
        }
    })
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{
        link::Knobs,
        node::{GpuOfNic, NicPort},
        step::Window,
        unit::Bytes,
    };

    use super::*;

    #[test]
    fn memory_of_all_flows_counts_together() {
        let part = |flows: usize, op, part: Part| {
            let spec = NodeSpec {
                op,
                metric: TestMetric::Bandwidth,
                size: Bytes(100),
                window: Window::Iterations(1),
                warm_up: Nanoseconds::ZERO,
                verify: None,
                deadline_ms: 1,
                cached: true,
                precision: None,
                flows: vec![NodeFlow { from: part.clone(), to: part }; flows],
            };
            move |available| too_much(&spec, available).is_some()
        };
        let copies = part(4, Op::MemoryCopy, Part::Processors(0));
        assert!(copies(Some(799)) && !copies(Some(800)) && !copies(None));
        let gpus = part(8, Op::HostToGpu, Part::Gpu("0000:01:00.0".into()));
        assert!(gpus(Some(799)) && !gpus(Some(800)));
        assert!(!part(8, Op::GpuCopy, Part::Gpu("0000:01:00.0".into()))(Some(0)));
        let port = |gpu| {
            let (device, knobs) = ("mlx5_0".to_owned(), Knobs::default());
            Part::Nic(Box::new(NicPort { device, port: 1, gpu, gpu_path: None, knobs }))
        };
        let loops = part(2, Op::NicLoopback, port(None));
        assert!(loops(Some(799)) && !loops(Some(800)));
        assert!(!part(2, Op::NicLoopback, port(Some(GpuOfNic { number: 0, pci: None })))(Some(0)));
    }

    #[test]
    fn the_state_of_each_gpu_is_read_once() {
        let pci = |text: &str| Part::Gpu(text.to_owned());
        let nic = |gpu| {
            let (device, knobs) = ("mlx5_0".to_owned(), Knobs::default());
            Part::Nic(Box::new(NicPort { device, port: 1, gpu, gpu_path: None, knobs }))
        };
        let of = |from: Part, to: Part| gpus(&NodeFlow { from, to }).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of(pci("a"), pci("b")), ["a", "b"]);
        assert_eq!(of(pci("a"), pci("a")), ["a"]);
        let beside = |pci: Option<&str>| nic(Some(GpuOfNic { number: 3, pci: pci.map(str::to_owned) }));
        assert_eq!(of(beside(Some("a")), beside(Some("a"))), ["a"]);
        assert!(of(beside(None), beside(None)).is_empty() && of(nic(None), nic(None)).is_empty());
    }
}

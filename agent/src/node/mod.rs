//! Tests within this host (see [`railgauge_wire::node`]): all flows of a cell concurrently, each on its own thread.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chase::Chase;
use copier::Copier;
use loopback::Loopback;
use mover::Mover;
use multiplier::{Multiplier, Patterns};
use parking_lot::{Condvar, Mutex};
use processors::Processors;
use railgauge_wire::{
    CaseAccount, Failure, Kind, Nanoseconds, NodeAccount, NodeFlow, NodeSpec, Op, Part, Pattern, Spent, Stage,
    TestMetric, remedy,
};

use crate::{
    bench::control::Control,
    memory::place,
    system::tree::Tree,
    watch::{self, gpus::Span},
    worker::on_each,
};

mod chase;
mod copier;
mod loopback;
mod mover;
mod multiplier;
mod processors;

/// One request at a time: an abandoned one still uses memory and bandwidth.
static TURN: Mutex<()> = Mutex::new(());

/// Accounts are in the order of the flows.
pub(crate) fn run(spec: &NodeSpec) -> Vec<NodeAccount> {
    let _turn = TURN.lock();
    if let Some(failure) = too_much(spec, place::bytes(&Tree::host())) {
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

fn gpus(flow: &NodeFlow) -> impl Iterator<Item = &str> {
    let other = (flow.to != flow.from).then_some(&flow.to);
    std::iter::once(&flow.from).chain(other).filter_map(|part| match part {
        Part::Gpu(pci) => Some(pci.as_str()),
        Part::Nic(nic) => nic.gpu.as_ref()?.pci.as_deref(),
        Part::Processors(_) => None,
    })
}

/// Accounts are in the order of the flows.
fn all(spec: &NodeSpec) -> Vec<NodeAccount> {
    let gate = Gate::new(spec.flows.len());
    let flows = spec.flows.iter().map(|flow| (flow, gate.pass()));
    let accounts = on_each("node", flows, |(flow, pass)| Ok(one(spec, flow, &pass)));
    accounts.into_iter().map(|account| account.unwrap_or_else(failed)).collect()
}

/// Checks the sum of all flows' host memory: each flow alone does not see the others' allocations.
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

/// Always gives its pass back, so that the others do not wait for it.
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
    let mut mover;
    (mover, *account) = open(spec, flow, control)?;
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
    // Comparing would disturb passes still under way.
    let waits = Instant::now();
    pass.meet(control)?;
    *waiting = waiting.saturating_add(waits.elapsed().into());
    let verifying = Instant::now();
    verify(spec, mover.as_mut(), 2, control, &mut account.account)?;
    let spent = &mut account.account.spent.verify;
    *spent = spent.saturating_add(verifying.elapsed().into());
    Ok(())
}

/// `iteration` makes its bytes differ from those of other passes.
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

fn open(spec: &NodeSpec, flow: &NodeFlow, control: &Control) -> Result<(Box<dyn Mover>, NodeAccount), Failure> {
    fn boxed<M: Mover + 'static>((mover, account): (M, NodeAccount)) -> (Box<dyn Mover>, NodeAccount) {
        (Box::new(mover), account)
    }
    let tree = Tree::host();
    Ok(match (&flow.from, &flow.to) {
        (Part::Processors(node), Part::Processors(other)) if node == other && spec.metric == TestMetric::Latency => {
            boxed(Chase::open(&tree, *node, spec)?)
        }
        (Part::Processors(node), Part::Processors(other)) if node == other => {
            boxed(Processors::open(&tree, *node, spec)?)
        }
        (Part::Gpu(gpu), Part::Gpu(_)) if spec.op == Op::Matmul => boxed(Multiplier::open(gpu, spec)?),
        (Part::Gpu(gpu), Part::Gpu(_)) if spec.op == Op::GpuMemoryTest => boxed(Patterns::open(gpu, spec)?),
        (Part::Gpu(from), Part::Gpu(to)) => boxed(Copier::open(&tree, from, to, spec)?),
        (Part::Nic(nic), Part::Nic(other)) if nic == other => boxed(Loopback::open(&tree, nic, spec, control)?),
        _ => {
            let cause = format!("{} has no such ends: {flow:?}", spec.op);
            return Err(Failure::new(Stage::Open, Kind::Internal, cause));
        }
    })
}

/// Opens whenever all active flows wait at it.
struct Gate {
    state: Mutex<State>,
    opened: Condvar,
}

struct State {
    flows: usize,
    waiting: usize,
    times: u64,
}

impl Gate {
    pub(super) fn new(flows: usize) -> Self {
        Self { state: Mutex::new(State { flows, waiting: 0, times: 0 }), opened: Condvar::new() }
    }

    /// Dropping it removes the flow.
    fn pass(&self) -> Pass<'_> {
        Pass { gate: self }
    }

    fn open_if_complete(&self, state: &mut State) {
        if state.waiting == state.flows {
            (state.waiting, state.times) = (0, state.times + 1);
            self.opened.notify_all();
        }
    }
}

struct Pass<'g> {
    gate: &'g Gate,
}

impl Pass<'_> {
    pub(super) fn meet(&self, control: &Control) -> Result<(), Failure> {
        let mut state = self.gate.state.lock();
        let before = state.times;
        state.waiting += 1;
        self.gate.open_if_complete(&mut state);
        while state.times == before {
            let late = self.gate.opened.wait_until(&mut state, deadline(control)).timed_out();
            if late && state.times == before {
                state.waiting -= 1;
                return control.check(Stage::Measure);
            }
        }
        Ok(())
    }
}

/// After the deadline, so that [`Control::check`] fails.
fn deadline(control: &Control) -> Instant {
    control.deadline + std::time::Duration::from_millis(1)
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        state.flows -= 1;
        self.gate.open_if_complete(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, thread, time::Duration};

    use railgauge_wire::{Bytes, GpuOfNic, Knobs, NicPort, Window};

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

    fn control(limit: u64) -> Control {
        Control::new(Arc::default(), Arc::default(), Instant::now() + Duration::from_millis(limit))
    }

    #[test]
    fn all_wait_for_all_but_for_none_that_is_out() {
        let gate = Gate::new(3);
        thread::scope(|scope| {
            let pass = gate.pass();
            let early = scope.spawn(move || (pass.meet(&control(60_000)), pass.meet(&control(60_000))));
            let pass = gate.pass();
            let late = scope.spawn(move || {
                thread::sleep(Duration::from_millis(30));
                (pass.meet(&control(60_000)), pass.meet(&control(60_000)))
            });
            drop(gate.pass());
            assert_eq!(early.join().unwrap(), (Ok(()), Ok(())));
            assert_eq!(late.join().unwrap(), (Ok(()), Ok(())));
        });
    }

    #[test]
    fn who_waits_in_vain_is_told_so() {
        let gate = Gate::new(2);
        let pass = gate.pass();
        let failure = pass.meet(&control(20)).unwrap_err();
        assert_eq!(failure.kind, railgauge_wire::failure::Kind::Deadline);
    }
}

//! Tests within a host: one request for all simultaneous flows of the host. See `wire/src/node.rs`.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use railgauge_model::schedule::devices::{devices, parts};
use railgauge_model::{
    journal::event::{Case, GpuDuring, LinkRecord, Sample, Started},
    plan::{Plan, model::Test},
    schedule::Port,
};
use railgauge_wire::{
    Answer, Ask, Carrier, Failure, Footprint, Gpu, GpuOfNic, GpuPath, HostFacts, Kind, LinkLayer, Nanoseconds, NicPort,
    NodeAccount, NodeFlow, NodeSpec, Op, Part, Role, Stage, Transport, facts::port_name, remedy,
};

use super::super::{
    failures::{host_of, unexpected},
    gpus,
    links::{Link, no_rail},
    spine::now,
};
use super::{
    case::{HostAgent, Tried},
    steps::{corrupted, limit as limit_of_pass},
};

/// How much longer the controller waits than the agent, which gives up first with its own words.
const GRACE: Duration = Duration::from_secs(8);

pub(crate) struct NodeCases {
    pub plan: Arc<Plan>,
    pub index: usize,
    pub cases: Vec<Case>,
    pub repeat: u32,
    pub host: HostAgent,
}

pub(crate) async fn run(of: NodeCases) -> Vec<Tried<Link>> {
    let NodeCases { plan, index, cases, repeat, host: (agent, facts) } = of;
    let (test, started_at, host) = (&plan.tests[index], Started::from(now()), agent.host().to_owned());
    let tried = |case: Case, link, result: Result<Sample, Failure>| {
        Tried::new(case, repeat, started_at.clone(), link, result.map_err(|failure| failure.at(&host)))
    };
    let mut done = Vec::new();
    let (mut asked, mut flows) = (Vec::new(), Vec::new());
    for case in cases {
        match flow(&plan, test, &case, &facts) {
            Ok(flow) => {
                asked.push(case);
                flows.push(flow);
            }
            Err(failure) => done.push(tried(case, None, Err(failure))),
        }
    }
    let Some(first) = asked.first() else { return done };
    let spec = spec(test, first, plan.seed, flows);
    let limit = limit_of_pass(test) + GRACE;
    let begun = Instant::now();
    let answer = agent.ask(Ask::Node(Box::new(spec)), limit).await;
    let waited = begun.elapsed().into();
    match answer {
        Ok(Answer::Node(accounts)) if accounts.len() == asked.len() => {
            for (case, account) in asked.into_iter().zip(accounts) {
                let link = record(&case, &account, &facts);
                done.push(tried(case, link, sample(&host, account, waited)));
            }
        }
        other => {
            let failure = match other {
                Ok(other) => unexpected(&host, Stage::Measure, &other),
                Err(failure) => failure,
            };
            done.extend(asked.into_iter().map(|case| tried(case, None, Err(failure.clone()))));
        }
    }
    done
}

fn spec(test: &Test, case: &Case, seed: u64, flows: Vec<NodeFlow>) -> NodeSpec {
    NodeSpec {
        op: case.cell.op,
        metric: case.cell.metric,
        size: case.cell.size,
        window: test.window,
        warm_up: test.warm_up.into(),
        verify: test.verify.then_some(seed),
        deadline_ms: u64::try_from(test.deadline.as_millis()).unwrap_or(u64::MAX),
        precision: test.knobs.precision,
        cached: test.knobs.footprint == Some(Footprint::Cache),
        flows,
    }
}

/// The parts of the host that a case is about; fails if the host lacks them.
fn flow(plan: &Plan, test: &Test, case: &Case, facts: &HostFacts) -> Result<NodeFlow, Failure> {
    if case.cell.op == Op::GpuToGpu && case.flow.from == case.flow.to {
        let cause = "this host has one GPU, and none to copy to";
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause));
    }
    if case.cell.transport == Transport::Nic {
        let nic = Part::Nic(Box::new(nic(plan, test, &case.flow.from, facts)?));
        return Ok(NodeFlow { from: nic.clone(), to: nic });
    }
    let part = |port: &Port| part(case.cell.transport, port.rail, facts);
    Ok(NodeFlow { from: part(&case.flow.from)?, to: part(&case.flow.to)? })
}

fn part(transport: Transport, rail: u32, facts: &HostFacts) -> Result<Part, Failure> {
    let names = parts(facts, transport);
    let refused = |cause: String| Failure::new(Stage::Open, Kind::Configuration, cause);
    let Some(name) = names.get(rail as usize) else {
        let (what, there) = match transport {
            Transport::Gpu => ("GPU", "GPUs"),
            _ => ("NUMA node", "NUMA nodes with processors"),
        };
        let cause = match names.len() {
            0 => format!("this host has no {there}"),
            count => format!("this host has no {what} {rail}: it has {count} {there}, counted from 0"),
        };
        let look = if facts.has_amd_gpus() { remedy::LOOK_AT_AMD_GPU } else { remedy::LOOK_AT_GPU };
        return Err(refused(cause).remedy_if((transport == Transport::Gpu).then_some(look)));
    };
    match transport {
        Transport::Gpu if name.is_empty() => Err(refused(format!("the PCI address of GPU {rail} is not known"))),
        Transport::Gpu => Ok(Part::Gpu(name.clone())),
        _ => name.parse().map(Part::Processors).map_err(|_| refused(format!("`{name}` is not a NUMA node"))),
    }
}

/// The RDMA port of a rail, and its GPU; fails if the host has no such port.
fn nic(plan: &Plan, test: &Test, port: &Port, facts: &HostFacts) -> Result<NicPort, Failure> {
    let host = host_of(&plan.hosts, &port.host)?;
    let devices = devices(host, Some(facts), Transport::Nic);
    let named = devices.get(port.rail as usize).ok_or_else(|| no_rail(&port.host, port.rail, &devices, facts))?;
    let (device, number) = port_name(named);
    let of_gpu = |number: u32| GpuOfNic {
        number,
        pci: facts.gpus.iter().find(|gpu| facts.cuda_number(gpu) == Some(number)).and_then(|gpu| gpu.pci.clone()),
    };
    Ok(NicPort {
        device: device.to_owned(),
        port: number.unwrap_or(1),
        gpu: gpus::of_end(test, Role::Initiator, port, Some(named.as_str()), facts)?.map(of_gpu),
        gpu_path: test.gpu_path,
        knobs: test.knobs.clone(),
    })
}

/// The result of one flow. Wrong bytes before a failure have precedence.
fn sample(host: &str, account: NodeAccount, waited: Nanoseconds) -> Result<Sample, Failure> {
    let account = account.account;
    if let Some(failure) = account.failure {
        return Err(corrupted(account.checked, failure));
    }
    let nothing = || Failure::new(Stage::Measure, Kind::Internal, "the timed pass returned no measurement");
    let initiator = *account.measured.ok_or_else(nothing)?;
    let (checked, spent, waited) = (account.checked, Some(account.spent), Some(waited));
    let gpus = GpuDuring::of(host, account.gpus);
    Ok(Sample { initiator, checked, spent: spent.map(Box::new), waited, gpus: gpus.into(), ..Sample::default() })
}

fn record(case: &Case, account: &NodeAccount, facts: &HostFacts) -> Option<LinkRecord> {
    // An agent's word counts only if it agrees with the requested transport.
    let transport = account.carrier.filter(|carrier| carrier.transport() == case.cell.transport)?;
    let link_layer = match (case.cell.op, account.link_layer?) {
        // CUDA does not report what connects two GPUs; their facts do.
        (Op::GpuToGpu, LinkLayer::Unknown) if transport == Carrier::CudaCopy => between(account, facts),
        (_, layer) => layer,
    };
    Some(LinkRecord {
        transport,
        link_layer,
        gpu_path: account.gpu_path.unwrap_or(GpuPath::None),
        software: account.software,
        from_device: account.devices.0.clone(),
        to_device: account.devices.1.clone(),
        rate_gbps: None,
        mtu: 0,
        write_order: None,
        settings: account.settings.clone(),
    })
}

/// What connects two GPUs: NVLink where both have active ones and reach each other, else PCIe.
fn between(account: &NodeAccount, facts: &HostFacts) -> LinkLayer {
    let of = |name: &str| -> Option<&Gpu> {
        let pci = account.settings.get(name)?;
        facts.gpus.iter().find(|gpu| gpu.pci.as_ref() == Some(pci))
    };
    let linked = |name: &str| of(name).and_then(|gpu| gpu.nvlinks).is_some_and(|links| links > 0);
    let reach = account.settings.get("peer_access").is_some_and(|access| access == "true");
    if reach && linked("gpu_pci") && linked("gpu_pci_remote") { LinkLayer::Nvlink } else { LinkLayer::Pcie }
}

//! Golden schedules, the promises that hold for every schedule, and its cost.

mod at_once;
mod distances;
mod effort;
mod examples;
mod groups;
mod promises;

use std::{collections::BTreeMap, time::Duration};

use railgauge_wire::{Bytes, Memory, Nanoseconds, Op, Service, TestMetric, Transport, Window};

use super::{Flow, Inventory, Port, Schedule, schedule};
use crate::plan::{
    Plan,
    model::{Host, Launch, Launcher, Pattern, Rails, Test},
    per_end::PerEnd,
};

fn host(index: usize, devices: usize) -> Host {
    Host {
        name: format!("h{index}"),
        address: String::new(),
        user: None,
        port: None,
        devices: (0..devices).map(|rail| format!("mlx5_{rail}")).collect(),
        tcp: Vec::new(),
    }
}

fn test(pattern: Pattern, rails: Rails, hosts: usize) -> Test {
    Test {
        gpus: PerEnd::default(),
        gpu_distance: None,
        rate_limit: None,
        collective: None,
        configure: None,
        name: "t".into(),
        op: Op::Write,
        metric: TestMetric::Bandwidth,
        transport: Transport::Verbs,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        gpu_path: None,
        sizes: [64, 4096, 65536].map(Bytes).into(),
        qps: vec![1, 4],
        threads: 1,
        bidirectional: false,
        pattern,
        links_covered: None,
        rails,
        hosts: (0..hosts).map(|index| format!("h{index}")).collect(),
        repeats: 1,
        window: Window::Duration(Nanoseconds(1)),
        warm_up: Duration::ZERO,
        verify: true,
        deadline: Duration::from_secs(10),
        beside: None,
        knobs: Default::default(),
        expect: Vec::new(),
    }
}

/// A plan of one test; `devices` holds the listed devices of every host.
fn plan(pattern: Pattern, rails: Rails, devices: &[usize], seed: u64) -> Plan {
    Plan {
        localise: Default::default(),
        alert: Default::default(),
        subset: None,
        pods: None,
        soak: None,
        interleave: Vec::new(),
        preflight: Default::default(),
        baseline: None,
        name: "p".into(),
        description: String::new(),
        seed,
        rotate: None,
        at_most: None,
        launch: Launch {
            via: Launcher::Local,
            in_flight: 1,
            retries: 0,
            timeout: Duration::from_secs(1),
            keep_agent: false,
            agent_dir: None,
            env: BTreeMap::new(),
            send_env: Vec::new(),
        },
        hosts: devices.iter().enumerate().map(|(index, &devices)| host(index, devices)).collect(),
        groups: BTreeMap::new(),
        places: BTreeMap::new(),
        topology: None,
        tests: vec![test(pattern, rails, devices.len())],
    }
}

fn scheduled(plan: &Plan) -> Schedule {
    schedule(plan, &Inventory::of_plan(plan)).unwrap()
}

/// Flows of every round as numbers: initiator, its rail, responder, its rail.
fn numbers(schedule: &Schedule) -> Vec<Vec<(usize, u32, usize, u32)>> {
    let number = |port: &Port| port.host[1..].parse::<usize>().unwrap();
    let flow = |flow: &Flow| (number(&flow.from), flow.from.rail, number(&flow.to), flow.to.rail);
    schedule.rounds.iter().map(|round| round.flows.iter().map(flow).collect()).collect()
}

fn hosts_only(schedule: &Schedule) -> Vec<Vec<(usize, usize)>> {
    numbers(schedule).iter().map(|round| round.iter().map(|&(a, _, b, _)| (a, b)).collect()).collect()
}

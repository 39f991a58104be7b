//! The plan of a made-up run: write bandwidth and latency over verbs, and the TCP baseline.

use std::{collections::BTreeMap, time::Duration};

use railgauge_model::plan::{
    Plan,
    model::{Expectation, Host, Interleave, Launch, Launcher, Limit, Pattern, Rails, Ssh, Subset, Test},
    per_end::PerEnd,
};
use railgauge_wire::{
    step::Window,
    terms::{Memory, Metric, Op, Service, TestMetric, Transport},
    unit::{Bytes, Nanoseconds},
};

use super::Scenario;

pub fn plan(scenario: &Scenario) -> Plan {
    let hosts: Vec<String> = (0..scenario.hosts).map(|index| scenario.name(index)).collect();
    let (left, right) = hosts.split_at(scenario.hosts / 2);
    let rdma = Test {
        gpus: PerEnd::default(),
        gpu_distance: None,
        rate_limit: None,
        collective: None,
        configure: None,
        beside: None,
        name: "write-bw".into(),
        op: Op::Write,
        metric: TestMetric::Bandwidth,
        transport: Transport::Verbs,
        service: Service::Rc,
        memory: PerEnd::same(Memory::Host),
        gpu_path: None,
        sizes: scenario.sizes.iter().copied().map(Bytes).collect(),
        qps: vec![1],
        threads: 1,
        bidirectional: false,
        links_covered: None,
        pattern: scenario.pattern.clone().unwrap_or(Pattern::Tournament),
        rails: if scenario.crossed.is_some() { Rails::Crossed } else { Rails::Aligned },
        hosts: hosts.clone(),
        repeats: scenario.repeats,
        window: Window::Duration(Nanoseconds::from_secs(2)),
        warm_up: Duration::from_millis(500),
        verify: true,
        deadline: Duration::from_secs(10),
        knobs: Default::default(),
        expect: vec![
            demand(Metric::Bandwidth, Limit::AtLeast(150.0), Some((65536, u64::MAX)), 21),
            demand(Metric::Bandwidth, Limit::WithinPercentOfPeers(10.0), None, 22),
            demand(Metric::Bandwidth, Limit::PercentOfCeiling(80.0), Some((1 << 20, u64::MAX)), 23),
        ],
    };
    let latency = Test {
        gpus: PerEnd::default(),
        gpu_distance: None,
        rate_limit: None,
        collective: None,
        configure: None,
        name: "write-lat".into(),
        metric: TestMetric::Latency,
        sizes: [2, 64, 1024, 4096].map(Bytes).into(),
        window: Window::Iterations(4000),
        expect: vec![
            demand(Metric::LatencyP99, Limit::AtMost(12.0), Some((2, 64)), 31),
            Expectation {
                group: Some("leaf1".into()),
                rails: vec![0],
                ..demand(Metric::LatencyP50, Limit::AtMost(4.0), Some((2, 2)), 32)
            },
        ],
        ..rdma.clone()
    };
    let tcp = Test {
        gpus: PerEnd::default(),
        gpu_distance: None,
        rate_limit: None,
        collective: None,
        configure: None,
        name: "tcp-baseline".into(),
        op: Op::Send,
        transport: Transport::Tcp,
        sizes: [65536, 1 << 20].map(Bytes).into(),
        qps: vec![1, 4],
        pattern: Pattern::Neighbours,
        expect: Vec::new(),
        ..rdma.clone()
    };
    let (tests, interleave) = match scenario.in_turn {
        None => (vec![rdma, latency, tcp], Vec::new()),
        Some(_) => {
            let first = Test { repeats: 16, expect: Vec::new(), ..rdma };
            let mut second = Test { name: "write-bw-tc104".into(), ..first.clone() };
            second.knobs.traffic_class = Some(104);
            let turns = Interleave { a: first.name.clone(), b: second.name.clone(), blocks: 8 };
            (vec![first, second], vec![turns])
        }
    };
    let subset = scenario.part.then(|| Subset {
        hosts: Some(hosts.clone()),
        of_hosts: scenario.drawn.iter().max().map_or(0, |last| last + 1),
        tests: None,
        of_tests: tests.iter().map(|test| test.name.clone()).collect(),
        repeats: None,
        left_out: Vec::new(),
    });
    Plan {
        subset,
        places: BTreeMap::new(),
        topology: None,
        pods: None,
        localise: Default::default(),
        alert: Default::default(),
        preflight: Default::default(),
        soak: None,
        baseline: None,
        name: "acceptance".into(),
        description: "Acceptance of the new pod: every pair, both rails".into(),
        rotate: scenario.rotate,
        at_most: None,
        seed: 7,
        launch: Launch {
            via: Launcher::Ssh(Ssh::default()),
            in_flight: 32,
            retries: 3,
            timeout: Duration::from_secs(20),
            keep_agent: false,
            agent_dir: None,
            env: BTreeMap::new(),
            send_env: Vec::new(),
        },
        groups: [("leaf1".to_owned(), left.to_vec()), ("leaf2".to_owned(), right.to_vec())].into(),
        hosts: hosts
            .iter()
            .map(|name| Host {
                name: name.clone(),
                address: name.clone(),
                user: None,
                port: None,
                devices: Vec::new(),
                tcp: Vec::new(),
            })
            .collect(),
        tests,
        interleave,
    }
}

fn demand(metric: Metric, limit: Limit, sizes: Option<(u64, u64)>, line: usize) -> Expectation {
    let sizes = sizes.map(|(from, to)| (Bytes(from), Bytes(to)));
    Expectation { metric, limit, written: None, sizes, rails: Vec::new(), group: None, source: None, line }
}

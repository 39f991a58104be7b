//! Made-up results of collectives: what a group whose ranks all take the same time would have told.

use std::collections::BTreeMap;

use railgauge_analysis::journal::HostUp;
use railgauge_model::{
    journal::event::{Case, LinkRecord, RankAccount, Sample},
    plan::Plan,
};
use railgauge_wire::{
    facts::HostFacts,
    measure::{Latency, Measurement},
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer, Op},
    unit::{Bytes, Nanoseconds, NanosecondsF64},
};

/// Operations of a made-up window.
const OPERATIONS: u64 = 100;

/// A window of operations that take `time` nanoseconds each at every rank, verified before and after.
pub fn sample(case: &Case, time: u64) -> Sample {
    let (size, ranks) = (case.cell.size, u64::from(case.flow.ranks()));
    // Of a reduction one rank holds the size, or all ranks together hold it once; of the others every rank holds all of it.
    let held = |rank: u32| match case.cell.op {
        Op::Reduce => size * u64::from(rank == 0),
        Op::ReduceScatter => size / ranks,
        _ => size,
    };
    let checked = |held: Bytes| Checked { verified: held * 2, ..Checked::default() };
    let latency = Latency {
        samples: OPERATIONS,
        min: Nanoseconds(time),
        p50: Nanoseconds(time),
        p90: Nanoseconds(time),
        p99: Nanoseconds(time),
        p999: Nanoseconds(time),
        max: Nanoseconds(time),
        mean: NanosecondsF64(time as f64),
        histogram: vec![(Nanoseconds(time), OPERATIONS)],
        ..Latency::default()
    };
    let account = |(rank, port): (u32, &railgauge_model::schedule::Port)| RankAccount {
        rank,
        host: port.host.to_string(),
        device: "GPU 0".into(),
        gpu: Some(0),
        p50: Nanoseconds(time),
        max: Nanoseconds(time),
        operations: OPERATIONS,
        checked: checked(held(rank)),
        carried: None,
        nics: Vec::new(),
    };
    Sample {
        initiator: Measurement {
            elapsed: Nanoseconds(OPERATIONS * time),
            operations: OPERATIONS,
            bytes: size * OPERATIONS,
            latency: Some(Box::new(latency)),
            ..Measurement::default()
        },
        checked: checked((0..case.flow.ranks()).map(held).sum()),
        ranks: (0..).zip(&case.flow.members).map(account).collect(),
        ..Sample::default()
    }
}

/// What carried a collective among GPUs.
pub fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::NcclIb,
        link_layer: LinkLayer::RoceV2,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "GPU 0".into(),
        to_device: "GPU 0".into(),
        rate_gbps: None,
        mtu: 0,
        write_order: None,
        settings: BTreeMap::new(),
    }
}

/// All hosts of a plan, of which nothing is known but that they answered.
pub fn hosts(plan: &Plan) -> BTreeMap<String, HostUp> {
    let up = |name: &String| HostUp {
        facts: HostFacts { hostname: name.clone(), ..HostFacts::default() },
        clock: None,
        wall: None,
    };
    plan.hosts.iter().map(|host| (host.name.clone(), up(&host.name))).collect()
}

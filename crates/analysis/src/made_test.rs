//! Journals of TCP tests among hosts `h0`, `h1`, …, computed by hand, for tests.

use std::{path::Path, sync::Arc};

use railgauge_model::{
    journal::event::{Case, LinkRecord, Sample},
    plan,
    schedule::{Inventory, schedule},
};
use railgauge_wire::{Bytes, Carrier, GpuPath, HostFacts, LinkLayer, Measurement, Nanoseconds};

use super::journal::{HostUp, Journal, JournalEnd, Try};

pub(super) fn journal(text: &str, hosts: usize, sample: impl Fn(&Case) -> Sample) -> Journal {
    let plan = plan::parse("t.toml", text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}")).0;
    let cases = Case::planned(&plan, &schedule(&plan, &Inventory::of_plan(&plan)).unwrap());
    let tries = cases.iter().map(|case| Try {
        case: case.id,
        repeat: 0,
        started_at: "2026-11-21T02:00:00.000Z".into(),
        link: Some(Arc::new(link())),
        result: Ok(sample(case)),
    });
    let up = |host: usize| {
        let facts = HostFacts { hostname: format!("h{host}"), ..HostFacts::default() };
        (format!("h{host}"), HostUp { facts, clock: None, wall: None })
    };
    Journal {
        tries: tries.collect(),
        hosts: (0..hosts).map(up).collect(),
        cases,
        end: JournalEnd::Finished,
        ..Journal::of(plan)
    }
}

fn link() -> LinkRecord {
    LinkRecord {
        transport: Carrier::Tcp,
        link_layer: LinkLayer::Ethernet,
        gpu_path: GpuPath::None,
        software: false,
        from_device: "eth0".into(),
        to_device: "eth0".into(),
        rate_gbps: None,
        mtu: 1500,
        write_order: None,
        settings: Default::default(),
    }
}

/// Two seconds in twenty slices with this number of bytes each, in messages of 64 KiB.
pub(super) fn sample(slice: Bytes) -> Sample {
    let bytes = slice * 20;
    let end = Measurement {
        started: Nanoseconds(7_000_000_000),
        elapsed: Nanoseconds::from_secs(2),
        operations: bytes.0 / 65_536,
        bytes,
        moved: Some(bytes),
        slices: vec![slice; 20].into(),
        ..Measurement::default()
    };
    Sample { initiator: end.clone(), responder: Some(Box::new(end)), ..Sample::default() }
}

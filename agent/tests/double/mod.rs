//! Two agents on the double of a verbs device (`examples/verbs_double`).
#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "../../../tests/support/devices.rs"]
pub mod devices;
#[path = "../../../tests/support/example.rs"]
pub mod example;
#[path = "../../src/facts/tests/tree.rs"]
#[allow(missing_docs, reason = "the facts' own tests use the rest")]
mod tree;

use std::{path::PathBuf, sync::LazyLock};

use railgauge_wire::{
    link::{Knobs, LinkSpec, Opened, WriteLatency},
    step::{Checked, Window},
    terms::{Op, Service, TestMetric, Transport},
    unit::Bytes,
};

use super::controller::{
    Agent, command,
    pair::{Pair, timing},
};
use devices::Device;

/// The double.
static LIBRARY: LazyLock<PathBuf> =
    LazyLock::new(|| example::folder_with("railgauge-agent", "verbs_double").join("libverbs_double.so"));

/// Two agents on one fabric, each a host with the devices that `settings` make.
pub struct Fabric {
    pub pair: Pair,
    pub folder: tempfile::TempDir,
}

impl Fabric {
    pub fn new(settings: &[(&str, &str)]) -> Self {
        Self::of(settings, None)
    }

    /// As [`new`](Self::new), with the tree of a host that has the device of a profile.
    pub fn with_tree(profile: &str) -> Self {
        Self::of(&[("VERBS_DOUBLE_PROFILE", profile)], Some(devices::named(profile)))
    }

    pub fn of(settings: &[(&str, &str)], tree: Option<Device>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let agent = |host: &str| {
            let mut command = command();
            command.env("RAILGAUGE_IBVERBS", &*LIBRARY).env("RAILGAUGE_RDMACM", &*LIBRARY);
            command.env("VERBS_DOUBLE_DIR", folder.path()).env("VERBS_DOUBLE_HOST", host);
            if let Some(device) = tree {
                let root = folder.path().join(format!("root{host}"));
                device.unpack(host, &root);
                command.env("RAILGAUGE_ROOT", root);
            }
            Agent::greeted(command.envs(settings.iter().copied()))
        };
        Self { pair: Pair { initiator: agent("1"), responder: agent("2") }, folder }
    }

    /// The numbers of the asynchronous events that a host's agent has taken from its device, in their order.
    pub fn events_taken(&self, host: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(format!("events.{host}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A verified message and a few more on a link of one queue pair.
    pub fn writes(&mut self) -> (Opened, Opened) {
        let ends = self.pair.open(verbs(Service::Rc), 1, 65536).unwrap();
        let right = Checked { verified: Bytes(65536), wrong: Bytes(0), first_wrong: None };
        assert_eq!(self.pair.verify(Op::Write, 65536, 1), right);
        let (near, _) = self.pair.time(timing(Op::Write, TestMetric::Bandwidth, 65536, Window::Iterations(20)));
        assert_eq!(near.operations, 20);
        ends
    }
}

/// A verbs link of this service over the first device.
pub fn verbs(service: Service) -> impl Fn(&mut LinkSpec) {
    move |spec| {
        (spec.transport, spec.service, spec.address) = (Transport::Verbs, service, None);
        // The threads of the double share this machine's processors with everything else.
        spec.knobs = Knobs { timeout: Some(18), write_latency: Some(WriteLatency::Poll), ..Knobs::default() };
    }
}

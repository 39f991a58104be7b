//! RDMA devices that the agent cannot open: a container has only the files that it was given.

use railgauge_wire::{
    facts::DeviceFile,
    remedy::{self, Entry},
};

use super::{Around, Found, Need, Rule, Scene, Severity, Spoils, Subject};

pub(super) const RULE: Rule = Rule {
    reads: "/dev/infiniband/uverbs*, opened as measurements open them",
    meaning: "the device cannot be opened: every case over verbs on it fails",
    source: "kernel Documentation/infiniband/user_verbs.rst; cgroup-v1/devices.rst",
    spoils: Spoils::Nothing,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.device.device_file.is_some(), "whether its devices can be opened")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let refused = scene.devices().filter_map(|port| {
        let around = scene.around(port.facts);
        let (what, remedy) = match port.device.device_file.as_ref()? {
            DeviceFile::Open => return None,
            DeviceFile::Missing(path) => (format!("{path} is not there"), who_gives(around, remedy::LOAD_IB_UVERBS)),
            DeviceFile::Refused(path) => {
                (format!("the agent may not open {path}"), who_gives(around, remedy::ALLOW_UVERBS))
            }
        };
        Some(Found::host(Severity::Failure, port.host, what, remedy).device(&port.device.name))
    });
    refused.collect()
}

/// What gives the file to the agent; outside a container it is the machine.
const fn who_gives(around: Around, machine: Entry) -> Entry {
    match around {
        Around::Pod => remedy::POD_DEVICES,
        Around::Container => remedy::CONTAINER_DEVICES,
        Around::Slurm | Around::Machine => machine,
    }
}

//! RDMA devices that the agent cannot open: a container has only the files that it was given, and libibverbs only the providers.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/dev/infiniband/uverbs*, opened as measurements open them, and the devices that libibverbs lists",
    meaning: "the device cannot be opened: every case over verbs on it fails",
    source: "kernel Documentation/infiniband/user_verbs.rst; cgroup-v1/devices.rst",
    spoils: Spoils::Nothing,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.device.device_file.is_some(), "whether its devices can be opened")],
    find,
};

/// Of a device without a file while others have one.
const LEFT_OUT: &str =
    "nothing, if it is not meant to be used: the plan names no `devices`, and the run takes those that can be opened";

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let unused = scene.unused().filter(|port| port.port.number == 1).map(|port| (port, false));
    found.extend(scene.devices().map(|port| (port, true)).chain(unused).filter_map(|(port, used)| {
        let around = scene.around(port.facts);
        let (what, remedy) = match port.device.device_file.as_ref()? {
            DeviceFile::Open => return None,
            DeviceFile::Missing(path) => {
                (format!("{path} is not there"), who_gives(around, remedy::LOAD_IB_UVERBS).into())
            }
            DeviceFile::Refused(path) => {
                (format!("the agent may not open {path}"), who_gives(around, remedy::ALLOW_UVERBS).into())
            }
            DeviceFile::NoProvider => {
                let driver = port.device.driver.as_deref().unwrap_or("its driver");
                let what = format!("libibverbs has no provider for it ({driver})");
                (what, remedy::INSTALL_PROVIDER.with([("driver", driver)]))
            }
        };
        Some(match used {
            true => port.of_device(Failure, what, remedy),
            false => port.of_device(Notice, format!("{what}: no test uses it"), remedy).meaning(LEFT_OUT),
        })
    }));
}

/// What gives the file to the agent; outside a container it is the machine.
const fn who_gives(around: Around, machine: Entry) -> Entry {
    match around {
        Around::Pod => remedy::POD_DEVICES,
        Around::Container => remedy::CONTAINER_DEVICES,
        Around::Slurm | Around::Machine => machine,
    }
}

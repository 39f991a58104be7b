//! Hosts that are containers and pods: what they lack, and who can give it to them.

use railgauge_model::plan::model::{Kubectl, Launcher};
use railgauge_wire::{DeviceFile, IpcLock, Transport};

use super::*;

fn of_check(check: &str, found: Vec<Finding>) -> Finding {
    let mut of_check: Vec<Finding> = found.into_iter().filter(|finding| finding.check == check).collect();
    assert_eq!(of_check.len(), 1, "{of_check:?}");
    of_check.remove(0)
}

#[test]
fn limits_of_containers_are_those_of_their_engine_or_runtime() {
    let remedy = |via: Launcher, container: Option<&str>, lock: IpcLock| {
        let mut plan = planned("sizes = [\"1 MiB\"]\n");
        plan.launch.via = via;
        let small = cluster(|facts| {
            facts.surroundings.container = container.map(str::to_owned);
            (facts.memlock_bytes, facts.ipc_lock) = (Some(Bytes::from_mib(1)), Some(lock));
            facts.rdma[0].device_file = Some(DeviceFile::Open);
        });
        of_check("locked-memory", judge(&plan, &small)).remedy.id.into_owned()
    };
    let kubectl = || Launcher::Kubectl(Kubectl::default());
    for (via, container, lock, expected) in [
        (kubectl(), None, IpcLock::Absent, "pod-locked-memory"),
        (kubectl(), Some("kubernetes"), IpcLock::NotInEffect, "ipc-lock-not-root"),
        (kubectl(), None, IpcLock::InNamespace, "ipc-lock-in-namespace"),
        (Launcher::Local, Some("kubernetes"), IpcLock::Absent, "pod-locked-memory"),
        (Launcher::Podman, None, IpcLock::Absent, "container-locked-memory"),
        (Launcher::Docker, Some("docker"), IpcLock::NotInEffect, "container-locked-memory"),
        (Launcher::Local, None, IpcLock::NotInEffect, "memlock"),
    ] {
        let told = remedy(via.clone(), container, lock);
        let machine = railgauge_wire::remedy::LOCKED_MEMORY.id;
        assert_eq!(told, if expected == "memlock" { machine } else { expected }, "{via:?} {container:?} {lock:?}");
    }
}

#[test]
fn a_device_that_was_not_passed_into_the_container_is_named() {
    let missing = DeviceFile::Missing("/dev/infiniband/uverbs0".into());
    for (file, container, expected) in [
        (missing.clone(), Some("kubernetes"), "pod-devices"),
        (missing.clone(), Some("podman"), "container-devices"),
        (DeviceFile::Refused("/dev/infiniband/uverbs0".into()), Some("docker"), "container-devices"),
        (missing, None, "load-ib-uverbs"),
    ] {
        let cluster = cluster(|facts| {
            facts.surroundings.container = container.map(str::to_owned);
            facts.rdma[0].device_file = Some(file.clone());
        });
        let found = of_check("device-file", judge(&plan(), &cluster));
        assert_eq!((found.severity, found.hosts.as_slice()), (Severity::Failure, ["gpu3".to_owned()].as_slice()));
        assert_eq!(found.remedy.id, expected, "{container:?}");
    }
}

/// Two devices in sysfs, and the file of one: the other is no rail, and that is only noted unless the plan names it.
#[test]
fn a_device_that_others_of_the_host_replace_is_left_out() {
    let mut cluster = cluster(|facts| {
        let mut other = facts.rdma[0].clone();
        (other.name, other.device_file) = ("mlx5_7".into(), Some(DeviceFile::NoProvider));
        facts.rdma[0].device_file = Some(DeviceFile::Open);
        facts.rdma.push(other);
    });
    let found = of_check("device-file", judge(&plan(), &cluster));
    assert_eq!((found.severity, found.devices.as_slice()), (Severity::Notice, ["mlx5_7".to_owned()].as_slice()));
    assert_eq!(found.remedy.id, "install-provider");
    let rails = |facts: &HostFacts| {
        let host = plan().hosts.into_iter().find(|host| host.name == "gpu3").unwrap();
        railgauge_model::schedule::devices::devices(&host, Some(facts), Transport::Verbs)
    };
    let facts = cluster.facts.get_mut("gpu3").unwrap();
    assert_eq!(rails(facts), [facts.rdma[0].name.clone()]);
    let mut named = plan();
    named.hosts.iter_mut().for_each(|host| host.devices = vec!["mlx5_7".into()]);
    let found = of_check("device-file", judge(&named, &cluster));
    assert_eq!(found.severity, Severity::Failure);
    // Where none can be opened, all are rails: each case fails with the reason.
    let facts = cluster.facts.get_mut("gpu3").unwrap();
    facts.rdma[0].device_file = Some(DeviceFile::Missing("/dev/infiniband/uverbs0".into()));
    assert_eq!(rails(facts).len(), 2);
}

#[test]
fn gid_tables_of_pods_differ_and_that_matters_only_where_an_index_is_named() {
    let differ = |plan: &Plan| {
        let mut cluster = cluster(|facts| facts.rdma[0].ports[0].gids[0].kind = Some("IB/RoCE v1".into()));
        for facts in cluster.facts.values_mut() {
            facts.surroundings.container = Some("kubernetes".into());
            facts.rdma[0].device_file = Some(DeviceFile::Open);
            let second = Gid { index: 4, kind: Some("RoCE v2".into()), ..facts.rdma[0].ports[0].gids[0].clone() };
            facts.rdma[0].ports[0].gids.push(second);
        }
        of_check("gid-table", judge(plan, &cluster))
    };
    let by_value = differ(&plan());
    assert_eq!((by_value.severity, &*by_value.remedy.id), (Severity::Notice, "pod-gid-table"));
    let by_index = differ(&planned("knobs = { gid_index = 3 }\ntransport = \"verbs\"\n"));
    assert_eq!((by_index.severity, &*by_index.remedy.id), (Severity::Warning, "pod-gid-table"));
}

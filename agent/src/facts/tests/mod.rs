//! Trees written for tests, after the kernel's ABI documents.

mod fixture;
mod hosts;

use std::{collections::BTreeMap, fs, os::unix::fs::symlink, path::Path};

use proptest::prelude::*;
use railgauge_wire::{Bytes, Failure, Gid, GigabitsPerSecond, Kind, MegabitsPerSecond, Stage};

use super::*;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn link(root: &Path, path: &str, target: &str) {
    fs::create_dir_all(root.join(target)).unwrap();
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(root.join(target), path).unwrap();
}

const MACHINE: &[(&str, &str)] = &[
    ("proc/sys/kernel/hostname", "gpu001\n"),
    ("proc/sys/kernel/osrelease", "6.8.0-45-generic\n"),
    ("proc/sys/kernel/arch", "x86_64\n"),
    ("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda1 iommu=pt\n"),
    ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Maker Model 8480\nprocessor\t: 1\n"),
    ("proc/meminfo", "MemTotal:       2113518428 kB\nMemFree:  1 kB\n"),
    (
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         65536                65536                bytes\n",
    ),
    ("usr/lib/os-release", "NAME=\"X\"\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n"),
    ("sys/devices/system/cpu/online", "0-223\n"),
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "performance\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
    ("sys/devices/system/cpu/cpu0/cache/index3/size", "107520K\n"),
];

fn collected(root: &Path) -> HostFacts {
    collect(Tree::new(root), live())
}

fn live() -> Live {
    let denied = Failure::new(Stage::Open, Kind::Configuration, "not permitted");
    Live {
        addresses: Ok(Vec::new()),
        interfaces: BTreeMap::new(),
        libraries: BTreeMap::new(),
        device_files: BTreeMap::new(),
        gpus: Ok(Vec::new()),
        cuda: Ok(Vec::new()),
        path_mtus: vec![
            PortAnswer { device: "mlx5_0".into(), port: 1, mtu: Ok(4096) },
            PortAnswer { device: "rxe0".into(), port: 1, mtu: Err(denied) },
        ],
    }
}

#[test]
fn who_does_not_tell_the_numbers_of_gpus_is_named() {
    let root = tempfile::tempdir().unwrap();
    let key = || {
        let why = Failure::new(Stage::Open, Kind::Unsupported, "it does not start");
        let facts = collect(Tree::new(root.path()), Live { gpus: Ok(vec![Gpu::default()]), cuda: Err(why), ..live() });
        facts.unreadable.into_keys().find(|key| key.contains("numbers")).unwrap()
    };
    assert_eq!(key(), "CUDA's numbers of the GPUs");
    fs::create_dir_all(root.path().join("sys/module/amdgpu")).unwrap();
    assert_eq!(key(), "HIP's numbers of the GPUs");
    fs::create_dir_all(root.path().join("sys/module/nvidia")).unwrap();
    assert_eq!(key(), "CUDA's numbers of the GPUs");
}

#[test]
fn a_roce_host() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, MACHINE);
    let pci = "sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0";
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    link(root, "sys/class/infiniband/mlx5_0/device", pci);
    link(root, &format!("{pci}/driver"), "sys/bus/pci/drivers/mlx5_core");
    write(
        root,
        &[
            ("sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n"),
            ("sys/class/infiniband/mlx5_0/board_id", "MT_0000000838\n"),
            ("sys/class/infiniband/mlx5_0/node_guid", "946d:ae03:00f4:2e5a\n"),
            (&format!("{pci}/numa_node"), "0\n"),
            (&format!("{pci}/current_link_speed"), "32.0 GT/s PCIe\n"),
            (&format!("{pci}/current_link_width"), "8\n"),
            (&format!("{pci}/max_link_speed"), "32.0 GT/s PCIe\n"),
            (&format!("{pci}/max_link_width"), "16\n"),
            (&format!("{port}/state"), "4: ACTIVE\n"),
            (&format!("{port}/phys_state"), "5: LinkUp\n"),
            (&format!("{port}/link_layer"), "Ethernet\n"),
            (&format!("{port}/rate"), "400 Gb/sec (4X NDR)\n"),
            (&format!("{port}/gids/0"), "fe80:0000:0000:0000:966d:aeff:fef4:2e5a\n"),
            (&format!("{port}/gids/3"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n"),
            (&format!("{port}/gids/10"), "0000:0000:0000:0000:0000:0000:0000:0000\n"),
            (&format!("{port}/gid_attrs/types/3"), "RoCE v2\n"),
            (&format!("{port}/gid_attrs/ndevs/3"), "ens1np0\n"),
            ("sys/class/net/ens1np0/ifindex", "2\n"),
            ("sys/class/net/ens1np0/mtu", "9000\n"),
            ("sys/class/net/ens1np0/operstate", "up\n"),
            ("sys/class/net/ens1np0/speed", "400000\n"),
            ("sys/class/net/ens1np0/device/vendor", "0x15b3\n"),
            ("sys/class/net/veth0/ifindex", "3\n"),
            ("sys/class/net/veth0/speed", "10000\n"),
            ("sys/class/net/bonding_masters", "\n"),
        ],
    );
    let facts = collected(root);
    let unreadable = BTreeMap::from([("path MTU of rxe0 port 1".to_owned(), "not permitted".to_owned())]);
    assert_eq!(facts.unreadable, unreadable);
    assert_eq!((facts.hostname.as_str(), facts.os.as_deref()), ("gpu001", Some("Ubuntu 24.04.1 LTS")));
    assert_eq!((facts.cpu.threads, facts.cpu.numa_nodes), (224, 2));
    assert_eq!(facts.cpu.last_level_cache, Some(Bytes::from_kib(107_520)));
    assert_eq!((facts.memory_bytes, facts.memlock_bytes), (Some(Bytes::from_kib(2_113_518_428)), Some(Bytes(65_536))));
    let device = &facts.rdma[0];
    assert_eq!((device.driver.as_deref(), device.software), (Some("mlx5_core"), false));
    assert_eq!((device.pci.as_deref(), device.numa), (Some("0000:18:00.0"), Some(0)));
    assert_eq!((device.pcie, device.pcie_max), (Some((32.0, 8)), Some((32.0, 16))));
    let port = &device.ports[0];
    assert_eq!((port.state.as_deref(), port.physical.as_deref()), (Some("ACTIVE"), Some("LinkUp")));
    assert_eq!(port.mtu, Some(4096));
    assert_eq!((port.rate_gbps, port.netdev.as_deref()), (Some(GigabitsPerSecond(400.0)), Some("ens1np0")));
    assert_eq!(port.gids.iter().map(|gid| gid.index).collect::<Vec<_>>(), [0, 3]);
    assert_eq!(port.gids[1].kind.as_deref(), Some("RoCE v2"));
    let speeds: Vec<_> = facts.interfaces.iter().map(|i| (i.name.as_str(), i.speed_mbps, i.mtu)).collect();
    assert_eq!(speeds, [("ens1np0", Some(MegabitsPerSecond(400_000)), Some(9000)), ("veth0", None, None)]);
}

#[test]
fn a_soft_roce_host() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(root, MACHINE);
    write(
        root,
        &[
            ("sys/class/infiniband/rxe0/parent", "eth1\n"),
            ("sys/class/infiniband/rxe0/node_type", "1: CA\n"),
            ("sys/class/infiniband/rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)\n"),
            ("sys/class/infiniband/rxe0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001\n"),
        ],
    );
    let device = collected(root).rdma.remove(0);
    assert_eq!((device.driver.as_deref(), device.software, device.pci), (Some("rdma_rxe"), true, None));
    assert_eq!((device.ports[0].rate_gbps, device.ports[0].netdev.as_deref()), (None, Some("eth1")));
    let gid = Gid { index: 1, gid: "0000:0000:0000:0000:0000:ffff:0a4d:0001".into(), kind: None, netdev: None };
    assert_eq!(device.ports[0].gids, [gid]);
}

#[test]
fn a_device_of_two_ports_behind_an_auxiliary_device() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let pci = "sys/devices/pci0000:00/7870:00:00.0";
    link(root, "sys/class/infiniband/mana_0/device", &format!("{pci}/mana.rdma.0"));
    link(root, &format!("{pci}/driver"), "sys/bus/pci/drivers/mana");
    for (name, port) in [("eth0", "0"), ("eth1", "1")] {
        fs::create_dir_all(root.join(format!("{pci}/mana.rdma.0/net/{name}"))).unwrap();
        write(root, &[(&format!("sys/class/net/{name}/dev_port"), port)]);
    }
    write(
        root,
        &[
            ("sys/class/infiniband/mana_0/ports/1/state", "1: DOWN\n"),
            ("sys/class/infiniband/mana_0/ports/2/state", "4: ACTIVE\n"),
        ],
    );
    let device = collected(root).rdma.remove(0);
    assert_eq!((device.driver.as_deref(), device.pci.as_deref()), (Some("mana"), Some("7870:00:00.0")));
    assert_eq!(device.ports[0].netdev.as_deref(), Some("eth0"));
    assert_eq!(device.ports[1].netdev.as_deref(), Some("eth1"));
}

#[test]
fn an_empty_tree_says_what_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let facts = collected(root.path());
    assert_eq!((facts.hostname.as_str(), facts.cpu.threads, facts.memory_bytes), ("", 0, None));
    for path in ["proc/meminfo", "proc/sys/kernel/hostname", "sys/devices/system/cpu/online"] {
        assert_eq!(facts.unreadable[path], "not there", "{path}");
    }
}

#[test]
fn this_host_is_read() {
    let facts = here();
    assert!(!facts.hostname.is_empty() && !facts.kernel.is_empty() && facts.cpu.threads > 0, "{facts:?}");
    assert!(facts.interfaces.iter().any(|i| i.name == "lo" && i.addresses.contains(&"127.0.0.1".into())), "{facts:?}");
    assert!(facts.libraries.len() >= 5, "{:?}", facts.libraries);
    assert!(facts.load.average.is_some() && facts.load.busy.is_some_and(|busy| (0.0..=1.0).contains(&busy)));
    assert!(facts.interfaces.iter().all(|interface| interface.traffic.is_some()), "{:?}", facts.interfaces);
}

/// Every file the collectors read, with one device and one interface.
fn files() -> Vec<String> {
    let mut files: Vec<String> = MACHINE.iter().map(|(path, _)| (*path).to_owned()).collect();
    let device = [
        "fw_ver",
        "board_id",
        "node_guid",
        "node_type",
        "parent",
        "device/numa_node",
        "device/current_link_speed",
        "device/current_link_width",
        "device/0000:00:00.0/x",
    ];
    files.extend(device.map(|file| format!("sys/class/infiniband/x/{file}")));
    let port = [
        "state",
        "phys_state",
        "link_layer",
        "rate",
        "gids/0",
        "gids/1",
        "gids/x",
        "gid_attrs/types/0",
        "gid_attrs/ndevs/0",
        "hw_counters/lifespan",
        "hw_counters/x",
        "counters/x",
    ];
    files.extend(port.map(|file| format!("sys/class/infiniband/x/ports/1/{file}")));
    files.extend(
        ["ifindex", "mtu", "operstate", "speed", "dev_port", "device/x"].map(|file| format!("sys/class/net/y/{file}")),
    );
    files.extend(["proc/net/snmp", "proc/net/netstat"].map(Into::into));
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_tree_makes_it_panic(
        // Absent, a directory where a file should be, or any bytes; some near what the kernel writes.
        contents in prop::collection::vec(
            prop_oneof![
                Just(None),
                Just(Some(None)),
                any::<Vec<u8>>().prop_map(|bytes| Some(Some(bytes))),
                "[-0-9: ./KMGTsbxkB\n]{0,40}".prop_map(|text| Some(Some(text.into_bytes()))),
                "(Tcp|TcpExt|Max locked memory|model name|MemTotal)[: ][0-9 a-zA-Z\n:-]{0,60}".prop_map(|text| Some(Some(text.into_bytes()))),
            ],
            files().len(),
        )
    ) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files().iter().zip(contents) {
            let path = root.path().join(path);
            match content {
                None => {}
                Some(None) => fs::create_dir_all(path).unwrap(),
                Some(Some(bytes)) => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::write(path, bytes).unwrap();
                }
            }
        }
        let _ = collected(root.path());
        for (device, port) in [("x", 1), ("y", 1)] {
            let _ = crate::counters::read(&Tree::new(root.path()), device, port);
        }
    }
}

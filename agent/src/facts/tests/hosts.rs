//! Whole hosts: what is collected from them is what the controller's tests judge (`tests/hosts/*.json`).

use std::path::Path;

use railgauge_wire::{Bond, BondMember, Bridge, Distance, PciErrors, RateSource, RdmaPort, Sriov};

use super::{fixture::unpack, *};

const HOSTS: [&str; 14] = [
    "roce8",
    "infiniband",
    "erdma",
    "softroce",
    "broken",
    "bond",
    "bond-degraded",
    "bnxt",
    "irdma",
    "ionic",
    "vf",
    "saturated",
    "unused",
    "softroce-old",
];

/// With `UPDATE_FACTS=1` the documents are written instead of compared.
#[test]
fn whole_hosts_are_read_as_their_documents_say() {
    for name in HOSTS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/hosts/{name}.json"));
        let facts = unpack(&format!("{name}.host")).facts();
        if std::env::var_os("UPDATE_FACTS").is_some() {
            fs::write(&path, serde_json::to_string_pretty(&facts).unwrap() + "\n").unwrap();
        }
        let known: HostFacts = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(facts, known, "{name}: run the tests with UPDATE_FACTS=1 and look at the difference");
    }
}

#[test]
fn settings_and_bridges_of_a_nic() {
    let facts = unpack("roce8.host").facts();
    let function = &facts.rdma[0].function;
    assert_eq!((function.max_read_request, function.max_payload), (Some(4096), Some(256)));
    assert_eq!((function.relaxed_ordering, function.ats), (Some(true), Some(false)));
    assert_eq!((function.iommu.as_deref(), function.sriov.as_ref()), (Some("identity"), Some(&Sriov::Physical(0))));
    assert_eq!(function.errors, Some(PciErrors::default()));
    let addresses: Vec<&str> = function.bridges.iter().map(|bridge| bridge.pci.as_str()).collect();
    assert_eq!(addresses, ["0000:15:01.0", "0000:16:00.0", "0000:17:01.0"]);
    let acs: Vec<Option<&[String]>> = function.bridges.iter().map(|bridge| bridge.acs.as_deref()).collect();
    assert_eq!(acs, [Some([].as_slice()), None, Some(&[])]);
    assert!(facts.unreadable.is_empty(), "{:?}", facts.unreadable);
}

#[test]
fn gpus_and_nics_behind_one_switch_are_near() {
    let facts = unpack("roce8.host").facts();
    assert_eq!(facts.gpu_distances.len(), 64);
    for row in &facts.gpu_distances {
        let nic: u32 = row.device.trim_start_matches("mlx5_").parse().unwrap();
        let expected = match () {
            () if nic == row.gpu => Distance::Pix,
            () if nic / 4 == row.gpu / 4 => Distance::Node,
            () => Distance::Sys,
        };
        assert_eq!(row.distance, expected, "{row:?}");
    }
}

/// `CUDA_VISIBLE_DEVICES=5,2`: CUDA's GPU 0 is NVML's 5.
#[test]
fn gpus_have_cudas_numbers_by_their_addresses() {
    let mut host = unpack("roce8.host");
    let all = host.facts().gpus;
    let pci = |index: usize| all[index].pci.clone().unwrap();
    host.unpacked.line(&format!("@cuda {} {}", pci(5), pci(2)));
    let facts = host.facts();
    let indexes: Vec<_> = (0..3).map(|number| facts.cuda_gpu(number).map(|gpu| gpu.index)).collect();
    assert_eq!(indexes, [Some(5), Some(2), None]);
    let near: Vec<_> = facts.gpus_near("mlx5_5").map(|row| (row.gpu, row.distance)).collect();
    assert_eq!(near, [(1, Distance::Sys), (0, Distance::Pix)]);
    // Where nothing is hidden and CUDA was not asked, its numbers are NVML's; where something is, they are unknown.
    let mut silent = unpack("roce8.host").facts();
    assert_eq!(silent.cuda_gpu(3).map(|gpu| gpu.index), Some(3));
    silent.cuda_visible = Some("1".to_owned());
    assert!(silent.cuda_gpu(0).is_none() && !silent.numbers_gpus());
}

#[test]
fn what_an_ordinary_user_cannot_read_is_said() {
    let facts = unpack("infiniband.host").facts();
    let function = &facts.rdma[0].function;
    assert_eq!((function.max_read_request, function.ats), (None, None));
    assert_eq!(function.bridges, [Bridge { pci: "0000:1a:01.0".into(), ..Bridge::default() }]);
    assert_eq!(facts.unreadable["PCIe settings"], "only root may read configuration space beyond its first 64 bytes");
    let port = &facts.rdma[3].ports[0];
    assert_eq!((port.lid, port.subnet_manager, port.netdev.as_deref()), (Some(0x13), Some(1), Some("ib3")));
    assert_eq!(port.partitions, ["0xffff"]);
}

#[test]
fn a_broken_host_is_read_to_the_end() {
    let facts = unpack("broken.host").facts();
    assert_eq!((facts.gpus.len(), facts.xids.as_ref().unwrap().len()), (7, 1));
    assert_eq!(facts.cpu.governor.as_deref(), Some("performance, powersave"));
    let acs = facts.rdma[0].function.bridges[2].acs.clone().unwrap();
    assert!(acs.contains(&"request redirect".to_owned()), "{acs:?}");
}

fn port(host: &str) -> RdmaPort {
    unpack(host).facts().rdma.remove(0).ports.remove(0)
}

#[test]
fn a_bond_that_the_device_drives_has_its_members() {
    let facts = unpack("bond.host").facts();
    let port = &facts.rdma[0].ports[0];
    assert_eq!(
        (port.netdev.as_deref(), port.members.as_slice()),
        (Some("bond0"), ["eth0", "eth1"].map(Into::into).as_slice())
    );
    assert_eq!((port.rate_gbps, port.rate_source), (Some(GigabitsPerSecond(400.0)), Some(RateSource::Members)));
    assert_eq!(
        (port.verbs_rate_gbps, facts.member_rates(port)),
        (Some(GigabitsPerSecond(200.0)), Some(vec![GigabitsPerSecond(200.0); 2]))
    );
    let degraded = unpack("bond-degraded.host").facts();
    let port = &degraded.rdma[0].ports[0];
    assert_eq!((port.rate_gbps, port.members.len()), (Some(GigabitsPerSecond(200.0)), 2));
    assert_eq!(degraded.member_rates(port), Some(vec![GigabitsPerSecond(200.0)]));
    let down = &degraded.interface("bond0").unwrap().members[1];
    let (link, state) = (Some("down".into()), Some("backup".into()));
    assert_eq!(*down, BondMember { name: "eth1".into(), link, state, speed_mbps: None });
    assert!(!down.is_up() && !down.carries());
}

#[test]
fn a_vlan_of_a_bond_has_the_members_of_the_bond() {
    let mut host = unpack("bond.host");
    for (vlan, below) in [("bond0.100", "bond0"), ("bond0.100.7", "bond0.100"), ("eth0.9", "eth0")] {
        host.line(&format!("sys/class/net/{vlan}/ifindex = 30"));
        host.line(&format!("sys/class/net/{vlan}/uevent = DEVTYPE=vlan\\nINTERFACE={vlan}"));
        host.line(&format!("sys/class/net/{vlan}/lower_{below} -> sys/class/net/{below}"));
    }
    // A bridge has the bond below it too, and more than that.
    host.line("sys/class/net/br0/ifindex = 40");
    host.line("sys/class/net/br0/uevent = DEVTYPE=bridge\\nINTERFACE=br0");
    host.line("sys/class/net/br0/lower_bond0 -> sys/class/net/bond0");
    let facts = host.facts();
    let of = |name: &str| facts.interface(name).map(|found| (found.bond.clone(), found.member_rates()));
    let bond = of("bond0");
    assert_eq!(bond, Some((Some(Bond::Master("802.3ad".into())), Some(vec![GigabitsPerSecond(200.0); 2]))));
    assert_eq!((of("bond0.100"), of("bond0.100.7")), (bond.clone(), bond));
    assert_eq!((of("eth0.9"), of("br0")), (Some((None, None)), Some((None, None))));
}

/// Each port with its RDMA device: the bond is the kernel's alone.
#[test]
fn a_bond_of_two_devices_has_one_member_for_each() {
    let mut host = unpack("bond.host");
    host.line("sys/class/infiniband/mlx5_1/device -> sys/bus/pci/devices/0000:b1:00.1");
    host.line("sys/class/infiniband/mlx5_1/ports/1/rate = 200 Gb/sec (4X HDR)");
    host.line("sys/class/infiniband/mlx5_1/ports/1/gids/3 = 0000:0000:0000:0000:0000:ffff:0a64:0001");
    host.line("sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/3 = bond0");
    let ports: Vec<_> = host.facts().rdma.into_iter().map(|mut device| device.ports.remove(0)).collect();
    assert_eq!(ports.iter().map(|port| port.members.join(" ")).collect::<Vec<_>>(), ["eth1", "eth0"]);
    assert!(
        ports.iter().all(
            |port| port.rate_gbps == Some(GigabitsPerSecond(200.0)) && port.rate_source == Some(RateSource::Driver)
        )
    );
}

#[test]
fn rates_that_a_driver_makes_of_the_interfaces_are_the_interfaces() {
    for (host, verbs, speed) in [("bnxt.host", 100.0, 400.0), ("irdma.host", 100.0, 50.0), ("ionic.host", 100.0, 400.0)]
    {
        let port = port(host);
        assert_eq!(
            (port.verbs_rate_gbps, port.rate_gbps),
            (Some(GigabitsPerSecond(verbs)), Some(GigabitsPerSecond(speed))),
            "{host}"
        );
        assert_eq!(port.rate_source, Some(RateSource::Interface), "{host}");
    }
    let known = port("infiniband.host");
    assert_eq!((known.rate_gbps, known.rate_source), (Some(GigabitsPerSecond(400.0)), Some(RateSource::Driver)));
    // A kernel that does not know the lanes of 200 Gb/s of a ConnectX-8.
    let mut host = unpack("roce8.host");
    host.line("sys/class/infiniband/mlx5_0/ports/1/rate = 40 Gb/sec (4X QDR)");
    host.line("sys/class/net/rail0/speed = 800000");
    let port = host.facts().rdma.remove(0).ports.remove(0);
    assert_eq!((port.verbs_rate_gbps, port.rate_gbps), (Some(GigabitsPerSecond(40.0)), Some(GigabitsPerSecond(800.0))));
    assert_eq!(port.rate_source, Some(RateSource::Interface));
    // The speed is unknown: what the driver says of it is the least there is.
    let mut host = unpack("bnxt.host");
    host.line("sys/class/net/ens1/speed = -1");
    host.line("sys/class/infiniband/bnxt_re0/ports/1/rate = 2.5 Gb/sec (1X SDR)");
    let port = host.facts().rdma.remove(0).ports.remove(0);
    assert_eq!((port.rate_gbps, port.rate_source, port.verbs_rate_gbps), (None, None, Some(GigabitsPerSecond(2.5))));
}

#[test]
fn counters_that_cannot_be_read_or_do_not_move_any_more_are_named() {
    let unreadable = port("vf.host").unreadable_counters;
    assert_eq!(unreadable["counters/port_xmit_data"], "holds \"N/A (no PMA)\"");
    assert!(port("infiniband.host").unreadable_counters.is_empty());
    let saturated: Vec<_> =
        unpack("saturated.host").facts().rdma.into_iter().map(|device| device.ports[0].saturated.join(" ")).collect();
    let of_two = "counters/link_downed counters/port_xmit_discards";
    assert_eq!(saturated, ["", of_two, "counters/local_link_integrity_errors", ""]);
}

#[test]
fn an_emulation_is_one_whatever_device_it_shows() {
    let device = unpack("softroce-old.host").facts().rdma.remove(0);
    assert_eq!((device.driver.as_deref(), device.software, device.pci), (Some("rdma_rxe"), true, None));
    assert_eq!(device.ports[0].rate_gbps, None);
    // siw over the same NIC: an iWARP device on a function whose driver knows no iWARP.
    let mut host = unpack("softroce-old.host");
    std::fs::remove_file(host.root.path().join("sys/class/infiniband/rxe0/parent")).unwrap();
    host.line("sys/class/infiniband/rxe0/node_type = 4: RNIC");
    host.line("sys/module/siw/refcnt = 1");
    let device = host.facts().rdma.remove(0);
    assert_eq!((device.driver.as_deref(), device.software), (Some("siw"), true));
}

#[test]
fn a_virtual_function_is_read() {
    let facts = unpack("vf.host").facts();
    let device = &facts.rdma[0];
    assert_eq!((device.function.sriov.as_ref(), device.pcie, device.numa), (Some(&Sriov::Virtual), None, None));
    assert_eq!((device.ports[0].lid, device.ports[0].rate_gbps), (Some(0x1c), Some(GigabitsPerSecond(400.0))));
    // A virtual machine without its physical one.
    let mut host = unpack("vf.host");
    fs::remove_file(host.root.path().join("sys/bus/pci/devices/0101:00:02.0/physfn")).unwrap();
    assert_eq!(host.facts().rdma[0].function.sriov, None);
    host.line("sys/bus/pci/devices/0101:00:02.0/vendor = 0x15b3");
    host.line("sys/bus/pci/devices/0101:00:02.0/device = 0x101e");
    assert_eq!(host.facts().rdma[0].function.sriov, Some(Sriov::Virtual));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Any files of a whole host replaced by anything, or gone.
    #[test]
    fn no_spoilt_host_makes_it_panic(
        host in 0..HOSTS.len(),
        spoilt in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![
            Just(None),
            Just(Some(None)),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| Some(Some(bytes))),
            "[-0-9x: ./KMGTsa-f,=\n]{0,60}".prop_map(|text| Some(Some(text.into_bytes()))),
        ]), 1..40),
    ) {
        let host = unpack(&format!("{}.host", HOSTS[host]));
        for (index, content) in spoilt {
            let path = host.root.path().join(index.get(&host.unpacked.files));
            if path.is_file() {
                fs::remove_file(&path).unwrap();
            }
            match content {
                None => {}
                Some(None) => fs::create_dir_all(&path).unwrap(),
                Some(Some(bytes)) if !path.is_dir() => fs::write(&path, bytes).unwrap(),
                Some(Some(_)) => {}
            }
        }
        let _ = host.facts();
    }
}

#[test]
fn lines_that_lead_out_of_the_tree_are_refused() {
    for line in ["../x = 1", "/tmp/x = 1", "sys/../../x : 0=1", "sys/x -> ..", "sys/x -> /etc"] {
        let mut host = unpack("unused.host");
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.line(line)));
        assert!(refused.is_err(), "{line}");
    }
}

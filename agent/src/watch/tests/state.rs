use std::{fs, path::Path};

use super::*;

#[test]
fn rates_are_read_with_their_lanes() {
    let gbps = |rate| Some(GigabitsPerSecond(rate));
    assert_eq!(rate("100 Gb/sec (4X EDR)"), (gbps(100.0), Some(4)));
    assert_eq!(rate("2.5 Gb/sec (1X SDR)"), (gbps(2.5), Some(1)));
    assert_eq!(rate("800 Gb/sec (12X XDR)"), (gbps(800.0), Some(12)));
    assert_eq!(rate("25 Gb/sec"), (gbps(25.0), None));
    for nothing in ["", "0 Gb/sec (4X)", "fast", "-1"] {
        assert_eq!(rate(nothing).0, None, "{nothing}");
    }
}

struct Host(tempfile::TempDir);

impl Host {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn interface(&self, name: &str, carrier: &str, speed: &str) {
        for (file, text) in [("carrier", carrier), ("speed", speed), ("operstate", "up\n")] {
            self.write(&format!("{INTERFACES}/{name}/{file}"), text);
        }
    }

    fn port(&self, link_layer: &str, state: &str, rate: &str) {
        for (file, text) in
            [("state", state), ("rate", rate), ("phys_state", "5: LinkUp\n"), ("link_layer", link_layer)]
        {
            self.write(&format!("sys/class/infiniband/mlx5_0/ports/1/{file}"), text);
        }
    }

    fn tree(&self) -> Tree {
        Tree::new(self.0.path())
    }

    fn files(&self, interface: Option<&str>, members: &[&str], infiniband: bool) -> Files {
        Files {
            port: Some("sys/class/infiniband/mlx5_0/ports/1".into()),
            infiniband,
            interface: interface.map(str::to_owned),
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            rate: if members.len() > 1 { RateFrom::Members } else { RateFrom::Port },
        }
    }
}

fn of_interface(name: &str) -> Files {
    let interface = Some(name.to_owned());
    Files { port: None, infiniband: false, interface, members: Vec::new(), rate: RateFrom::Interface }
}

#[test]
fn a_roce_port_is_up_with_both_and_down_without_either() {
    let host = Host::new();
    let files = host.files(Some("eth0"), &[], false);
    for (state, carrier, up) in [
        ("4: ACTIVE\n", "1\n", true),
        ("4: ACTIVE\n", "0\n", false),
        ("1: DOWN\n", "1\n", false),
        ("1: DOWN\n", "0\n", false),
    ] {
        host.port("Ethernet", state, "100 Gb/sec (4X EDR)\n");
        host.interface("eth0", carrier, "25000\n");
        let seen = files.look(&host.tree(), None, true).unwrap();
        assert_eq!(seen.up, up, "{state} {carrier}");
        assert_eq!(seen.rate.is_some() && seen.lanes == Some(4), up, "{seen:?}");
        assert_eq!(seen.unsettled, state.starts_with('4') != (carrier == "1\n"), "{seen:?}");
    }
    let words = files.look(&host.tree(), None, true).unwrap().words;
    assert_eq!(words, "state 1: DOWN, phys_state 5: LinkUp, carrier 0, operstate up");
}

#[test]
fn the_port_is_asked_only_when_its_carrier_changed() {
    let host = Host::new();
    host.port("Ethernet", "4: ACTIVE\n", "100 Gb/sec (4X EDR)\n");
    host.interface("eth0", "1\n", "100000\n");
    let files = host.files(Some("eth0"), &[], false);
    let first = files.look(&host.tree(), None, true).unwrap();
    host.port("Ethernet", "1: DOWN\n", "100 Gb/sec (4X EDR)\n");
    let second = files.look(&host.tree(), Some(&first), false).unwrap();
    assert!(second.up && second.same(&first));
    host.interface("eth0", "0\n", "-1\n");
    let third = files.look(&host.tree(), Some(&second), false).unwrap();
    assert!(!third.up && !third.same(&second) && third.rate.is_none(), "{third:?}");
    assert_eq!(third.close.state.as_deref(), Some("1: DOWN"));
}

#[test]
fn a_lower_rate_or_width_is_a_change_and_an_operational_state_is_none() {
    let host = Host::new();
    host.port("Ethernet", "4: ACTIVE\n", "100 Gb/sec (4X EDR)\n");
    host.interface("eth0", "1\n", "100000\n");
    let files = host.files(Some("eth0"), &[], false);
    let look = || files.look(&host.tree(), None, true).unwrap();
    let wide = look();
    host.write(&format!("{INTERFACES}/eth0/operstate"), "dormant\n");
    assert!(look().same(&wide));
    host.port("Ethernet", "4: ACTIVE\n", "25 Gb/sec (1X EDR)\n");
    let narrow = look();
    assert!(!narrow.same(&wide) && narrow.up);
    assert_eq!((narrow.rate, narrow.lanes), (Some(GigabitsPerSecond(25.0)), Some(1)));
}

#[test]
fn infiniband_passes_although_its_interface_is_unused() {
    let host = Host::new();
    host.port("InfiniBand", "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n");
    let alone = host.files(None, &[], true);
    assert!(alone.look(&host.tree(), None, true).unwrap().up);
    host.interface("ib0", "0\n", "-1\n");
    let files = host.files(Some("ib0"), &[], true);
    let first = files.look(&host.tree(), None, true).unwrap();
    assert!(first.up && first.lanes == Some(4), "{first:?}");
    // Nothing but the port tells, so every look reads its state.
    for (files, first) in [(&files, first), (&alone, alone.look(&host.tree(), None, true).unwrap())] {
        host.port("InfiniBand", "2: INIT\n", "400 Gb/sec (4X NDR)\n");
        let second = files.look(&host.tree(), Some(&first), false).unwrap();
        assert!(!second.up && !second.same(&first), "{second:?}");
        host.port("InfiniBand", "4: ACTIVE\n", "400 Gb/sec (4X NDR)\n");
    }
}

#[test]
fn a_bond_that_loses_a_member_is_up_at_a_lower_rate() {
    let host = Host::new();
    host.port("Ethernet", "4: ACTIVE\n", "100 Gb/sec (4X EDR)\n");
    for name in ["bond0", "eth0", "eth1"] {
        host.interface(name, "1\n", "100000\n");
    }
    let files = host.files(Some("bond0"), &["eth0", "eth1"], false);
    let both = files.look(&host.tree(), None, true).unwrap();
    assert_eq!((both.up, both.rate), (true, Some(GigabitsPerSecond(200.0))));
    host.interface("eth1", "0\n", "-1\n");
    let one = files.look(&host.tree(), Some(&both), false).unwrap();
    assert_eq!((one.up, one.rate), (true, Some(GigabitsPerSecond(100.0))));
    assert!(!one.same(&both) && one.words.ends_with("eth0: carrier 1, eth1: carrier 0"), "{}", one.words);
    fs::remove_dir_all(host.0.path().join(format!("{INTERFACES}/eth1"))).unwrap();
    assert!(!files.look(&host.tree(), Some(&one), false).unwrap().same(&one));
}

#[test]
fn the_loopback_interface_is_up() {
    if fs::read_to_string("/sys/class/net/lo/operstate").is_ok_and(|state| state.trim() == "unknown") {
        let seen = of_interface("lo").look(&Tree::new("/"), None, true).unwrap();
        assert_eq!((seen.up, seen.rate, seen.words.as_str()), (true, None, "carrier 1, operstate unknown"));
    } else {
        eprintln!("skipped: the loopback interface is down");
    }
}

#[test]
fn speeds_that_are_none() {
    let host = Host::new();
    for (speed, gbps) in [("25000\n", Some(25.0)), ("-1\n", None), ("4294967295\n", None), ("0\n", None)] {
        host.interface("eth0", "1\n", speed);
        let seen = of_interface("eth0").look(&host.tree(), None, true).unwrap();
        assert_eq!((seen.up, seen.rate), (true, gbps.map(GigabitsPerSecond)), "{speed}");
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let host = Host::new();
    host.port("Ethernet", "4: ACTIVE\n", "100 Gb/sec (4X EDR)\n");
    let files = host.files(Some("eth0"), &[], false);
    let unreadable = files.look(&host.tree(), None, true).unwrap_err();
    assert_eq!(unreadable.path, "sys/class/net/eth0/carrier");
    assert!(unreadable.is_gone());
    // An interface that is there and has no such file is as none.
    host.write(&format!("{INTERFACES}/eth0/mtu"), "9000\n");
    assert!(files.look(&host.tree(), None, true).unwrap().up);
    assert!(of_interface("eth0").look(&host.tree(), None, true).is_err());
    host.interface("eth0", "1\n", "100000\n");
    let at = host.0.path().join("sys/class/infiniband/mlx5_0/ports/1/state");
    fs::remove_file(&at).unwrap();
    fs::create_dir(&at).unwrap();
    let unreadable = files.look(&host.tree(), None, true).unwrap_err();
    assert!(Path::new(&unreadable.path).ends_with("mlx5_0/ports/1/state") && !unreadable.is_gone(), "{unreadable}");
}

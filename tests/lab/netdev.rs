//! Soft-RoCE over other interfaces than a plain one with an IPv4 address: a VLAN, IPv6 alone, a bond.

use std::path::PathBuf;

use crate::{
    lab::{self, Borrowed, borrow, text},
    railgauge::{Row, Scene},
};
use serde_json::Value;

/// Runs a script on both hosts, and another one after the test.
#[track_caller]
fn on_both(lab: &Borrowed, script: &str, undo: &str) {
    for host in [1, 2] {
        lab.change(host, script, undo);
    }
}

fn plan(lab: &Borrowed, scene: &Scene, device: &str, knobs: &str) -> PathBuf {
    let text = format!(
        r#"
        name = "interfaces"
        [launch]
        via = "ssh"
        timeout = "60s"
        [launch.ssh]
        config = "{}"
        [hosts]
        names = ["lab[1-2]"]
        devices = ["{device}"]
        [defaults]
        warm_up = "1ms"
        deadline = "60s"
        [defaults.knobs]
        completion = "events"
        timeout = 20
        {knobs}
        [[test]]
        op = "write"
        metric = "bandwidth"
        sizes = 4096
        measure = "300ms"
        [[test]]
        op = "send"
        metric = "latency"
        sizes = 64
        measure = "20 iterations"
        [localise]
        waive = ["all"]
        "#,
        lab.ssh_config().display()
    );
    scene.write("plan.toml", &text)
}

/// Every row was measured between both hosts, verified, and carried by RoCE v2.
#[track_caller]
fn by_roce(rows: &[Row], device: &str) {
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.value.is_some_and(f64::is_finite) && row.error.is_none(), "{row:?}");
        assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
        assert_eq!((row.transport.as_str(), row.link_layer.as_str()), ("verbs-rc", "roce-v2"), "{row:?}");
        assert_eq!((row.src_device.as_str(), row.dst_device.as_str()), (device, device), "{row:?}");
    }
}

/// The facts of a host's interface.
fn interface(facts: &Value, host: &str, name: &str) -> Value {
    let interfaces = facts[host]["interfaces"].as_array().unwrap_or_else(|| panic!("{facts:#}"));
    interfaces.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {facts:#}")).clone()
}

#[test]
fn an_interface_without_ipv4() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        on_both(&lab, "ip -4 addr flush dev eth1; ip -6 addr add fd77::$I/64 dev eth1 nodad", "false");
        let scene = Scene::new();
        scene.start(&plan(&lab, &scene, "rxe0", "")).end().expect(0);
        by_roce(&scene.results().rows(), "rxe0");
        for outcome in scene.results().outcomes() {
            let gid = outcome["link"]["settings"]["gid"].as_str().unwrap().to_owned();
            assert!(!gid.contains("ffff:10.") && gid.contains(':'), "{gid}");
        }
    });
}

#[test]
fn a_vlan_by_the_index_of_its_gid() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        on_both(
            &lab,
            "lab-module 8021q; ip link add link eth1 name eth1.100 type vlan id 100; ip link set eth1.100 up; \
             ip addr add 10.99.0.$I/24 dev eth1.100; sleep 1",
            "ip link del eth1.100",
        );
        let found = lab.ssh(1, "grep -l ffff:0a63:0001 /sys/class/infiniband/rxe0/ports/1/gids/* | grep -o '[0-9]*$'");
        let index = text(&found.stdout).trim().to_owned();
        assert!(!index.is_empty(), "the VLAN's address has no GID: {}", text(&found.stderr));
        let scene = Scene::new();
        scene.start(&plan(&lab, &scene, "rxe0", &format!("gid_index = {index}"))).end().expect(0);
        by_roce(&scene.results().rows(), "rxe0");
        for outcome in scene.results().outcomes() {
            assert_eq!(outcome["link"]["settings"]["gid_index"], index, "{outcome}");
        }
    });
}

#[test]
fn a_bond_of_two_interfaces() {
    lab::sound(|| {
        let Some(lab) = borrow() else { return };
        on_both(
            &lab,
            "lab-module bonding max_bonds=0; rdma link del rxe0; rdma link del rxe1; \
             ip link add bond0 type bond mode active-backup miimon 100; \
             for nic in eth1 eth2; do ip link set $nic down; ip addr flush dev $nic; ip link set $nic master bond0; done; \
             ip link set bond0 mtu 4200 up; ip addr add 10.99.1.$I/24 dev bond0; \
             echo eth1 >/sys/class/net/bond0/bonding/active_slave; \
             rdma link add rxe_bond0 type rxe netdev bond0; chmod 666 /dev/infiniband/*; sleep 1",
            "false",
        );
        let scene = Scene::new();
        scene.start(&plan(&lab, &scene, "rxe_bond0", "")).end().expect(0);
        by_roce(&scene.results().rows(), "rxe_bond0");
        let facts: Value = serde_json::from_str(&lab::read(&scene.results().path("facts.json"))).unwrap();
        let bond = interface(&facts, "lab1", "bond0");
        assert_eq!(bond["mtu"], 4200, "{bond}");
    });
}

//! Two agents in two network namespaces: what a link between hosts is called, and what happens when it falls silent.
//! Needs root and iproute2; says so and passes where they are missing.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use railgauge_wire::{Ask, Bytes, Kind, LinkLayer, Op, Role, Step, TestMetric, Window};

use crate::{
    controller::{
        Agent, ENDLESS, command,
        pair::{LINK, Pair, opened, spec, step, timing},
    },
    skip::skipped,
};

const ADDRESSES: [&str; 2] = ["10.213.79.1", "10.213.79.2"];
const HARDWARE: [&str; 2] = ["02:00:00:00:79:01", "02:00:00:00:79:02"];

/// Two namespaces and a cable between them; gone when dropped.
struct Cable([String; 2]);

fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

impl Cable {
    fn new(name: &str) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("rg{}{name}{end}", std::process::id()));
        let cable = Self(names);
        let [a, b] = &cable.0;
        let made = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&["-n", a, "link", "add", "rg0", "type", "veth", "peer", "name", "rg0", "netns", b]);
        for (end, name) in cable.0.iter().enumerate() {
            ip(&["-n", name, "addr", "add", &format!("{}/24", ADDRESSES[end]), "dev", "rg0"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
            ip(&["-n", name, "link", "set", "rg0", "address", HARDWARE[end], "up"]);
            // Known for good: a kernel that has to ask for a silent peer's hardware address may report that it found no
            // route to the host, before or in place of the time that ran out.
            let peer = 1 - end;
            ip(&[
                "-n",
                name,
                "neigh",
                "add",
                ADDRESSES[peer],
                "lladdr",
                HARDWARE[peer],
                "dev",
                "rg0",
                "nud",
                "permanent",
            ]);
        }
        if !made {
            skipped("network namespaces take root and iproute2");
        }
        made.then_some(cable)
    }

    fn agents(&self) -> Pair {
        let [initiator, responder] = [0, 1].map(|end: usize| {
            let mut inside = Command::new("ip");
            inside.args(["netns", "exec", &self.0[end]]).arg(command().get_program());
            Agent::greeted(&mut inside)
        });
        Pair { initiator, responder }
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&["netns", "del", name]);
        }
    }
}

#[test]
fn a_link_between_hosts_is_ethernet_on_the_interface_that_carries_it() {
    let Some(cable) = Cable::new("l") else { return };
    let mut pair = cable.agents();
    // Neither address nor interface named: found by the agent.
    let (near, far) = pair.open(|spec| spec.address = None, 1, 4096).unwrap();
    for end in [near, far] {
        assert_eq!((end.device.as_str(), end.link_layer, end.rate_gbps), ("rg0", LinkLayer::Ethernet, None));
    }
    assert_eq!(pair.verify(Op::Write, 4096, 1).wrong, Bytes::ZERO);
}

#[test]
fn an_interface_that_does_not_lead_to_the_peer_is_an_error() {
    let Some(cable) = Cable::new("d") else { return };
    ip(&["-n", &cable.0[0], "link", "add", "rg1", "type", "veth", "peer", "name", "rg2"]);
    ip(&["-n", &cable.0[0], "link", "set", "rg2", "up"]);
    ip(&["-n", &cable.0[0], "addr", "add", "10.213.80.1/24", "dev", "rg1"]);
    ip(&["-n", &cable.0[0], "link", "set", "rg1", "up"]);
    let mut pair = cable.agents();
    let mut elsewhere = spec(Role::Initiator, 1, 64);
    (elsewhere.address, elsewhere.device) = (None, Some("rg1".into()));
    let mut right = spec(Role::Responder, 1, 64);
    right.address = None;
    let near = opened(pair.initiator.ask(Ask::Open { link: LINK, spec: Box::new(elsewhere) }));
    let far = opened(pair.responder.ask(Ask::Open { link: LINK, spec: Box::new(right) }));
    assert_eq!(near.device, "rg1");
    let failure = pair.initiator.ask(Ask::Join { link: LINK, peer: far.endpoint }).unwrap_err();
    assert!(failure.kind == Kind::Fabric && failure.cause.contains("from 10.213.80.1 (rg1)"), "{failure}");
}

#[test]
fn a_link_that_falls_silent_is_an_error_in_seconds() {
    let Some(cable) = Cable::new("s") else { return };
    for op in [Op::Write, Op::Read] {
        let mut pair = cable.agents().linked(|spec| spec.address = None, 2, 65_536);
        pair.responder
            .ask(step(Step::Serve { op, metric: TestMetric::Bandwidth, size: Bytes(65_536), window: None }))
            .unwrap();
        let long = Step::Time(timing(op, TestMetric::Bandwidth, 65_536, Window::Duration(ENDLESS)));
        let running = pair.initiator.post(step(long));
        std::thread::sleep(Duration::from_millis(200));
        ip(&["-n", &cable.0[1], "link", "set", "rg0", "down"]);
        let failure = pair.initiator.wait(running).unwrap_err();
        assert_eq!(failure.kind, Kind::Fabric, "{failure}");
        assert!(failure.cause.contains("10.213.79.2") && failure.cause.contains("timed out"), "{failure}");
        let failure = pair.responder.ask(Ask::Stop { link: LINK }).unwrap_err();
        assert!(failure.kind == Kind::Fabric && failure.cause.contains("10.213.79.1"), "{failure}");
        ip(&["-n", &cable.0[1], "link", "set", "rg0", "up"]);
    }
}

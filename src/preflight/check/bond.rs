//! Ports behind a bond.

use super::{Found, Need, Rule, Scene, Severity, Spoils, Subject};
use railgauge_wire::{facts::Bond, remedy};

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/net/*/bonding, /sys/class/net/*/master",
    meaning: "a hash decides which physical port a flow uses: two flows may share one port while the other is idle",
    source: "kernel Documentation/networking/bonding.rst",
    spoils: Spoils::Bandwidth,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.is_infiniband() || port.interface.is_some(), "the interfaces of its ports")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let bonded = scene.ports().filter_map(|port| {
        let words = match port.interface?.bond.as_ref()? {
            Bond::Member(master) => format!("its interface is a member of {master}"),
            Bond::Master(mode) => format!("its interface is a bond ({mode})"),
        };
        let remedy = remedy::SEVERAL_QUEUE_PAIRS;
        Some(Found::host(Severity::Notice, port.host, words, remedy).device(port.name()))
    });
    bonded.collect()
}

//! Ports without a GID that the others' GIDs fit.

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/ports/*/gids and gid_attrs/types",
    meaning: "no RoCE connection can be made",
    source: "kernel Documentation/ABI/stable/sysfs-class-infiniband, gid_attrs/types",
    spoils: Spoils::Everything,
    subject: Subject::Port,
    needs: &[
        Need::Port(|port| port.port.link_layer.is_some(), "the link layer of its ports"),
        Need::Port(
            |port| !port.is_roce() || port.port.gids.iter().all(|gid| gid.kind.is_some()),
            "the types of its GIDs",
        ),
    ],
    find,
};

/// RoCE needs a GID of the same version at both ends; a link-local one does not leave the segment.
fn find(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for port in scene.ports().filter(Port::is_roce) {
        let gids = &port.port.gids;
        let kinds: BTreeSet<&str> = gids.iter().filter_map(|gid| gid.kind.as_deref()).collect();
        let say =
            |severity, what: String, remedy: Remedy| Found::host(severity, port.host, what, remedy).device(port.name());
        if gids.is_empty() {
            found.push(say(Severity::Failure, "it has no GID".into(), remedy::IP_ADDRESS.into()));
        } else if !kinds.is_empty() && !kinds.contains("RoCE v2") {
            let list = kinds.into_iter().collect::<Vec<_>>().join(", ");
            let meaning = "RoCE v1 is not routable and does not work with hosts that use v2";
            let remedy = remedy::ROCE_V2.into();
            found.push(say(Severity::Warning, format!("it has only {list} GIDs"), remedy).meaning(meaning));
        } else if gids.iter().all(|gid| gid.gid.starts_with("fe80")) {
            let meaning = "peers in other segments cannot be reached, and NCCL skips such GIDs";
            let remedy = remedy::IPV4_ADDRESS.into();
            found.push(say(Severity::Warning, "it has only link-local GIDs".into(), remedy).meaning(meaning));
        }
    }
    found
}

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
fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for port in scene.ports().filter(Port::is_roce) {
        let gids = &port.port.gids;
        let kinds: BTreeSet<&str> = gids.iter().filter_map(|gid| gid.kind.as_deref()).collect();
        if gids.is_empty() {
            found.push(port.found(Failure, "it has no GID", remedy::IP_ADDRESS));
        } else if !kinds.is_empty() && !kinds.contains("RoCE v2") {
            let list = kinds.into_iter().collect::<Vec<_>>().join(", ");
            let old = port.found(Warning, format!("it has only {list} GIDs"), remedy::ROCE_V2);
            found.push(old.meaning("RoCE v1 is not routable and does not work with hosts that use v2"));
        } else if gids.iter().all(|gid| gid.gid.starts_with("fe80")) {
            let local = port.found(Warning, "it has only link-local GIDs", remedy::IPV4_ADDRESS);
            found.push(local.meaning("peers in other segments cannot be reached, and NCCL skips such GIDs"));
        }
    }
}

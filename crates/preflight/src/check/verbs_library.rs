use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "what the loader finds on the host",
    meaning: "no RDMA device can be opened: every case over verbs fails on this host",
    source: "the loader's message",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Host(|facts| facts.libraries.contains_key("libibverbs.so.1"), "which libraries it has")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let by_manager = scene.has(|test| test.knobs.joining == Some(Joining::RdmaCm));
    let needed = [
        ("libibverbs.so.1", scene.needs_rdma()),
        ("librdmacm.so.1", by_manager || scene.ports().any(|port| port.is_iwarp())),
    ];
    for (host, facts) in scene.hosts() {
        found.extend(needed.iter().filter(|(_, is_needed)| *is_needed).filter_map(|(name, _)| {
            let words = facts.libraries.get(*name).filter(|path| !path.starts_with('/'))?;
            Some(Found::host(Failure, host, format!("{name}: {words}"), remedy::VERBS_LIBRARY))
        }));
    }
}

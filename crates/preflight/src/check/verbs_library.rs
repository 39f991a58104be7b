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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let mut needed = Vec::new();
    if scene.needs_rdma() {
        needed.push("libibverbs.so.1");
    }
    if scene.ports().any(|port| port.is_iwarp()) || scene.has(|test| test.knobs.joining == Some(Joining::RdmaCm)) {
        needed.push("librdmacm.so.1");
    }
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        for name in &needed {
            if let Some(words) = facts.libraries.get(*name).filter(|path| !path.starts_with('/')) {
                let remedy = remedy::VERBS_LIBRARY;
                found.push(Found::host(Severity::Failure, host, format!("{name}: {words}"), remedy));
            }
        }
    }
    found
}

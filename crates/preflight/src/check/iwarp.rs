use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/node_type, /sys/module/rdma_ucm",
    meaning: "the cases fail: iWARP has only reliable connections, made by rdma_cm",
    source: "RFC 5040 (RDMAP) and RFC 7306; rdma-core's rdma_cm(7)",
    spoils: Spoils::Nothing,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.device.kind.is_some(), "the protocol of its devices")],
    find,
};

/// Tests that cannot run, why, and what to do.
type Kind<'t> = (&'t dyn Fn(&Test) -> bool, &'t str, Entry);

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let over_verbs = |test: &Test| test.transport == Transport::Verbs;
    let foreign =
        |test: &Test| over_verbs(test) && (matches!(test.service, Service::Uc | Service::Ud) || test.op.is_atomic());
    let by_exchange = |test: &Test| test.knobs.joining == Some(Joining::Exchange);
    for port in scene.devices().filter(Port::is_iwarp) {
        let driver = port.device.driver.as_deref().unwrap_or("its driver");
        // eRDMA in compatibility mode exchanges where the plan asks for it; nothing here joins a collective by rdma_cm.
        let exchanges = driver == "erdma";
        let unjoined =
            |test: &Test| over_verbs(test) && if by_exchange(test) { !exchanges } else { test.op.is_collective() };
        let looped = |test: &Test| test.transport == Transport::Nic;
        let kinds: [Kind<'_>; 3] = [
            (
                &foreign,
                "uses iWARP, which has no datagrams, unreliable connections or atomics",
                remedy::LEAVE_TESTS_OUT,
            ),
            (&looped, "uses iWARP, which joins no two queue pairs of one port", remedy::LEAVE_TESTS_OUT),
            (&unjoined, "has queue pairs that are joined by rdma_cm only", remedy::TCP_ON_IWARP),
        ];
        for (is_of_kind, words, remedy) in kinds {
            let tests = scene.plan.tests.iter().filter(|test| is_of_kind(test));
            let tests: Vec<&str> = tests.map(|test| test.name.as_str()).collect();
            if !tests.is_empty() {
                found.push(port.found(Failure, format!("{driver} {words}: {}", tests.join(", ")), remedy));
            }
        }
        // Without a folder the module may still be built into the kernel, hence a warning.
        if !port.facts.modules.contains_key("rdma_ucm") {
            let unloaded = port.found(Warning, "module rdma_ucm is not loaded", remedy::LOAD_RDMA_UCM);
            found.push(unloaded.meaning("iWARP connections are made by rdma_cm, which needs this module"));
        }
    }
}

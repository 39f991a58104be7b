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

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let foreign = |test: &Test| {
        test.transport == Transport::Verbs && (matches!(test.service, Service::Uc | Service::Ud) || test.op.is_atomic())
    };
    let tests: Vec<&str> =
        scene.plan.tests.iter().filter(|test| foreign(test)).map(|test| test.name.as_str()).collect();
    let by_exchange = |test: &Test| test.knobs.joining == Some(Joining::Exchange);
    let mut found = Vec::new();
    for port in scene.devices().filter(Port::is_iwarp) {
        let driver = port.device.driver.as_deref().unwrap_or("its driver");
        let say =
            |severity, what: String, remedy: Entry| Found::host(severity, port.host, what, remedy).device(port.name());
        if !tests.is_empty() {
            let what = format!(
                "{driver} uses iWARP, which has no datagrams, unreliable connections or atomics: {}",
                tests.join(", ")
            );
            found.push(say(Severity::Failure, what, remedy::LEAVE_TESTS_OUT));
        }
        // eRDMA in compatibility mode exchanges where the plan asks for it; nothing here joins a collective by rdma_cm.
        let exchanges = port.device.driver.as_deref() == Some("erdma");
        let unjoined = |test: &Test| {
            test.transport == Transport::Verbs && if by_exchange(test) { !exchanges } else { test.op.is_collective() }
        };
        let looped: Vec<&str> = scene
            .plan
            .tests
            .iter()
            .filter(|test| test.transport == Transport::Nic)
            .map(|test| test.name.as_str())
            .collect();
        if !looped.is_empty() {
            let what =
                format!("{driver} uses iWARP, which joins no two queue pairs of one port: {}", looped.join(", "));
            found.push(say(Severity::Failure, what, remedy::LEAVE_TESTS_OUT));
        }
        let unjoined: Vec<&str> =
            scene.plan.tests.iter().filter(|test| unjoined(test)).map(|test| test.name.as_str()).collect();
        if !unjoined.is_empty() {
            let what = format!("{driver} has queue pairs that are joined by rdma_cm only: {}", unjoined.join(", "));
            found.push(say(Severity::Failure, what, remedy::TCP_ON_IWARP));
        }
        // Without a folder the module may still be built into the kernel, hence a warning.
        if !port.facts.modules.contains_key("rdma_ucm") {
            let meaning = "iWARP connections are made by rdma_cm, which needs this module";
            found.push(
                say(Severity::Warning, "module rdma_ucm is not loaded".into(), remedy::LOAD_RDMA_UCM)
                    .meaning(meaning),
            );
        }
    }
    found
}

//! Tests that iWARP and eRDMA devices cannot run.

use super::{Entry, Found, Need, Port, Rule, Scene, Severity, Spoils, Subject};
use railgauge_model::plan::model::Test;
use railgauge_wire::remedy;
use railgauge_wire::terms::{Service, Transport};

pub(super) const RULE: Rule = Rule {
    reads: "/sys/class/infiniband/*/node_type, /sys/module/rdma_ucm",
    meaning: "the cases fail: RDMA over TCP has reliable connections only, made by rdma_cm",
    source: "RFC 5040 (RDMAP) and RFC 7306; rdma-core's rdma_cm(7)",
    spoils: Spoils::Nothing,
    subject: Subject::Port,
    needs: &[Need::Port(|port| port.device.kind.is_some(), "what its devices speak")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let foreign = |test: &Test| {
        test.transport == Transport::Verbs && (matches!(test.service, Service::Uc | Service::Ud) || test.op.is_atomic())
    };
    let tests: Vec<&str> =
        scene.plan.tests.iter().filter(|test| foreign(test)).map(|test| test.name.as_str()).collect();
    let mut found = Vec::new();
    for port in scene.devices().filter(Port::is_iwarp) {
        let driver = port.device.driver.as_deref().unwrap_or("its driver");
        let say =
            |severity, what: String, remedy: Entry| Found::host(severity, port.host, what, remedy).device(port.name());
        if !tests.is_empty() {
            let what = format!(
                "{driver} speaks iWARP, which has no datagrams, no unreliable connections and no atomics: {}",
                tests.join(", ")
            );
            found.push(say(Severity::Failure, what, remedy::LEAVE_TESTS_OUT));
        }
        // Without a folder the module may still be built into the kernel: a warning, then.
        if !port.facts.modules.contains_key("rdma_ucm") {
            let meaning = "connections of iWARP are made by rdma_cm, which programs reach through this module";
            found.push(
                say(Severity::Warning, "module rdma_ucm is not loaded".into(), remedy::MODULE_RDMA_UCM)
                    .meaning(meaning),
            );
        }
    }
    found
}

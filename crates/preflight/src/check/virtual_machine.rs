use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "processor flags, files of container engines",
    meaning: "the hypervisor provides PCIe paths, interrupts and clocks; a container may hide devices and limits",
    source: "CPUID leaf 1, ECX bit 31",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Host(|facts| facts.surroundings.virtual_machine.is_some(), "whether it is a virtual machine")],
    find,
};

fn find(scene: &Scene<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    for (host, facts) in scene.hosts() {
        let around = &facts.surroundings;
        if around.virtual_machine == Some(true) {
            found.push(Found::host(Severity::Notice, host, "is a virtual machine", remedy::NONE_IF_MEANT));
        }
        if let Some(container) = &around.container {
            found.push(Found::host(
                Severity::Notice,
                host,
                format!("runs in a container ({container})"),
                remedy::NONE_IF_MEANT,
            ));
        }
    }
    found
}

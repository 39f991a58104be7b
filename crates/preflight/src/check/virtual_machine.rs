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

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for (host, facts) in scene.hosts() {
        let around = &facts.surroundings;
        let is_virtual = around.virtual_machine == Some(true);
        let container = around.container.as_ref().map(|container| format!("runs in a container ({container})"));
        let words = is_virtual.then(|| "is a virtual machine".to_owned()).into_iter().chain(container);
        found.extend(words.map(|what| Found::host(Notice, host, what, remedy::NONE_IF_MEANT)));
    }
}

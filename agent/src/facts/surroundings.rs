//! Container and virtual machine.

use railgauge_wire::facts::Surroundings;

use super::machine::field;
use crate::system::tree::Tree;

pub(crate) fn around(tree: &Tree) -> Surroundings {
    let flags = tree.text("proc/cpuinfo").and_then(|text| field(&text, "flags"));
    Surroundings {
        container: container(tree),
        // The bit a processor never sets by itself (CPUID 1, ECX bit 31); other architectures have no such flags.
        virtual_machine: flags.map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor")),
        product: product(tree),
    }
}

fn container(tree: &Tree) -> Option<String> {
    if let Some(kind) = tree.text("run/systemd/container").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    let marks = [
        ("var/run/secrets/kubernetes.io", "kubernetes"),
        ("run/.containerenv", "podman"),
        (".dockerenv", "docker"),
        ("singularity.d", "singularity"),
        (".singularity.d", "singularity"),
    ];
    marks.into_iter().find(|(mark, _)| tree.has(mark)).map(|(_, kind)| kind.to_owned())
}

fn product(tree: &Tree) -> Option<String> {
    let words = ["sys_vendor", "product_name"].map(|file| tree.text(format!("sys/class/dmi/id/{file}")));
    let words: Vec<String> = words.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

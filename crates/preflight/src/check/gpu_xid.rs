use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "Xid messages in /dev/kmsg (readable by root, or where dmesg is not restricted)",
    meaning: "the GPU had errors since boot: it may be slow, missing or about to fail",
    source: "NVIDIA, XID Errors",
    spoils: Spoils::GpuMemory,
    subject: Subject::Gpu,
    needs: &[Need::Host(|facts| facts.xids.is_some(), "Xids of the kernel's log")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    for (host, facts) in scene.hosts().filter(|_| scene.needs_gpus()) {
        let mut counts: BTreeMap<(&str, u32), (usize, &str)> = BTreeMap::new();
        for xid in facts.xids.iter().flatten() {
            let entry = counts.entry((&xid.pci, xid.code)).or_insert((0, ""));
            *entry = (entry.0 + 1, &xid.text);
        }
        found.extend(counts.into_iter().map(|((pci, code), (count, text))| {
            let severity = if is_of_program(code) { Notice } else { Warning };
            let gpu = facts.gpus.iter().find(|gpu| gpu.pci.as_deref().is_some_and(|address| address.starts_with(pci)));
            let place = gpu.map_or_else(|| format!("PCI {pci}"), |gpu| format!("GPU {}", gpu.index));
            let what = format!("Xid {code}, {count} times since boot: {text}");
            Found::host(severity, host, what, remedy::XID).device(place).seen("xid", code)
        }));
    }
}

//! The processor's name. x86 writes it down; Arm kernels only say who made the core, and which of his it is.

use super::machine::field;

/// Cores of servers by maker and part, as `/proc/cpuinfo` has them (Linux, arch/arm64/include/asm/cputype.h).
const CORES: &[(u32, u32, &str)] = &[
    (0x41, 0xd0c, "Arm Neoverse N1"),
    (0x41, 0xd40, "Arm Neoverse V1"),
    (0x41, 0xd49, "Arm Neoverse N2"),
    (0x41, 0xd4f, "Arm Neoverse V2"),
    (0x41, 0xd83, "Arm Neoverse V3AE"),
    (0x41, 0xd84, "Arm Neoverse V3"),
    (0x41, 0xd8e, "Arm Neoverse N3"),
    (0x43, 0x0af, "Cavium ThunderX2"),
];

/// The name in a text of `/proc/cpuinfo`, of its first processor. A core that is not known by name has its numbers.
pub(super) fn name(cpuinfo: &str) -> Option<String> {
    field(cpuinfo, "model name").or_else(|| {
        let number = |name: &str| u32::from_str_radix(field(cpuinfo, name)?.strip_prefix("0x")?, 16).ok();
        let (maker, part) = (number("CPU implementer")?, number("CPU part")?);
        let known = CORES.iter().find(|(of, core, _)| (*of, *core) == (maker, part));
        Some(
            known
                .map_or_else(|| format!("Arm, implementer {maker:#x} part {part:#x}"), |(.., name)| (*name).to_owned()),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_its_own_name_or_that_of_its_core() {
        let arm = |maker, part| {
            format!(
                "processor\t: 0\nBogoMIPS\t: 2000.00\nCPU implementer\t: {maker}\nCPU architecture: 8\nCPU part\t: {part}\n"
            )
        };
        assert_eq!(name("processor\t: 0\nmodel name\t: Maker 8480\n").as_deref(), Some("Maker 8480"));
        assert_eq!(name(&arm("0x41", "0xd4f")).as_deref(), Some("Arm Neoverse V2"));
        assert_eq!(name(&arm("0xc0", "0xac3")).as_deref(), Some("Arm, implementer 0xc0 part 0xac3"));
        assert_eq!(name(&arm("?", "0xac3")), None);
        assert_eq!(name(""), None);
    }
}

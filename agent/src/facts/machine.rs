//! Operating system, processor, memory and limits. x86 has the processor's name; Arm kernels only its maker and the core's number.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{Bytes, Cpu, Gather, HostFacts, HugePages, IOMMUS, IpcLock, LIMITS, Surroundings};

use crate::system::tree::{Tree, list};

const STATUS: &str = "proc/self/status";

pub(crate) fn facts(tree: &Tree) -> HostFacts {
    let ipc_lock = ipc_lock(tree);
    HostFacts {
        hostname: tree.expected("proc/sys/kernel/hostname").unwrap_or_default(),
        os: os(tree),
        kernel: tree.expected("proc/sys/kernel/osrelease").unwrap_or_default(),
        command_line: tree.expected("proc/cmdline"),
        // The file exists from Linux 6.1 on; before that the agent's own architecture is the machine's.
        architecture: tree.text("proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cpu: cpu(tree),
        surroundings: around(tree),
        memory_bytes: memory(tree),
        huge_pages: huge_pages(tree),
        transparent_huge_pages: chosen(tree.text("sys/kernel/mm/transparent_hugepage/enabled")),
        numa_balancing: tree.value::<u8>("proc/sys/kernel/numa_balancing").map(|value| value > 0),
        memlock_bytes: limit(tree, "Max locked memory").filter(|_| ipc_lock != Some(IpcLock::InEffect)).map(Bytes),
        ipc_lock,
        processors_allowed: allowed(tree),
        open_files: limit(tree, "Max open files"),
        clock_source: tree.expected("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        tcp_ecn: tree.value("proc/sys/net/ipv4/tcp_ecn"),
        iommus: u32::try_from(tree.names(IOMMUS).len()).unwrap_or(u32::MAX),
        ..HostFacts::default()
    }
}

fn os(tree: &Tree) -> Option<String> {
    // `/etc/os-release` is a link, which could leave a test's tree.
    let text = tree.text("usr/lib/os-release").or_else(|| tree.expected("etc/os-release"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn cpu(tree: &Tree) -> Cpu {
    let count = |text: String| list(&text).and_then(|numbers| u32::try_from(numbers.len()).ok());
    let online = tree.expected("sys/devices/system/cpu/online").and_then(count);
    let nodes = tree.text("sys/devices/system/node/online").and_then(count);
    Cpu {
        model: tree.expected("proc/cpuinfo").as_deref().and_then(name),
        threads: online.unwrap_or(0),
        numa_nodes: nodes.unwrap_or(0),
        nodes_with_processors: tree
            .text("sys/devices/system/node/has_cpu")
            .and_then(|text| list(&text))
            .unwrap_or_default(),
        governor: governor(tree),
        boost: boost(tree),
        smt: tree.value::<u8>("sys/devices/system/cpu/smt/active").map(|active| active == 1),
        last_level_cache: last_level_cache(tree),
    }
}

/// Without duplicates.
fn governor(tree: &Tree) -> Option<String> {
    const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
    let policies = tree.names(POLICIES).into_iter().filter(|name| name.starts_with("policy"));
    let governors = policies.filter_map(|policy| tree.text(format!("{POLICIES}/{policy}/scaling_governor")));
    let governors: BTreeSet<String> = governors.gathered();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
}

/// Whether frequencies above the nominal one are allowed. Intel's driver has the inverse.
fn boost(tree: &Tree) -> Option<bool> {
    let flag = |path: &str| tree.value::<u8>(format!("sys/devices/system/cpu/{path}"));
    flag("intel_pstate/no_turbo").map(|no| no == 0).or_else(|| flag("cpufreq/boost").map(|yes| yes == 1))
}

pub(crate) fn last_level_cache(tree: &Tree) -> Option<Bytes> {
    let caches = "sys/devices/system/cpu/cpu0/cache";
    let sizes = tree.names(caches).into_iter().filter(|name| name.starts_with("index"));
    sizes.filter_map(|index| size(&tree.text(format!("{caches}/{index}/size"))?)).max()
}

/// Bytes of the last-level caches of these processors, each counted once; `None` if one is unknown.
pub(crate) fn caches(tree: &Tree, processors: &[u32]) -> Option<Bytes> {
    let mut seen: BTreeMap<String, Bytes> = BTreeMap::new();
    for processor in processors {
        let of_one = format!("sys/devices/system/cpu/cpu{processor}/cache");
        let indices = tree.names(&of_one).into_iter().filter(|name| name.starts_with("index"));
        let last = indices.max_by_key(|index| tree.value::<u32>(format!("{of_one}/{index}/level")))?;
        let shared = tree.text(format!("{of_one}/{last}/shared_cpu_list"))?;
        seen.insert(shared, size(&tree.text(format!("{of_one}/{last}/size"))?)?);
    }
    (!seen.is_empty()).then(|| seen.into_values().fold(Bytes::ZERO, Bytes::saturating_add))
}

/// `1024K` or `32M`.
fn size(text: &str) -> Option<Bytes> {
    let (digits, factor) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    Bytes(digits.parse().ok()?).checked_mul(factor)
}

fn memory(tree: &Tree) -> Option<Bytes> {
    let total = field(&tree.expected("proc/meminfo")?, "MemTotal")?;
    Bytes(total.strip_suffix("kB")?.trim().parse().ok()?).checked_mul(1024)
}

/// Huge pages of every size the kernel has (kernel documentation: admin-guide/mm/hugetlbpage).
fn huge_pages(tree: &Tree) -> Vec<HugePages> {
    const SIZES: &str = "sys/kernel/mm/hugepages";
    let one = |name: String| {
        let count = |file: &str| tree.value(format!("{SIZES}/{name}/{file}"));
        let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some(HugePages {
            bytes: Bytes(kib).checked_mul(1024)?,
            total: count("nr_hugepages")?,
            free: count("free_hugepages")?,
        })
    };
    tree.names(SIZES).into_iter().filter_map(one).collect()
}

fn chosen(text: Option<String>) -> Option<String> {
    let text = text?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

/// Soft limit of this process, which its links share; `None` for unlimited.
fn limit(tree: &Tree, name: &str) -> Option<u64> {
    let text = tree.expected(LIMITS)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn allowed(tree: &Tree) -> Option<u32> {
    let numbers = list(&field(&tree.text(STATUS)?, "Cpus_allowed_list")?)?;
    u32::try_from(numbers.len()).ok()
}

/// Whether the capability lifts the limit on locked memory: it counts in the first user namespace only (`ib_umem_get` in
/// drivers/infiniband/core/umem.c asks `capable(CAP_IPC_LOCK)`). A container's possible capabilities are in the bounding set
/// (capabilities(7)); for a user other than root they are not in effect.
fn ipc_lock(tree: &Tree) -> Option<IpcLock> {
    /// `CAP_IPC_LOCK` of include/uapi/linux/capability.h.
    const IPC_LOCK: u64 = 1 << 14;
    let status = tree.text(STATUS)?;
    let has = |set: &str| {
        let mask = u64::from_str_radix(&field(&status, set)?, 16).ok()?;
        Some(mask & IPC_LOCK != 0)
    };
    let map = tree.text("proc/self/uid_map").unwrap_or_default();
    // The first user namespace maps all numbers to themselves.
    let is_first = map.split_whitespace().eq(["0", "0", "4294967295"]);
    Some(match has("CapEff")? {
        true if is_first => IpcLock::InEffect,
        true => IpcLock::InNamespace,
        false if has("CapBnd") == Some(true) => IpcLock::NotInEffect,
        false => IpcLock::Absent,
    })
}

pub(crate) fn field(text: &str, name: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(rest.trim().to_owned())
}

/// Server cores by maker and part, as in `/proc/cpuinfo` (Linux, arch/arm64/include/asm/cputype.h).
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

/// Name of the first processor in `/proc/cpuinfo`. An unknown core has its numbers.
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

pub(crate) fn around(tree: &Tree) -> Surroundings {
    let flags = tree.text("proc/cpuinfo").and_then(|text| field(&text, "flags"));
    Surroundings {
        container: container(tree),
        // A processor never sets this bit itself (CPUID 1, ECX bit 31); other architectures have no such flags.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_on_locked_memory_holds_but_for_root_of_the_first_namespace() {
        const LIMITS: &str = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory  65536  65536  bytes\n";
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
            std::fs::write(root.path().join("proc/self").join(name), text).unwrap();
        };
        write("limits", LIMITS);
        let all = "         0          0 4294967295\n";
        const ALL: &str = "000001ffffffffff";
        let lock = |what| Some(what);
        for (effective, bounding, map, limited, lock) in [
            (ALL, ALL, all, false, lock(IpcLock::InEffect)),
            ("0000000000004000", ALL, all, false, lock(IpcLock::InEffect)),
            // Any user of an ordinary machine; also in a container with the capability.
            ("0000000000000000", ALL, all, true, lock(IpcLock::NotInEffect)),
            // Root of a container without it.
            ("000001ffffffbfff", "000001ffffffbfff", all, true, lock(IpcLock::Absent)),
            (ALL, ALL, "         0       1000          1\n", true, lock(IpcLock::InNamespace)),
            ("nonsense", ALL, all, true, None),
        ] {
            write("status", &format!("Name:\tagent\nCapEff:\t{effective}\nCapBnd:\t{bounding}\n"));
            write("uid_map", map);
            let facts = facts(&Tree::new(root.path()));
            assert_eq!(facts.memlock_bytes.is_some(), limited, "{effective}, {map}");
            assert_eq!(facts.ipc_lock, lock, "{effective}, {map}");
        }
    }

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

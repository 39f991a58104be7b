//! Operating system, processor, memory and limits.

use railgauge_wire::facts::{Cpu, HostFacts};

use super::tree::{Tree, list};

/// The machine's part of the facts.
pub fn facts(tree: &Tree) -> HostFacts {
    HostFacts {
        hostname: tree.expected("proc/sys/kernel/hostname").unwrap_or_default(),
        os: os(tree),
        kernel: tree.expected("proc/sys/kernel/osrelease").unwrap_or_default(),
        command_line: tree.expected("proc/cmdline"),
        // The file is there from Linux 6.1 on; before that the agent's own architecture is the machine's.
        architecture: tree.text("proc/sys/kernel/arch").unwrap_or_else(|| std::env::consts::ARCH.into()),
        cpu: cpu(tree),
        memory_bytes: memory(tree),
        memlock_bytes: memlock(tree),
        ..HostFacts::default()
    }
}

fn os(tree: &Tree) -> Option<String> {
    // `/etc/os-release` is a link, which in a tree for a test could leave the tree.
    let text = tree.text("usr/lib/os-release").or_else(|| tree.expected("etc/os-release"))?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn cpu(tree: &Tree) -> Cpu {
    let count = |text: String| list(&text).and_then(|numbers| u32::try_from(numbers.len()).ok());
    let online = tree.expected("sys/devices/system/cpu/online").and_then(count);
    let nodes = tree.text("sys/devices/system/node/online").and_then(count);
    Cpu {
        model: field(&tree.expected("proc/cpuinfo").unwrap_or_default(), "model name"),
        threads: online.unwrap_or(0),
        numa_nodes: nodes.unwrap_or(0),
        governor: tree.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        last_level_cache: last_level_cache(tree),
    }
}

/// Size of the largest cache of the first processor, in bytes.
pub fn last_level_cache(tree: &Tree) -> Option<u64> {
    let caches = "sys/devices/system/cpu/cpu0/cache";
    let sizes = tree.names(caches).into_iter().filter(|name| name.starts_with("index"));
    sizes.filter_map(|index| size(&tree.text(format!("{caches}/{index}/size"))?)).max()
}

/// `1024K` or `32M`, in bytes.
fn size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn memory(tree: &Tree) -> Option<u64> {
    let total = field(&tree.expected("proc/meminfo")?, "MemTotal")?;
    total.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The soft limit of this process, which its links live under.
fn memlock(tree: &Tree) -> Option<u64> {
    let text = tree.expected("proc/self/limits")?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max locked memory"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(rest.trim().to_owned())
}

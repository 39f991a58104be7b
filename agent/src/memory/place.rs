//! Places a link and its memory on the NUMA node of its NIC, unless the plan names a core. Call it on the link's thread before allocating
//! memory: pages it touches are on its node, and threads it starts inherit its processors. The kernel uses another node if the wanted one
//! is full or closed.

use std::{collections::BTreeMap, ptr};

use railgauge_wire::{Failure, Kind, Stage, remedy};

use crate::system::{
    affinity,
    tree::{Tree, list},
};

/// Moves the calling thread to `core`, or else to the processors of the node in `numa_file` (a sysfs path below the root, such as
/// `sys/class/net/eth0/device/numa_node`). Does nothing without a node or with a single one. Returns the used settings: `core` or
/// `numa_node`.
pub(crate) fn settle(tree: &Tree, core: Option<u32>, numa_file: &str) -> Result<BTreeMap<String, String>, Failure> {
    if let Some(core) = core {
        affinity::allow(&[core]).map_err(|error| {
            let allowed = ranges(&affinity::allowed().unwrap_or_default());
            let cause = format!("cannot run on core {core}: {error}; cores open to the agent: {allowed}");
            Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::NAME_OPEN_CORE)
        })?;
        return Ok(setting("core", core));
    }
    let nodes = tree.text("sys/devices/system/node/online").and_then(|text| list(&text)).unwrap_or_default();
    // The kernel's -1 means no particular node.
    let node = tree.text(numa_file).and_then(|text| text.parse::<u32>().ok()).filter(|node| nodes.contains(node));
    let Some(node) = node.filter(|_| nodes.len() > 1) else { return Ok(BTreeMap::new()) };
    let processors = tree.text(format!("sys/devices/system/node/node{node}/cpulist")).and_then(|text| list(&text));
    let allowed = affinity::allowed().unwrap_or_default();
    let here: Vec<u32> = processors.unwrap_or_default().into_iter().filter(|cpu| allowed.contains(cpu)).collect();
    // A node without processors, or one closed to the agent's container.
    if here.is_empty() || affinity::allow(&here).is_err() {
        return Ok(setting("numa_node", format!("any (node {node} is closed to the agent)")));
    }
    Ok(setting("numa_node", node))
}

fn setting(name: &str, value: impl ToString) -> BTreeMap<String, String> {
    BTreeMap::from([(name.to_owned(), value.to_string())])
}

fn ranges(rising: &[u32]) -> String {
    let runs = rising.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Sampled pages of a buffer, spread evenly.
const SAMPLES: usize = 64;

/// Nodes of pages spread over a touched buffer, without pages of unknown node. Empty without NUMA, or if `move_pages` is forbidden.
pub(crate) fn nodes(bytes: &[u8]) -> Vec<u32> {
    let step = (bytes.len() / SAMPLES).max(1);
    let pages: Vec<*const u8> = bytes.chunks(step).map(<[u8]>::as_ptr).collect();
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: both arrays have `pages.len()` entries and outlive the call; without target nodes nothing is moved and the kernel only writes
    // to `status`. The addresses are those of a live buffer.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len() as libc::c_ulong,
            pages.as_ptr(),
            ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    };
    if rc < 0 {
        return Vec::new();
    }
    status.into_iter().filter_map(|node| u32::try_from(node).ok()).collect()
}

/// Bytes available without swapping: the kernel's value, limited by every control group of the process. `None` if unknown.
pub(crate) fn bytes(tree: &Tree) -> Option<u64> {
    let meminfo = tree.text("proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let host = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    Some(groups(tree).into_iter().fold(host, u64::min))
}

/// Rest of each limit from the process's own control group (version 2) up to the root.
fn groups(tree: &Tree) -> Vec<u64> {
    let membership = tree.text("proc/self/cgroup").unwrap_or_default();
    let Some(path) = membership.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let mut left = Vec::new();
    let mut path = Some(std::path::Path::new(path));
    while let Some(group) = path {
        let number = |file: &str| tree.text(std::path::Path::new("sys/fs/cgroup").join(group).join(file))?.parse().ok();
        // "max" is not a number, and no limit.
        if let (Some(limit), Some(used)) = (number("memory.max"), number("memory.current")) {
            left.push(u64::saturating_sub(limit, used));
        }
        path = group.parent();
    }
    left
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn two_nodes(own: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let nodes = root.path().join("sys/devices/system/node");
        for (node, processors) in [("node0", "4000-4001"), ("node1", own)] {
            fs::create_dir_all(nodes.join(node)).unwrap();
            fs::write(nodes.join(node).join("cpulist"), processors).unwrap();
        }
        fs::write(nodes.join("online"), "0-1\n").unwrap();
        root
    }

    fn settled(root: &tempfile::TempDir, node: &str) -> (BTreeMap<String, String>, Vec<u32>) {
        fs::write(root.path().join("numa_node"), node).unwrap();
        let tree = Tree::new(root.path());
        std::thread::spawn(move || (settle(&tree, None, "numa_node").unwrap(), affinity::allowed().unwrap()))
            .join()
            .unwrap()
    }

    #[test]
    fn a_link_moves_to_its_nics_node() {
        let all = affinity::allowed().unwrap();
        let root = two_nodes(&all[0].to_string());
        assert_eq!(settled(&root, "1\n"), (setting("numa_node", 1), vec![all[0]]));
        let (words, stayed) = settled(&root, "0\n");
        assert!(words["numa_node"].contains("closed") && stayed == all, "{words:?}");
        assert_eq!(settled(&root, "-1\n"), (BTreeMap::new(), all));
    }

    #[test]
    fn a_core_that_is_not_there_is_refused_with_those_that_are() {
        let failure = settle(&Tree::new("/"), Some(8191), "").unwrap_err();
        assert!(failure.cause.contains("core 8191") && failure.cause.contains("cores open"), "{failure}");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn touched_memory_lies_on_a_node() {
        let bytes = vec![7_u8; 1 << 20];
        let nodes = nodes(&bytes);
        // Where the kernel answers it answers for every page, and this machine has all nodes that it names.
        assert!(nodes.is_empty() || nodes.len() >= SAMPLES, "{nodes:?}");
        for node in nodes {
            assert!(std::path::Path::new(&format!("/sys/devices/system/node/node{node}")).exists(), "{node}");
        }
    }

    #[test]
    fn a_buffer_without_bytes_has_no_pages() {
        assert!(nodes(&[]).is_empty());
    }

    #[test]
    fn the_tightest_limit_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   1000 kB\n");
        let tree = Tree::new(root.path());
        assert_eq!(bytes(&tree), Some(1_024_000));
        write("proc/self/cgroup", "0::/pods/one\n");
        write("sys/fs/cgroup/pods/one/memory.max", "max\n");
        write("sys/fs/cgroup/pods/one/memory.current", "5\n");
        assert_eq!(bytes(&tree), Some(1_024_000));
        write("sys/fs/cgroup/pods/memory.max", "9000\n");
        write("sys/fs/cgroup/pods/memory.current", "2000\n");
        assert_eq!(bytes(&tree), Some(7_000));
    }
}

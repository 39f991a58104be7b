//! How much memory this process may still take.

use crate::system::tree::Tree;

/// Bytes that can be taken without swapping: what the kernel calls available, and what is left of every control group
/// the process is in. `None` if the kernel does not say.
pub(crate) fn bytes(tree: &Tree) -> Option<u64> {
    let meminfo = tree.text("proc/meminfo")?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let host = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    Some(groups(tree).into_iter().fold(host, u64::min))
}

/// What is left of each limit from the process's own control group (version 2) up to the root.
fn groups(tree: &Tree) -> Vec<u64> {
    let membership = tree.text("proc/self/cgroup").unwrap_or_default();
    let Some(path) = membership.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let mut left = Vec::new();
    let mut path = Some(std::path::Path::new(path));
    while let Some(group) = path {
        let number = |file: &str| tree.text(std::path::Path::new("sys/fs/cgroup").join(group).join(file))?.parse().ok();
        // "max" is no number, and no limit.
        if let (Some(limit), Some(used)) = (number("memory.max"), number("memory.current")) {
            left.push(u64::saturating_sub(limit, used));
        }
        path = group.parent();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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

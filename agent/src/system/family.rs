//! Which processes belong to this agent.

use super::tree::Tree;

/// Most generations that are looked through: ranks are children, and what they start is not far.
const GENERATIONS: usize = 8;

/// Whether a process is this agent, or was started by it or by what it started. `None` where nothing can be read of it: it has ended, or is
/// hidden.
pub(crate) fn is_ours(pid: u32) -> Option<bool> {
    is_of(&Tree::host(), std::process::id(), pid)
}

fn is_of(tree: &Tree, own: u32, pid: u32) -> Option<bool> {
    if pid == own {
        return Some(true);
    }
    let first = parent(tree, pid)?;
    let line = std::iter::successors(Some(first), |pid| parent(tree, *pid));
    Some(line.take(GENERATIONS).any(|pid| pid == own))
}

/// The parent of a process: the second field behind its name, which stands in parentheses and may hold any character (proc(5)).
fn parent(tree: &Tree, pid: u32) -> Option<u32> {
    let stat = tree.text(format!("proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_theirs_are_ours_and_nobody_else_is() {
        let root = tempfile::tempdir().unwrap();
        for (pid, stat) in [
            (7, "7 (init) S 1 7 7 0"),
            (40, "40 (railgauge-agent) S 7 40"),
            (41, "41 (a) name) of (it) S 40 41"),
            (42, "42 (rank) R 41 42"),
            (43, "43 (railgauge-agent) R 7 43"),
        ] {
            let folder = root.path().join(format!("proc/{pid}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("stat"), stat).unwrap();
        }
        let tree = Tree::new(root.path());
        let ours = [7, 40, 41, 42, 43, 99].map(|pid| is_of(&tree, 40, pid));
        assert_eq!(ours, [Some(false), Some(true), Some(true), Some(true), Some(false), None]);
    }
}

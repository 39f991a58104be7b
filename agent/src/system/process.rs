//! Process groups, the end of the process, its standard streams.

use std::{
    collections::BTreeSet,
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::process::CommandExt,
    },
    process,
};

use parking_lot::Mutex;

use super::tree::Tree;

/// Makes this process the leader of its own group, and the parent of what its children leave behind.
pub(crate) fn own_group() {
    // SAFETY: neither call takes pointers. Both may be refused (a session leader already leads its group);
    // `kill_children` finds out by itself what it may do.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Groups of running programs. A group's number is not reused until its first process was waited for.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Drop it once the program was waited for.
pub(crate) struct Group(i32);

impl Group {
    /// The child must have been started with its own group.
    pub(crate) fn of(child: &process::Child) -> Self {
        let leader = child.id().cast_signed();
        GROUPS.lock().insert(leader);
        Self(leader)
    }

    pub(crate) fn ask_to_end(&self) {
        // SAFETY: no pointers; the number of a child that was not waited for is not reused.
        unsafe {
            libc::kill(-self.0, libc::SIGTERM);
        }
    }

    /// The first of its processes must not have been waited for.
    pub(crate) fn kill(&self) {
        kill_group(self.0);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        GROUPS.lock().remove(&self.0);
    }
}

fn kill_group(leader: i32) {
    // SAFETY: no pointers; the number of a child that was not waited for is not reused.
    unsafe {
        libc::kill(-leader, libc::SIGKILL);
    }
}

/// Kills running programs, and this process' own group including itself, if a child is left and the group is our own.
pub(crate) fn kill_children() {
    GROUPS.lock().iter().copied().for_each(kill_group);
    // SAFETY: `info` is valid for writes and outlives the call; a zeroed siginfo_t is a valid one.
    let any = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(libc::P_ALL, 0, &raw mut info, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) == 0
    };
    let me = process::id().cast_signed();
    // SAFETY: no pointers; only a group that this process leads is signalled.
    unsafe {
        if any && libc::getpgrp() == me {
            libc::kill(-me, libc::SIGKILL);
        }
    }
}

/// Has the kernel kill a program once the thread that starts it is gone.
pub(crate) fn die_with_parent(command: &mut process::Command) {
    let parent = process::id().cast_signed();
    let prepare = move || {
        // SAFETY: neither call takes pointers, and both may be made between fork and exec.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 || libc::getppid() != parent {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing, takes no lock and calls what may be called between fork and exec.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Does not wait for the child, so that its number stays reserved.
pub(crate) fn has_ended(child: &process::Child) -> bool {
    // SAFETY: `info` is valid for writes and outlives the call; a zeroed siginfo_t is a valid one, and of a child that runs it stays zero.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child.id(), &raw mut info, flags) != 0 || info.si_pid() != 0
    }
}

/// Waits for all ended children; returns whether there are others.
pub(crate) fn reap_all() -> bool {
    loop {
        // SAFETY: no status is asked for, so no pointer is given.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            1.. => {}
            rest => return rest == 0,
        }
    }
}

pub(crate) fn kill(child: u32) {
    // SAFETY: no pointers; the number of a child that was not waited for is not reused.
    unsafe {
        libc::kill(child.cast_signed(), libc::SIGKILL);
    }
}

/// Without exit handlers.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` has no preconditions; what handlers would have flushed or freed is given up on purpose.
    unsafe { libc::_exit(status) }
}

/// Moves stdin and stdout to private descriptors; then puts `/dev/null` at 0 and stderr at 1.
pub(crate) fn claim_standard_streams() -> io::Result<(File, File)> {
    let inlet = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let outlet = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = File::open("/dev/null")?;
    for (from, to) in [(nothing.as_fd(), 0), (io::stderr().as_fd(), 1)] {
        // SAFETY: dup2 takes no pointers; std only writes to 1 through the number and owns neither.
        if unsafe { libc::dup2(from.as_raw_fd(), to) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((inlet, outlet))
}

/// Raises the soft limits on open files and locked memory to the hard ones: a host may have hundreds of links, and registered memory is
/// locked. Failures are ignored, and show where a limit is too low.
pub(crate) fn raise() {
    for resource in [libc::RLIMIT_NOFILE, libc::RLIMIT_MEMLOCK] {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is valid for writing and reading and outlives both calls.
        unsafe {
            if libc::getrlimit(resource, &raw mut limit) == 0 && limit.rlim_cur != limit.rlim_max {
                limit.rlim_cur = limit.rlim_max;
                libc::setrlimit(resource, &raw const limit);
            }
        }
    }
}

/// Most generations searched: ranks are children, and what they start is near.
const GENERATIONS: usize = 8;

/// Whether a process is this agent, or a descendant. `None` if unreadable: it has ended, or is hidden.
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

/// The second field after its name, which is in parentheses and may hold any character (proc(5)).
fn parent(tree: &Tree, pid: u32) -> Option<u32> {
    let stat = tree.text(format!("proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        super::raise();
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[3], words[4], "{line}");
    }

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

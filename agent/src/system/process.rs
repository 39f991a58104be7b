//! Process groups, the end of the process, its standard streams.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::process::CommandExt,
    },
    process,
};

use parking_lot::Mutex;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, getpgrp, getpid, getppid, getrlimit,
    kill_current_process_group, kill_process, kill_process_group, set_child_subreaper, set_parent_process_death_signal,
    setpgid, setrlimit, wait, waitid,
};

use super::tree::Tree;

/// Makes this process the leader of its own group, and the parent of what its children leave behind.
pub(crate) fn own_group() {
    // Both may be refused (a session leader already leads its group); `kill_children` finds out by itself what it may do.
    let _ = setpgid(None, None);
    let _ = set_child_subreaper(Some(getpid()));
}

/// Groups of running programs. A group's number is not reused until its first process was waited for.
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// Drop it once the program was waited for.
pub(crate) struct Group(Pid);

impl Group {
    /// The child must have been started with its own group.
    pub(crate) fn of(child: &process::Child) -> Self {
        let leader = Pid::from_child(child);
        GROUPS.lock().push(leader);
        Self(leader)
    }

    pub(crate) fn ask_to_end(&self) {
        let _ = kill_process_group(self.0, Signal::TERM);
    }

    /// The first of its processes must not have been waited for.
    pub(crate) fn kill(&self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        GROUPS.lock().retain(|leader| *leader != self.0);
    }
}

/// Kills running programs, and this process' own group including itself, if a child is left and the group is our own.
pub(crate) fn kill_children() {
    for leader in GROUPS.lock().iter() {
        let _ = kill_process_group(*leader, Signal::KILL);
    }
    if waitid(WaitId::All, LOOK).is_ok() && getpgrp() == getpid() {
        let _ = kill_current_process_group(Signal::KILL);
    }
}

/// Whether a child has ended, without waiting for it.
const LOOK: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOHANG).union(WaitIdOptions::NOWAIT);

/// Has the kernel kill a program once the thread that starts it is gone.
pub(crate) fn die_with_parent(command: &mut process::Command) {
    let parent = getpid();
    let prepare = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    };
    // SAFETY: the closure allocates nothing, takes no lock and makes system calls only.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Does not wait for the child, so that its number stays reserved.
pub(crate) fn has_ended(child: &process::Child) -> bool {
    !matches!(waitid(WaitId::Pid(Pid::from_child(child)), LOOK), Ok(None))
}

/// Waits for all ended children; returns whether there are others.
pub(crate) fn reap_all() -> bool {
    while let Ok(found) = wait(WaitOptions::NOHANG) {
        if found.is_none() {
            return true;
        }
    }
    false
}

/// Of a child that was not waited for: its number is not reused.
pub(crate) fn kill(child: u32) {
    let _ = Pid::from_raw(child.cast_signed()).map(|child| kill_process(child, Signal::KILL));
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
    for resource in [Resource::Nofile, Resource::Memlock] {
        let maximum = getrlimit(resource).maximum;
        let _ = setrlimit(resource, Rlimit { current: maximum, maximum });
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

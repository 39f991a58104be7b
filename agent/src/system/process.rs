//! Process groups, the end of the process, its standard streams.

use std::{
    collections::BTreeSet,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::process::CommandExt,
    },
    process,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Makes this process the leader of its own group, and the parent of whatever its children leave behind.
pub(crate) fn own_group() {
    // SAFETY: neither call takes pointers. Both may be refused (a session leader already leads its group);
    // `kill_children` finds out by itself what it may do.
    unsafe {
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Groups of programs that run now. The number of a group belongs to nobody else until its first process was waited for.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// The process group of a program. It is dropped once the program was waited for.
pub(crate) struct Group(i32);

impl Group {
    /// The group of a child. It must have been started with a group of its own.
    pub(crate) fn of(child: &process::Child) -> Self {
        let leader = child.id().cast_signed();
        groups().insert(leader);
        Self(leader)
    }

    pub(crate) fn ask_to_end(&self) {
        // SAFETY: no pointers; the number of a child that was not waited for is nobody else's.
        unsafe {
            libc::kill(-self.0, libc::SIGTERM);
        }
    }

    /// Kills all its processes. The first of them must not have been waited for.
    pub(crate) fn kill(&self) {
        kill_group(self.0);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        groups().remove(&self.0);
    }
}

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    // Nothing that holds it can leave the set half changed.
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_group(leader: i32) {
    // SAFETY: no pointers; the number of a child that was not waited for is nobody else's.
    unsafe {
        libc::kill(-leader, libc::SIGKILL);
    }
}

/// Kills the programs that run, and the own process group, this process with it, if there is any child left to kill and the group is our own.
pub(crate) fn kill_children() {
    groups().iter().copied().for_each(kill_group);
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

/// Whether a child has ended. It is not waited for, so that its number stays its own.
pub(crate) fn has_ended(child: &process::Child) -> bool {
    // SAFETY: `info` is valid for writes and outlives the call; a zeroed siginfo_t is a valid one, and of a child that runs it stays zero.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child.id(), &raw mut info, flags) != 0 || info.si_pid() != 0
    }
}

/// Waits for all children that have ended. Whether there are others.
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
    // SAFETY: no pointers; the number of a child that was not waited for is nobody else's.
    unsafe {
        libc::kill(child.cast_signed(), libc::SIGKILL);
    }
}

/// Ends the process at once, without exit handlers.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: `_exit` has no preconditions; what handlers would have flushed or freed is given up on purpose.
    unsafe { libc::_exit(status) }
}

/// Puts `input` at descriptor 0 and `output` at 1.
pub(crate) fn replace_standard_streams(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> io::Result<()> {
    for (from, to) in [(input, 0), (output, 1)] {
        // SAFETY: dup2 takes no pointers; std only writes to 1 through the number and owns neither.
        if unsafe { libc::dup2(from.as_raw_fd(), to) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

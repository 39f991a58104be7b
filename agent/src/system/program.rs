//! Programs of the host, run within bounds: they may hang, and may write without end.

use std::{
    ffi::OsStr,
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{fs::PermissionsExt, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{
    process::Group,
    wait::{self, READABLE},
};

/// Where administrators' programs are; the PATH of a login over ssh often lacks these.
const FOR_ADMINISTRATORS: [&str; 2] = ["/usr/sbin", "/sbin"];
const SAID: usize = 1024;
/// Limit for waiting on a killed program, or one that closed its output.
const REAPED: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(2);

#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramFailed {
    #[error("{0} is not installed")]
    Absent(String),
    #[error("this user may not start {}", .0.display())]
    Forbidden(PathBuf),
    #[error("{} cannot be started: {error}", .path.display())]
    Start { path: PathBuf, error: io::Error },
    #[error("{} was killed after {:.0} s", .path.display(), .limit.as_secs_f64())]
    Late { path: PathBuf, limit: Duration },
    #[error("{} was killed because it wrote more than {most} bytes", .path.display())]
    TooMuch { path: PathBuf, most: usize },
    #[error("{} ended with {status}{}{said}", .path.display(), if .said.is_empty() { "" } else { ": " })]
    Refused {
        path: PathBuf,
        status: ExitStatus,
        /// The last line of its errors.
        said: String,
    },
}

/// In an absolute directory of PATH, or where administrators' programs are.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    find_in(std::env::var_os("PATH").unwrap_or_default().as_os_str(), name)
}

fn find_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    // A relative directory depends on where the agent was started.
    let own = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    let all = own.chain(FOR_ADMINISTRATORS.map(PathBuf::from));
    all.map(|directory| directory.join(name)).find(|file| is_program(file))
}

/// Whether some user may start a file: a shell skips others, too. Starting it shows whether this user may.
fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

pub(crate) fn run(path: &Path, arguments: &[&str], limit: Duration, most: usize) -> Result<Vec<u8>, ProgramFailed> {
    let until = Instant::now() + limit;
    let mut command = Command::new(path);
    command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A killed script leaves its own programs behind: all are in one group.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => ProgramFailed::Forbidden(path.to_owned()),
        _ => ProgramFailed::Start { path: path.to_owned(), error },
    })?;
    let group = Group::of(&child);
    let read = read(&mut child, until, most);
    let ended = match &read {
        Ok(_) => reap(&mut child, until.max(Instant::now() + REAPED)),
        Err(_) => None,
    };
    let Some(status) = ended else {
        // A process that hangs in a device stays a zombie: nothing here waits for it.
        group.kill();
        reap(&mut child, Instant::now() + REAPED);
        return Err(match read {
            Err(Stop::TooMuch) => ProgramFailed::TooMuch { path: path.to_owned(), most },
            Err(Stop::Failed(error)) => ProgramFailed::Start { path: path.to_owned(), error },
            Err(Stop::Late) | Ok(_) => ProgramFailed::Late { path: path.to_owned(), limit },
        });
    };
    let (output, errors) = read.unwrap_or_default();
    if status.success() {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&errors).into_owned();
    let said = errors.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned();
    Err(ProgramFailed::Refused { path: path.to_owned(), status, said })
}

enum Stop {
    Late,
    TooMuch,
    Failed(io::Error),
}

/// Both outputs until both end; the last [`SAID`] bytes of errors.
fn read(child: &mut Child, until: Instant, most: usize) -> Result<(Vec<u8>, Vec<u8>), Stop> {
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let mut piece = vec![0; 64 << 10];
    while stdout.is_some() || stderr.is_some() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Stop::Late);
        }
        let [has_output, has_errors] =
            ready(stdout.as_ref().map(AsFd::as_fd), stderr.as_ref().map(AsFd::as_fd), left).map_err(Stop::Failed)?;
        if has_output && let Some(pipe) = &mut stdout {
            match pipe.read(&mut piece).map_err(Stop::Failed)? {
                0 => stdout = None,
                more => output.extend_from_slice(&piece[..more]),
            }
            if output.len() > most {
                return Err(Stop::TooMuch);
            }
        }
        if has_errors && let Some(pipe) = &mut stderr {
            match pipe.read(&mut piece).map_err(Stop::Failed)? {
                0 => stderr = None,
                more => errors.extend_from_slice(&piece[..more]),
            }
            errors.drain(..errors.len().saturating_sub(SAID));
        }
    }
    Ok((output, errors))
}

fn ready(output: Option<BorrowedFd<'_>>, errors: Option<BorrowedFd<'_>>, left: Duration) -> io::Result<[bool; 2]> {
    let limit = Some(left);
    Ok(match (output, errors) {
        (Some(output), Some(errors)) => wait::wait([(output, READABLE), (errors, READABLE)], limit)?.map(|on| on != 0),
        (Some(output), None) => [wait::wait([(output, READABLE)], limit)?[0] != 0, false],
        (None, Some(errors)) => [false, wait::wait([(errors, READABLE)], limit)?[0] != 0],
        (None, None) => [false, false],
    })
}

/// `None` if it has not ended by then.
fn reap(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(LOOK),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Duration = Duration::from_secs(120);

    fn shell(script: &str, limit: Duration, most: usize) -> Result<Vec<u8>, ProgramFailed> {
        run(&find("sh").unwrap(), &["-c", script], limit, most)
    }

    #[test]
    fn output_comes_whole_and_in_the_language_c() {
        let text = shell("echo $LC_ALL; yes x | head -c 200000; echo beside >&2", LATE, 1 << 20).unwrap();
        assert_eq!((&text[..2], text.len()), (&b"C\n"[..], 200_002));
    }

    #[test]
    fn programs_that_hang_or_flood_are_killed() {
        let begun = Instant::now();
        let hung = shell("exec sleep 600", Duration::from_millis(100), 10);
        assert!(matches!(hung, Err(ProgramFailed::Late { .. })), "{hung:?}");
        let left = shell("sleep 600 & wait", Duration::from_millis(100), 10);
        assert!(matches!(left, Err(ProgramFailed::Late { .. })), "{left:?}");
        let silent = shell("exec >&- 2>&-; exec sleep 600", Duration::from_millis(100), 10);
        assert!(matches!(silent, Err(ProgramFailed::Late { .. })), "{silent:?}");
        let flood = shell("exec yes", LATE, 100_000);
        assert!(matches!(flood, Err(ProgramFailed::TooMuch { .. })), "{flood:?}");
        assert!(begun.elapsed() < LATE, "one was waited for");
    }

    #[test]
    fn programs_of_a_program_are_killed_with_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("process");
        let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
        // On a busy machine it may be killed before it has started any.
        let process = [200, 2_000, 20_000].into_iter().find_map(|limit| {
            let late = shell(&script, Duration::from_millis(limit), 10);
            assert!(matches!(late, Err(ProgramFailed::Late { .. })), "{late:?}");
            std::fs::read_to_string(&file).ok().filter(|process| process.ends_with('\n'))
        });
        let about = PathBuf::from(format!("/proc/{}/stat", process.unwrap().trim()));
        let until = Instant::now() + LATE;
        while std::fs::read_to_string(&about).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < until, "it is still there");
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn a_refusal_has_the_programs_last_words() {
        let Err(ProgramFailed::Refused { said, status, .. }) = shell("echo a >&2; echo why >&2; exit 3", LATE, 10)
        else {
            panic!("it ended well")
        };
        assert_eq!((said.as_str(), status.code()), ("why", Some(3)));
    }

    #[test]
    fn only_absolute_directories_are_searched() {
        let here = tempfile::tempdir().unwrap();
        let program = |folder: &Path, mode: u32| {
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join("tool"), "").unwrap();
            std::fs::set_permissions(folder.join("tool"), std::fs::Permissions::from_mode(mode)).unwrap();
            folder.join("tool")
        };
        let tool = program(here.path(), 0o755);
        let absolute = here.path().as_os_str();
        assert_eq!(find_in(absolute, "tool"), Some(tool.clone()));
        // A file without execute permission hides no program.
        let first = here.path().join("first");
        let text = program(&first, 0o644);
        let both = std::env::join_paths([first.as_path(), here.path()]).unwrap();
        assert_eq!(find_in(&both, "tool"), Some(tool));
        assert_eq!(find_in(first.as_os_str(), "tool"), None);
        assert_eq!(find_in(OsStr::new(".:relative"), "Cargo.toml"), None);
        assert!(matches!(run(&text, &[], LATE, 1), Err(ProgramFailed::Forbidden(_))));
    }
}

//! The master connection: one ssh process per host that holds the connection for everything after it.
//!
//! It is started here and not by the openssh crate, so that a try that is given up leaves no ssh behind, that options
//! the crate does not know can be set, and that a jump host's words are not lost.

use std::{
    fs::{self, File, Permissions, TryLockError},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use openssh::Session;
use railgauge_model::plan::model::{Host, HostKeys, Ssh};
use railgauge_wire::{
    failure::{Kind, Stage},
    remedy,
};
use rustix::process::geteuid;
use tempfile::TempDir;
use tokio::process::Command;

use super::explain;
use crate::cluster::trouble::Trouble;

/// Seconds that an ssh master without a conversation lives: long enough between two steps of bringing a host up on a
/// busy machine, and the longest that one outlives a controller that was killed.
const IDLE: u32 = 15;
/// Seconds between two questions of ssh whether a silent host still lives, and how many may stay unanswered.
const ALIVE: (u32, u32) = (5, 3);
/// Longest path of the control directory in which ssh's socket still fits into the 108 bytes of a unix socket's
/// address: `/XXXXXX/master` is added here, a dot and sixteen letters by ssh while it makes the socket.
const LONGEST: usize = 70;
/// Beginning of the control directory's name; the controller's process number follows, for people who look.
const ROOM: &str = "railgauge-ssh-";
/// The file in it that its controller holds a lock on.
const HELD: &str = "held";

/// Connects to a host. What the plan says of the host goes before what it says of all; what neither says comes from
/// the user's ssh_config.
pub(super) async fn connect(ssh: &Ssh, host: &Host, limit: Duration, room: &Path) -> Result<Session, Trouble> {
    let configuration = |cause: String| Trouble::lasting(Stage::Connect, Kind::Configuration, cause);
    // The names `master` and `log` are those that the openssh crate expects.
    let own = tempfile::Builder::new()
        .prefix("")
        .tempdir_in(room)
        .map_err(|error| configuration(format!("no directory for ssh's socket: {error}")))?;
    let log = own.path().join("log");
    let status = command(ssh, host, limit)
        // A master (-M) that goes into the background once it stands (-f) and runs nothing itself (-N).
        .args(["-M", "-f", "-N", "-S"])
        .arg(own.path().join("master"))
        .args(["-o", &format!("ControlPersist={IDLE}s"), "-E"])
        .arg(&log)
        .arg("--")
        .arg(&host.address)
        .stderr(Stdio::null())
        .status()
        .await;
    match status {
        Ok(status) if status.success() => Ok(Session::new_native_mux(own)),
        Ok(_) => {
            let mut text = fs::read_to_string(&log).unwrap_or_default();
            if text.contains(explain::NO_PEER) {
                text += &words_of_the_jump(ssh, host, limit).await;
            }
            Err(explain::connect(&text, &host.address, ssh.known_hosts.as_deref()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(configuration("the program `ssh` is not installed here".to_owned()).remedy(remedy::INSTALL_SSH))
        }
        Err(error) => Err(Trouble::passing(Stage::Connect, Kind::Configuration, format!("cannot start ssh: {error}"))
            .remedy(remedy::LOWER_IN_FLIGHT)),
    }
}

/// Why a jump host did not let us through. A master with ControlPersist sends the words of its jump host's ssh to
/// /dev/null, so that the one way to them is a try without a master.
async fn words_of_the_jump(ssh: &Ssh, host: &Host, limit: Duration) -> String {
    let output = command(ssh, host, limit)
        .args(["-T", "-o", "ControlMaster=no", "-o", "ControlPath=none", "--"])
        .arg(&host.address)
        .arg("true")
        .stderr(Stdio::piped())
        .output()
        .await;
    // A try that succeeds now has nothing to say: then what the master said counts.
    output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default()
}

/// `ssh` and its options, without the host.
fn command(ssh: &Ssh, host: &Host, limit: Duration) -> Command {
    let mut command = Command::new("ssh");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Ctrl-C on the terminal is for the controller.
        .process_group(0)
        // Ends ssh with the try; a master that stands has left this process.
        .kill_on_drop(true);
    let check = match ssh.host_keys {
        HostKeys::Strict => "StrictHostKeyChecking=yes",
        HostKeys::AcceptNew => "StrictHostKeyChecking=accept-new",
    };
    let (interval, count) = ALIVE;
    let options = [
        "BatchMode=yes".to_owned(),
        check.to_owned(),
        // ssh counts in whole seconds; the launcher's own clock ends the try, this one a forgotten ssh.
        format!("ConnectTimeout={}", limit.as_secs().max(1)),
        format!("ServerAliveInterval={interval}"),
        format!("ServerAliveCountMax={count}"),
        // Forwardings of the user's ssh_config could be in use already; nothing here needs them.
        "ClearAllForwardings=yes".to_owned(),
        // Less tells no cause, more hides it.
        "LogLevel=INFO".to_owned(),
    ];
    for option in options {
        command.arg("-o").arg(option);
    }
    if let Some(config) = &ssh.config {
        command.arg("-F").arg(config);
    }
    if let Some(user) = host.user.as_ref().or(ssh.user.as_ref()) {
        command.arg("-l").arg(user);
    }
    if let Some(port) = host.port.or(ssh.port) {
        command.arg("-p").arg(port.to_string());
    }
    if let Some(identity) = &ssh.identity {
        // Only this key: sshd counts every offered one.
        command.args(["-o", "IdentitiesOnly=yes", "-i"]).arg(identity);
    }
    if !ssh.jump.is_empty() {
        command.arg("-J").arg(ssh.jump.join(","));
    }
    if let Some(file) = &ssh.known_hosts {
        // The option takes a list of files, with quotes and percent signs of its own.
        let file = file.display().to_string().replace('%', "%%");
        command.arg("-o").arg(format!("UserKnownHostsFile=\"{file}\""));
    }
    command
}

/// The control directory, held as long as this lives.
#[derive(Debug)]
pub(super) struct Room {
    directory: TempDir,
    /// Locked, so that other controllers see that somebody lives here, in whatever PID namespace.
    _held: File,
}

impl Room {
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A new private directory with a short path. What controllers that were killed left behind is taken away.
pub(super) fn control_directory() -> io::Result<Room> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([std::env::temp_dir(), "/tmp".into()]);
    let prefix = format!("{ROOM}{}-", std::process::id());
    let mut failed = io::Error::other("no place with a short path");
    for place in places.filter(|place| place.is_absolute() && place.as_os_str().len() + prefix.len() + 7 <= LONGEST) {
        match room(&place, &prefix) {
            Ok(room) => {
                sweep(&place);
                return Ok(room);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn room(place: &Path, prefix: &str) -> io::Result<Room> {
    // Whatever the umask: who can reach a master's socket can log in to the host.
    let private = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(place)?;
    let held = File::create_new(directory.path().join(HELD))?;
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::other("somebody holds a new directory")),
        // A file system without locks: nobody can tell there that we live, and nobody sweeps.
        _ => Ok(Room { directory, _held: held }),
    }
}

/// Removes control directories that nobody holds any more. Those of other users cannot be removed and stay.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_room = entry.file_name().to_str().is_some_and(|name| name.starts_with(ROOM));
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_room && is_directory && is_left(&entry.path()) {
            // Best effort: another controller may be sweeping too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether the controller of a control directory of ours is gone. One without its file is just being made, and stays. What others
/// lay there is not touched: opening their pipe would wait for ever.
fn is_left(room: &Path) -> bool {
    let held = room.join(HELD);
    let ours = fs::symlink_metadata(room).is_ok_and(|room| room.uid() == geteuid().as_raw());
    let file = || fs::symlink_metadata(&held).is_ok_and(|held| held.is_file());
    ours && file() && File::open(&held).is_ok_and(|held| held.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_private_held_while_it_lives_and_swept_afterwards() {
        let place = tempfile::tempdir().unwrap();
        // tempfile passes the mode to mkdir(2), from which a umask can only take away.
        let living = room(place.path(), ROOM).unwrap();
        let mode = fs::metadata(living.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
        // As a killed controller leaves one, with the number of a process that lives in another namespace.
        let left = place.path().join(format!("{ROOM}1-abcdef"));
        fs::create_dir(&left).unwrap();
        File::create(left.join(HELD)).unwrap();
        let begun = place.path().join(format!("{ROOM}2-abcdef"));
        fs::create_dir(&begun).unwrap();
        // A pipe that nobody writes to would hold up whoever opens it.
        let trap = place.path().join(format!("{ROOM}3-abcdef"));
        fs::create_dir(&trap).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(trap.join(HELD)).status().unwrap().success());
        sweep(place.path());
        assert!(living.path().is_dir() && begun.is_dir() && trap.is_dir() && !left.exists());
    }
}

//! The master connection: one ssh process per host that holds the connection for all later processes.
//!
//! It is started here and not by the openssh crate, so that an abandoned try leaves no ssh process, options unknown to the crate can be
//! set, and a jump host's errors are kept.

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

/// Seconds that an idle ssh master lives: long enough between two steps of bringing a host up on a busy machine, and the longest that one
/// outlives a killed controller.
const IDLE: u32 = 15;
/// Seconds between two keep-alive probes of ssh, and how many may stay unanswered.
const ALIVE: (u32, u32) = (5, 3);
/// Longest path of the control directory with which ssh's socket fits into the 108 bytes of a unix socket's address: `/XXXXXX/master` is
/// added here, a dot and sixteen letters by ssh while it makes the socket.
const LONGEST: usize = 70;
/// Prefix of the control directory's name; the controller's process number follows, as information.
const ROOM: &str = "railgauge-ssh-";
const HELD: &str = "held";

/// Settings of the host have precedence over those of the plan; the user's ssh_config has the rest.
pub(super) async fn connect(ssh: &Ssh, host: &Host, limit: Duration, room: &Path) -> Result<Session, Trouble> {
    let configuration = |cause: String| Trouble::lasting(Stage::Connect, Kind::Configuration, cause);
    // The openssh crate expects the names `master` and `log`.
    let own = tempfile::Builder::new()
        .prefix("")
        .tempdir_in(room)
        .map_err(|error| configuration(format!("no directory for ssh's socket: {error}")))?;
    let log = own.path().join("log");
    let status = command(ssh, host, limit)
        // A master (-M) that goes into the background once connected (-f) and runs nothing itself (-N).
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

/// Why a jump host refused. A master with ControlPersist discards the output of its jump host's ssh, so that only a try without a master
/// shows it.
async fn words_of_the_jump(ssh: &Ssh, host: &Host, limit: Duration) -> String {
    let output = command(ssh, host, limit)
        .args(["-T", "-o", "ControlMaster=no", "-o", "ControlPath=none", "--"])
        .arg(&host.address)
        .arg("true")
        .stderr(Stdio::piped())
        .output()
        .await;
    output.map(|output| String::from_utf8_lossy(&output.stderr).into_owned()).unwrap_or_default()
}

fn command(ssh: &Ssh, host: &Host, limit: Duration) -> Command {
    let mut command = Command::new("ssh");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // Ctrl-C on the terminal is for the controller.
        .process_group(0)
        // Ends ssh with the try; a connected master has left this process.
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
        // Forwardings of the user's ssh_config could already be in use; nothing here needs them.
        "ClearAllForwardings=yes".to_owned(),
        // Lower levels hide the cause, higher ones bury it.
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
        // The option is a list of files, with quotes and percent signs of its own.
        let file = file.display().to_string().replace('%', "%%");
        command.arg("-o").arg(format!("UserKnownHostsFile=\"{file}\""));
    }
    command
}

#[derive(Debug)]
pub(super) struct Room {
    directory: TempDir,
    _held: File,
}

impl Room {
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A new private directory with a short path. Removes those of killed controllers.
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

/// Whoever can rename a directory on the way to a master's socket can log in to the host: all must be ours, root's or of whom the root
/// directory is, and not writable for others unless only the owner of a file may remove it (sticky).
fn must_be_safe(place: &Path) -> io::Result<()> {
    let root = fs::metadata("/")?.uid();
    for directory in place.canonicalize()?.ancestors() {
        let about = fs::metadata(directory)?;
        let trusted = [geteuid().as_raw(), 0, root].contains(&about.uid());
        let open = about.mode() & 0o022 != 0 && about.mode() & 0o1000 == 0;
        if !trusted || open {
            return Err(io::Error::other(format!("other users may change {}", directory.display())));
        }
    }
    Ok(())
}

fn room(place: &Path, prefix: &str) -> io::Result<Room> {
    must_be_safe(place)?;
    // Whatever the umask: a process with access to a master's socket can log in to the host.
    let private = Permissions::from_mode(0o700);
    let directory = tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(place)?;
    let held = File::create_new(directory.path().join(HELD))?;
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => Err(io::Error::other("somebody holds a new directory")),
        // A file system without locks: directories there are never swept.
        _ => Ok(Room { directory, _held: held }),
    }
}

/// Removes unlocked control directories. Those of other users cannot be removed and stay.
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

/// Whether the controller of a control directory of ours is gone. One without its lock file is just being made. Files of other users are
/// not touched: opening their pipe would block forever.
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
        // tempfile passes the mode to mkdir(2), from which a umask can only remove bits.
        let living = room(place.path(), ROOM).unwrap();
        let mode = fs::metadata(living.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{mode:o}");
        // As a killed controller leaves one, with the number of a process that lives in another namespace.
        let left = place.path().join(format!("{ROOM}1-abcdef"));
        fs::create_dir(&left).unwrap();
        File::create(left.join(HELD)).unwrap();
        let begun = place.path().join(format!("{ROOM}2-abcdef"));
        fs::create_dir(&begun).unwrap();
        // Opening a pipe without a writer would block.
        let trap = place.path().join(format!("{ROOM}3-abcdef"));
        fs::create_dir(&trap).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(trap.join(HELD)).status().unwrap().success());
        sweep(place.path());
        assert!(living.path().is_dir() && begun.is_dir() && trap.is_dir() && !left.exists());
    }

    #[test]
    fn no_socket_is_where_others_can_put_another_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("below");
        fs::create_dir(&below).unwrap();
        for (mode, safe) in [(0o777, false), (0o1777, true), (0o770, false), (0o755, true)] {
            fs::set_permissions(place.path(), Permissions::from_mode(mode)).unwrap();
            assert_eq!([place.path(), &below].map(|place| room(place, ROOM).is_ok()), [safe; 2], "{mode:o}");
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(place.path(), Some(65_534), None).unwrap();
            assert!(room(&below, ROOM).is_err());
        }
    }
}

//! The master connection: one ssh process per host that holds the connection for all later processes.
//!
//! It is started here and not by the openssh crate, so that an abandoned try leaves no ssh process, options unknown to the crate can be
//! set, and a jump host's errors are kept.

use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use openssh::Session;
use railgauge_model::plan::model::{Host, HostKeys, Ssh};
use railgauge_wire::{Kind, Stage, remedy};
use rustix::process::geteuid;
use tempfile::TempDir;
use tokio::process::Command;

use super::explain;
use crate::cluster::Trouble;

/// Seconds that an idle ssh master lives: long enough between two steps of bringing a host up on a busy machine, and the longest that one
/// outlives a killed controller.
const IDLE: u32 = 15;
/// Seconds between two keep-alive probes of ssh, and how many may stay unanswered.
const ALIVE: (u32, u32) = (5, 3);
/// Longest path of the control directory with which ssh's socket fits into the 108 bytes of a unix socket's address: `/XXXXXX/master` is
/// added here, a dot and sixteen letters by ssh while it makes the socket.
const LONGEST: usize = 70;

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

/// A new private directory with a short path.
pub(super) fn control_directory() -> io::Result<TempDir> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([std::env::temp_dir(), "/tmp".into()]);
    // The controller's process number is information for people.
    let prefix = format!("railgauge-ssh-{}-", std::process::id());
    let mut failed = io::Error::other("no place with a short path");
    for place in places.filter(|place| place.is_absolute() && place.as_os_str().len() + prefix.len() + 7 <= LONGEST) {
        match private_directory(&place, &prefix) {
            Ok(directory) => return Ok(directory),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn private_directory(place: &Path, prefix: &str) -> io::Result<TempDir> {
    must_be_safe(place)?;
    // Whatever the umask: a process with access to a master's socket can log in to the host.
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(place)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_socket_is_where_others_can_put_another_in_its_place() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("below");
        fs::create_dir(&below).unwrap();
        let made = private_directory(place.path(), "room").unwrap();
        assert_eq!(fs::metadata(made.path()).unwrap().permissions().mode() & 0o777, 0o700);
        for (mode, safe) in [(0o777, false), (0o1777, true), (0o770, false), (0o755, true)] {
            fs::set_permissions(place.path(), Permissions::from_mode(mode)).unwrap();
            let made = [place.path(), &below].map(|place| private_directory(place, "room").is_ok());
            assert_eq!(made, [safe; 2], "{mode:o}");
        }
        if geteuid().is_root() {
            std::os::unix::fs::chown(place.path(), Some(65_534), None).unwrap();
            assert!(private_directory(&below, "room").is_err());
        }
    }
}

//! The master connection: one ssh process per host that holds the connection for everything after it.
//!
//! It is started here and not by the openssh crate, so that a try that is given up leaves no ssh behind, that options
//! the crate does not know can be set, and that a jump host's words are not lost.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use openssh::Session;
use railgauge_wire::failure::{Kind, Stage};
use tempfile::TempDir;
use tokio::process::Command;

use crate::{
    cluster::{explain_ssh, trouble::Trouble},
    plan::model::{Host, HostKeys, Ssh},
};

/// Seconds that an ssh master without a conversation lives: long enough between two steps of bringing a host up on a
/// busy machine, and the longest that one outlives a controller that was killed.
const IDLE: u32 = 15;
/// Seconds between two questions of ssh whether a silent host still lives, and how many may stay unanswered.
const ALIVE: (u32, u32) = (5, 3);
/// Longest path of the control directory in which ssh's socket still fits into the 108 bytes of a unix socket's
/// address: `/XXXXXX/master` is added here, a dot and sixteen letters by ssh while it makes the socket.
const LONGEST: usize = 70;
/// Beginning of the control directory's name; the controller's process number follows.
const ROOM: &str = "railgauge-ssh-";

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
            if text.contains(explain_ssh::NO_PEER) {
                text += &words_of_the_jump(ssh, host, limit).await;
            }
            Err(explain_ssh::connect(&text, &host.address, ssh.known_hosts.as_deref()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(configuration("the program `ssh` is not installed here".to_owned())
                .help("install OpenSSH's client on this machine"))
        }
        Err(error) => Err(Trouble::passing(Stage::Connect, Kind::Configuration, format!("cannot start ssh: {error}"))
            .help("lower launch.in_flight or raise this machine's limits (ulimit -u, ulimit -n)")),
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

/// A new private directory with a short path. What controllers that were killed left behind is taken away.
pub(super) fn control_directory() -> std::io::Result<TempDir> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([std::env::temp_dir(), "/tmp".into()]);
    let prefix = format!("{ROOM}{}-", std::process::id());
    let mut failed = std::io::Error::other("no place with a short path");
    for place in places.filter(|place| place.is_absolute() && place.as_os_str().len() + prefix.len() + 7 <= LONGEST) {
        // tempfile makes directories with mode 0700.
        match tempfile::Builder::new().prefix(&prefix).tempdir_in(&place) {
            Ok(room) => {
                sweep(&place);
                return Ok(room);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Removes control directories whose controller is gone. Those of other users cannot be removed and stay.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(ROOM)?.split('-').next()?.parse::<u32>().ok());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Best effort: another controller may be sweeping too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

//! A real sshd on loopback for one test: its own keys, port and configuration, gone with the test.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

use std::{
    fs,
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use railgauge_model::plan::model::{HostKeys, Launcher, Ssh};
use tempfile::TempDir;

pub use crate::skip::{left_out, skipped};

const SSHD: &str = "/usr/sbin/sshd";

/// A running sshd. Dropping it ends it and removes everything it left.
pub struct Sshd {
    pub port: u16,
    directory: TempDir,
    process: Child,
}

impl Drop for Sshd {
    fn drop(&mut self) {
        // Sessions are children of their own and end with their clients.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Sshd {
    /// Starts an sshd with further lines of configuration; `None`, with the reason printed, where that cannot be.
    pub fn start(more: &str) -> Option<Self> {
        if !Path::new(SSHD).exists() || Command::new("ssh").arg("-V").output().is_err() {
            skipped(&format!("{SSHD} or ssh is not installed (Debian: openssh-server, openssh-client)"));
            return None;
        }
        let directory = tempfile::Builder::new().prefix("rg").tempdir().unwrap();
        let path = directory.path();
        for key in ["host_key", "user_key", "other_key"] {
            keygen(&path.join(key));
        }
        let (host, user) = (public(path, "host_key"), public(path, "user_key"));
        fs::write(path.join("authorized_keys"), user).unwrap();
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        fs::write(path.join("known_hosts"), format!("[127.0.0.1]:{port} {host}")).unwrap();
        fs::write(path.join("ssh_config"), "Host *\n  IdentityAgent none\n  GlobalKnownHostsFile /dev/null\n").unwrap();
        let here = path.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host_key\nAuthorizedKeysFile {here}/authorized_keys\n\
             StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             KexAlgorithms curve25519-sha256\nSetEnv XDG_CACHE_HOME={here}/cache\n{more}\n"
        );
        fs::write(path.join("sshd_config"), config).unwrap();
        // Where sshd runs as root it wants this directory, which only its service makes.
        let _ = fs::create_dir("/run/sshd");
        let log = fs::File::create(path.join("sshd.log")).unwrap();
        let mut process = Command::new(SSHD)
            .args(["-D", "-e", "-f"])
            .arg(path.join("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > end || process.try_wait().unwrap().is_some() {
                skipped(&format!("sshd does not start: {}", fs::read_to_string(path.join("sshd.log")).unwrap()));
                let _ = process.kill();
                let _ = process.wait();
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { port, directory, process })
    }

    /// A file or directory of this sshd.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The right way to log in.
    pub fn ssh(&self) -> Ssh {
        Ssh {
            config: Some(self.path("ssh_config")),
            user: None,
            port: Some(self.port),
            identity: Some(self.path("user_key")),
            jump: vec![],
            host_keys: HostKeys::Strict,
            known_hosts: Some(self.path("known_hosts")),
        }
    }

    /// The right way to log in, as a launcher.
    pub fn launcher(&self) -> Launcher {
        Launcher::Ssh(self.ssh())
    }

    /// What the scripts leave in the default directory, by name.
    pub fn left(&self) -> Vec<String> {
        listing(&self.path("cache/railgauge"))
    }
}

/// Names in a directory, in order; none if it is not there.
pub fn listing(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn keygen(file: &Path) {
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"]).arg(file).status();
    assert!(made.unwrap().success());
}

fn public(directory: &Path, key: &str) -> String {
    fs::read_to_string(directory.join(key).with_extension("pub")).unwrap()
}

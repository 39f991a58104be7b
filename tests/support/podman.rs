//! Real containers of podman on this machine, each in a network namespace of its own, joined by a bridge. Their image is made of
//! files of this machine: busybox and glibc.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is how a test fails")]

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use crate::kubernetes::skipped;

/// Programs of busybox that scripts on hosts need.
const PROGRAMS: &[&str] = &[
    "sh",
    "cat",
    "ls",
    "id",
    "uname",
    "mkdir",
    "rm",
    "mv",
    "ln",
    "cp",
    "chmod",
    "wc",
    "sha256sum",
    "kill",
    "pwd",
    "echo",
    "true",
    "sleep",
    "grep",
    "readlink",
];
/// What the agent is linked with.
const LIBRARIES: &[&str] = &["libgcc_s.so.1", "libm.so.6", "libc.so.6"];
const IMAGE: &str = "localhost/railgauge-test";

/// Containers; they and their networks are gone when it is dropped.
pub struct Containers {
    pub names: Vec<String>,
    prefix: String,
}

/// What a program prints.
///
/// # Errors
/// It cannot be started, or ends without success; its words.
pub fn done(program: &str, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn ip(words: &[&str]) {
    done("ip", words).unwrap();
}

impl Containers {
    /// So many containers; `None`, with the reason printed, where the machine can run none.
    pub fn start(count: usize) -> Option<Self> {
        let skip = |why: String| skipped(&format!("containers: no containers of podman can be run here: {why}"));
        let place = tempfile::tempdir().unwrap();
        if let Err(why) = import(place.path(), IMAGE) {
            skip(why);
            return None;
        }
        let prefix = format!("rgp{}", std::process::id() % 100_000);
        let containers = Self { names: (1..=count).map(|number| format!("{prefix}-{number}")).collect(), prefix };
        let hub = format!("{}-hub", containers.prefix);
        if let Err(why) = done("ip", &["netns", "add", &hub]) {
            skip(why);
            return None;
        }
        ip(&["-n", &hub, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &hub, "link", "set", "bridge", "up"]);
        for (number, name) in (1..).zip(&containers.names) {
            ip(&["netns", "add", name]);
            let port = format!("port{number}");
            ip(&["-n", &hub, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", name]);
            ip(&["-n", &hub, "link", "set", &port, "master", "bridge", "up"]);
            ip(&["-n", name, "address", "add", &format!("10.93.0.{number}/24"), "dev", "eth0"]);
            ip(&["-n", name, "link", "set", "eth0", "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
            if let Err(why) = containers.run(name) {
                skip(why);
                return None;
            }
        }
        Some(containers)
    }

    /// Starts a container.
    fn run(&self, name: &str) -> Result<String, String> {
        let network = format!("--network=ns:/run/netns/{name}");
        let own =
            ["run", "--detach", "--name", name, &network, "--ulimit=nofile=4096:4096", "--ulimit=nproc=2048:2048"];
        let more = ["--ulimit=memlock=8388608:8388608", "--stop-timeout=0", IMAGE, "sleep", "3600"];
        // crun, the usual one, refuses machines with both versions of cgroups.
        let runc: &[&str] = if done("runc", &["--version"]).is_ok() { &["--runtime=runc"] } else { &[] };
        done("podman", &[runc, &own, &more].concat())
    }

    /// Runs a command of podman.
    pub fn engine(&self, words: &[&str]) {
        done("podman", words).unwrap();
    }

    /// What a script in a container prints.
    pub fn says(&self, name: &str, script: &str) -> String {
        done("podman", &["exec", name, "sh", "-c", script]).unwrap()
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = done("podman", &["rm", "--force", "--time=0", name]);
            let _ = done("ip", &["netns", "del", name]);
        }
        let _ = done("ip", &["netns", "del", &format!("{}-hub", self.prefix)]);
        let _ = done("podman", &["rmi", IMAGE]);
    }
}

/// `podman run` with these words. The limits are below those of this machine, so that nobody needs the right to raise them.
fn run(words: &[&str]) -> Result<String, String> {
    let limits = ["run", "--ulimit=nofile=4096:4096", "--ulimit=nproc=2048:2048"];
    // crun, the usual one, refuses machines with both versions of cgroups.
    let runc: &[&str] = if done("runc", &["--version"]).is_ok() { &["--runtime=runc"] } else { &[] };
    done("podman", &[runc, &limits, words].concat())
}

/// What a script prints in a container of an image.
pub fn in_image(image: &str, script: &str) -> Result<String, String> {
    run(&["--rm", "--network=none", image, "sh", "-c", script])
}

/// Makes an image of files of this machine, which are put into a folder.
///
/// # Errors
/// There is no podman, or it cannot make images here.
pub fn import(place: &Path, image: &str) -> Result<String, String> {
    done("podman", &["--version"]).and_then(|_| done("podman", &["import", &tarball(place), image]))
}

/// The image's files, put into a folder.
fn tarball(place: &Path) -> String {
    let root = place.join("root");
    let libraries = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    for folder in ["bin", "lib64", "tmp", "root", "etc", "proc", "sys", "dev", "run", &libraries] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let copy = |from: &Path| {
        let to = root.join(from.strip_prefix("/").unwrap());
        // A machine without one of them has no agent of this build either.
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    };
    copy(Path::new("/bin/busybox"));
    for name in PROGRAMS {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    copy(Path::new("/lib64/ld-linux-x86-64.so.2"));
    LIBRARIES.iter().for_each(|name| copy(&Path::new("/").join(&libraries).join(name)));
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    fs::write(root.join("etc/group"), "root:x:0:\n").unwrap();
    let tar = place.join("image.tar");
    done("tar", &["-C", root.to_str().unwrap(), "-cf", tar.to_str().unwrap(), "."]).unwrap();
    tar.to_str().unwrap().to_owned()
}

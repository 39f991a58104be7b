//! Doubles of the libraries that agents open: two agents on a verbs device (`examples/verbs_double`), and folders of libraries.

#[path = "../../../tests/support/devices.rs"]
pub mod devices;
#[path = "../../src/facts/tests/tree.rs"]
#[allow(dead_code, missing_docs, reason = "the facts' own tests use the rest")]
mod tree;

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use railgauge_wire::{
    Bytes, Checked, Knobs, LinkSpec, Op, Opened, Service, TestMetric, Transport, Window, WriteLatency,
};

use crate::{
    controller::{
        Agent, command,
        pair::{Pair, timing},
    },
    example,
};
use devices::Device;

/// A double as cargo builds it.
fn library(double: &str) -> PathBuf {
    example::folder_with(double).join(format!("lib{double}.so"))
}

/// A folder with doubles under the names of libraries; the same for all processes of tests that want the same. The files are the built ones
/// under another name: what is mapped has the name of the library, as on a host that has it.
pub fn folder_of(doubles: &[(&str, &[&str])]) -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("doubles");
    let words: Vec<String> = doubles.iter().map(|(double, names)| format!("{double}={}", names.join("+"))).collect();
    let folder = all.join(words.join(","));
    fs::create_dir_all(&folder).unwrap();
    let built: Vec<PathBuf> = doubles.iter().map(|(double, _)| library(double)).collect();
    let lock = File::create(all.join("lock")).unwrap();
    lock.lock().unwrap();
    let inode = |path: &Path| fs::metadata(path).map(|about| about.ino()).ok();
    for ((_, names), built) in doubles.iter().zip(&built) {
        for name in names.iter().map(|name| folder.join(name)).filter(|name| inode(name) != inode(built)) {
            // Of an older build, or missing.
            let _ = fs::remove_file(&name);
            fs::hard_link(built, name).unwrap();
        }
    }
    folder
}

/// Two agents on one fabric, each a host with the devices that `settings` make.
pub struct Fabric {
    pub pair: Pair,
    pub folder: tempfile::TempDir,
}

impl Fabric {
    pub fn new(settings: &[(&str, &str)]) -> Self {
        Self::of(settings, None)
    }

    /// As [`new`](Self::new), with the tree of a host that has the device of a profile.
    pub fn with_tree(profile: &str) -> Self {
        Self::of(&[("VERBS_DOUBLE_PROFILE", profile)], Some(devices::named(profile)))
    }

    pub fn of(settings: &[(&str, &str)], tree: Option<Device>) -> Self {
        Self::each([settings; 2], tree)
    }

    /// As [`of`](Self::of), with settings for each of the two.
    pub fn each([near, far]: [&[(&str, &str)]; 2], tree: Option<Device>) -> Self {
        let (folder, library) = (tempfile::tempdir().unwrap(), library("verbs_double"));
        let agent = |host: &str, settings: &[(&str, &str)]| {
            let mut command = command();
            command.env("RAILGAUGE_IBVERBS", &library).env("RAILGAUGE_RDMACM", &library);
            command.env("VERBS_DOUBLE_DIR", folder.path()).env("VERBS_DOUBLE_HOST", host);
            if let Some(device) = tree {
                let root = folder.path().join(format!("root{host}"));
                device.unpack(host, &root);
                command.env("RAILGAUGE_ROOT", root);
            }
            Agent::greeted(command.envs(settings.iter().copied()))
        };
        Self { pair: Pair { initiator: agent("1", near), responder: agent("2", far) }, folder }
    }

    /// What the double has noted of a host's agent, in order: the numbers of the asynchronous `events` that it took, and the devices of the
    /// `contexts` that it opened.
    pub fn noted(&self, what: &str, host: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(format!("{what}.{host}"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// How a host's agent used the library wrongly, in order.
    pub fn misuses(&self, host: &str) -> String {
        fs::read_to_string(self.folder.path().join(format!("misuses.{host}"))).unwrap_or_default()
    }

    /// A verified message and a few more on a link of one queue pair.
    pub fn writes(&mut self) -> (Opened, Opened) {
        let ends = self.pair.open(verbs(Service::Rc), 1, 65536).unwrap();
        let right = Checked { verified: Bytes(65536), wrong: Bytes(0), first_wrong: None };
        assert_eq!(self.pair.verify(Op::Write, 65536, 1), right);
        let (near, _) = self.pair.time(timing(Op::Write, TestMetric::Bandwidth, 65536, Window::Iterations(20)));
        assert_eq!(near.operations, 20);
        ends
    }
}

/// A verbs link of this service over the first device.
pub fn verbs(service: Service) -> impl Fn(&mut LinkSpec) {
    move |spec| {
        (spec.transport, spec.service, spec.address) = (Transport::Verbs, service, None);
        // The threads of the double share this machine's processors with everything else.
        spec.knobs = Knobs { timeout: Some(18), write_latency: Some(WriteLatency::Poll), ..Knobs::default() };
    }
}

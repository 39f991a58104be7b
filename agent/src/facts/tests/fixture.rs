//! Whole hosts as texts (`agent/tests/hosts/*.host`), unpacked into a directory that is read like `/`.
//!
//! The lines: `tree.rs`. Those that begin with `@` are what is asked and not read: see `answer`.

#![allow(unreachable_pub, reason = "the fuzz targets include this file as a module of their own")]

use railgauge_wire::{Gpu, Interface};

use super::*;

#[path = "tree.rs"]
mod tree;

pub struct Host {
    pub root: tempfile::TempDir,
    pub unpacked: tree::Unpacked,
}

pub fn unpack(name: &str) -> Host {
    let root = tempfile::tempdir().unwrap();
    let unpacked = tree::unpack(name, root.path(), &[]);
    Host { root, unpacked }
}

impl Host {
    #[allow(dead_code, reason = "the fuzz targets take hosts as they are")]
    pub fn line(&mut self, line: &str) {
        self.unpacked.line(line);
    }

    pub fn facts(&self) -> HostFacts {
        let mut live = Live {
            addresses: Ok(Vec::new()),
            interfaces: BTreeMap::new(),
            libraries: BTreeMap::new(),
            device_files: BTreeMap::new(),
            path_mtus: Vec::new(),
            gpus: Ok(Vec::new()),
            cuda: Ok(Vec::new()),
        };
        for line in &self.unpacked.answers {
            answer(line, &mut live);
        }
        collect(Tree::new(self.root.path()), live)
    }
}

fn answer(line: &str, live: &mut Live) {
    let (word, rest) = line.split_once(' ').unwrap();
    let words: Vec<&str> = rest.split_whitespace().collect();
    match word {
        "@address" => {
            let (ip, prefix) = words[1].split_once('/').unwrap();
            let (ip, prefix) = (ip.parse().unwrap(), prefix.parse().ok());
            live.addresses.as_mut().unwrap().push(Address { interface: words[0].into(), ip, prefix, up: true });
        }
        "@mtu" => {
            let said = PortAnswer {
                device: words[0].into(),
                port: words[1].parse().unwrap(),
                mtu: Ok(words[2].parse().unwrap()),
            };
            live.path_mtus.push(said);
        }
        "@library" => {
            let (name, path) = rest.rsplit_once(' ').unwrap();
            live.libraries.insert(name.into(), path.into());
        }
        "@missing" => {
            let (name, why) = rest.split_once(' ').unwrap();
            live.libraries.insert(name.into(), why.into());
        }
        "@interface" => {
            let (name, json) = rest.split_once(' ').unwrap();
            let Interface { driver, pause, dcb, .. } = serde_json::from_str(json).unwrap();
            live.interfaces.insert(name.into(), interfaces::Answers { driver, pause, dcb });
        }
        "@gpu" => {
            let gpu: Gpu = serde_json::from_str(rest).unwrap_or_else(|error| panic!("{rest}: {error}"));
            let gpus = live.gpus.as_mut().unwrap();
            gpus.retain(|other| other.index != gpu.index);
            gpus.push(gpu);
            gpus.sort_by_key(|gpu| gpu.index);
        }
        "@cuda" => live.cuda = Ok(words.into_iter().map(str::to_owned).collect()),
        "@no-gpu" => live.gpus.as_mut().unwrap().retain(|gpu| gpu.index.to_string() != rest),
        other => panic!("what is {other}?"),
    }
}

//! Whole hosts as texts (`agent/tests/hosts/*.host`), unpacked into a directory that is read like `/`.
//!
//! | line | makes |
//! | --- | --- |
//! | `path = text` | a file; `\n` and `\t` stand for themselves |
//! | `path -> path` | a symbolic link, and the directory it leads to |
//! | `path : 34=60 68=3051` | a file of 4096 zero bytes but for these: offset=bytes, hexadecimal; `:64` is shorter |
//! | `[each n = 0 1; bus = 18 3a]` … `[end]` | its lines once for each value of `$n` and `$bus` |
//! | `include file` | the lines of another host |
//! | `@address`, `@mtu`, `@library`, `@missing`, `@interface`, `@gpu`, `@no-gpu`, `@cuda` | what is asked and not read: see `answer` |
//!
//! A later line takes the place of an earlier one.

#![allow(unreachable_pub, reason = "the fuzz targets include this file as a module of their own")]

use std::{fs, os::unix::fs::symlink, path::Path};

use railgauge_wire::facts::{Gpu, Interface};

use super::*;

/// A host that was unpacked.
pub struct Host {
    pub root: tempfile::TempDir,
    answers: Vec<String>,
    /// Every file, as written.
    pub files: Vec<String>,
}

/// The folder of the texts.
fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts"))
}

pub fn unpack(name: &str) -> Host {
    let mut host = Host { root: tempfile::tempdir().unwrap(), answers: Vec::new(), files: Vec::new() };
    for line in lines(name) {
        host.line(&line);
    }
    host
}

/// The lines of a text, inclusions and repetitions written out.
fn lines(name: &str) -> Vec<String> {
    let text = fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let all: Vec<&str> = text.lines().collect();
    let mut written = Vec::new();
    expand(&all, &mut written);
    let mut found = Vec::new();
    for line in written {
        match line.strip_prefix("include ") {
            Some(other) => found.extend(lines(other)),
            None => found.push(line),
        }
    }
    found
}

fn expand(mut lines: &[&str], into: &mut Vec<String>) {
    while let Some((line, rest)) = lines.split_first() {
        lines = rest;
        let Some(header) = line.strip_prefix("[each ") else {
            if !line.is_empty() && !line.starts_with('#') {
                into.push((*line).to_owned());
            }
            continue;
        };
        let mut depth = 1;
        let end = lines.iter().position(|line| {
            depth += i32::from(line.starts_with("[each ")) - i32::from(*line == "[end]");
            depth == 0
        });
        let (block, rest) = lines.split_at(end.expect("[each has an [end]"));
        lines = &rest[1..];
        let mut columns: Vec<(&str, Vec<&str>)> = header
            .trim_end_matches(']')
            .split(';')
            .map(|column| column.split_once('=').unwrap())
            .map(|(name, values)| (name.trim(), values.split_whitespace().collect()))
            .collect();
        // `$nic` before `$n`, which it begins with.
        columns.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        for row in 0..columns[0].1.len() {
            let fill = |line: &&str| {
                let fill =
                    |line: String, (name, values): &(&str, Vec<&str>)| line.replace(&format!("${name}"), values[row]);
                columns.iter().fold((*line).to_owned(), fill)
            };
            let filled: Vec<String> = block.iter().map(fill).collect();
            expand(&filled.iter().map(String::as_str).collect::<Vec<_>>(), into);
        }
    }
}

impl Host {
    pub fn line(&mut self, line: &str) {
        if line.starts_with('@') {
            self.answers.push(line.to_owned());
        } else if let Some((path, target)) = line.split_once(" -> ") {
            let (path, target) = (self.place(path), self.root.path().join(target));
            fs::create_dir_all(&target).unwrap();
            if !path.is_symlink() {
                symlink(target, path).unwrap();
            }
        } else if let Some((path, text)) = line.split_once(" =") {
            fs::write(self.place(path), text.trim_start().replace("\\n", "\n").replace("\\t", "\t") + "\n").unwrap();
            self.files.push(path.to_owned());
        } else {
            let (path, words) = line.split_once(" :").unwrap_or_else(|| panic!("what is `{line}`?"));
            let (length, words) = words.split_once(' ').unwrap();
            let mut bytes = vec![0; if length.is_empty() { 4096 } else { length.parse().unwrap() }];
            for (at, hex) in words.split_whitespace().map(|word| word.split_once('=').unwrap()) {
                let at = usize::from_str_radix(at, 16).unwrap();
                for (index, pair) in hex.as_bytes().chunks(2).enumerate() {
                    bytes[at + index] = u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
                }
            }
            fs::write(self.place(path), bytes).unwrap();
            self.files.push(path.to_owned());
        }
    }

    fn place(&self, path: &str) -> std::path::PathBuf {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// What the host is.
    pub fn facts(&self) -> HostFacts {
        let mut live = Live {
            addresses: Ok(Vec::new()),
            interfaces: BTreeMap::new(),
            libraries: BTreeMap::new(),
            path_mtus: Vec::new(),
            gpus: Ok(Vec::new()),
            cuda: Ok(Vec::new()),
        };
        for line in &self.answers {
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
            let said = path_mtu::PortAnswer {
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

//! A host written as a text, unpacked into a directory that is read like `/`.
//!
//! | line | makes |
//! | --- | --- |
//! | `path = text` | a file; `\n` and `\t` stand for themselves |
//! | `path -> path` | a symbolic link, and the directory it leads to |
//! | `path : 34=60 68=3051` | a file of 4096 zero bytes but for these: offset=bytes, hexadecimal; `:64` is shorter |
//! | `[each n = 0 1; bus = 18 3a]` … `[end]` | its lines once for each value of `$n` and `$bus` |
//! | `include file` | the lines of another host |
//! | `@address`, `@mtu`, `@library`, `@interface`, `@gpu`, `@no-gpu`, `@cuda` | what is asked and not read: see `answer` |
//!
//! A later line takes the place of an earlier one.

#![allow(unreachable_pub, reason = "tests, fuzz targets and an example include this file as a module of their own")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
};

pub struct Unpacked {
    pub root: PathBuf,
    /// What is asked and not read: the lines that begin with `@`.
    pub answers: Vec<String>,
    pub files: Vec<String>,
}

/// Unpacks the text `name` below `root`, where `values` take the place of the words in front of them.
pub fn unpack(name: &str, root: &Path, values: &[(&str, &str)]) -> Unpacked {
    let mut host = Unpacked { root: root.to_owned(), answers: Vec::new(), files: Vec::new() };
    for line in lines(name) {
        host.line(&values.iter().fold(line, |line, (word, value)| line.replace(word, value)));
    }
    host
}

fn folder() -> &'static Path {
    let of_agent = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/agent/tests/hosts"));
    if of_agent.is_dir() { of_agent } else { Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts")) }
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
            Some(other) => {
                assert_plain(other);
                found.extend(lines(other));
            }
            None => found.push(line),
        }
    }
    found
}

/// A text may have been made of a stranger's kit: nothing is read or written but below the root.
fn assert_plain(path: &str) {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    assert!(is_plain && !path.is_empty(), "`{path}` leads out of the tree");
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

impl Unpacked {
    pub fn line(&mut self, line: &str) {
        if line.starts_with('@') {
            self.answers.push(line.to_owned());
        } else if let Some((path, target)) = line.split_once(" -> ") {
            assert_plain(target);
            let (path, target) = (self.place(path), self.root.join(target));
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
        assert_plain(path);
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

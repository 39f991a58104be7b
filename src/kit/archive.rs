use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::{Component, Path},
};

use flate2::{Compression, write::GzEncoder};
use serde::{Deserialize, Serialize};

const MANIFEST: &str = "manifest.json";
/// Longest path in bytes, and longest name of a file or folder (NAME_MAX of Linux): a kit is unpacked below another folder.
const PATH: usize = 800;
const PART: usize = 255;
pub(super) const UNSTORABLE: &str = "its path, or the path to which it leads, is too long or cannot be in an archive";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    File(Vec<u8>),
    Link(String),
}

pub type Items = BTreeMap<String, Item>;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    pub version: u32,
    pub railgauge: String,
    pub made_at: String,
    pub anonymized: bool,
    /// Folder of each host below `hosts/`, by its name in the plan.
    pub hosts: BTreeMap<String, String>,
    pub plan: Vec<String>,
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub what: String,
    pub why: String,
}

/// The bytes of an archive of these files.
///
/// # Errors
/// A path is too long for the format.
pub fn write(manifest: &Manifest, items: &Items) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    archive.mode(tar::HeaderMode::Deterministic);
    file(&mut archive, MANIFEST, &serde_json::to_vec_pretty(manifest)?)?;
    for (path, item) in items {
        match item {
            Item::File(bytes) => file(&mut archive, path, bytes)?,
            Item::Link(to) => {
                archive.append_link(&mut header(tar::EntryType::Symlink, 0), path, relative(path, to))?;
            }
        }
    }
    archive.into_inner()?.finish()
}

fn header(kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header
}

fn file(archive: &mut tar::Builder<impl Write>, path: &str, bytes: &[u8]) -> io::Result<()> {
    archive.append_data(&mut header(tar::EntryType::Regular, bytes.len() as u64), path, bytes)
}

fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let folder = &from[..from.len() - 1];
    let common = folder.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", folder.len() - common);
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

pub(super) fn is_storable(path: &str, item: &Item) -> bool {
    match item {
        Item::File(_) => is_plain(path),
        Item::Link(to) => is_plain(path) && is_plain(to),
    }
}

fn is_plain(path: &str) -> bool {
    path.len() <= PATH
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        && path.split('/').all(|part| !matches!(part, "" | ".") && part.len() <= PART)
        && !path.chars().any(|c| c.is_control() || matches!(c, '\\' | '\u{fffd}'))
}

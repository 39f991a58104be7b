//! The raw files behind the facts: for a kit (`docs/dev/bundle.md`), from which tests are made.
//!
//! Facts are collected again on a tree that records every path it reads, so this list never falls behind the facts. It also has what else
//! the kernel says of RDMA devices, network interfaces and the PCI functions above them. Nothing outside [`allowed::PLACES`] is read,
//! links are kept as links, and numbers and sizes are bounded.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    ffi::OsString,
    fs::{self, File},
    io::Read,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Component, Path, PathBuf},
};

use allowed::{MARKS, PCI_FILES, SKIPPED, allowed};
use parking_lot::Mutex;
use railgauge_wire::{Failure, Gpu, Kind, RawContent, RawEntry, RawLeftOut, RawPage, Stage};

use crate::{
    facts::{self, Live, pci},
    gpu::facts as nvml,
    system::tree::{self, Tree},
};

mod allowed;

/// Text of a page, in bytes: well below a reply's limit.
const PAGE: usize = 512 << 10;

/// The last reading, for its later pages.
static READ: Mutex<Vec<RawEntry>> = Mutex::new(Vec::new());

pub(crate) fn page(from: u64) -> Result<RawPage, Failure> {
    let mut read = READ.lock();
    let mut left_out = Vec::new();
    if from == 0 {
        let gpus = nvml::all(&Tree::host()).unwrap_or_default();
        (*read, left_out) = read_below(&tree::root().to_string_lossy(), gpus);
    }
    let first = usize::try_from(from).ok();
    let rest = first.and_then(|first| read.get(first..)).ok_or_else(|| {
        Failure::new(Stage::Facts, Kind::Internal, format!("entry {from} belongs to no reading of the host's files"))
    })?;
    let mut text = 0;
    let fits = rest.iter().take_while(|entry| {
        text += size(entry);
        text <= PAGE
    });
    // A file is far smaller than a page, so one entry always fits.
    let count = fits.count().max(rest.len().min(1));
    let next = (count < rest.len()).then(|| from + count as u64);
    Ok(RawPage { entries: rest[..count].to_vec(), next, left_out })
}

fn size(entry: &RawEntry) -> usize {
    let content = match &entry.content {
        RawContent::File { hex, .. } => hex.iter().map(String::len).sum(),
        RawContent::Link { to } => to.len(),
        RawContent::Directory => 0,
        RawContent::Unreadable { why } => why.len(),
    };
    entry.path.len() + content + 48
}

/// The files behind the facts of a tree with these GPUs, and what was omitted.
pub fn read_below(root: &str, gpus: Vec<Gpu>) -> (Vec<RawEntry>, Vec<RawLeftOut>) {
    let mut collector = Collector::new(root);
    let (tree, seen) = Tree::recording(root);
    let live = Live {
        addresses: Ok(Vec::new()),
        interfaces: BTreeMap::new(),
        libraries: BTreeMap::new(),
        device_files: BTreeMap::new(),
        path_mtus: Vec::new(),
        gpus: Ok(gpus),
        cuda: Ok(Vec::new()),
    };
    facts::collect(tree, live);
    let seen = std::mem::take(&mut *seen.lock());
    seen.iter().for_each(|path| collector.look(path));
    collector.devices();
    collector.done()
}

/// Kept bytes of a file. `/proc/cpuinfo` is longer on large machines, but its first processors suffice.
const LONGEST: u64 = 64 << 10;
/// Most entries: a host with ten ports of 256 GIDs each has about 20,000.
const ENTRIES: usize = 40_000;
/// Most bytes of all files.
const BYTES: usize = 16 << 20;
/// Most links on the way to a file, as the kernel allows (path_resolution(7)).
const LINKS: u32 = 40;
/// Folders below a device: `ports/1/gid_attrs/types/0`.
const DEPTH: u32 = 5;
const REASONS: usize = 200;

struct Collector {
    root: PathBuf,
    found: BTreeMap<PathBuf, RawContent>,
    functions: BTreeSet<PathBuf>,
    bytes: usize,
    left_out: BTreeMap<PathBuf, String>,
}

impl Collector {
    fn new(root: impl Into<PathBuf>) -> Self {
        let (found, functions) = (BTreeMap::new(), BTreeSet::new());
        Self { root: root.into(), found, functions, bytes: 0, left_out: BTreeMap::new() }
    }

    fn look(&mut self, path: &Path) {
        let path = self.below(path);
        if MARKS.iter().any(|mark| path == Path::new(mark)) {
            if self.root.join(&path).exists() {
                self.keep(path, RawContent::Directory);
            }
        } else if allowed(&path) {
            if let Some(place) = self.resolve(&path) {
                self.read(&place);
                self.list(&place);
            }
        } else if self.root.join(&path).exists() {
            self.leave_out(&path, "not among the places that are read for a bundle");
        }
    }

    /// Keeps the names of folders and links in a folder: facts may have read them.
    fn list(&mut self, place: &Path) {
        if !self.root.join(place).is_dir() {
            return;
        }
        for name in self.names(place) {
            let below = place.join(name);
            let kind = fs::symlink_metadata(self.root.join(&below)).map(|kind| kind.file_type());
            match kind {
                Ok(kind) if kind.is_symlink() => _ = self.resolve(&below),
                Ok(kind) if kind.is_dir() && !self.found.contains_key(&below) => {
                    self.keep(below, RawContent::Directory)
                }
                _ => {}
            }
        }
    }

    fn walk(&mut self, path: &Path, depth: u32) {
        let Some(place) = self.resolve(path) else { return };
        if !self.root.join(&place).is_dir() {
            return self.read(&place);
        }
        for name in self.names(&place) {
            let below = place.join(&name);
            if SKIPPED.iter().any(|skipped| name == *skipped) {
                // Facts need its target; the content is read by its own path.
                self.resolve(&below);
                continue;
            }
            let Some(kind) = fs::symlink_metadata(self.root.join(&below)).ok().map(|kind| kind.file_type()) else {
                continue;
            };
            match kind.is_dir() {
                true if depth > 1 => self.walk(&below, depth - 1),
                true => {}
                false if kind.is_symlink() => _ = self.resolve(&below),
                false => self.read(&below),
            }
        }
    }

    /// Keeps RDMA devices, network interfaces, and the PCI functions above everything kept.
    fn devices(&mut self) {
        for (class, depth) in [("sys/class/infiniband", DEPTH), ("sys/class/infiniband_verbs", 1), ("sys/class/net", 2)]
        {
            for name in self.names(Path::new(class)) {
                self.walk(&Path::new(class).join(name), depth);
            }
        }
        for function in std::mem::take(&mut self.functions) {
            for name in PCI_FILES {
                let path = function.join(name);
                if let Some(place) = self.resolve(&path).filter(|place| *place == path) {
                    self.read(&place);
                }
            }
        }
    }

    fn done(self) -> (Vec<RawEntry>, Vec<RawLeftOut>) {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let entries = self.found.into_iter().map(|(path, content)| RawEntry { path: text(path), content });
        let left_out = self.left_out.into_iter().map(|(path, why)| RawLeftOut { path: text(path), why });
        (entries.collect(), left_out.collect())
    }

    fn below(&self, path: &Path) -> PathBuf {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir)).collect()
    }

    fn names(&self, path: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<OsString> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    }

    /// Resolves a path to a place without links, and keeps the links. `None` if it does not exist or is not allowed.
    fn resolve(&mut self, path: &Path) -> Option<PathBuf> {
        let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<VecDeque<_>>();
        // Links of procfs name processes: `self` is the agent in every reading.
        if !path.starts_with("sys") {
            return self.root.join(path).exists().then(|| path.to_owned());
        }
        let (mut place, mut rest, mut links) = (PathBuf::new(), parts(path), 0);
        while let Some(part) = rest.pop_front() {
            if part == ".." {
                place.pop();
                continue;
            }
            let next = place.join(&part);
            let kind = fs::symlink_metadata(self.root.join(&next)).ok()?.file_type();
            if !kind.is_symlink() {
                place = next;
                if pci::is_function(&place) {
                    self.functions.insert(place.clone());
                }
                continue;
            }
            links += 1;
            let target = fs::read_link(self.root.join(&next)).ok()?;
            let leads = match target.is_absolute() {
                true => self.below(&target),
                false => flat(&place.join(&target)),
            };
            if links > LINKS || !allowed(&leads) {
                // Folders of drivers and modules are not needed.
                self.leave_out(&next, "a link that leads out of the places that are read");
                return None;
            }
            self.keep(next, RawContent::Link { to: leads.to_string_lossy().into_owned() });
            let mut target = parts(&leads);
            target.append(&mut rest);
            (place, rest) = (PathBuf::new(), target);
        }
        allowed(&place).then_some(place)
    }

    fn read(&mut self, place: &Path) {
        if self.found.contains_key(place) {
            return;
        }
        let path = self.root.join(place);
        let Ok(about) = fs::metadata(&path) else { return };
        if about.is_dir() {
            return self.keep(place.to_owned(), RawContent::Directory);
        }
        // Reading a write-only file may have an effect.
        if !about.is_file() || about.permissions().mode() & 0o444 == 0 {
            return;
        }
        let mut bytes = Vec::new();
        let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let content = match file.and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)) {
            Ok(_) => {
                let whole = bytes.len() as u64 <= LONGEST;
                bytes.truncate(usize::try_from(LONGEST).unwrap_or(usize::MAX));
                RawContent::of(&bytes, whole)
            }
            Err(error) => RawContent::Unreadable { why: error.to_string() },
        };
        if self.bytes + bytes.len() > BYTES {
            return self.leave_out(place, &format!("more than {} MiB in all", BYTES >> 20));
        }
        self.bytes += bytes.len();
        self.keep(place.to_owned(), content);
    }

    fn keep(&mut self, path: PathBuf, content: RawContent) {
        match self.found.len() < ENTRIES || self.found.contains_key(&path) {
            true => _ = self.found.insert(path, content),
            false => self.leave_out(&path, &format!("more than {ENTRIES} files in all")),
        }
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        match self.left_out.len() {
            0..REASONS => _ = self.left_out.insert(path.to_owned(), why.to_owned()),
            REASONS => _ = self.left_out.insert("…".into(), "more is left out than is listed".to_owned()),
            _ => {}
        }
    }
}

/// Resolves `..`.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = flat.pop(),
            Component::Normal(part) => flat.push(part),
            _ => {}
        }
    }
    flat
}

#[cfg(test)]
mod tests;

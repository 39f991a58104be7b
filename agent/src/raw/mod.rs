//! The files that facts and counters are made of, as they are read: for a kit (`docs/kit.md`), from which tests are made.
//!
//! Facts are collected once more on a tree that notes every path that is looked at, so this list never falls behind the facts.
//! Beside it stands what else the kernel says of RDMA devices, network interfaces and the PCI functions above them. Nothing
//! outside [`allowed::PLACES`] is read, links are kept as links, and numbers and sizes are bounded.
//!
//! | file | does |
//! | --- | --- |
//! | [`allowed`] | which places may be read |
//! | [`collector`] | reads paths and keeps what is there |

mod allowed;
mod collector;

use std::{collections::BTreeMap, path::Path};

use parking_lot::Mutex;
use railgauge_wire::{
    facts::Gpu,
    failure::{Failure, Kind, Stage},
    raw::{RawContent, RawEntry, RawLeftOut, RawPage, RawScope},
};

use self::collector::Collector;
use crate::{
    counters,
    facts::{self, Live},
    gpu::facts as nvml,
    system::tree::{self, Tree},
};

/// Text of a page, in bytes: well below what a reply may have.
const PAGE: usize = 512 << 10;

/// What was read last, for the pages behind the first one.
static READ: Mutex<Option<(RawScope, Vec<RawEntry>)>> = Mutex::new(None);

pub(crate) fn page(scope: &RawScope, from: u64) -> Result<RawPage, Failure> {
    let mut read = READ.lock();
    let mut left_out = Vec::new();
    if from == 0 {
        let gpus = match scope {
            RawScope::Facts => nvml::all(&Tree::host()).unwrap_or_default(),
            RawScope::Counters { .. } => Vec::new(),
        };
        let found = read_below(&tree::root().to_string_lossy(), scope, gpus)?;
        left_out = found.left_out;
        *read = Some((scope.clone(), found.entries));
    }
    let entries = read.as_ref().filter(|(of, _)| of == scope).map(|(_, entries)| entries.as_slice());
    let first = usize::try_from(from).ok();
    let rest = entries.zip(first).and_then(|(entries, first)| entries.get(first..));
    let rest = rest.ok_or_else(|| {
        Failure::new(Stage::Facts, Kind::Internal, format!("entry {from} belongs to no reading of the host's files"))
    })?;
    let mut text = 0;
    let fits = rest.iter().take_while(|entry| {
        text += size(entry);
        text <= PAGE
    });
    // A file is bounded far below a page, so one entry always fits.
    let count = fits.count().max(rest.len().min(1));
    let next = (count < rest.len()).then(|| from + count as u64);
    Ok(RawPage { entries: rest[..count].to_vec(), next, left_out })
}

/// Bytes of an entry in a reply, about.
fn size(entry: &RawEntry) -> usize {
    let content = match &entry.content {
        RawContent::File { hex, .. } => hex.iter().map(String::len).sum(),
        RawContent::Link { to } => to.len(),
        RawContent::Directory => 0,
        RawContent::Unreadable { why } => why.len(),
    };
    entry.path.len() + content + 48
}

/// The files that the facts of a tree with these GPUs are made of.
pub fn entries_below(root: &str, gpus: Vec<Gpu>) -> Result<Vec<RawEntry>, Failure> {
    Ok(read_below(root, &RawScope::Facts, gpus)?.entries)
}

struct Found {
    entries: Vec<RawEntry>,
    left_out: Vec<RawLeftOut>,
}

/// The files of the host whose root this is, with these GPUs.
fn read_below(root: &str, scope: &RawScope, gpus: Vec<Gpu>) -> Result<Found, Failure> {
    let mut collector = Collector::new(root);
    match scope {
        RawScope::Facts => {
            let (tree, seen) = Tree::recording(root);
            let gpus = Ok(gpus);
            let (interfaces, libraries) = (BTreeMap::new(), BTreeMap::new());
            let (path_mtus, cuda) = (Vec::new(), Ok(Vec::new()));
            let device_files = BTreeMap::new();
            let addresses = Ok(Vec::new());
            facts::collect(tree, Live { addresses, interfaces, libraries, device_files, path_mtus, gpus, cuda });
            let seen = std::mem::take(&mut *seen.lock());
            seen.iter().for_each(|path| collector.look(path));
            collector.devices();
        }
        RawScope::Counters { device, port } => {
            let tree = Tree::new(root);
            // Names the device that is not there.
            for directory in counters::directories(&tree, device, *port)? {
                collector.walk(Path::new(&directory), 1);
            }
        }
    }
    let (entries, left_out) = collector.done();
    Ok(Found { entries, left_out })
}

#[cfg(test)]
mod tests;

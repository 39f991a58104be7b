//! The archive of a kit: a tar file, compressed by gzip, that begins with its manifest.
//!
//! Whoever reads one may have got it from a stranger: paths that lead elsewhere, links out of a tree, kinds of entries that a
//! kit has not, and sizes beyond its bounds are refused by name, and so is a file that the manifest does not know by its SHA-256.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::{Component, Path},
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use railgauge_model::border::text;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Name of the manifest, which is the first file.
pub const MANIFEST: &str = "manifest.json";
/// What the manifest says it is of.
pub const FORMAT: &str = "railgauge-kit";
/// Version of the format.
pub const VERSION: u32 = 1;

/// Most bytes of an archive that is read, of all files in it, and of one.
const BOUNDS: Bounds = Bounds { archive: 256 << 20, all: 1 << 30, one: 256 << 20, entries: 2_000_000 };
/// Longest path in bytes.
const LONGEST: usize = 1024;
/// Longest path in bytes that is written, and longest name of a file or folder (NAME_MAX of Linux). It is shorter than what is
/// read: whoever unpacks a kit does so below a folder of their own.
const WRITTEN: usize = 800;
const PART: usize = 255;
/// Why something is not written.
pub(super) const UNSTORABLE: &str = "its path, or the path to which it leads, is too long or no path of a kit";

/// How much of an archive is read.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    archive: u64,
    all: u64,
    one: u64,
    entries: usize,
}

/// Something in a kit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A file.
    File(Vec<u8>),
    /// A symbolic link of a host's tree: where it leads, as a path of the kit.
    Link(String),
}

/// What a kit holds, by path.
pub type Items = BTreeMap<String, Item>;

/// What a kit is and holds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Version of railgauge that made it.
    pub railgauge: String,
    /// When, UTC.
    pub made_at: String,
    /// Whether names, addresses and identities were replaced.
    pub anonymized: bool,
    /// Folder of each host below `hosts/`, by its name in the plan.
    pub hosts: BTreeMap<String, String>,
    /// How the plan that was run differs from the one that was given.
    pub plan: Vec<String>,
    /// What was left out, and why.
    pub left_out: Vec<LeftOut>,
    /// Every file and link but this one.
    pub files: Vec<Listed>,
}

/// What was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A file or a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Listed {
    /// A file.
    File {
        /// Path.
        path: String,
        /// Bytes.
        bytes: u64,
        /// SHA-256, hexadecimal.
        sha256: String,
    },
    /// A link.
    Link {
        /// Path.
        path: String,
        /// Where it leads, as a path of the kit.
        link: String,
    },
}

/// Why a file is not a kit that is read.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// It cannot be read or unpacked.
    #[error("the archive cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// The archive, or all of its files, are larger than any kit.
    #[error("the archive has more than {0}: no kit is so large")]
    TooLarge(String),
    /// A path that leads elsewhere, or that cannot be one.
    #[error("entry {0}: this path does not stay inside the kit")]
    Path(String),
    /// A link that leads out of its host's tree, or that does not stand in one.
    #[error("link {path}: it leads to {to}, out of its host's tree")]
    Link {
        /// The link.
        path: String,
        /// Where it leads.
        to: String,
    },
    /// A device, a pipe, a hard link, …
    #[error("entry {path}: a kit has files and symbolic links only, and this is of type {kind}")]
    Kind {
        /// The entry.
        path: String,
        /// Its type in the archive.
        kind: String,
    },
    /// The same path twice, or one below a file or link.
    #[error("entry {0}: there is another entry in its place")]
    Twice(String),
    /// No manifest, or one of something else.
    #[error("it is no kit of a version that this railgauge reads: {0}")]
    Foreign(String),
    /// What is there is not what the manifest lists.
    #[error("entry {path}: {why}")]
    Differs {
        /// The entry.
        path: String,
        /// How.
        why: &'static str,
    },
}

/// Lists the files in the manifest.
fn listed(items: &Items) -> Vec<Listed> {
    let one = |(path, item): (&String, &Item)| match item {
        Item::File(bytes) => {
            Listed::File { path: path.clone(), bytes: bytes.len() as u64, sha256: hex::encode(Sha256::digest(bytes)) }
        }
        Item::Link(to) => Listed::Link { path: path.clone(), link: to.clone() },
    };
    items.iter().map(one).collect()
}

/// The bytes of an archive of these files; the manifest's list of them is made here.
///
/// # Errors
/// A path is too long for the format.
pub fn write(manifest: &Manifest, items: &Items) -> io::Result<Vec<u8>> {
    write_while(manifest, items, || Ok(()))
}

/// [`write`]; `check` is asked before each entry.
///
/// # Errors
/// As [`write`], and that of `check`.
pub(crate) fn write_while(
    manifest: &Manifest,
    items: &Items,
    check: impl Fn() -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let manifest = Manifest { format: FORMAT.to_owned(), version: VERSION, files: listed(items), ..manifest.clone() };
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    archive.mode(tar::HeaderMode::Deterministic);
    let text = serde_json::to_vec_pretty(&manifest)?;
    file(&mut archive, MANIFEST, &text)?;
    for (path, item) in items {
        check()?;
        match item {
            Item::File(bytes) => file(&mut archive, path, bytes)?,
            Item::Link(to) => {
                let mut header = header(tar::EntryType::Symlink, 0);
                archive.append_link(&mut header, path, relative(path, to))?;
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

/// A path of the kit as seen from the folder of another.
fn relative(from: &str, to: &str) -> String {
    let (from, to): (Vec<&str>, Vec<&str>) = (from.split('/').collect(), to.split('/').collect());
    let folder = &from[..from.len() - 1];
    let common = folder.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", folder.len() - common);
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

/// Reads an archive.
///
/// # Errors
/// It is no kit, or not one as railgauge writes them.
pub fn read(archive: impl Read) -> Result<(Manifest, Items), KitError> {
    read_within(archive, BOUNDS)
}

/// Reads an archive that is not compressed.
///
/// # Errors
/// As [`read`].
pub fn read_unpacked(archive: impl Read) -> Result<(Manifest, Items), KitError> {
    entries(archive, BOUNDS)
}

fn read_within(archive: impl Read, bounds: Bounds) -> Result<(Manifest, Items), KitError> {
    entries(GzDecoder::new(Limited { inner: archive, left: bounds.archive }), bounds)
}

fn entries(archive: impl Read, bounds: Bounds) -> Result<(Manifest, Items), KitError> {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    // Everything behind the decompressor is bounded, headers and padding too.
    let mut unpacked = Limited { inner: archive, left: bounds.all };
    let mut items = Items::new();
    let mut manifest: Option<Manifest> = None;
    let mut archive = tar::Archive::new(&mut unpacked);
    let entries = archive.entries().map_err(|error| bounded(error, bounds))?;
    for entry in entries {
        let mut entry = entry.map_err(|error| bounded(error, bounds))?;
        let path = plain(&entry.path_bytes())?;
        let kind = entry.header().entry_type();
        if entry.size() > bounds.one {
            return Err(KitError::TooLarge(format!("{} in {}", mib(bounds.one), text::line(path.as_bytes()))));
        }
        let item = match kind {
            tar::EntryType::Regular | tar::EntryType::Continuous => {
                let mut bytes = Vec::new();
                entry.by_ref().take(bounds.one).read_to_end(&mut bytes).map_err(|error| bounded(error, bounds))?;
                Item::File(bytes)
            }
            tar::EntryType::Symlink => {
                let to = entry.link_name_bytes().map(|name| name.into_owned()).unwrap_or_default();
                Item::Link(inside(&path, &to)?)
            }
            other => {
                return Err(KitError::Kind { path: shown(&path), kind: format!("{:?}", char::from(other.as_byte())) });
            }
        };
        match (&manifest, item) {
            (None, Item::File(bytes)) if path == MANIFEST => manifest = Some(of_a_kit(&bytes)?),
            (None, _) => return Err(KitError::Foreign(format!("it does not begin with {MANIFEST}"))),
            (Some(_), item) => {
                let taken = |above: &str| items.contains_key(above);
                let above = path.match_indices('/').any(|(at, _)| taken(&path[..at]));
                if path == MANIFEST || above || items.insert(path.clone(), item).is_some() {
                    return Err(KitError::Twice(shown(&path)));
                }
            }
        }
        if items.len() > bounds.entries {
            return Err(KitError::TooLarge(format!("{} entries", bounds.entries)));
        }
    }
    let manifest = manifest.ok_or_else(|| KitError::Foreign("it is empty".to_owned()))?;
    agrees(&manifest, &items)?;
    Ok((manifest, items))
}

/// A reader that fails where its bound is passed.
struct Limited<R> {
    inner: R,
    left: u64,
}

/// What tells a passed bound from other errors.
#[derive(Debug, thiserror::Error)]
#[error("a bound was passed")]
struct Passed;

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(Passed))?;
        Ok(read)
    }
}

fn bounded(error: io::Error, bounds: Bounds) -> KitError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = error.get_ref().map(|inner| inner as _);
    while let Some(inner) = source {
        if inner.is::<Passed>() {
            return KitError::TooLarge(format!("{} MiB, or {} MiB unpacked", bounds.archive >> 20, bounds.all >> 20));
        }
        let below = inner.downcast_ref::<io::Error>().and_then(|error| error.get_ref()).map(|inner| inner as _);
        source = below.or_else(|| inner.source());
    }
    KitError::Unreadable(error)
}

/// A path for a message.
fn shown(path: &str) -> String {
    text::line(path.as_bytes())
}

/// Whether a path stays below where it is unpacked.
pub(super) fn is_plain(path: &str) -> bool {
    plain(path.as_bytes()).is_ok()
}

/// Whether a file or link can be written at a path so that it can be read again.
pub(super) fn is_storable(path: &str, item: &Item) -> bool {
    let fits = |path: &str| path.len() <= WRITTEN && path.split('/').all(|part| part.len() <= PART) && is_plain(path);
    match item {
        Item::File(_) => fits(path),
        Item::Link(to) => fits(path) && fits(to) && relative(path, to).len() <= LONGEST,
    }
}

/// A path that stays below where it is unpacked, without `.` and `..`.
fn plain(bytes: &[u8]) -> Result<String, KitError> {
    let wrong = || KitError::Path(text::line(&bytes[..bytes.len().min(LONGEST)]));
    let path = std::str::from_utf8(bytes).map_err(|_| wrong())?;
    let normal = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    // `a//b`, `a/./b` and `a/` are the same paths in other words.
    let written = !path.split('/').any(|part| part.is_empty() || part == ".");
    let harmless = !path.chars().any(|c| c.is_control() || c == '\\');
    if path.len() > LONGEST || !normal || !written || !harmless { Err(wrong()) } else { Ok(path.to_owned()) }
}

/// Where a link of a host's tree leads, as a path of the kit.
fn inside(path: &str, to: &[u8]) -> Result<String, KitError> {
    let wrong = || KitError::Link { path: shown(path), to: text::line(&to[..to.len().min(LONGEST)]) };
    let to_text = std::str::from_utf8(to).ok().filter(|to| to.len() <= LONGEST).ok_or_else(wrong)?;
    let tree = tree_of(path).ok_or_else(wrong)?;
    if to_text.starts_with('/') {
        return Err(wrong());
    }
    let mut place: Vec<&str> = path.split('/').collect();
    place.pop();
    for part in to_text.split('/') {
        match part {
            ".." => {
                place.pop().ok_or_else(wrong)?;
            }
            "" | "." => return Err(wrong()),
            part => place.push(part),
        }
    }
    let place = place.join("/");
    match place.strip_prefix(tree).is_some_and(|rest| rest.starts_with('/')) {
        true => plain(place.as_bytes()),
        false => Err(wrong()),
    }
}

/// The tree of a host in which a path of the kit lies: `hosts/NAME/tree`.
fn tree_of(path: &str) -> Option<&str> {
    let mut parts = path.match_indices('/');
    let (_, second, third) = (parts.next()?, parts.next()?.0, parts.next()?.0);
    (path.starts_with("hosts/") && &path[second..third] == "/tree").then(|| &path[..third])
}

fn of_a_kit(bytes: &[u8]) -> Result<Manifest, KitError> {
    let manifest: Manifest =
        serde_json::from_slice(bytes).map_err(|error| KitError::Foreign(format!("its manifest: {error}")))?;
    match manifest.format == FORMAT && manifest.version == VERSION {
        true => Ok(manifest),
        false => Err(KitError::Foreign(format!("format {:?}, version {}", shown(&manifest.format), manifest.version))),
    }
}

/// Compares what is there with the manifest.
fn agrees(manifest: &Manifest, items: &Items) -> Result<(), KitError> {
    let differs = |path: &str, why| KitError::Differs { path: shown(path), why };
    let found = listed(items);
    let path = |listed: &Listed| match listed {
        Listed::File { path, .. } | Listed::Link { path, .. } => path.clone(),
    };
    let known: BTreeMap<String, &Listed> = manifest.files.iter().map(|listed| (path(listed), listed)).collect();
    for one in &found {
        match known.get(&path(one)) {
            None => return Err(differs(&path(one), "the manifest does not list it")),
            Some(listed) if *listed != one => return Err(differs(&path(one), "it is not what the manifest lists")),
            Some(_) => {}
        }
    }
    match known.keys().find(|path| !items.contains_key(*path)) {
        Some(missing) => Err(differs(missing, "the manifest lists it, and it is not there")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;

//! Reads a kit into memory: nothing is unpacked.

use std::{
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use railgauge::kit::archive::{Item, Items, Manifest};

/// Most bytes of all files.
const BOUND: u64 = 1 << 30;

/// What a kit is and holds.
///
/// # Errors
/// It cannot be read, or has no manifest.
pub fn read(archive: impl Read) -> io::Result<(Manifest, Items)> {
    let mut items = Items::new();
    let mut manifest = Manifest::default();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive).take(BOUND));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let item = match entry.link_name()? {
            Some(to) => Item::Link(joined(&Path::new(&path).join("..").join(to))),
            None => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                Item::File(bytes)
            }
        };
        match (path.as_str(), item) {
            ("manifest.json", Item::File(bytes)) => manifest = serde_json::from_slice(&bytes)?,
            (_, item) => _ = items.insert(path, item),
        }
    }
    Ok((manifest, items))
}

/// A path with its `..` resolved.
fn joined(path: &Path) -> String {
    let mut joined = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = joined.pop(),
            part => joined.push(part),
        }
    }
    joined.to_string_lossy().into_owned()
}

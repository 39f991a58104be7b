//! Replaces host names, IP addresses, MAC addresses, GUIDs, UUIDs and serial numbers by placeholders, the same everywhere in a
//! kit, so that what comes back is still a host with networks, devices and links. The table of them stays with the user.

mod scan;
mod table;

use serde_json::Value;

pub use table::{Kind, Table};

use self::scan::{Dotted, Names, replaced};
use super::archive::{Item, Items};

/// Keys of documents whose texts are versions.
const VERSIONS: &[&str] = &["board", "cuda", "driver", "firmware", "kernel", "libraries", "modules", "os", "version"];
/// Names of files whose texts are versions.
const VERSION_FILES: &[&str] = &["fw_ver", "hw_rev", "version", "versions.txt", "osrelease", "os-release"];
/// Names of files whose whole text tells a device apart.
const IDENTITIES: &[&str] = &["ifalias", "node_desc", "phys_port_id", "phys_switch_id", "serial", "serial_number"];

/// Puts placeholders into texts and documents.
#[derive(Debug)]
pub struct Anonymiser {
    table: Table,
    names: Names,
}

impl Anonymiser {
    /// With the names of a table.
    pub fn new(table: Table) -> Self {
        let names = Names::of(&table);
        Self { table, names }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The table, for good.
    pub fn into_table(self) -> Table {
        self.table
    }

    /// A text.
    pub fn text(&mut self, text: &str) -> String {
        replaced(text, &mut self.table, &self.names, Dotted::Address)
    }

    /// A text in which four numbers with dots may be a version.
    fn version(&mut self, text: &str) -> String {
        replaced(text, &mut self.table, &self.names, Dotted::Known)
    }

    /// Every text of a document, names of its fields too.
    pub fn document(&mut self, value: &mut Value) {
        self.below(value, false);
    }

    fn below(&mut self, value: &mut Value, version: bool) {
        match value {
            Value::String(text) => *text = if version { self.version(text) } else { self.text(text) },
            Value::Array(all) => all.iter_mut().for_each(|one| self.below(one, version)),
            Value::Object(fields) => {
                let renamed = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    self.below(&mut value, version || VERSIONS.contains(&name.as_str()));
                    (self.version(&name), value)
                });
                *fields = renamed.collect();
            }
            _ => {}
        }
    }

    /// The bytes of a file of a kit.
    fn file(&mut self, path: &str, bytes: Vec<u8>) -> Vec<u8> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == "config" {
            return without_serial(bytes);
        }
        if IDENTITIES.contains(&name) && path.contains("/tree/") {
            // Firmware writes them, and not always in UTF-8.
            let text = String::from_utf8_lossy(&bytes);
            return match text.trim() {
                "" => bytes,
                text => (self.table.identity(text) + "\n").into_bytes(),
            };
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // Bytes of another kind hold no names.
            Err(error) => return error.into_bytes(),
        };
        if name.ends_with(".json")
            && let Ok(mut value) = serde_json::from_str::<Value>(&text)
        {
            self.document(&mut value);
            return serde_json::to_vec_pretty(&value).unwrap_or_default();
        }
        match VERSION_FILES.contains(&name) {
            true => self.version(&text),
            false => self.text(&text),
        }
        .into_bytes()
    }

    /// All files of a kit, their paths too.
    pub fn items(&mut self, items: Items) -> Items {
        let one = |(path, item): (String, Item)| {
            let item = match item {
                Item::File(bytes) => Item::File(self.file(&path, bytes)),
                Item::Link(to) => Item::Link(self.version(&to)),
            };
            (self.version(&path), item)
        };
        items.into_iter().map(one).collect()
    }
}

/// Configuration space without the serial number of the device (PCIe Base Specification, Device Serial Number capability, 0003h).
fn without_serial(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0x100;
    // Capabilities stand at multiples of four: more steps than places are a circle.
    for _ in 0..1024 {
        let Some(header) = bytes.get(at..at + 4).and_then(|header| header.try_into().ok()).map(u32::from_le_bytes)
        else {
            break;
        };
        if header & 0xffff == 3
            && let Some(serial) = bytes.get_mut(at + 4..at + 12)
        {
            serial.fill(0);
        }
        at = (header >> 20) as usize & 0xffc;
        if at < 0x100 {
            break;
        }
    }
    bytes
}

#[cfg(test)]
mod tests;

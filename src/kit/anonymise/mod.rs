//! Replaces host names, IP addresses, MAC addresses, GUIDs, UUIDs and serial numbers by placeholders, the same everywhere in a
//! kit, so that what comes back is still a host with networks, devices and links. The table of them stays with the user.

mod scan;
mod table;
mod vocabulary;

use std::{collections::BTreeMap, io};

use serde_json::Value;

pub use table::{Kind, Table};

use self::scan::{Dotted, Names, replaced};
use super::archive::{Item, Items};

/// Keys of documents whose texts are versions.
const VERSIONS: &[&str] = &["board", "cuda", "driver", "firmware", "kernel", "libraries", "modules", "os", "version"];
/// Names of files whose texts are versions.
const VERSION_FILES: &[&str] = &["fw_ver", "hw_rev", "version", "versions.txt", "osrelease", "os-release"];
/// Keys of documents whose texts are names of hosts, and so is every text below them.
const HOSTS: &[&str] = &["address", "dst_host", "groups", "host", "hostname", "hosts", "peer", "src_host"];
/// Names of files whose whole text tells a device apart.
const IDENTITIES: &[&str] = &[
    "board_serial",
    "chassis_serial",
    "ifalias",
    "node_desc",
    "phys_port_id",
    "phys_switch_id",
    "product_serial",
    "product_uuid",
    "serial",
    "serial_number",
];
/// Keys of documents whose whole text tells a part apart, or says where a host stands.
const SECRETS: &[&str] = &["place", "serial"];

/// Puts placeholders into texts and documents.
#[derive(Debug)]
pub struct Anonymiser {
    table: Table,
    names: Names,
    /// Placeholders of hosts' folders below `hosts/`.
    folders: BTreeMap<String, String>,
}

/// What a text of a document is.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// A version, which looks like an address.
    version: bool,
    /// The name of a host, whatever word it is.
    host: bool,
    /// A text of several words: single words may be those by which records are read.
    only_texts: bool,
}

impl Anonymiser {
    /// With the names of a table.
    pub fn new(table: Table) -> Self {
        let names = Names::of(&table);
        Self { table, names, folders: BTreeMap::new() }
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

    /// Gives a host's folder below `hosts/` its placeholder.
    pub fn folder(&mut self, folder: &str, placeholder: &str) {
        self.folders.insert(folder.to_owned(), placeholder.to_owned());
    }

    /// The name of a host, also where it is a word that texts use.
    pub fn host(&mut self, name: &str) -> String {
        let known = self.table.names.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        match known {
            Some((_, placeholder)) => placeholder.clone(),
            None => self.text(name),
        }
    }

    /// A path of the kit.
    pub fn path(&mut self, path: &str) -> String {
        let Some((folder, rest)) =
            path.strip_prefix("hosts/").map(|below| below.split_once('/').unwrap_or((below, "")))
        else {
            return self.version(path);
        };
        let folder = match self.folders.get(folder) {
            Some(placeholder) => placeholder.clone(),
            None => self.version(folder),
        };
        match rest {
            "" => format!("hosts/{folder}"),
            rest => format!("hosts/{folder}/{}", self.version(rest)),
        }
    }

    /// A text that has no names of hosts.
    fn unnamed(&mut self, text: &str) -> String {
        replaced(text, &mut self.table, &Names::default(), Dotted::Known)
    }

    /// Every text of a document. Names of fields are words of ours; addresses and devices in them are replaced.
    pub fn document(&mut self, value: &mut Value) {
        self.below(value, Place { version: false, host: false, only_texts: false });
    }

    /// [`document`](Self::document) with names replaced only where names of hosts stand and in texts of several words: for
    /// records that a host with the name of a word would make unreadable.
    pub fn texts(&mut self, value: &mut Value) {
        self.below(value, Place { version: false, host: false, only_texts: true });
    }

    fn below(&mut self, value: &mut Value, place: Place) {
        match value {
            Value::String(text) => {
                *text = match place {
                    Place { host: true, .. } => self.host(text),
                    Place { only_texts: true, .. } if !text.contains(char::is_whitespace) => self.unnamed(text),
                    Place { version: true, .. } => self.version(text),
                    _ => self.text(text),
                }
            }
            Value::Array(all) => all.iter_mut().for_each(|one| self.below(one, place)),
            Value::Object(fields) => {
                let renamed = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                    let host = HOSTS.contains(&name.as_str()) || (place.host && name == "name");
                    // Groups of hosts have names of their own, and lists of hosts below them.
                    let host = host || (place.host && value.is_array() && name != "devices" && name != "tcp");
                    let version = place.version || VERSIONS.contains(&name.as_str());
                    match &mut value {
                        Value::String(text) if SECRETS.contains(&name.as_str()) => *text = self.table.identity(text),
                        value => self.below(value, Place { version, host, ..place }),
                    }
                    (self.unnamed(&name), value)
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

    /// All files of a kit, their paths too. `check` is asked before each.
    ///
    /// # Errors
    /// That of `check`.
    pub fn items(&mut self, items: Items, check: impl Fn() -> io::Result<()>) -> io::Result<Items> {
        let one = |(path, item): (String, Item)| -> io::Result<(String, Item)> {
            check()?;
            let item = match item {
                Item::File(bytes) => Item::File(self.file(&path, bytes)),
                Item::Link(to) => Item::Link(self.path(&to)),
            };
            Ok((self.path(&path), item))
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

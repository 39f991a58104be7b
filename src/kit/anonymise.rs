//! Replaces names, addresses, GUIDs, UUIDs and serial numbers with placeholders, consistently within a kit, so that the result still is a
//! host with networks, devices and links. Only the user keeps the table.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use regex::{Captures, Regex};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::archive::{Item, Items};

/// Keys of documents, and names of files, with versions: four numbers with dots are not addresses there.
const VERSIONS: &[&str] = &[
    "board",
    "cuda",
    "driver",
    "firmware",
    "fw_ver",
    "hw_rev",
    "kernel",
    "libraries",
    "modules",
    "os",
    "os-release",
    "osrelease",
    "version",
];
/// Keys of documents, and names of files, whose whole text identifies a part or its place.
const IDENTITIES: &[&str] = &[
    "board_serial",
    "chassis_serial",
    "ifalias",
    "node_desc",
    "phys_port_id",
    "phys_switch_id",
    "place",
    "product_serial",
    "product_uuid",
    "serial",
    "serial_number",
];
/// Everything but names. Names of interfaces by MAC address are systemd's (`enx525400770101`), those of devices by node GUID are
/// rdma-core's (`rocex506b4b0300c21a2e`; kernel-boot/rdma_rename.c, `by_guid`).
const SHAPES: &str = "(?<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\
    |(?<colons>[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,19}(?:(?:\\.[0-9]{1,3}){3})?)\
    |(?<quad>[0-9]{1,3}(?:\\.[0-9]{1,3}){3,})(?:/(?<bits>[0-9]{1,2}))?\
    |(?<bare>(?<prefix>0x|enx|wlx|rocex|iwx|ibx|opax|usnicx|rdmax)?(?<digits>[0-9a-f]{12}(?:[0-9a-f]{4})?))";

#[derive(Debug)]
pub struct Anonymiser {
    /// Decides which bits of addresses are flipped.
    key: [u8; 32],
    pattern: Arc<Regex>,
    /// Placeholders by the kind and the text of the original; MAC addresses and GUIDs as digits only.
    known: BTreeMap<(&'static str, String), String>,
}

impl Anonymiser {
    /// With names and their placeholders; the first of two for one name counts. The key must be random for each kit.
    ///
    /// # Errors
    /// The names make too large a pattern.
    pub fn new<'n>(key: [u8; 32], names: impl IntoIterator<Item = (&'n str, String)>) -> Result<Self, regex::Error> {
        let mut known = BTreeMap::new();
        for (name, placeholder) in names {
            let name = name.to_lowercase();
            // Addresses are recognised by their shape, and digits alone are numbers everywhere.
            let is_name = !matches!(name.as_str(), "" | "localhost" | "root")
                && name.parse::<IpAddr>().is_err()
                && name.parse::<u64>().is_err();
            if is_name {
                known.entry(("name", name)).or_insert(placeholder);
            }
        }
        let mut names: Vec<&str> = known.keys().map(|(_, name)| name.as_str()).collect();
        // Folded lists: `gpu[01-16].x` has the prefix of `gpu01.x`.
        let mut stems: Vec<&str> = names
            .iter()
            .flat_map(|name| name.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| &name[..at]))
            .filter(|stem| !stem.is_empty())
            .collect();
        for all in [&mut names, &mut stems] {
            all.sort_by_key(|name| std::cmp::Reverse(name.len()));
            all.dedup();
        }
        let any = |all: &[&str]| match all {
            [] => "[^\\s\\S]".to_owned(),
            all => all.iter().map(|name| regex::escape(name)).collect::<Vec<_>>().join("|"),
        };
        let pattern = format!(
            "(?i)(?<stem>{})\\[(?<list>[0-9,-]*)\\][^\\s,;:()\"]*|(?:(?<name>{})|{SHAPES})(?:[^0-9a-z]|$)",
            any(&stems),
            any(&names)
        );
        let pattern = Arc::new(regex::RegexBuilder::new(&pattern).size_limit(256 << 20).build()?);
        Ok(Self { key, pattern, known })
    }

    /// Every original with its kind and its placeholder, for the user only.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &str, &str)> {
        self.known.iter().map(|((kind, original), placeholder)| (*kind, original.as_str(), placeholder.as_str()))
    }

    pub fn text(&mut self, text: &str) -> String {
        self.replaced(text, false)
    }

    /// Where a text may be a version, four numbers with dots are an address only if known as one.
    fn replaced(&mut self, text: &str, is_version: bool) -> String {
        let pattern = Arc::clone(&self.pattern);
        let (mut out, mut copied, mut at) = (String::with_capacity(text.len()), 0, 0);
        while let Some(found) = pattern.captures_at(text, at) {
            let start = found.get(0).map_or(text.len(), |whole| whole.start());
            let before = text[..start].chars().next_back();
            let is_word = !before.is_some_and(char::is_alphanumeric);
            match is_word.then(|| self.placeholder(&found, before, is_version)).flatten() {
                Some((end, placeholder)) => {
                    out += &text[copied..start];
                    out += &placeholder;
                    (copied, at) = (end, end);
                }
                None => at = start + text[start..].chars().next().map_or(1, char::len_utf8),
            }
        }
        out + &text[copied..]
    }

    fn placeholder(&mut self, found: &Captures<'_>, before: Option<char>, is_version: bool) -> Option<(usize, String)> {
        if let Some(list) = found.name("list") {
            return Some((found.get(0)?.end(), format!("hosts[{}]", list.as_str())));
        }
        if let Some(name) = found.name("name") {
            let placeholder = self.known.get(&("name", name.as_str().to_lowercase()))?;
            return Some((name.end(), placeholder.clone()));
        }
        if let Some(uuid) = found.name("uuid") {
            let original = uuid.as_str().to_lowercase();
            return Some((uuid.end(), self.numbered("uuid", original, |n| format!("00000000-0000-0000-0000-{n:012}"))));
        }
        if let Some(colons) = found.name("colons") {
            let text = colons.as_str();
            let text = if text.ends_with("::") { text } else { text.strip_suffix(':').unwrap_or(text) };
            return Some((colons.start() + text.len(), self.colons(text)?));
        }
        if let Some(quad) = found.name("quad") {
            let ip: Ipv4Addr = quad.as_str().parse().ok()?;
            if before == Some('.') || is_version && !self.known.contains_key(&("address", ip.to_string())) {
                return None;
            }
            let bits = found.name("bits").and_then(|bits| bits.as_str().parse().ok()).filter(|bits| *bits <= 32);
            let mask = bits.map_or(u32::MAX, |bits: u32| u32::MAX.checked_shl(32 - bits).unwrap_or(0));
            let is_network = ip.to_bits() & !mask == 0;
            let placeholder = self.v4(ip).to_bits() & if is_network { mask } else { u32::MAX };
            return Some((quad.end(), Ipv4Addr::from_bits(placeholder).to_string()));
        }
        let (bare, digits) = (found.name("bare")?, found.name("digits")?.as_str().to_lowercase());
        let prefix = found.name("prefix").map_or("", |prefix| prefix.as_str());
        let bytes = hex::decode(&digits).ok()?;
        // Numbers have the same shape: only known ones are replaced.
        let is_named = !matches!(prefix, "" | "0x" | "0X");
        if !is_named && !self.knows(&bytes) {
            return None;
        }
        Some((bare.end(), format!("{prefix}{}", hex::encode(self.bytes(&bytes)?))))
    }

    /// Groups with colons: MAC addresses, GUIDs, GIDs, IPv6 addresses, addresses of IPoIB.
    fn colons(&mut self, text: &str) -> Option<String> {
        let parts: Vec<&str> = text.split(':').collect();
        let width = parts.first().map_or(0, |part| part.len());
        let is_even = matches!(width, 2 | 4) && parts.iter().all(|part| part.len() == width);
        let is_upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
        let bytes = hex::decode(parts.concat()).ok().filter(|bytes| is_even && matches!(bytes.len(), 6 | 8 | 16 | 20));
        let placeholder = match bytes {
            Some(bytes) => {
                let digits = hex::encode(self.bytes(&bytes)?);
                let groups: Vec<String> = (0..parts.len()).map(|n| digits[n * width..][..width].to_owned()).collect();
                groups.join(":")
            }
            None => self.v6(text.parse().ok()?).to_string(),
        };
        Some(if is_upper { placeholder.to_uppercase() } else { placeholder })
    }

    /// A MAC address, a GUID, a GID, or an address of IPoIB: flags and queue pair, then the GID (RFC 4391, section 9.1.1).
    fn bytes(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        Some(match bytes.len() {
            6 => self.mac(bytes.try_into().ok()?).into(),
            8 => self.guid(bytes.try_into().ok()?).into(),
            16 => self.v6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?)).octets().into(),
            20 => [&bytes[..4], &self.bytes(&bytes[4..])?].concat(),
            _ => return None,
        })
    }

    /// Whether a MAC address or a GUID has a placeholder, by itself or by the MAC address in it.
    fn knows(&self, bytes: &[u8]) -> bool {
        let has = |kind, bytes: &[u8]| self.known.contains_key(&(kind, hex::encode(bytes)));
        let inner = <[u8; 8]>::try_from(bytes).ok().and_then(inner_mac);
        has("mac", bytes) || has("guid", bytes) || inner.is_some_and(|(mac, _)| has("mac", &mac))
    }

    /// New placeholders are numbered by kind.
    fn numbered(&mut self, kind: &'static str, original: String, new: impl Fn(usize) -> String) -> String {
        let key = (kind, original);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let placeholder = new(self.known.keys().filter(|(other, _)| *other == kind).count() + 1);
        self.known.insert(key, placeholder.clone());
        placeholder
    }

    fn identity(&mut self, text: &str) -> String {
        self.numbered("identity", text.to_owned(), |n| format!("id-{n}"))
    }

    /// A number of this many bytes; all zeros and all ones stay. Placeholders are locally administered (IEEE 802, bit 1 of the first
    /// octet).
    fn number<const N: usize>(&mut self, kind: &'static str, bytes: [u8; N]) -> [u8; N] {
        let mut number = bytes;
        if bytes != [0; N] && bytes != [0xff; N] {
            let digits = self.numbered(kind, hex::encode(bytes), |n| format!("02{n:0width$x}", width = 2 * N - 2));
            let _ = hex::decode_to_slice(digits, &mut number);
        }
        number
    }

    fn mac(&mut self, mac: [u8; 6]) -> [u8; 6] {
        self.number("mac", mac)
    }

    /// A GUID (EUI-64). One made of a MAC address stays so.
    fn guid(&mut self, guid: [u8; 8]) -> [u8; 8] {
        let Some((mac, flip)) = inner_mac(guid) else { return self.number("guid", guid) };
        let [a, b, c, d, e, f] = self.mac(mac);
        [a ^ flip, b, c, guid[3], guid[4], d, e, f]
    }

    /// An IPv4 address, in 240.0.0.0/4, which is on no network (RFC 1112, section 4). Networks of 8 bits and more stay networks.
    fn v4(&mut self, ip: Ipv4Addr) -> Ipv4Addr {
        let [first, ..] = ip.octets();
        // Netmasks begin with 255.
        if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || first == 255 {
            return ip;
        }
        let kept = if ip.is_link_local() { 16 } else { 0 };
        let flipped = (self.flipped(u64::from(ip.to_bits()) << 32, kept, 32) >> 32) as u32;
        let [head, b, c, d] = flipped.to_be_bytes();
        let placeholder = Ipv4Addr::new(if kept > 0 { head } else { 240 + head % 15 }, b, c, d);
        self.known.insert(("address", ip.to_string()), placeholder.to_string());
        placeholder
    }

    /// An IPv6 address or a GID. Networks of 16 bits and more stay networks, link-local stays link-local, and what is made of an IPv4
    /// address, a MAC address or a GUID stays so.
    fn v6(&mut self, ip: Ipv6Addr) -> Ipv6Addr {
        if ip.is_unspecified() || ip.is_loopback() {
            return ip;
        }
        if let Some(v4) = ip.to_ipv4_mapped() {
            return self.v4(v4).to_ipv6_mapped();
        }
        let network = (ip.to_bits() >> 64) as u64;
        // fe80::/64, the prefix of every interface and every InfiniBand port, and multicast groups.
        let is_kept = network == 0xfe80_0000_0000_0000 || ip.is_multicast();
        let network = if is_kept { network } else { self.flipped(network, 16, 64) };
        let own = u64::from_be_bytes(self.guid((ip.to_bits() as u64).to_be_bytes()));
        let placeholder = Ipv6Addr::from_bits((u128::from(network) << 64) | u128::from(own));
        self.known.insert(("address", ip.to_string()), placeholder.to_string());
        placeholder
    }

    /// Flips the bits `from..to` depending on the key and the bits before each: common prefixes stay common (J. Xu et al.,
    /// "Prefix-Preserving IP Address Anonymization", ICNP 2002).
    fn flipped(&self, number: u64, from: u32, to: u32) -> u64 {
        (from..to).fold(number, |flipped, bit| {
            let before = number.checked_shr(64 - bit).unwrap_or(0);
            let digest = Sha256::new().chain_update(self.key).chain_update([to as u8, bit as u8]);
            let digest = digest.chain_update(before.to_be_bytes()).finalize();
            flipped ^ u64::from(digest[0] & 1) << (63 - bit)
        })
    }

    /// Every text of a document. Field names are railgauge's words, unless one is the name of a host.
    pub fn document(&mut self, value: &mut Value) {
        self.below(value, false);
    }

    fn below(&mut self, value: &mut Value, is_version: bool) {
        match value {
            Value::String(text) => *text = self.replaced(text, is_version),
            Value::Array(all) => all.iter_mut().for_each(|one| self.below(one, is_version)),
            Value::Object(fields) => {
                for (key, mut value) in std::mem::take(fields) {
                    match &mut value {
                        Value::String(text) if IDENTITIES.contains(&key.as_str()) => *text = self.identity(text),
                        value => self.below(value, is_version || VERSIONS.contains(&key.as_str())),
                    }
                    let name = self.known.get(&("name", key.to_lowercase()));
                    let key = match name {
                        Some(host) if host.starts_with("host-") => host.clone(),
                        Some(_) => key,
                        None => self.replaced(&key, true),
                    };
                    fields.insert(key, value);
                }
            }
            _ => {}
        }
    }

    fn file(&mut self, path: &str, bytes: Vec<u8>) -> Vec<u8> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == "config" {
            return without_serial(bytes);
        }
        // Firmware writes some of them, and not always in UTF-8.
        let text = String::from_utf8_lossy(&bytes);
        if IDENTITIES.contains(&name) {
            return if text.trim().is_empty() { bytes } else { (self.identity(text.trim()) + "\n").into_bytes() };
        }
        if name.ends_with(".json")
            && let Ok(mut value) = serde_json::from_str::<Value>(&text)
        {
            self.document(&mut value);
            return serde_json::to_vec_pretty(&value).unwrap_or_default();
        }
        self.replaced(&text, VERSIONS.contains(&name)).into_bytes()
    }

    pub fn items(&mut self, items: Items) -> Items {
        let mut one = |(path, item): (String, Item)| {
            let item = match item {
                Item::File(bytes) => Item::File(self.file(&path, bytes)),
                Item::Link(to) => Item::Link(self.replaced(&to, true)),
            };
            (self.replaced(&path, true), item)
        };
        items.into_iter().map(&mut one).collect()
    }
}

/// The MAC address in a GUID, and the bits of its first octet that differ: `ff:fe` is in the middle and bit 1 differs as in IPv6 (RFC 4291,
/// appendix A), or `03:00` is in the middle as in NVIDIA's adapters.
fn inner_mac([a, b, c, x, y, d, e, f]: [u8; 8]) -> Option<([u8; 6], u8)> {
    let flip = match [x, y] {
        [0xff, 0xfe] => 2,
        [3, 0] => 0,
        _ => return None,
    };
    Some(([a ^ flip, b, c, d, e, f], flip))
}

/// Configuration space without the serial number of the device (PCIe Base Specification, Device Serial Number capability, 0003h).
fn without_serial(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 0x100;
    // Capabilities begin at multiples of four: more steps than places are a cycle.
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

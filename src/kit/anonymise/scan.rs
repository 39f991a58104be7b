//! Finds names, addresses and identities in a text, and puts placeholders in their places.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{
    table::{Table, guid_text, mac_text},
    vocabulary::is_word,
};

/// Whether IPv4 addresses are recognised by their looks. Versions look like them: there only known ones are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dotted {
    /// Four numbers are an address.
    Address,
    /// Four numbers are an address if it is known from elsewhere.
    Known,
}

/// Host names by their first byte in lower case, the longest first.
#[derive(Debug, Default)]
pub(super) struct Names(std::collections::BTreeMap<u8, Vec<(String, String)>>);

impl Names {
    /// The names of a table that are no words of ours, and the beginnings of folded lists of them: `gpu` of `gpu[01-16]`.
    pub(super) fn of(table: &Table) -> Self {
        let mut names = Self::default();
        for (name, placeholder) in table.names.iter().filter(|(name, _)| !is_word(name)) {
            let Some(first) = name.bytes().next().map(|byte| byte.to_ascii_lowercase()) else { continue };
            names.0.entry(first).or_default().push((name.clone(), placeholder.clone()));
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if stem.len() < name.len() && !stem.is_empty() {
                names.0.entry(first).or_default().push((format!("{stem}["), "hosts[".to_owned()));
            }
        }
        for list in names.0.values_mut() {
            list.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
            list.dedup();
        }
        names
    }

    fn at(&self, rest: &str, before: Option<char>) -> Option<(usize, String)> {
        let list = self.0.get(&rest.as_bytes().first()?.to_ascii_lowercase())?;
        // `default_roce_tos` is one word, and a host may be called `roce`; a name with digits is one beside `_` too.
        let alone = |name: &str| {
            let joined = before == Some('_') || rest[name.len()..].starts_with('_');
            !joined || name.bytes().any(|byte| byte.is_ascii_digit())
        };
        let fits = |name: &str| {
            let ends = |name: &str| !rest[name.len()..].starts_with(|c: char| c.is_alphanumeric());
            // Names of hosts are the same in capitals (RFC 4343).
            let begins = rest.get(..name.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(name));
            begins && (name.ends_with('[') || (ends(name) && alone(name)))
        };
        list.iter().find(|(name, _)| fits(name)).map(|(name, placeholder)| (name.len(), placeholder.clone()))
    }
}

/// The text with placeholders.
pub(super) fn replaced(text: &str, table: &mut Table, names: &Names, dotted: Dotted) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    let mut before = None;
    while at < text.len() {
        let rest = &text[at..];
        let begins = !before.is_some_and(|c: char| c.is_alphanumeric());
        let place = (before, before == Some(':') && is_group(&text[..at - 1]));
        let found = begins.then(|| found(rest, place, table, names, dotted)).flatten();
        match found {
            Some((length, placeholder)) => {
                before = text[..at + length].chars().next_back();
                out += &placeholder;
                at += length;
            }
            None => {
                let Some(c) = rest.chars().next() else { break };
                out.push(c);
                before = Some(c);
                at += c.len_utf8();
            }
        }
    }
    out
}

/// Whether a text ends with what may be a group of an address, so that a colon and more behind it belong to the same one.
/// `mac:` and `peer:` do not.
fn is_group(text: &str) -> bool {
    let word = text.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    text.ends_with(':') || (!word.is_empty() && word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// What stands at the beginning of a text, by its length, and its placeholder.
fn found(
    rest: &str,
    (before, behind_group): (Option<char>, bool),
    table: &mut Table,
    names: &Names,
    dotted: Dotted,
) -> Option<(usize, String)> {
    if let Some(found) = names.at(rest, before) {
        return Some(found);
    }
    if let Some(length) = uuid(rest) {
        return Some((length, table.uuid(&rest[..length])));
    }
    if !behind_group && let Some(found) = colons(rest, table) {
        return Some(found);
    }
    if before != Some('.')
        && let Some(found) = quad(rest, table, dotted)
    {
        return Some(found);
    }
    bare(rest, table)
}

/// Length of the beginning of these characters, which no letter or digit follows.
fn run(rest: &str, of: impl Fn(char) -> bool) -> &str {
    let end = rest.find(|c| !of(c)).unwrap_or(rest.len());
    &rest[..end]
}

fn ends(rest: &str, length: usize) -> bool {
    !rest[length..].starts_with(|c: char| c.is_alphanumeric())
}

/// `8-4-4-4-12` hexadecimal digits.
fn uuid(rest: &str) -> Option<usize> {
    let text = rest.get(..36)?;
    let shape = text.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    (shape && ends(rest, 36)).then_some(36)
}

/// Groups with colons: MAC addresses, GUIDs, GIDs, IPv6 addresses, addresses of IPoIB.
fn colons(rest: &str, table: &mut Table) -> Option<(usize, String)> {
    let groups = run(rest, |c| c.is_ascii_hexdigit() || c == ':');
    // A dotted end: `::ffff:10.0.0.1`.
    let long = run(rest, |c| c.is_ascii_hexdigit() || c == ':' || c == '.').trim_end_matches('.');
    if long.len() > groups.len()
        && ends(rest, long.len())
        && groups.contains("::")
        && let Ok(ip) = long.parse::<Ipv6Addr>()
    {
        return Some((long.len(), table.v6(ip).to_string()));
    }
    let text = match groups.ends_with("::") {
        true => groups,
        false => groups.strip_suffix(':').unwrap_or(groups),
    };
    let upper = text.bytes().any(|byte| byte.is_ascii_uppercase());
    let spelt = |placeholder: String| if upper { placeholder.to_ascii_uppercase() } else { placeholder };
    let parts: Vec<&str> = text.split(':').collect();
    if !ends(rest, text.len()) || parts.len() < 3 {
        return None;
    }
    let all = |length: usize| parts.iter().all(|part| part.len() == length);
    let number =
        |parts: &[&str]| parts.iter().try_fold(0_u64, |sum, part| Some(sum << 8 | u64::from_str_radix(part, 16).ok()?));
    let placeholder = match parts.len() {
        // Perftest prints a GID as sixteen decimal numbers.
        16 if parts.iter().all(|part| (2..=3).contains(&part.len()) && part.parse::<u8>().is_ok()) => {
            let mut bytes = [0; 16];
            for (byte, part) in bytes.iter_mut().zip(&parts) {
                *byte = part.parse().ok()?;
            }
            let octets = table.v6(bytes.into()).octets();
            octets.map(|byte| format!("{byte:02}")).join(":")
        }
        6 if all(2) => spelt(mac_text(table.mac(number(&parts)?))),
        8 if all(2) => pairs(&table.guid(number(&parts)?).to_be_bytes()),
        16 if all(2) => gid(&parts, table)?,
        // IPoIB: flags and queue pair, then the GID (RFC 4391, section 9.1.1).
        20 if all(2) => format!("{}:{}", parts[..4].join(":"), gid(&parts[4..], table)?),
        4 if all(4) => {
            let guid =
                parts.iter().try_fold(0_u64, |sum, part| Some(sum << 16 | u64::from_str_radix(part, 16).ok()?))?;
            guid_text(table.guid(guid))
        }
        _ => {
            let ip = text.parse::<Ipv6Addr>().ok()?;
            let placeholder = table.v6(ip);
            match parts.len() == 8 && all(4) {
                true => placeholder.segments().map(|segment| format!("{segment:04x}")).join(":"),
                false => placeholder.to_string(),
            }
        }
    };
    Some((text.len(), placeholder))
}

fn gid(parts: &[&str], table: &mut Table) -> Option<String> {
    let mut bytes = [0; 16];
    for (byte, part) in bytes.iter_mut().zip(parts) {
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    Some(pairs(&table.v6(bytes.into()).octets()))
}

fn pairs(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// `10.0.0.1`, and `10.0.0.0/24` as a network.
fn quad(rest: &str, table: &mut Table, dotted: Dotted) -> Option<(usize, String)> {
    let text = run(rest, |c| c.is_ascii_digit() || c == '.').trim_end_matches('.');
    let ip: Ipv4Addr = text.parse().ok()?;
    if !ends(rest, text.len()) || (dotted == Dotted::Known && !table.knows_v4(ip)) {
        return None;
    }
    let bits = rest[text.len()..].strip_prefix('/').map(|behind| run(behind, |c| c.is_ascii_digit()));
    let bits = bits.and_then(|bits| bits.parse::<u32>().ok()).filter(|bits| *bits <= 32);
    let placeholder = match bits {
        Some(bits) => table.network(ip, bits),
        None => table.v4(ip),
    };
    Some((text.len(), placeholder.to_string()))
}

/// Hexadecimal digits without colons: only of what is known, since numbers look the same.
fn bare(rest: &str, table: &mut Table) -> Option<(usize, String)> {
    let word = run(rest, |c| c.is_ascii_alphanumeric());
    // systemd's names of interfaces by their MAC address: `enx525400770101`. rdma-core's of devices by their node GUID:
    // `rocex506b4b0300c21a2e` (rdma-core kernel-boot/rdma_rename.c, `by_guid`).
    let (prefix, digits) = ["0x", "enx", "wlx", "rocex", "iwx", "ibx", "opax", "usnicx", "rdmax"]
        .iter()
        .find_map(|prefix| Some((*prefix, word.strip_prefix(prefix)?)))
        .unwrap_or(("", word));
    let number = u64::from_str_radix(digits, 16).ok()?;
    let named = prefix.ends_with('x') && prefix != "0x";
    let placeholder = match digits.len() {
        12 if named || table.knows_mac(number) => format!("{prefix}{:012x}", table.mac(number)),
        16 if named || table.knows_guid(number) => format!("{prefix}{:016x}", table.guid(number)),
        _ => return None,
    };
    Some((word.len(), placeholder))
}

//! The shape of an error's words: the text without names of this cluster, addresses and numbers. Two errors with the
//! same fields and shape have one cause and share a card of the page.
//!
//! Only certain places, times and counts are removed. `mlx5_0` is removed because a host of the run has a device of
//! that name; `IPv6`, `RoCE v2` and `errno 12` stay because they distinguish causes. A host may be called `server` or
//! `12`: such a name is removed only in the position of a place, as in `server: …` and `to server`.

use std::{
    collections::HashSet,
    net::{IpAddr, SocketAddr},
};

use railgauge_analysis::journal::Journal;
use railgauge_model::plan::Plan;
use railgauge_wire::facts::HostFacts;

#[derive(Debug, Default)]
pub(crate) struct Names<'j> {
    hosts: HashSet<&'j str>,
    devices: HashSet<&'j str>,
}

impl<'j> Names<'j> {
    pub(crate) fn of(journal: &'j Journal) -> Self {
        Self::of_hosts(&journal.plan, journal.hosts.values().map(|up| &up.facts))
    }

    pub(crate) fn of_hosts(plan: &'j Plan, facts: impl Iterator<Item = &'j HostFacts>) -> Self {
        let mut names = Self::default();
        for host in &plan.hosts {
            names.hosts.extend([host.name.as_str(), host.address.as_str()]);
            names.devices.extend(host.devices.iter().chain(&host.tcp).map(String::as_str));
        }
        for facts in facts {
            names.hosts.insert(facts.hostname.as_str());
            names.devices.extend(facts.rdma.iter().map(|device| device.name.as_str()));
            names.devices.extend(facts.interfaces.iter().map(|interface| interface.name.as_str()));
        }
        // An empty name would match everywhere.
        names.hosts.remove("");
        names.devices.remove("");
        names
    }

    pub(crate) fn shape(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut before = String::new();
        for piece in text.split_inclusive(is_border) {
            let (token, border) = match piece.char_indices().next_back() {
                Some((at, last)) if is_border(last) => piece.split_at(at),
                _ => (piece, ""),
            };
            let word = token.trim_end_matches(['.', ':', '!', '?']);
            let around = Around { before: &before, colon: token[word.len()..].starts_with(':'), in_path: false };
            out.push_str(&self.word(word, around));
            out.push_str(&token[word.len()..]);
            out.push_str(border);
            if !word.is_empty() {
                before = word.to_lowercase();
            }
        }
        out
    }

    fn word(&self, word: &str, around: Around<'_>) -> String {
        let unit = unit_of(word);
        // Even if a host has the number as its name.
        if unit.is_some() && names_a_code(around.before) {
            return word.to_owned();
        }
        if self.hosts.contains(word) && (is_no_word(word) || around.is_place(word)) {
            return "HOST".to_owned();
        }
        if self.devices.contains(word) {
            return "DEVICE".to_owned();
        }
        if is_time(word) {
            return "TIME".to_owned();
        }
        if is_address(word) {
            return "ADDRESS".to_owned();
        }
        for border in ['@', '/', ':'] {
            if let Some((left, right)) = word.rsplit_once(border) {
                let in_path = border == '/';
                // `root@server`, `server:22`.
                let host = if border == '@' { "at".to_owned() } else { left.to_lowercase() };
                let first = self.word(left, Around { colon: border == ':', in_path, ..around });
                return format!(
                    "{first}{border}{}",
                    self.word(right, Around { before: &host, colon: around.colon, in_path })
                );
            }
        }
        if let Some(unit) = unit {
            return format!("#{unit}");
        }
        // `uverbs3` in a path counts devices.
        match word.trim_end_matches(|c: char| c.is_ascii_digit()) {
            stem if around.in_path && !stem.is_empty() && stem.len() < word.len() => format!("{stem}#"),
            _ => word.to_owned(),
        }
    }
}

#[derive(Clone, Copy)]
struct Around<'t> {
    /// In lower case; empty for the first.
    before: &'t str,
    colon: bool,
    in_path: bool,
}

impl Around<'_> {
    /// Whether a name has the position of a place: `NAME: …`, `cannot reach NAME`, `from NAME`. The number in `line 12: …` has not.
    fn is_place(&self, name: &str) -> bool {
        const BEFORE: [&str; 12] =
            ["to", "from", "at", "on", "reach", "host", "peer", "between", "with", "via", "→", "->"];
        let number = name.bytes().all(|byte| byte.is_ascii_digit());
        let told = self.colon && (!number || self.before.is_empty());
        told || (!self.in_path && BEFORE.contains(&self.before))
    }
}

/// Whether a host's name can hardly be a word or number of a message: it has letters and digits and is not a version,
/// or it has punctuation that words do not have.
fn is_no_word(name: &str) -> bool {
    let version = name.strip_prefix(['v', 'V', 'x']).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
    let letters = name.contains(|c: char| c.is_alphabetic());
    !version && letters && name.contains(|c: char| c.is_ascii_digit() || "-._:".contains(c))
}

/// A date with or without a time of day (RFC 3339), or a time of day.
fn is_time(word: &str) -> bool {
    let date = |text: &str| pattern(text, "dddd-dd-dd");
    let clock = |text: &str| {
        let bare = text.trim_end_matches('Z');
        let bare =
            bare.rsplit_once(['+', '-']).filter(|(_, zone)| pattern(zone, "dd:dd")).map_or(bare, |(bare, _)| bare);
        pattern(bare.split_once(['.', ',']).map_or(bare, |(whole, _)| whole), "dd:dd:dd")
    };
    clock(word) || date(word) || word.split_once('T').is_some_and(|(day, time)| date(day) && clock(time))
}

/// `d` matches a digit.
fn pattern(text: &str, pattern: &str) -> bool {
    let fits = |(byte, wanted): (u8, u8)| if wanted == b'd' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() == pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)
}

fn is_border(c: char) -> bool {
    c.is_whitespace() || "()[]{}<>\"'`,;=|".contains(c)
}

/// IPv4 and IPv6 with or without port, GIDs, MAC and PCI addresses.
fn is_address(word: &str) -> bool {
    let bare = word.split_once('%').map_or(word, |(bare, _)| bare);
    if bare.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok() {
        return true;
    }
    let groups: Vec<&str> = word.split([':', '.']).collect();
    let hex = |group: &&str| (1..=4).contains(&group.len()) && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    word.contains(':') && groups.len() >= 3 && groups.iter().all(hex)
}

/// The suffix of a number, such as `ms` or `%`; `None` for other words.
fn unit_of(word: &str) -> Option<&str> {
    let signless = word.trim_start_matches(['-', '+', '−', '#']);
    if let Some(hex) = signless.strip_prefix("0x") {
        return (!hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some("");
    }
    let unit = signless.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let counted = signless.starts_with(|c: char| c.is_ascii_digit());
    (counted && unit.len() <= 4 && !unit.contains(|c: char| c.is_ascii_digit())).then_some(unit)
}

/// Whether a number after this word is an error code or a version, which distinguishes causes.
fn names_a_code(word: &str) -> bool {
    let codes =
        ["error", "errno", "err", "code", "status", "signal", "syndrome", "version", "http", "exit", "rc", "type"];
    codes.iter().any(|code| word.ends_with(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names<'static> {
        let hosts = ["gpu01", "gpu02", "10-7.example", "client", "server", "12", "13", "v1", "v2"];
        Names { hosts: hosts.into(), devices: ["mlx5_0", "mlx5_1", "eth0"].into() }
    }

    #[test]
    fn one_cause_on_many_places_has_one_shape() {
        for (one, other) in [
            ("gpu01: cannot reach gpu02:18515", "gpu02: cannot reach gpu01:18516"),
            ("no route to 10.0.0.1:22", "no route to 10.0.0.77:2222"),
            ("no route to fe80::1%eth0 from mlx5_0", "no route to fe80::2:abcd%eth0 from mlx5_1"),
            ("timed out after 30 s", "timed out after 31.5 s"),
            ("timed out after 30s", "timed out after 5s"),
            ("cannot open /dev/infiniband/uverbs0", "cannot open /dev/infiniband/uverbs7"),
            ("0000:17:00.0 fell off the bus", "0000:b1:00.1 fell off the bus"),
            ("root@gpu01 (port 22): denied", "root@10-7.example (port 23): denied"),
            ("line 12: 3 of 40 missing", "line 9: 4 of 41 missing"),
            ("lkey 0x1b2c is stale", "lkey 0x99 is stale"),
            // Hosts named like words and numbers.
            ("client: cannot reach server:18515", "server: cannot reach client:18516"),
            ("no answer from 12", "no answer from 13"),
            ("root@client: denied", "root@gpu01: denied"),
            (
                "exit status: 1: 2026-11-26T11:07:16 [WARN/control] no socket",
                "exit status: 1: 2026-11-26T11:07:17 [WARN/control] no socket",
            ),
            ("2026-11-26 11:07:16.123 lost", "2026-11-27 09:00:00.5 lost"),
            ("at 2026-11-26T11:07:16.5Z: lost", "at 2026-11-26T12:07:16+01:00: lost"),
        ] {
            assert_eq!(names().shape(one), names().shape(other), "{one}");
        }
    }

    #[test]
    fn two_causes_never_have_one_shape() {
        for (one, other) in [
            ("connection refused", "connection reset"),
            ("open failed (os error 110)", "open failed (os error 111)"),
            ("exit status: 1", "exit status: 127"),
            ("wc status 12", "wc status 13"),
            ("no IPv4 address", "no IPv6 address"),
            ("no RoCE v1 GID", "no RoCE v2 GID"),
            ("an H100 is wanted", "an H200 is wanted"),
            ("gpu01: gone", "switch7: gone"),
            ("after 30 s", "after 30 ms"),
            ("cannot open /dev/infiniband/uverbs0", "cannot open /dev/nvidia0"),
            ("completion status 12 on queue pair", "completion status 13 on queue pair"),
            ("completion status: 12", "completion status: 13"),
            ("the server refused the connection", "the client refused the connection"),
            ("server error", "client error"),
        ] {
            assert_ne!(names().shape(one), names().shape(other), "{one}");
        }
    }

    #[test]
    fn a_host_with_the_name_of_a_code_does_not_hide_it() {
        let names = Names { hosts: ["12", "13"].into(), ..Names::default() };
        assert_ne!(
            names.shape("completion status 12 on queue pair"),
            names.shape("completion status 13 on queue pair")
        );
        assert_eq!(names.shape("12: no route to 13"), names.shape("13: no route to 12"));
    }

    #[test]
    fn a_text_keeps_its_words_and_odd_ones_do_no_harm() {
        assert_eq!(names().shape("gpu01: open: no device, err=5"), "HOST: open: no device, err=5");
        for odd in ["", ":", "::", "/", "@", "é:é", "[", "0x", "…", "1:2", "%"] {
            names().shape(odd);
        }
    }
}

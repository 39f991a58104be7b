//! Reads the output of `ibnetdiscover` (switches, adapters and cables of an InfiniBand subnet) and the routes printed by `dump_fts`.

mod routes;
mod speed;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

pub use routes::read_routes;
pub use speed::lane_gbps;

use super::{Cable, Device, MOST_CABLES, Nic, Plug, Remarks, Switch, Told, Unread};
use crate::border::text::printable;

type End = (u64, u32);

struct Node {
    kind: Kind,
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Switch,
    Adapter,
    Router,
}

#[derive(Default)]
struct Said {
    far: End,
    guids: [Option<u64>; 2],
    lids: [Option<u32>; 2],
    width: Option<u32>,
    speed: Option<String>,
}

/// Reads the normal output of ibnetdiscover, also with `-g` (chassis) or `-f` (full).
///
/// # Errors
/// A line is unknown, a port comes before any node, or there is no switch.
pub fn read(text: &str) -> Result<Told, Unread> {
    let (mut nodes, mut ports): (BTreeMap<u64, Node>, BTreeMap<End, Said>) = Default::default();
    let mut told = Told { source: "ibnetdiscover".into(), ..Told::default() };
    let (mut remarks, mut here) = (Remarks::default(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with('[') {
            let guid = here.ok_or_else(|| Unread::line(number, "a port before any node"))?;
            let (port, said) = port(line).ok_or_else(|| Unread::line(number, unknown(line)))?;
            if ports.len() >= 2 * MOST_CABLES {
                return Err(Unread::line(number, format!("more than {MOST_CABLES} cables")));
            }
            ports.insert((guid, port), said);
        } else if let Some((guid, node, lid)) = node(line) {
            here = Some(guid);
            if node.kind == Kind::Switch {
                let switch = Switch { name: node.name.clone(), lid, ..Switch::default() };
                told.switches.insert(key(guid), switch);
            }
            nodes.insert(guid, node);
        } else if !is_beside(line) {
            return Err(Unread::line(number, unknown(line)));
        }
    }
    if told.switches.is_empty() {
        return Err(Unread::Whole("no switch in it: this is not the output of ibnetdiscover".into()));
    }
    told.cables = cables(&nodes, &ports, &mut remarks);
    told.remarks = remarks.list();
    Ok(told)
}

fn unknown(line: &str) -> String {
    let start: String = line.chars().take(60).collect();
    format!("`{}` is no line of ibnetdiscover", printable(&start))
}

fn key(guid: u64) -> String {
    format!("{guid:016x}")
}

fn is_beside(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "#",
        "vendid=",
        "devid=",
        "sysimgguid=",
        "switchguid=",
        "caguid=",
        "rtguid=",
        "Chassis ",
        "Hostname:",
        "Non-Chassis Nodes",
    ];
    line.is_empty() || BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
}

/// `Switch 36 "S-…" # "leaf1" base port 0 lid 3 lmc 0`.
fn node(line: &str) -> Option<(u64, Node, Option<u32>)> {
    let (word, rest) = line.split_once(char::is_whitespace)?;
    let kind = match word {
        "Switch" => Kind::Switch,
        "Ca" => Kind::Adapter,
        "Rt" => Kind::Router,
        _ => return None,
    };
    let (_, rest) = rest.split_once('"')?;
    let (ident, rest) = rest.split_once('"')?;
    let (name, after) = quoted(rest.split_once('#').map_or("", |(_, rest)| rest)).unwrap_or_default();
    Some((guid_of(ident)?, Node { kind, name: printable(name) }, after_word(after, "lid")))
}

/// GUID of `S-0002c90200000001`.
fn guid_of(ident: &str) -> Option<u64> {
    hex(ident.split_once('-')?.1)
}

fn hex(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

/// The text between the first quotation mark and the last, and what follows: names may contain marks.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once('"')?;
    rest.rsplit_once('"')
}

/// The number after the last occurrence of a word.
fn after_word(text: &str, word: &str) -> Option<u32> {
    let mut words = text.split_whitespace();
    let mut found = None;
    while let Some(next) = words.next() {
        if next == word {
            found = words.clone().next().and_then(|number| number.parse().ok());
        }
    }
    found
}

/// A port's line: `[1][ext 5] "H-…"[1](guid) # "gpu1 mlx5_0" lid 8 4xHDR` of a switch, and `[1](guid) "S-…"[8] # lid 76 lmc 0 "leaf8" lid 9
/// 4xHDR` of an adapter.
fn port(line: &str) -> Option<(u32, Said)> {
    let (near, rest) = line.split_once('"')?;
    let (ident, rest) = rest.split_once('"')?;
    let (far, comment) = rest.split_once('#').unwrap_or((rest, ""));
    let (before, after) = match comment.split_once('"') {
        Some((before, _)) => (before, quoted(comment).map_or("", |(_, after)| after)),
        None => ("", comment),
    };
    let (width, speed) = speed::of(after);
    let guid = |text: &str| text.split_once('(').and_then(|(_, rest)| hex(rest.split_once(')')?.0));
    let said = Said {
        far: (guid_of(ident)?, bracket(far)?),
        guids: [guid(near), guid(far)],
        lids: [after_word(before, "lid"), after_word(after, "lid")],
        width,
        speed,
    };
    Some((bracket(near)?, said))
}

fn bracket(text: &str) -> Option<u32> {
    text.split_once('[')?.1.split_once(']')?.0.trim().parse().ok()
}

/// Every cable once, although both of its ends have a line.
fn cables(nodes: &BTreeMap<u64, Node>, ports: &BTreeMap<End, Said>, remarks: &mut Remarks) -> Vec<Cable> {
    let mut all = Vec::new();
    let mut inner: HashMap<u64, usize> = HashMap::new();
    for (end, said) in ports {
        let back = ports.get(&said.far);
        if let Some(back) = back.filter(|back| back.far != *end) {
            let what = |(guid, port): End| format!("{} port {port}", named(nodes, guid));
            remarks.add(format!(
                "{} names {} as its far end, which names {}: ibnetdiscover ran while cables were moved?",
                what(*end),
                what(said.far),
                what(back.far)
            ));
        } else if back.is_some() && said.far < *end {
            continue;
        }
        if let Some(guid) = [end.0, said.far.0].into_iter().find(|guid| is_beside_hosts(nodes, *guid)) {
            *inner.entry(guid).or_default() += 1;
            continue;
        }
        let (near, far) = (plug(nodes, *end, said, back, 0), plug(nodes, said.far, said, back, 1));
        let width = said.width.or_else(|| back?.width);
        let speed = said.speed.clone().or_else(|| back?.speed.clone());
        let lane = speed.as_deref().and_then(speed::lane_gbps);
        let rate_gbps = lane.zip(width).map(|(lane, width)| lane * f64::from(width));
        all.push(Cable { a: near, b: far, rate_gbps, width, speed });
    }
    let routers = inner.keys().filter(|guid| nodes.get(guid).is_some_and(|node| node.kind == Kind::Router)).count();
    if routers > 0 {
        remarks.add(format!("{routers} routers: what is behind them is not known"));
    }
    all
}

fn named(nodes: &BTreeMap<u64, Node>, guid: u64) -> String {
    nodes.get(&guid).map(|node| node.name.clone()).filter(|name| !name.is_empty()).unwrap_or_else(|| key(guid))
}

/// Routers, and the adapters inside switches that reduce for SHARP, are not hosts.
fn is_beside_hosts(nodes: &BTreeMap<u64, Node>, guid: u64) -> bool {
    nodes.get(&guid).is_some_and(|node| {
        node.kind == Kind::Router || node.kind == Kind::Adapter && node.name.contains("Aggregation Node")
    })
}

/// One end of a cable; `which` is 0 for the end that a line describes first.
fn plug(nodes: &BTreeMap<u64, Node>, end: End, said: &Said, back: Option<&Said>, which: usize) -> Plug {
    let (guid, port) = end;
    let of = |node: &Node| node.kind == Kind::Switch;
    // A far end without lines of its own is a switch if its port has no GUID: ports of switches share one.
    if nodes.get(&guid).map_or(said.guids[which].is_none(), of) {
        return Plug { device: Device::Switch(key(guid)), port: Some(port.to_string()) };
    }
    let (host, device) = nodes.get(&guid).map_or((None, None), |node| names(&node.name));
    let guid = said.guids[which].or_else(|| back?.guids[1 - which]);
    let lid = said.lids[which].or_else(|| back?.lids[1 - which]);
    let nic = Nic { host, device, port: Some(port), guid: guid.map(key), lid };
    Plug { device: Device::Nic(nic), port: None }
}

/// Host and device in a node description: `gpu031 mlx5_3` (rdma-ndd's `%h %d`), `gpu031 HCA-1`, `gpu031`. Vendor descriptions, such as
/// `MT4123 ConnectX6 Mellanox Technologies`, contain no host.
fn names(description: &str) -> (Option<String>, Option<String>) {
    let words: Vec<&str> = description.split_whitespace().collect();
    match words.as_slice() {
        [host] => (Some((*host).to_owned()), None),
        [host, device] if !device.starts_with("ConnectX") && !device.starts_with("Mellanox") => {
            (Some((*host).to_owned()), Some((*device).to_owned()))
        }
        _ => (None, None),
    }
}

//! Linear forwarding tables: the output of `dump_fts` and of its older name `dump_lfts`; OpenSM's dump file has the same lines.

use super::{hex, key};
use crate::{
    border::text::printable,
    topology::{Switch, Told, Unread},
};

/// Highest LID of a port; above it are multicast groups (InfiniBand Architecture Specification, volume 1, "Local Identifiers").
const HIGHEST_LID: u32 = 0xbfff;
/// The port in a table for unknown destinations.
const NO_PORT: u32 = 255;

/// Reads the tables into the switches' routes, without cables. Skips tables of multicast groups.
///
/// # Errors
/// A route comes before any switch, a header has no GUID, or there is no table.
pub fn read_routes(text: &str) -> Result<Told, Unread> {
    let mut told = Told { source: "dump_fts".into(), ..Told::default() };
    let mut here: Option<&mut Switch> = None;
    let mut is_multicast = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with("Multicast ") {
            is_multicast = true;
        } else if line.starts_with("Unicast ") {
            is_multicast = false;
            let (guid, name) =
                head(line).ok_or_else(|| Unread::line(number, "a table without the GUID of its switch"))?;
            let switch = told.switches.entry(key(guid)).or_default();
            switch.name = printable(name);
            switch.lid = switch.lid.or_else(|| lid(line));
            here = Some(switch);
        } else if let Some((lid, port)) = route(line).filter(|_| !is_multicast) {
            let switch = here.as_deref_mut().ok_or_else(|| Unread::line(number, "a route before any switch"))?;
            if lid <= HIGHEST_LID && port < NO_PORT {
                switch.routes.insert(lid, port);
            }
            // Port 0 is the switch itself.
            if port == 0 {
                switch.lid = Some(lid);
            }
        }
    }
    if told.switches.values().all(|switch| switch.routes.is_empty()) {
        return Err(Unread::Whole("no route in it: this is not the output of dump_fts or dump_lfts".into()));
    }
    Ok(told)
}

/// GUID and name in `Unicast lids [0x0-0x4c] of switch Lid 6 guid 0x0002c90200000001 (leaf8):`.
fn head(line: &str) -> Option<(u64, &str)> {
    let (_, rest) = line.split_once(" guid ")?;
    let (guid, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest.trim_end_matches(':'), ""));
    let name = rest.trim_start().strip_prefix('(').and_then(|rest| rest.rsplit_once(')')).map_or("", |(name, _)| name);
    Some((hex(guid)?, name.trim_matches('\'')))
}

fn lid(line: &str) -> Option<u32> {
    line.split_once(" Lid ")?.1.split_whitespace().next()?.parse().ok()
}

/// `0x0002 007 : (Switch portguid …)`, or without the destination.
fn route(line: &str) -> Option<(u32, u32)> {
    let mut words = line.strip_prefix("0x")?.split_whitespace();
    let lid = u32::from_str_radix(words.next()?, 16).ok()?;
    Some((lid, words.next()?.parse().ok()?))
}

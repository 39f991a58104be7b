//! Parses `lldpcli -f json show neighbors`, or `-f json0`, which has lists and objects everywhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::facts::Neighbour;

const MOST_INTERFACES: usize = 4096;
/// Neighbours of one host: behind an unmanaged switch an interface hears several.
pub const MOST: usize = 8192;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Heard {
    pub neighbours: Vec<Neighbour>,
    pub unnamed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotHeard {
    #[error("no field `lldp`: this is not the output of lldpcli")]
    Foreign,
    #[error("more than {MOST_INTERFACES} interfaces or {MOST} neighbours")]
    TooMany,
}

/// Reads the output of one host.
///
/// # Errors
/// It is not what lldpcli prints.
pub fn read(value: &Value) -> Result<Heard, NotHeard> {
    let root = value.get("lldp").ok_or(NotHeard::Foreign)?;
    let mut by_interface: BTreeMap<&str, Vec<Neighbour>> = BTreeMap::new();
    let (mut count, mut unnamed) = (0, Vec::new());
    for item in each(root).filter_map(|root| root.get("interface")).flat_map(each) {
        for (interface, neighbour) in named(item) {
            count += 1;
            if count > MOST || by_interface.len() >= MOST_INTERFACES && !by_interface.contains_key(interface) {
                return Err(NotHeard::TooMany);
            }
            match of(interface, neighbour) {
                Some(neighbour) => by_interface.entry(interface).or_default().push(neighbour),
                None => unnamed.push(interface.to_owned()),
            }
        }
    }
    Ok(Heard { neighbours: by_interface.into_values().flatten().collect(), unnamed })
}

fn of(interface: &str, neighbour: &Value) -> Option<Neighbour> {
    let (named, chassis) = chassis(neighbour)?;
    let id = chassis.get("id").and_then(first).and_then(words);
    let name = named.or_else(|| chassis.get("name").and_then(words));
    let address = chassis.get("mgmt-ip").and_then(first).and_then(words);
    let key = id.or(name).or(address)?.to_ascii_lowercase();
    let port = neighbour.get("port").and_then(first);
    Some(Neighbour {
        interface: interface.to_owned(),
        name: name.or(address).unwrap_or(&key).to_owned(),
        port: port.and_then(port_name).map(str::to_owned),
        is_switch: is_switch(chassis),
        chassis: key,
    })
}

/// The chassis and its name, where that is the field's: `{"leaf1": {"id": …}}`, `{"id": …}` of a chassis without name, `[{"id": …}]`.
fn chassis(neighbour: &Value) -> Option<(Option<&str>, &Value)> {
    let chassis = first(neighbour.get("chassis")?)?;
    if chassis.get("id").is_some_and(|id| first(id).and_then(|id| id.get("value")).is_some()) {
        return Some((None, chassis));
    }
    chassis.as_object()?.iter().next().map(|(name, chassis)| (Some(name.as_str()), chassis))
}

/// Whether it bridges or routes; without capabilities it counts as a switch, since many report none.
fn is_switch(chassis: &Value) -> bool {
    let mut told = chassis.get("capability").into_iter().flat_map(each).peekable();
    let forwards = |capability: &Value| {
        let kind = capability.get("type").and_then(Value::as_str);
        matches!(kind, Some("Bridge" | "Router")) && capability.get("enabled").and_then(Value::as_bool) != Some(false)
    };
    told.peek().is_none() || told.any(forwards)
}

/// The port as labelled at the switch's socket. A description of one word with a number is better than an id that is an address or a
/// number of the switch's own.
fn port_name(port: &Value) -> Option<&str> {
    let id = port.get("id").and_then(first);
    let value = id.and_then(words);
    let is_named = id.and_then(|id| id.get("type")).and_then(Value::as_str) == Some("ifname");
    let descr = port
        .get("descr")
        .and_then(words)
        .filter(|descr| !descr.contains(char::is_whitespace) && descr.contains(|c: char| c.is_ascii_digit()));
    if is_named { value.or(descr) } else { descr.or(value) }
}

fn each(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.iter(),
        one => std::slice::from_ref(one).iter(),
    }
}

fn first(value: &Value) -> Option<&Value> {
    each(value).next()
}

/// A text: `"x"`, `{"value": "x"}`, `[{"value": "x"}]`.
fn words(value: &Value) -> Option<&str> {
    let one = first(value)?;
    one.as_str().or_else(|| one.get("value")?.as_str()).map(str::trim).filter(|text| !text.is_empty())
}

/// `{"eth0": {…}, …}`, or `{"name": "eth0", …}`.
fn named(item: &Value) -> Vec<(&str, &Value)> {
    match item.get("name") {
        Some(Value::String(name)) => vec![(name.as_str(), item)],
        _ => item.as_object().into_iter().flat_map(Map::iter).map(|(name, value)| (name.as_str(), value)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_has_its_few_fields() {
        let text = r#"{"lldp": {"interface": [{"ens0": {"chassis": {"leaf1": {"id": {"type": "mac", "value": "AA:BB"}}},
            "port": {"id": {"type": "ifname", "value": "Ethernet7"}}}}, {"ens1": {"chassis": {}}}]}}"#;
        let heard = read(&serde_json::from_str(text).unwrap()).unwrap();
        let leaf = Neighbour {
            interface: "ens0".into(),
            chassis: "aa:bb".into(),
            name: "leaf1".into(),
            port: Some("Ethernet7".into()),
            is_switch: true,
        };
        assert_eq!(heard, Heard { neighbours: vec![leaf], unnamed: vec!["ens1".into()] });
    }

    #[test]
    fn another_document_and_too_much_are_refused() {
        assert_eq!(read(&serde_json::json!({"hosts": []})), Err(NotHeard::Foreign));
        let many: Vec<Value> = (0..=MOST).map(|_| serde_json::json!({"e": {"chassis": {"a": {}}}})).collect();
        assert_eq!(read(&serde_json::json!({"lldp": {"interface": many}})), Err(NotHeard::TooMany));
    }
}

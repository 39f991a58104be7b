//! What a host hears of the switches next to it: the output of `lldpcli -f json show neighbors`, or of `-f json0`, which has lists and
//! objects everywhere.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{
    told::{Cable, Device, Nic, Plug, Switch, Told},
    unread::{Remarks, Unread},
};
use crate::border::{self, text::printable};

/// Interfaces of one host.
const MOST_INTERFACES: usize = 4096;

/// Reads the output of one host.
///
/// # Errors
/// It is not JSON, or not what lldpcli prints.
pub fn read(text: &str, host: &str) -> Result<Told, Unread> {
    let value: Value = border::read(text.as_bytes()).map_err(|refusal| not_json(&refusal))?;
    let mut told = Told { source: format!("lldp ({})", printable(host)), ..Told::default() };
    let mut remarks = Remarks::default();
    let root =
        value.get("lldp").ok_or_else(|| Unread::Whole("no field `lldp`: this is not the output of lldpcli".into()))?;
    let mut heard: BTreeMap<&str, Vec<Neighbor>> = BTreeMap::new();
    for item in each(root).filter_map(|root| root.get("interface")).flat_map(each) {
        for (name, neighbor) in named(item) {
            if heard.len() >= MOST_INTERFACES {
                return Err(Unread::Whole(format!("more than {MOST_INTERFACES} interfaces")));
            }
            match Neighbor::of(neighbor) {
                Some(neighbor) => heard.entry(name).or_default().push(neighbor),
                None => remarks.add(format!("{name}: a neighbour without a chassis")),
            }
        }
    }
    for (interface, neighbors) in heard {
        let switches: Vec<&Neighbor> = neighbors.iter().filter(|neighbor| neighbor.is_switch).collect();
        let Some(first) = switches.first() else {
            remarks.add(format!("{interface}: {} does not say that it is a switch", neighbors[0].called()));
            continue;
        };
        if switches.iter().any(|other| (&other.key, &other.port) != (&first.key, &first.port)) {
            let all: Vec<String> = switches.iter().map(|one| one.called()).collect();
            remarks.add(format!("{interface}: several switches answer ({}): the first is taken", all.join(", ")));
        }
        let nic = Nic { host: Some(host.to_owned()), device: Some(interface.to_owned()), ..Nic::default() };
        let a = Plug { device: Device::Nic(nic), port: None };
        let b = Plug { device: Device::Switch(first.key.clone()), port: first.port.clone() };
        told.cables.push(Cable { a, b, rate_gbps: None, width: None, speed: None });
        told.switches.insert(first.key.clone(), Switch { name: first.name.clone(), ..Switch::default() });
    }
    told.remarks = remarks.list();
    Ok(told)
}

fn not_json(refusal: &border::Refusal) -> Unread {
    match refusal {
        border::Refusal::Shape(error) if error.line() > 0 => Unread::line(error.line(), printable(&error.to_string())),
        other => Unread::Whole(printable(&other.to_string())),
    }
}

/// Who is at the other end.
struct Neighbor {
    key: String,
    name: String,
    port: Option<String>,
    is_switch: bool,
}

impl Neighbor {
    fn of(neighbor: &Value) -> Option<Self> {
        let (named, chassis) = chassis(neighbor)?;
        let id = chassis.get("id").and_then(first).and_then(words);
        let name = named.or_else(|| chassis.get("name").and_then(words));
        let address = chassis.get("mgmt-ip").and_then(first).and_then(words);
        let key = id.or(name).or(address)?.to_ascii_lowercase();
        let port = neighbor.get("port").and_then(first);
        Some(Self {
            name: name.or(address).unwrap_or(&key).to_owned(),
            port: port.and_then(port_name).map(str::to_owned),
            is_switch: is_switch(chassis),
            key,
        })
    }

    fn called(&self) -> String {
        match &self.port {
            Some(port) => format!("{} port {port}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The chassis and its name, where that is the field's: `{"leaf1": {"id": …}}`, `{"id": …}` of a chassis without name, `[{"id": …}]`.
fn chassis(neighbor: &Value) -> Option<(Option<&str>, &Value)> {
    let chassis = first(neighbor.get("chassis")?)?;
    if chassis.get("id").is_some_and(|id| first(id).and_then(|id| id.get("value")).is_some()) {
        return Some((None, chassis));
    }
    chassis.as_object()?.iter().next().map(|(name, chassis)| (Some(name.as_str()), chassis))
}

/// Whether it bridges or routes; who tells no capability is taken for a switch, since many tell none.
fn is_switch(chassis: &Value) -> bool {
    let mut told = chassis.get("capability").into_iter().flat_map(each).peekable();
    let forwards = |capability: &Value| {
        let kind = capability.get("type").and_then(Value::as_str);
        matches!(kind, Some("Bridge" | "Router")) && capability.get("enabled").and_then(Value::as_bool) != Some(false)
    };
    told.peek().is_none() || told.any(forwards)
}

/// The port as it is written beside the switch's socket. An id that is an address or a number of the switch's own says less than the
/// description, if that is one word with a number.
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

/// The elements of a list, or the value itself.
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

/// The interfaces of an element: `{"eth0": {…}, …}`, or `{"name": "eth0", …}`.
fn named(item: &Value) -> Vec<(&str, &Value)> {
    match item.get("name") {
        Some(Value::String(name)) => vec![(name.as_str(), item)],
        _ => item.as_object().into_iter().flat_map(Map::iter).map(|(name, value)| (name.as_str(), value)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Output of lldpcli 1.0.16 on a host between two switches, all in network namespaces.
    const RECORDED: [&str; 3] = [
        include_str!("recorded/lldp.json"),
        include_str!("recorded/lldp0.json"),
        include_str!("recorded/lldp-one.json"),
    ];

    fn cables(told: &Told) -> Vec<String> {
        let end = |plug: &Plug| match &plug.device {
            Device::Switch(key) => format!("{}:{}", told.switches[key].name, plug.port.as_deref().unwrap_or("?")),
            Device::Nic(nic) => format!("{} {}", nic.host.as_deref().unwrap(), nic.device.as_deref().unwrap()),
        };
        told.cables.iter().map(|cable| format!("{} {}", end(&cable.a), end(&cable.b))).collect()
    }

    #[test]
    fn recorded_neighbours_are_read_in_every_form() {
        let all = ["gpu001 ens1f0np0 leaf-1:Ethernet7", "gpu001 ens1f1np1 leaf-2:Ethernet7"];
        for (text, expected) in RECORDED.into_iter().zip([&all[..], &all, &all[..1]]) {
            let told = read(text, "gpu001").unwrap();
            assert_eq!(cables(&told), expected);
            assert!(told.remarks.is_empty(), "{:?}", told.remarks);
        }
        assert_eq!(read(r#"{"lldp":{}}"#, "a").unwrap().cables, []);
    }

    fn neighbour(chassis: &str, port: &str) -> String {
        format!(r#"{{"lldp":{{"interface":{{"eth0":{{"chassis":{chassis},"port":{port}}}}}}}}}"#)
    }

    #[test]
    fn ports_are_called_by_what_tells_most() {
        let chassis = r#"{"sw":{"id":{"type":"mac","value":"AA:BB"}}}"#;
        for (port, expected) in [
            (r#"{"id":{"type":"ifname","value":"Eth1/7"},"descr":"to gpu1"}"#, "sw:Eth1/7"),
            (r#"{"id":{"type":"local","value":"513"},"descr":"et-0/0/1"}"#, "sw:et-0/0/1"),
            (r#"{"id":{"type":"local","value":"513"},"descr":"uplink of gpu 1"}"#, "sw:513"),
            (r#"{"id":{"type":"mac","value":"aa:bb"}}"#, "sw:aa:bb"),
            (r#"{}"#, "sw:?"),
        ] {
            let told = read(&neighbour(chassis, port), "h").unwrap();
            assert_eq!(cables(&told), [format!("h eth0 {expected}")]);
            assert!(told.switches.contains_key("aa:bb"));
        }
    }

    #[test]
    fn a_chassis_without_name_is_told_by_its_address() {
        let chassis = r#"{"id":{"type":"mac","value":"aa:bb"},"mgmt-ip":["10.0.0.9"]}"#;
        let told = read(&neighbour(chassis, r#"{"id":{"type":"ifname","value":"1"}}"#), "h").unwrap();
        assert_eq!(cables(&told), ["h eth0 10.0.0.9:1"]);
    }

    #[test]
    fn a_station_is_no_switch_and_two_answers_are_remarked() {
        let station = r#"{"nic":{"id":{"value":"x"},"capability":[{"type":"Station","enabled":true},{"type":"Bridge","enabled":false}]}}"#;
        let told = read(&neighbour(station, "{}"), "h").unwrap();
        assert_eq!((told.cables.len(), told.switches.len(), told.remarks.len()), (0, 0, 1));
        let two = r#"{"lldp":{"interface":[{"e":{"chassis":{"a":{"id":{"value":"1"}}}}},{"e":{"chassis":{"b":{"id":{"value":"2"}}}}}]}}"#;
        let told = read(two, "h").unwrap();
        assert_eq!((cables(&told), told.remarks.len()), (vec!["h e a:?".to_owned()], 1));
    }

    #[test]
    fn what_is_no_json_is_told_with_its_line() {
        assert!(matches!(read("{\n\"lldp\": ]", "h"), Err(Unread::Line { line: 2, .. })));
        assert!(matches!(read("{}", "h"), Err(Unread::Whole(_))));
    }

    proptest! {
        #[test]
        fn nothing_panics(which in 0..3_usize, cut in 0..1200_usize, skip in 0..40_usize, put in "[\\[\\]{}\",:a0]{0,3}") {
            let text = RECORDED[which];
            let after = (cut + skip).min(text.len());
            let _ = read(&format!("{}{put}{}", &text[..cut.min(text.len())], &text[after..]), "h");
        }
    }
}

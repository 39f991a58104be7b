//! What a host receives from the switches next to it: the output of lldpcli, or what its agent read there.

use std::collections::BTreeMap;

use railgauge_wire::{HostFacts, Neighbour, neighbours};
use serde_json::Value;

use super::{
    Cable, Device, Nic, Plug, Remarks, Switch, Told, Unread,
    unread::{self},
};
use crate::border::text::printable;

pub const HEARD: &str = "lldp (heard by the hosts)";

pub fn read(text: &str, host: &str) -> Result<Told, Unread> {
    let value: Value = unread::json(text)?;
    let heard = neighbours::read(&value).map_err(|why| Unread::Whole(why.to_string()))?;
    let mut told = Told { source: format!("lldp ({})", printable(host)), ..Told::default() };
    let mut remarks = Remarks::default();
    for interface in heard.unnamed {
        remarks.add(format!("{interface}: a neighbour without a chassis"));
    }
    add(&mut told, &mut remarks, host, &heard.neighbours);
    told.remarks = remarks.list();
    Ok(told)
}

/// What the agents of these hosts read; `None` where no host receives anything from a switch.
pub fn heard<'f>(facts: impl Iterator<Item = (&'f str, &'f HostFacts)>) -> Option<Told> {
    let mut told = Told { source: HEARD.into(), ..Told::default() };
    let mut remarks = Remarks::default();
    for (host, facts) in facts {
        let mut own = Remarks::default();
        add(&mut told, &mut own, host, facts.neighbours.as_deref().unwrap_or_default());
        own.list().into_iter().for_each(|remark| remarks.add(format!("{host}: {remark}")));
    }
    told.remarks = remarks.list();
    (!told.cables.is_empty()).then_some(told)
}

fn add(told: &mut Told, remarks: &mut Remarks, host: &str, heard: &[Neighbour]) {
    let mut by_interface: BTreeMap<&str, Vec<&Neighbour>> = BTreeMap::new();
    for neighbour in heard {
        by_interface.entry(&neighbour.interface).or_default().push(neighbour);
    }
    for (interface, neighbours) in by_interface {
        let switches: Vec<&&Neighbour> = neighbours.iter().filter(|neighbour| neighbour.is_switch).collect();
        let Some(first) = switches.first() else {
            remarks.add(format!("{interface}: {} does not say that it is a switch", called(neighbours[0])));
            continue;
        };
        if switches.iter().any(|other| (&other.chassis, &other.port) != (&first.chassis, &first.port)) {
            let all: Vec<String> = switches.iter().map(|one| called(one)).collect();
            remarks.add(format!("{interface}: several switches answer ({}): the first is taken", all.join(", ")));
        }
        let nic = Nic { host: Some(host.to_owned()), device: Some(interface.to_owned()), ..Nic::default() };
        let a = Plug { device: Device::Nic(nic), port: None };
        let b = Plug { device: Device::Switch(first.chassis.clone()), port: first.port.clone() };
        told.cables.push(Cable { a, b, rate_gbps: None, width: None, speed: None });
        told.switches.insert(first.chassis.clone(), Switch { name: first.name.clone(), ..Switch::default() });
    }
}

fn called(neighbour: &Neighbour) -> String {
    match &neighbour.port {
        Some(port) => format!("{} port {port}", neighbour.name),
        None => neighbour.name.clone(),
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

//! Parts in the slots of a host. A part is identified by its serial number or, if unknown, by another id that stays with it.

use std::collections::BTreeMap;

pub use railgauge_model::plan::baseline::PartKind;
use railgauge_wire::{HostFacts, Sriov, facts::serial_number};
use serde::Serialize;

/// Kinds of ids, the most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    Serial,
    Uuid,
    /// The GUID of the RDMA device of a card's first function: it stays with the card unless an administrator changes it.
    NodeGuid,
    /// The same for its second function. Only compared with each other: on some nights only one of them is known.
    SecondGuid,
}

impl By {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Serial => "serial number",
            Self::Uuid => "UUID",
            Self::NodeGuid => "node GUID",
            Self::SecondGuid => "node GUID of the second function",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    pub kind: PartKind,
    /// A PCI address without the function, or a network interface; empty if the host has only one.
    pub at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fitted {
    pub slot: Slot,
    /// Its devices and interfaces, by the names that records use for ends of links.
    pub carries: Vec<String>,
    pub ids: BTreeMap<By, String>,
}

impl Fitted {
    /// In words: `NIC mlx5_0`, `main board`.
    pub fn name(&self) -> String {
        let of = match self.slot.kind {
            PartKind::Machine | PartKind::Board => return self.slot.kind.word().to_owned(),
            PartKind::Card | PartKind::Module if !self.carries.is_empty() => self.carries[0].as_str(),
            _ => self.slot.at.as_str(),
        };
        format!("{} {of}", self.slot.kind.word())
    }

    fn new(kind: PartKind, at: &str, carries: Vec<String>) -> Self {
        Self { slot: Slot { kind, at: at.to_owned() }, carries, ids: BTreeMap::new() }
    }

    /// Adds an id, unless it is a placeholder.
    fn known(mut self, by: By, text: Option<&str>) -> Self {
        self.ids.extend(text.and_then(serial_number).map(|text| (by, text.to_owned())));
        self
    }
}

/// Slots of a host with a known part, in order.
pub fn fitted(facts: &HostFacts) -> Vec<Fitted> {
    let parts = &facts.parts;
    let mut all = vec![
        Fitted::new(PartKind::Machine, "", Vec::new()).known(By::Serial, parts.machine.serial.as_deref()),
        Fitted::new(PartKind::Board, "", Vec::new()).known(By::Serial, parts.board.serial.as_deref()),
    ];
    all.extend(cards(facts).into_values());
    all.extend(facts.gpus.iter().filter_map(|gpu| {
        // Without an address it is unknown which one it is: numbers move when a GPU is lost.
        let slot = Fitted::new(PartKind::Gpu, gpu.pci.as_deref()?, Vec::new());
        Some(slot.known(By::Serial, gpu.serial.as_deref()).known(By::Uuid, gpu.uuid.as_deref()))
    }));
    all.extend(parts.modules.iter().map(|module| {
        let interface = &module.interface;
        let on = |device: &&railgauge_wire::facts::RdmaDevice| {
            device.ports.iter().any(|port| port.netdev.as_ref() == Some(interface))
        };
        let mut carries = vec![interface.clone()];
        carries.extend(facts.rdma.iter().filter(on).map(|device| device.name.clone()));
        Fitted::new(PartKind::Module, interface, carries).known(By::Serial, module.label.serial.as_deref())
    }));
    all.retain(|fitted| !fitted.ids.is_empty());
    all.sort();
    // A duplicate address, as in forged facts, is one slot.
    all.dedup_by(|one, before| one.slot == before.slot);
    all
}

fn cards(facts: &HostFacts) -> BTreeMap<String, Fitted> {
    let place = |address: &str| address.rsplit_once('.').map_or(address, |(place, _)| place).to_owned();
    let mut cards: BTreeMap<String, Fitted> = BTreeMap::new();
    for device in facts.rdma.iter().filter(|device| !device.software) {
        // The GUID of a virtual function was assigned by an administrator.
        if device.function.sriov == Some(Sriov::Virtual) {
            continue;
        }
        // Without an address each device is a place of its own.
        let at = device.pci.as_deref().map_or_else(|| device.name.clone(), place);
        let card = cards.remove(&at).unwrap_or_else(|| Fitted::new(PartKind::Card, &at, Vec::new()));
        let function =
            device.pci.as_deref().and_then(|address| address.rsplit_once('.')).map_or("0", |(_, number)| number);
        let mut card = match function {
            "0" => card.known(By::NodeGuid, device.guid.as_deref()),
            "1" => card.known(By::SecondGuid, device.guid.as_deref()),
            _ => card,
        };
        card.carries.push(device.name.clone());
        card.carries.extend(device.ports.iter().filter_map(|port| port.netdev.clone()));
        cards.insert(at, card);
    }
    for known in &facts.parts.cards {
        let at = place(&known.pci);
        // Facts recorded without addresses still name the devices.
        let named = || known.devices.iter().find(|device| cards.contains_key(device.as_str())).cloned();
        let at = if cards.contains_key(&at) { at } else { named().unwrap_or(at) };
        let card = cards.remove(&at).unwrap_or_else(|| Fitted::new(PartKind::Card, &at, Vec::new()));
        let mut card = card.known(By::Serial, known.label.serial.as_deref());
        let more = known.devices.iter().chain(&known.interfaces).filter(|name| !card.carries.contains(name));
        let more: Vec<String> = more.cloned().collect();
        card.carries.extend(more);
        cards.insert(at, card);
    }
    cards
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Card, Gpu, Label, Module, RdmaDevice};

    use super::*;

    fn serial(text: &str) -> Label {
        Label { serial: Some(text.into()), ..Label::default() }
    }

    #[test]
    fn functions_of_a_card_are_one_part_with_all_their_names() {
        let device = |name: &str, pci: &str, guid: &str| RdmaDevice {
            name: name.into(),
            pci: Some(pci.into()),
            guid: Some(guid.into()),
            ..RdmaDevice::default()
        };
        let mut facts = HostFacts {
            rdma: vec![
                device("mlx5_0", "0000:18:00.0", "0002:c903:00fe:8a11"),
                device("mlx5_1", "0000:18:00.1", "0002:c903:00fe:8a12"),
            ],
            ..HostFacts::default()
        };
        let card = |facts: &HostFacts| {
            let [card] = fitted(facts).try_into().unwrap();
            card
        };
        let found: Fitted = card(&facts);
        assert_eq!((found.name().as_str(), found.slot.at.as_str()), ("NIC mlx5_0", "0000:18:00"));
        let (first, second) = ("0002:c903:00fe:8a11".to_owned(), "0002:c903:00fe:8a12".to_owned());
        assert_eq!(found.ids, [(By::NodeGuid, first), (By::SecondGuid, second.clone())].into());
        // A night on which only the second one can be read says nothing about the first.
        let mut half = facts.clone();
        half.rdma[0].guid = None;
        assert_eq!(card(&half).ids, [(By::SecondGuid, second)].into());
        let known = Card {
            pci: "0000:18:00.0".into(),
            interfaces: vec!["eth0".into()],
            label: serial("S1"),
            ..Card::default()
        };
        facts.parts.cards = vec![known];
        let found: Fitted = card(&facts);
        assert_eq!(found.carries, ["mlx5_0", "mlx5_1", "eth0"]);
        assert_eq!(found.ids.first_key_value(), Some((&By::Serial, &"S1".to_owned())));
    }

    #[test]
    fn what_is_emulated_virtual_or_a_placeholder_is_no_part() {
        let device = |software| RdmaDevice {
            name: "x".into(),
            software,
            guid: Some("0000:0000:0000:0000".into()),
            ..RdmaDevice::default()
        };
        let mut virtual_one = device(false);
        virtual_one.guid = Some("0002:c903:00fe:8a11".into());
        let mut soft = virtual_one.clone();
        (virtual_one.function.sriov, soft.software) = (Some(Sriov::Virtual), true);
        let gpu = Gpu { index: 0, uuid: Some("GPU-1".into()), ..Gpu::default() };
        let mut facts =
            HostFacts { rdma: vec![device(false), virtual_one, soft], gpus: vec![gpu], ..HostFacts::default() };
        facts.parts.board = serial("Default string");
        facts.parts.modules = vec![Module { interface: "eth0".into(), label: serial("0000"), ..Module::default() }];
        assert_eq!(fitted(&facts), []);
    }
}

//! Hosts of a run and the devices that they reported, with the ids that other lines refer to.

use std::collections::HashSet;

use railgauge_analysis::journal::Journal;
use railgauge_wire::{Gpu, HostFacts, Label, RdmaDevice, facts::port_name};

use super::artifact::HardwareInfo;

pub(super) struct Hardware(HashSet<String>);

impl Hardware {
    pub(super) fn of(journal: &Journal) -> (Self, Vec<HardwareInfo<'_>>) {
        let mut all = Vec::new();
        for host in &journal.plan.hosts {
            let (name, facts) = (host.name.as_str(), journal.hosts.get(&host.name).map(|up| &up.facts));
            let info = HardwareInfo {
                hardware_info_id: name.to_owned(),
                name: name.to_owned(),
                computer_system: name,
                part_type: "host",
                location: journal.plan.places.get(name).map(String::as_str),
                ..HardwareInfo::default()
            };
            all.push(labelled(info, facts.map(|facts| &facts.parts.machine)));
            let Some(facts) = facts else { continue };
            all.extend(facts.rdma.iter().map(|device| of_nic(name, device, facts)));
            all.extend(facts.gpus.iter().map(|gpu| of_gpu(name, gpu)));
        }
        (Self(all.iter().map(|info| info.hardware_info_id.clone()).collect()), all)
    }

    /// The device (`mlx5_0:1`), or the host where it is unknown.
    pub(super) fn id(&self, host: &str, device: &str) -> Option<String> {
        [id(host, port_name(device).0), host.to_owned()].into_iter().find(|id| self.0.contains(id))
    }
}

fn id(host: &str, device: &str) -> String {
    format!("{host}/{device}")
}

fn labelled<'a>(info: HardwareInfo<'a>, label: Option<&'a Label>) -> HardwareInfo<'a> {
    let Some(Label { vendor, part_number, serial }) = label else { return info };
    HardwareInfo {
        manufacturer: vendor.as_deref(),
        part_number: part_number.as_deref(),
        serial_number: serial.as_deref(),
        ..info
    }
}

fn of_nic<'a>(host: &'a str, device: &'a RdmaDevice, facts: &'a HostFacts) -> HardwareInfo<'a> {
    let info = HardwareInfo {
        hardware_info_id: id(host, &device.name),
        name: device.name.clone(),
        computer_system: host,
        part_type: "nic",
        location: device.pci.as_deref(),
        version: device.firmware.as_deref(),
        ..HardwareInfo::default()
    };
    let card = facts.parts.cards.iter().find(|card| card.devices.contains(&device.name));
    labelled(info, card.map(|card| &card.label))
}

fn of_gpu<'a>(host: &'a str, gpu: &'a Gpu) -> HardwareInfo<'a> {
    HardwareInfo {
        hardware_info_id: id(host, &format!("GPU {}", gpu.index)),
        name: gpu.name.clone().unwrap_or_else(|| format!("GPU {}", gpu.index)),
        computer_system: host,
        part_type: "gpu",
        location: gpu.pci.as_deref(),
        part_number: gpu.part_number.as_deref(),
        serial_number: gpu.serial.as_deref(),
        ..HardwareInfo::default()
    }
}

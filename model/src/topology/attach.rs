use std::net::Ipv6Addr;

use railgauge_wire::{HostFacts, RdmaPort};

use super::Fabric;

/// The NIC port of the fabric for a device of a host: `mlx5_3`, `mlx5_3:2`, or for TCP an interface or address. `None` where no source
/// knows it, or where several match.
///
/// It is found by the GUID of its port, by the host's name (in the plan, its address, its own) with the RDMA device or its network
/// interface, or by the host alone.
pub fn nic_of(fabric: &Fabric, names: &[&str], device: Option<&str>, facts: Option<&HostFacts>) -> Option<u32> {
    let mut names = names.to_vec();
    names.extend(facts.map(|facts| facts.hostname.as_str()).filter(|own| !own.is_empty()));
    let Some(device) = device else { return only(&fabric.nics_of(&names, None, 1, &[])) };
    let (name, number) = match device.rsplit_once(':') {
        Some((name, number)) if facts.is_none_or(|facts| facts.rdma.iter().any(|rdma| rdma.name == name)) => {
            (name, number.parse().unwrap_or(1))
        }
        _ => (device, 1),
    };
    let port = facts.and_then(|facts| {
        let rdma = facts.rdma.iter().find(|rdma| rdma.name == name)?;
        rdma.ports.iter().find(|port| u32::from(port.number) == number)
    });
    let guids: Vec<String> = port.and_then(guid).into_iter().collect();
    let interface = port.and_then(|port| port.netdev.as_deref()).or_else(|| {
        let here = |interface: &&railgauge_wire::facts::Interface| {
            interface.name == name || interface.addresses.iter().any(|address| address == name)
        };
        facts?.interfaces.iter().find(here).map(|interface| interface.name.as_str())
    });
    let found = fabric.nics_of(&names, Some(name), number, &guids);
    let is_exact =
        |found: &[u32]| found.iter().any(|nic| fabric.nics[*nic as usize].device.is_some()) || !guids.is_empty();
    match interface {
        // Sources name a device by its RDMA name, by its interface, or not at all.
        Some(interface) if !is_exact(&found) => only(&fabric.nics_of(&names, Some(interface), 1, &[])),
        _ => only(&found),
    }
}

fn only(found: &[u32]) -> Option<u32> {
    match found {
        [one] => Some(*one),
        _ => None,
    }
}

/// GUID of an InfiniBand port: the lower half of its first GID (InfiniBand Architecture Specification 1.4, section 4.1.1).
pub fn guid(port: &RdmaPort) -> Option<String> {
    if port.link_layer.as_deref() != Some("InfiniBand") {
        return None;
    }
    let gid: Ipv6Addr = port.gids.iter().find(|gid| gid.index == 0)?.gid.parse().ok()?;
    Some(format!("{:016x}", u128::from(gid) as u64))
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Gid, Interface, RdmaDevice};

    use super::*;
    use crate::topology::told::{Cable, Device, Nic, Plug, Switch, Told};

    fn fabric(nics: &[Nic]) -> Fabric {
        let mut told = Told::default();
        told.switches.insert("l".into(), Switch { name: "l".into(), ..Switch::default() });
        for (number, nic) in nics.iter().enumerate() {
            let a = Plug { device: Device::Nic(nic.clone()), port: None };
            let b = Plug { device: Device::Switch("l".into()), port: Some(number.to_string()) };
            told.cables.push(Cable { a, b, rate_gbps: None, width: None, speed: None });
        }
        Fabric::join(&[told])
    }

    fn nic(host: &str, device: Option<&str>) -> Nic {
        Nic { host: Some(host.into()), device: device.map(str::to_owned), ..Nic::default() }
    }

    fn facts(layer: &str) -> HostFacts {
        let gid = Gid { index: 0, gid: "fe80:0000:0000:0000:b859:9f03:0001:0002".into(), ..Gid::default() };
        let port = RdmaPort {
            number: 1,
            link_layer: Some(layer.into()),
            netdev: Some("ens8".into()),
            gids: vec![gid],
            ..RdmaPort::default()
        };
        let rdma = RdmaDevice { name: "mlx5_0".into(), ports: vec![port], ..RdmaDevice::default() };
        let ens8 = Interface { name: "ens8".into(), addresses: vec!["10.0.0.1".into()], ..Interface::default() };
        HostFacts { hostname: "gpu1".into(), rdma: vec![rdma], interfaces: vec![ens8], ..HostFacts::default() }
    }

    #[test]
    fn an_infiniband_port_is_told_by_its_guid() {
        let known = Nic { guid: Some("b8599f0300010002".into()), host: Some("MT4123".into()), ..Nic::default() };
        let fabric = fabric(&[nic("other", Some("mlx5_0")), known]);
        assert_eq!(nic_of(&fabric, &["a"], Some("mlx5_0"), Some(&facts("InfiniBand"))), Some(1));
        assert_eq!(nic_of(&fabric, &["a"], Some("mlx5_0"), Some(&facts("Ethernet"))), None);
    }

    #[test]
    fn a_source_may_name_the_device_the_interface_or_the_host() {
        let facts = facts("Ethernet");
        for device in [Some("mlx5_0"), Some("ens8"), None] {
            let fabric = fabric(&[nic("gpu2", device), nic("gpu1", device)]);
            for wanted in ["mlx5_0", "ens8", "10.0.0.1"] {
                let expected = (device != Some("mlx5_0") || wanted == "mlx5_0").then_some(1);
                assert_eq!(nic_of(&fabric, &["h1"], Some(wanted), Some(&facts)), expected, "{device:?} {wanted}");
            }
        }
    }

    #[test]
    fn one_of_two_is_not_chosen() {
        let fabric = fabric(&[nic("gpu1", None), Nic { port: Some(2), ..nic("gpu1", None) }]);
        assert_eq!(nic_of(&fabric, &["gpu1"], Some("mlx5_0"), None), Some(0));
        let fabric = self::fabric(&[nic("gpu1", None), nic("gpu1.a", None)]);
        assert_eq!(nic_of(&fabric, &["gpu1"], Some("mlx5_0"), None), None);
    }
}

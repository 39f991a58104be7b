//! Address and interface of one end of a link.

use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr},
};

use railgauge_wire::{Failure, GigabitsPerSecond, Kind, LinkSpec, Stage, remedy};

use crate::{
    facts::interfaces as known,
    memory::place,
    system::{
        interfaces::{self, Address},
        tree::Tree,
    },
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub device: String,
    pub address: IpAddr,
    /// Named by the plan, not found.
    pub named_address: bool,
    pub named_device: bool,
}

impl Place {
    /// Moves the calling thread to the interface's NUMA node, or to `core`, and returns the record. Call it before allocating memory.
    pub(crate) fn settle(&self, core: Option<u32>) -> Result<BTreeMap<String, String>, Failure> {
        let numa = format!("sys/class/net/{}/device/numa_node", self.device);
        place::settle(&Tree::host(), core, &numa)
    }
}

/// In bytes; 0 if unknown.
pub(crate) fn mtu(device: &str) -> u32 {
    known::mtu(&Tree::host(), device).unwrap_or(0)
}

/// `None` if the kernel does not know it.
pub(crate) fn rate(device: &str) -> Option<GigabitsPerSecond> {
    known::speed(&Tree::host(), device).map(GigabitsPerSecond::from)
}

/// The requested address, else the interface's, else the default route's interface's, else that of the first interface that is up, else
/// the loopback address.
pub(crate) fn choose(spec: &LinkSpec) -> Result<Place, Failure> {
    let addresses = interfaces::addresses().map_err(|error| {
        Failure::new(Stage::Open, Kind::Internal, format!("the interfaces cannot be listed: {error}"))
    })?;
    let route = fs::read_to_string("/proc/net/route").unwrap_or_default();
    among(&addresses, default_interface(&route), spec)
}

fn among(addresses: &[Address], default: Option<String>, spec: &LinkSpec) -> Result<Place, Failure> {
    // A plan may name an interface where an address is expected.
    let (address, device) = match (&spec.address, &spec.device) {
        (Some(name), device) if name.parse::<IpAddr>().is_err() => (None, Some(device.as_ref().unwrap_or(name))),
        (address, device) => (address.as_ref().and_then(|text| text.parse::<IpAddr>().ok()), device.as_ref()),
    };
    let named = |address: &Address, by: (bool, bool)| Place {
        device: address.interface.clone(),
        address: address.ip,
        named_address: by.0,
        named_device: by.1,
    };
    match (address, device) {
        (Some(ip), device) => {
            let found = addresses.iter().find(|a| a.ip == ip && device.is_none_or(|device| *device == a.interface));
            // All of 127/8 is on this host, though only one address of it is listed.
            let found = found
                .cloned()
                .or_else(|| ip.is_loopback().then(|| Address { interface: "lo".into(), ip, prefix: None, up: true }));
            let found = found.ok_or_else(|| absent(&format!("the address {ip}"), device, addresses))?;
            Ok(named(&found, (true, device.is_some())))
        }
        (None, Some(device)) => {
            let found = best(addresses.iter().filter(|a| a.interface == *device));
            let found = found.ok_or_else(|| match addresses.iter().any(|a| a.interface == *device) {
                true => absent("a usable address", Some(device), addresses),
                false => absent("an interface with an address", Some(device), addresses),
            })?;
            Ok(named(found, (false, true)))
        }
        (None, None) => {
            let by_route = best(addresses.iter().filter(|a| Some(&a.interface) == default.as_ref()));
            let found = by_route.or_else(|| best(addresses.iter().filter(|a| !a.ip.is_loopback())));
            let loopback = Address { interface: "lo".into(), ip: Ipv4Addr::LOCALHOST.into(), prefix: None, up: true };
            Ok(named(found.unwrap_or(&loopback), (false, false)))
        }
    }
}

/// Up, IPv4 before IPv6, never link-local.
fn best<'a>(addresses: impl Iterator<Item = &'a Address>) -> Option<&'a Address> {
    let usable = |a: &&Address| {
        a.up && match a.ip {
            IpAddr::V4(v4) => !v4.is_link_local(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        }
    };
    addresses.filter(usable).min_by_key(|a| a.ip.is_ipv6())
}

fn absent(what: &str, device: Option<&String>, addresses: &[Address]) -> Failure {
    let on = device.map(|device| format!(" on {device}")).unwrap_or_default();
    let there: Vec<_> =
        addresses.iter().map(|a| format!("{} {}{}", a.interface, a.ip, if a.up { "" } else { " (down)" })).collect();
    let cause = format!("this host has not got {what}{on}; it has: {}", there.join(", "));
    Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::NAME_INTERFACE)
}

/// Interface of the IPv4 default route with the lowest metric, from `/proc/net/route`.
fn default_interface(route: &str) -> Option<String> {
    let rows = route.lines().skip(1).filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let (name, destination, flags, metric, mask) =
            (words.first()?, words.get(1)?, words.get(3)?, words.get(6)?, words.get(7)?);
        let up = u32::from_str_radix(flags, 16).ok()? & 1 == 1;
        (*destination == "00000000" && *mask == "00000000" && up).then_some((metric.parse::<u64>().ok()?, *name))
    });
    rows.min().map(|(_, name)| name.to_owned())
}

/// Traffic to an own address never leaves the host.
pub(crate) fn is_own(ip: IpAddr) -> bool {
    ip.is_loopback() || interfaces::addresses().is_ok_and(|all| all.iter().any(|a| a.ip == ip))
}

pub(crate) fn interface_of(ip: IpAddr) -> Option<String> {
    interfaces::addresses().ok()?.into_iter().find(|a| a.ip == ip).map(|a| a.interface)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railgauge_wire::{Bytes, Knobs, Memory, Role, Service, Transport};

    fn host() -> Vec<Address> {
        [
            ("lo", "127.0.0.1", true),
            ("eth0", "fe80::1", true),
            ("eth0", "2001:db8::1", true),
            ("eth0", "10.0.0.1", true),
            ("eth1", "10.1.0.1", true),
            ("eth2", "10.2.0.1", false),
            ("eth3", "fe80::2", true),
        ]
        .map(|(interface, ip, up)| Address { interface: interface.into(), ip: ip.parse().unwrap(), prefix: None, up })
        .to_vec()
    }

    fn chosen(address: Option<&str>, device: Option<&str>, default: Option<&str>) -> Result<(String, String), Failure> {
        let spec = LinkSpec {
            role: Role::Responder,
            transport: Transport::Tcp,
            service: Service::Rc,
            device: device.map(Into::into),
            port: 1,
            address: address.map(Into::into),
            memory: Memory::Host,
            gpu: None,
            gpu_path: None,
            qps: 1,
            threads: 1,
            max_size: Bytes(1),
            token: String::new(),
            rides_out: false,
            knobs: Knobs::default(),
        };
        among(&host(), default.map(Into::into), &spec).map(|place| (place.device, place.address.to_string()))
    }

    #[test]
    fn what_is_named_is_used() {
        assert_eq!(chosen(Some("10.1.0.1"), None, None).unwrap(), ("eth1".into(), "10.1.0.1".into()));
        assert_eq!(chosen(None, Some("eth0"), None).unwrap(), ("eth0".into(), "10.0.0.1".into()));
        assert_eq!(chosen(Some("eth1"), None, None).unwrap(), ("eth1".into(), "10.1.0.1".into()));
        assert_eq!(chosen(Some("127.0.0.9"), None, None).unwrap(), ("lo".into(), "127.0.0.9".into()));
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        for (address, device) in [
            (Some("10.9.9.9"), None),
            (Some("10.0.0.1"), Some("eth1")),
            (None, Some("eth2")),
            (None, Some("eth3")),
            (None, Some("ib0")),
            (Some("no such thing"), None),
        ] {
            let failure = chosen(address, device, None).unwrap_err();
            assert!(failure.cause.contains("eth1 10.1.0.1"), "{failure}");
        }
    }

    #[test]
    fn without_a_name_the_default_route_decides() {
        assert_eq!(chosen(None, None, Some("eth1")).unwrap().0, "eth1");
        assert_eq!(chosen(None, None, None).unwrap(), ("eth0".into(), "10.0.0.1".into()));
    }

    #[test]
    fn the_default_route_has_the_lowest_metric() {
        let text = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\n\
                    eth9\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
                    eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                    eth1\t0000000A\t00000000\t0001\t0\t0\t0\t000000FF\t0\t0\t0\n";
        assert_eq!(default_interface(text).as_deref(), Some("eth0"));
    }

    proptest! {
        #[test]
        fn no_route_table_makes_it_panic(text: String) {
            let _ = default_interface(&text);
        }
    }
}

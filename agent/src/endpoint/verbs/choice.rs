//! Which device, port and GID a link uses, and what they are: proven by the device, never assumed.

use std::sync::Arc;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    link::{Joining, LinkSpec},
    remedy,
    terms::LinkLayer,
    unit::GigabitsPerSecond,
};

use super::driver::{Driver, must_connect};
use crate::{
    facts::rdma,
    system::tree::Tree,
    verbs::{
        cache,
        device::Device,
        domain::Domain,
        gid::{self, Gid},
        pkey::{self, Pkey},
        port::Port,
    },
};

#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub domain: Arc<Domain>,
    pub port: Port,
    /// The GID, if the port has any (an InfiniBand port without a subnet prefix may not).
    pub gid: Option<Gid>,
    pub link_layer: LinkLayer,
    /// The partition; `None` where ports have none (iWARP), and where rdma_cm takes it.
    pub pkey: Option<Pkey>,
    pub driver: Driver,
    /// Rate of the port in Gb/s, as the facts have it: the interface's where the driver's is known to lie, of a bond that of all
    /// members that carry traffic; never of a software device, which invents one.
    pub rate_gbps: Option<GigabitsPerSecond>,
}

impl Choice {
    /// The device and port `spec` names, or the first device with an active port.
    pub(crate) fn new(spec: &LinkSpec) -> Result<Self, Failure> {
        let tree = Tree::host();
        let (name, port) = match &spec.device {
            Some(named) => parse(named, spec.port)?,
            None => first_active(&tree, spec.port)?,
        };
        let domain = cache::domain(&name, spec.thread)?;
        let device = domain.device();
        let driver = Driver::of(&tree, &name);
        must_connect(&name, &driver, device.speaks())?;
        let port = Port::query(device, port)?;
        port.must_be_active(&name)?;
        port.must_take(&name, spec.max_size.0)?;
        let gids = port.gids(device)?;
        let iwarp = device.iwarp();
        let chosen = gid::choose(&gids, port.ethernet && !iwarp, spec.knobs.gid_index);
        let chosen = match chosen {
            // A port of InfiniBand or iWARP works by its LID or by rdma_cm; only a GID that the plan asks for can be missing there.
            Err(_) if gids.is_empty() && (iwarp || !port.ethernet) && spec.knobs.gid_index.is_none() => None,
            chosen => Some(chosen?),
        };
        let link_layer = if iwarp {
            LinkLayer::Iwarp
        } else {
            let known = chosen.map_or(Some(LinkLayer::Infiniband), |gid| gid.kind.link_layer(port.ethernet));
            known.ok_or_else(|| {
                let cause = format!(
                    "{name}:{}: neither the kernel nor /sys/class/infiniband tells whether its GIDs are RoCE v1 or v2",
                    port.number
                );
                Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::MOUNT_SYSFS)
            })?
        };
        // rdma_cm takes the partition of the network interface that it connects by, which this table does not tell.
        let pkey = match (spec.knobs.joining, spec.knobs.pkey) {
            (Some(Joining::RdmaCm), None) => None,
            (_, wanted) => partition(device, &port, wanted)?,
        };
        let rate_gbps = rdma::rate(&tree, &name, port.number);
        Ok(Self { domain, port, gid: chosen, pkey, link_layer, driver, rate_gbps })
    }

    /// The name as plans write it: `mlx5_0`, or `mlx5_0:2` for another port than the first.
    pub(crate) fn name(&self) -> String {
        match self.port.number {
            1 => self.domain.device().name().to_owned(),
            number => format!("{}:{number}", self.domain.device().name()),
        }
    }
}

/// The entry of the port's table of partitions. iWARP has none, and an Ethernet port whose table cannot be read has the
/// default partition at index 0 (RoCE: InfiniBand Architecture Specification, annex A16).
fn partition(device: &Device, port: &Port, wanted: Option<u16>) -> Result<Option<Pkey>, Failure> {
    let name = format!("{}:{}", device.name(), port.number);
    if device.iwarp() {
        return match wanted {
            None => Ok(None),
            Some(_) => {
                let cause = format!("{name}: iWARP has no partitions");
                Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::USE_SET_PKEY))
            }
        };
    }
    match port.pkeys(device) {
        Err(_) if port.ethernet && wanted.is_none() => Ok(None),
        Ok(table) if table.is_empty() && wanted.is_none() => Ok(None),
        table => pkey::choose(&table?, wanted, &name).map(Some),
    }
}

/// `mlx5_0:2` or `mlx5_0`; the port in the name wins over `port`, and 0 stands for 1.
fn parse(named: &str, port: u8) -> Result<(String, u8), Failure> {
    match named.split_once(':') {
        None => Ok((named.to_owned(), port.max(1))),
        Some((name, number)) => match number.parse::<u8>() {
            Ok(number) if number > 0 => Ok((name.to_owned(), number)),
            _ => Err(Failure::new(Stage::Open, Kind::Configuration, format!("{named}: {number} is not a port number"))
                .remedy(remedy::NAME_DEVICE_AND_PORT)),
        },
    }
}

/// The first device, in the order of rails, whose port `number` (any if 0) is active.
fn first_active(tree: &Tree, number: u8) -> Result<(String, u8), Failure> {
    let names = Device::names()?;
    let (mut seen, mut refused) = (Vec::new(), Vec::new());
    for name in &names {
        let domain = match cache::domain(name, 0) {
            Ok(domain) => domain,
            Err(failure) => {
                seen.push(failure.cause);
                continue;
            }
        };
        if let Err(failure) = must_connect(name, &Driver::of(tree, name), domain.device().speaks()) {
            refused.push(failure);
            continue;
        }
        let ports = domain.device().limits()?.ports;
        for number in (1..=ports).filter(|port| number == 0 || *port == number) {
            let port = Port::query(domain.device(), number)?;
            match port.must_be_active(name) {
                Ok(()) => return Ok((name.clone(), number)),
                Err(failure) => seen.push(failure.cause),
            }
        }
    }
    // Where there is nothing else, what the devices are is the reason.
    if seen.is_empty()
        && let Some(failure) = refused.into_iter().next()
    {
        return Err(failure);
    }
    let cause = if names.is_empty() {
        "this host has no RDMA device".to_owned()
    } else {
        format!("no RDMA port of this host is active: {}", seen.join("; "))
    };
    Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::LOOK_AT_RDMA_PORTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_ports() {
        assert_eq!(parse("mlx5_0", 1).unwrap(), ("mlx5_0".to_owned(), 1));
        assert_eq!(parse("mlx5_0:2", 1).unwrap(), ("mlx5_0".to_owned(), 2));
        assert_eq!(parse("rxe0", 0).unwrap(), ("rxe0".to_owned(), 1));
        assert!(parse("mlx5_0:zero", 1).unwrap_err().cause.contains("zero"));
        assert!(parse("mlx5_0:0", 1).is_err());
    }
}

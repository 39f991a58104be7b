//! Device, port and GID of a link, as proven by the device.

use std::{collections::BTreeMap, hash::BuildHasher, sync::Arc};

use railgauge_wire::{Failure, GigabitsPerSecond, Joining, Kind, LinkLayer, LinkSpec, Stage, VerbsEndpoint, remedy};

use super::settings::Settings;
use crate::{
    facts::rdma::{self, CLASS, Hardware},
    memory::place,
    system::tree::Tree,
    verbs::{
        Device, Domain, Gid, Limits, Pkey, Port,
        device::{self, Speaks},
        file,
        gid::{self},
    },
};

#[derive(Debug, Clone)]
pub(crate) struct Choice {
    pub domain: Arc<Domain>,
    pub port: Port,
    /// `None` for an InfiniBand port without a subnet prefix.
    pub gid: Option<Gid>,
    pub link_layer: LinkLayer,
    /// The partition; `None` where ports have none (iWARP), and where rdma_cm takes it.
    pub pkey: Option<Pkey>,
    pub driver: Driver,
    /// In Gb/s, as in the facts: the interface's where the driver's is wrong, for a bond that of all members that carry traffic; never
    /// that of a software device.
    pub rate_gbps: Option<GigabitsPerSecond>,
}

impl Choice {
    /// The device and port of `spec`, or the first device with an active port.
    pub(crate) fn new(spec: &LinkSpec) -> Result<Self, Failure> {
        let tree = Tree::host();
        let (name, port) = match &spec.device {
            Some(named) => parse(named, spec.port)?,
            None => first_active(&tree, spec.port)?,
        };
        let domain = device::domain(&name)?;
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
                    "{name}:{}: neither the kernel nor /sys/class/infiniband shows whether its GIDs are RoCE v1 or v2",
                    port.number
                );
                Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::MOUNT_SYSFS)
            })?
        };
        // rdma_cm uses the partition of its network interface, which this table does not have.
        let pkey = match (spec.knobs.joining, spec.knobs.pkey) {
            (Some(Joining::RdmaCm), None) => None,
            (_, wanted) => partition(device, &port, wanted)?,
        };
        let rate_gbps = rdma::rate(&tree, &name, port.number);
        Ok(Self { domain, port, gid: chosen, pkey, link_layer, driver, rate_gbps })
    }

    pub(crate) fn name(&self) -> String {
        match self.port.number {
            1 => self.domain.device().name().to_owned(),
            number => format!("{}:{number}", self.domain.device().name()),
        }
    }
}

/// iWARP has no partitions, and an Ethernet port with an unreadable table has the default partition at index 0 (RoCE: InfiniBand
/// Architecture Specification, annex A16).
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
        table => gid::choose_pkey(&table?, wanted, &name).map(Some),
    }
}

/// `mlx5_0:2` or `mlx5_0`; the port in the name wins over `port`, and 0 means 1.
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
    if names.is_empty()
        && let Some(known) = tree.names(CLASS).first()
    {
        return Err(file::unlisted(tree, known, &names));
    }
    let (mut seen, mut refused) = (Vec::new(), Vec::new());
    for name in &names {
        let domain = match device::domain(name) {
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

pub(crate) fn choose(spec: &LinkSpec) -> Result<(Choice, Limits, Settings), Failure> {
    let choice = Choice::new(spec)?;
    let limits = choice.domain.device().limits()?;
    let settings = Settings::new(spec, &limits, choice.port.mtu, choice.link_layer)?;
    Ok((choice, limits, settings))
}

/// Moves the calling thread to the device's NUMA node, and returns the record of both. Call it before allocating memory.
pub(crate) fn settle(choice: &Choice, settings: &Settings) -> Result<BTreeMap<String, String>, Failure> {
    let device = choice.domain.device();
    let numa = format!("sys/class/infiniband/{}/device/numa_node", device.name());
    let mut notes = place::settle(&Tree::host(), settings.core, &numa)?;
    notes.insert("libibverbs".to_owned(), device.library().file().to_owned());
    notes.insert("port".to_owned(), choice.name());
    notes.extend(choice.driver.name.clone().map(|driver| ("driver".to_owned(), driver)));
    if settings.joining != Joining::RdmaCm
        && let Some(pkey) = choice.pkey
    {
        notes.insert("pkey".to_owned(), pkey.hex());
        notes.insert("pkey_index".to_owned(), pkey.index.to_string());
    }
    notes.extend(choice.gid.map(|gid| ("gid_index".to_owned(), gid.index.to_string())));
    Ok(notes)
}

pub(crate) fn described(choice: &Choice, settings: &Settings) -> VerbsEndpoint {
    VerbsEndpoint {
        lid: choice.port.lid,
        gid: choice.gid.map(|gid| gid.hex()).unwrap_or_default(),
        gid_type: choice.gid.map(|gid| gid.kind.word().to_owned()).unwrap_or_default(),
        mtu: settings.mtu,
        grh_required: choice.port.grh_required,
        pkey: choice.pkey.map(|pkey| pkey.value),
        max_reads: settings.reads,
        ..VerbsEndpoint::default()
    }
}

/// Random first packet sequence numbers, so that packets of an earlier queue pair with the same number do not fit.
pub(crate) fn psns(count: usize) -> Vec<u32> {
    let random = std::hash::RandomState::new();
    (0..count).map(|i| random.hash_one(i) as u32 & 0x00ff_ffff).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Driver {
    pub name: Option<String>,
    pub software: bool,
    /// Version from the module itself. The kernel's own drivers have none, or a constant.
    pub version: Option<String>,
    pub kernel: Option<(u32, u32)>,
}

const EFA: &str = "efa";

/// mlx5_core's constant version in kernels before 5.10.
const MLX5_IN_TREE: &str = "5.0-0";

impl Driver {
    /// The driver of `device`, from sysfs and procfs below `tree`.
    pub(crate) fn of(tree: &Tree, device: &str) -> Self {
        let Hardware { driver: name, software, .. } = rdma::hardware(tree, &format!("{CLASS}/{device}"));
        let version = name.as_ref().and_then(|name| tree.text(format!("sys/module/{name}/version")));
        let kernel = tree.text("proc/sys/kernel/osrelease").and_then(|release| version_of(&release));
        Self { name, software, version, kernel }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Whether it derives the UDP source port of a connected queue pair from flow label and queue pair numbers as `rdma_get_udp_sport`
    /// does (kernel: include/rdma/ib_verbs.h). Others have their own rules, as may older kernels and drivers from outside the kernel's
    /// tree.
    pub(crate) fn follows_kernel_port_rule(&self) -> bool {
        let since = match self.name.as_deref() {
            // "RDMA/mlx5: Define RoCEv2 udp source port when set path".
            Some("mlx5_core") if self.version.as_deref().is_none_or(|version| version == MLX5_IN_TREE) => (5, 8),
            // "RDMA/rxe: Use the standard method to produce udp source port", and the same for irdma.
            Some("rdma_rxe") => (5, 18),
            Some("irdma") if self.version.is_none() => (5, 18),
            _ => return false,
        };
        self.kernel.is_some_and(|kernel| kernel >= since)
    }

    /// Effect of asking for PCIe relaxed ordering: the flag is optional, so no device refuses it.
    pub(crate) fn relaxed_ordering(&self) -> String {
        match (self.name.as_deref(), self.kernel) {
            _ if self.software => "none: an emulation moves bytes with the CPU".to_owned(),
            // Optional flags came with kernel 5.6; libibverbs removes them for older kernels (rdma-core libibverbs/verbs.c,
            // ibv_reg_mr_iova2).
            (_, Some((major, minor))) if (major, minor) < (5, 6) => {
                format!("unknown: kernel {major}.{minor} may not know the flag, and libibverbs then leaves it out")
            }
            (Some("mlx5_core"), Some(_)) => "possible: mlx5 passes it on to the device".to_owned(),
            (Some(driver), _) => format!("unknown: {driver} does not report whether it heeds the flag"),
            (None, _) => "unknown: the driver is not known".to_owned(),
        }
    }
}

/// Major and minor number of `6.12.48+deb13-amd64`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `Err` if a device has no reliable connections; the failure says what works there.
pub(crate) fn must_connect(device: &str, driver: &Driver, speaks: Speaks) -> Result<(), Failure> {
    let refuse = |what: &str, remedy| {
        let cause = format!("{device}: {what}");
        Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy))
    };
    // Its names start with `efa_`, or with `rdmap` where udev renames devices: the driver decides.
    if driver.is(EFA) || (speaks == Speaks::Other && device.starts_with(EFA)) {
        return refuse(
            "this is an EFA (Elastic Fabric Adapter): it has no reliable connections (RC), only datagrams and SRD",
            remedy::EFA_TCP_OR_NCCL,
        );
    }
    if speaks == Speaks::Other {
        return refuse("it speaks neither InfiniBand nor RoCE nor iWARP, and has no reliable connections", {
            remedy::TCP_OR_NCCL
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::Path};

    use super::*;

    #[test]
    fn names_carry_ports() {
        assert_eq!(parse("mlx5_0", 1).unwrap(), ("mlx5_0".to_owned(), 1));
        assert_eq!(parse("mlx5_0:2", 1).unwrap(), ("mlx5_0".to_owned(), 2));
        assert_eq!(parse("rxe0", 0).unwrap(), ("rxe0".to_owned(), 1));
        assert!(parse("mlx5_0:zero", 1).unwrap_err().cause.contains("zero"));
        assert!(parse("mlx5_0:0", 1).is_err());
    }

    fn tree(root: &Path, device: &str, files: &[(&str, &str)], driver: Option<&str>) -> Tree {
        let at = root.join(CLASS).join(device);
        fs::create_dir_all(&at).unwrap();
        if let Some(driver) = driver {
            let (hardware, drivers) = (root.join("sys/devices/pci0/0000:03:00.0"), root.join("sys/bus/drivers"));
            fs::create_dir_all(&hardware).unwrap();
            fs::create_dir_all(drivers.join(driver)).unwrap();
            symlink(&hardware, at.join("device")).unwrap();
            symlink(drivers.join(driver), hardware.join("driver")).unwrap();
        }
        for (file, text) in files {
            let place = root.join(file);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        Tree::new(root)
    }

    fn of(device: &str, files: &[(&str, &str)], driver: Option<&str>) -> Driver {
        let root = tempfile::tempdir().unwrap();
        Driver::of(&tree(root.path(), device, files, driver), device)
    }

    #[test]
    fn soft_roce_above_a_nic_is_an_emulation_and_a_nic_is_none() {
        let parent = [("sys/class/infiniband/rxe0/parent", "eth0\n")];
        assert!(of("rxe0", &parent, None).software);
        let older = of("rxe0", &parent, Some("mlx5_core"));
        assert!(older.software && older.is("rdma_rxe"), "the NIC below is not the device: {older:?}");
        assert!(of("siw0", &[], None).software);
        // Older kernels show the NIC below siw as its own.
        let description = [("sys/class/infiniband/siw0/node_desc", "Software iWARP stack\n")];
        let siw = of("siw0", &description, Some("mlx5_core"));
        assert!(siw.software && siw.is("siw"), "the NIC below is not the device: {siw:?}");
        let nic = of("mlx5_0", &[], Some("mlx5_core"));
        assert!(!nic.software && nic.is("mlx5_core"));
    }

    #[test]
    fn source_ports_are_predicted_where_the_rule_is_known_and_nowhere_else() {
        let driver = |name: &str, kernel, version: Option<&str>| Driver {
            name: Some(name.to_owned()),
            kernel: Some(kernel),
            version: version.map(str::to_owned),
            software: false,
        };
        assert!(driver("mlx5_core", (5, 8), Some(MLX5_IN_TREE)).follows_kernel_port_rule());
        assert!(driver("mlx5_core", (6, 12), None).follows_kernel_port_rule());
        assert!(!driver("mlx5_core", (5, 4), Some(MLX5_IN_TREE)).follows_kernel_port_rule());
        assert!(!driver("mlx5_core", (5, 15), Some("24.10-1.1.4")).follows_kernel_port_rule(), "not the kernel's own");
        assert!(driver("rdma_rxe", (6, 1), None).follows_kernel_port_rule());
        assert!(!driver("rdma_rxe", (5, 15), None).follows_kernel_port_rule());
        assert!(!driver("bnxt_re", (6, 12), None).follows_kernel_port_rule());
        assert!(!Driver::default().follows_kernel_port_rule());
    }

    #[test]
    fn versions_of_kernels() {
        assert_eq!(version_of("6.12.48+deb13-amd64"), Some((6, 12)));
        assert_eq!(version_of("5.14.0-503.el9"), Some((5, 14)));
        assert_eq!(version_of("custom"), None);
    }

    #[test]
    fn efa_is_refused_by_its_name_whatever_udev_calls_it() {
        let efa = of("rdmap16s27", &[], Some("efa"));
        let failure = must_connect("rdmap16s27", &efa, Speaks::Other).unwrap_err();
        assert_eq!(failure.kind, Kind::Unsupported);
        assert!(failure.cause.contains("EFA"), "{failure}");
        assert_eq!(failure.remedy.unwrap().id, "efa-tcp-or-nccl");
        let hidden = must_connect("efa_0", &Driver::default(), Speaks::Other).unwrap_err();
        assert!(hidden.cause.contains("EFA"), "{hidden}");
        let other = must_connect("usnic_0", &Driver::default(), Speaks::Other).unwrap_err();
        assert!(!other.cause.contains("EFA"), "{other}");
        let mlx5 = of("mlx5_0", &[], Some("mlx5_core"));
        assert!(must_connect("mlx5_0", &mlx5, Speaks::Infiniband).is_ok());
    }

    #[test]
    fn what_relaxed_ordering_comes_to_is_told() {
        let driver = |name: &str, kernel, software| {
            let driver = Driver { name: Some(name.to_owned()), kernel: Some(kernel), software, version: None };
            driver.relaxed_ordering()
        };
        assert!(driver("rdma_rxe", (6, 12), true).starts_with("none"));
        assert!(driver("mlx5_core", (5, 4), false).contains("leaves it out"));
        assert!(driver("mlx5_core", (6, 1), false).starts_with("possible"));
        assert!(driver("ionic_rdma", (6, 18), false).starts_with("unknown"));
    }
}

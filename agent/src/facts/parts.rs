//! Labels of this host's parts: serial numbers, part numbers, makers. The kernel shows most of them to root only; missing ones are noted
//! once. A pluggable module (optics, or the end of a cable) has its label in memory:
//!
//! | form | document | vendor | part number | serial number | sums |
//! | --- | --- | --- | --- | --- | --- |
//! | SFP | SFF-8472, page A0h | 20–35 | 40–55 | 68–83 | 63 over 0–62, 95 over 64–94 |
//! | QSFP, QSFP+, QSFP28 | SFF-8636, page 00h | 148–163 | 168–183 | 196–211 | 191 over 128–190, 223 over 192–222 |
//! | QSFP-DD, OSFP, … | CMIS, page 00h | 129–144 | 148–163 | 166–181 | 222 over 128–221 |
//!
//! The first byte says which form it is (SFF-8024, table 4-1).

use std::{
    collections::BTreeMap,
    io,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use railgauge_wire::{Card, HostFacts, Label, Module, Parts, facts::serial_number};

use super::{
    pci, rdma,
    vpd::{self, text},
};
use crate::system::{
    netlink::{self, MODULE, Part},
    tree::Tree,
};

const DMI: &str = "sys/class/dmi/id";
const NET: &str = "sys/class/net";
const DEVICES: &str = "sys/bus/pci/devices";

pub(crate) fn of(tree: &Tree, facts: &HostFacts) -> Parts {
    let mut parts = Parts {
        machine: smbios(tree, "product", "sys"),
        board: smbios(tree, "board", "board"),
        chassis: smbios(tree, "chassis", "chassis"),
        cards: cards(tree, facts),
        modules: Vec::new(),
    };
    // The kernel answers for its own interfaces only.
    if tree.is_here() {
        parts.modules = modules(tree, facts);
    }
    parts
}

/// Firmware label of the machine, its board or its chassis. Makers and models without a serial number are in
/// [`Surroundings`](railgauge_wire::facts::Surroundings).
fn smbios(tree: &Tree, what: &str, maker: &str) -> Label {
    let place = format!("{DMI}/{what}_serial");
    let serial = bytes(tree, Path::new(&place), "serial numbers of the machine")
        .and_then(|bytes| vpd::text(&bytes))
        .and_then(|text| serial_number(&text).map(str::to_owned));
    if serial.is_none() {
        return Label::default();
    }
    let word = |file: String| tree.text(format!("{DMI}/{file}")).filter(|text| !text.is_empty());
    Label { vendor: word(format!("{maker}_vendor")), part_number: word(format!("{what}_sku")), serial }
}

/// A small file for root; for others noted once, whatever files there are.
fn bytes(tree: &Tree, path: &Path, what: &str) -> Option<Vec<u8>> {
    match tree.read(path, vpd::LONGEST) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tree.note(what, "only root may read them");
            None
        }
        // Missing data is unknown. Cards without it answer with various errors.
        Err(_) => None,
    }
}

/// A card's first function, RDMA devices, interfaces.
type Carried = (String, Vec<String>, Vec<String>);

/// Cards with RDMA devices and interfaces. Functions of one card have the same label, so the first one is read.
fn cards(tree: &Tree, facts: &HostFacts) -> Vec<Card> {
    let mut carried: BTreeMap<String, Carried> = BTreeMap::new();
    let mut add = |function: Option<PathBuf>, device: Option<&str>, interface: Option<&str>| {
        // A virtual function has no data of its own.
        let Some(function) = function.filter(|function| !tree.has(function.join("physfn"))) else { return };
        let Some(address) = function.file_name().map(|name| name.to_string_lossy().into_owned()) else { return };
        let slot = address.split('.').next().unwrap_or(&address).to_owned();
        let (first, devices, interfaces) =
            carried.entry(slot).or_insert_with(|| (address.clone(), Vec::new(), Vec::new()));
        if address < *first {
            *first = address;
        }
        devices.extend(device.map(str::to_owned));
        interfaces.extend(interface.map(str::to_owned));
    };
    for device in facts.rdma.iter().filter(|device| !device.software) {
        add(rdma::function_of(tree, &device.name), Some(&device.name), None);
    }
    for interface in &facts.interfaces {
        let place = tree.target(format!("{NET}/{}/device", interface.name));
        add(place.as_deref().and_then(pci::directory), None, Some(&interface.name));
    }
    let card = |(address, devices, interfaces): Carried| {
        let place = format!("{DEVICES}/{address}/vpd");
        let read = vpd::read(&bytes(tree, Path::new(&place), "serial numbers of network cards")?);
        let data = match read {
            Ok(data) => data,
            Err(vpd::Broken::None) => return None,
            Err(why) => {
                tree.note(&place, &why.to_string());
                return None;
            }
        };
        let serial = data.serial.as_deref().and_then(serial_number).map(str::to_owned);
        let label = Label { vendor: data.maker, part_number: data.part_number, serial };
        Some(Card { pci: address, name: data.name, devices, interfaces, label })
    };
    carried.into_values().filter_map(card).collect()
}

fn modules(tree: &Tree, facts: &HostFacts) -> Vec<Module> {
    let mut found = Vec::new();
    for interface in facts.interfaces.iter().filter(|one| tree.has(format!("{NET}/{}/device", one.name))) {
        let name = &interface.name;
        let noted = |why: &str| tree.note(format!("module of {name}"), why);
        match memory(|part| netlink::read_module(name, part)) {
            Ok(bytes) => match label(&bytes) {
                Ok((form, label)) => found.push(Module { interface: name.clone(), form: form.to_owned(), label }),
                Err(why) => noted(&why.to_string()),
            },
            Err(error) => match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => {
                    tree.note("labels of cables and optics", "CAP_NET_ADMIN is needed to read them");
                    break;
                }
                // No driver support, or an empty port: drivers have several errors for that.
                Some(libc::EOPNOTSUPP | libc::EINVAL | libc::EIO | libc::ENODEV | libc::ENXIO) => {}
                _ => noted(&error.to_string()),
            },
        }
    }
    found
}

/// Both halves of a module's page 0, read separately.
fn memory(mut read: impl FnMut(Part) -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let mut half = |offset| read(Part { address: MODULE, page: 0, offset, length: HALF });
    let mut bytes = half(0)?;
    // The second half follows the first, however much a driver answers.
    bytes.truncate(HALF.into());
    bytes.append(&mut half(HALF)?);
    Ok(bytes)
}

/// Bytes of the lower page, and of page 00h after it.
pub(crate) const HALF: u8 = 128;

struct Layout {
    vendor: RangeInclusive<usize>,
    part_number: RangeInclusive<usize>,
    serial: RangeInclusive<usize>,
    sums: &'static [(usize, RangeInclusive<usize>)],
}

const SFF_8472: Layout =
    Layout { vendor: 20..=35, part_number: 40..=55, serial: 68..=83, sums: &[(63, 0..=62), (95, 64..=94)] };
const SFF_8636: Layout = Layout {
    vendor: 148..=163,
    part_number: 168..=183,
    serial: 196..=211,
    sums: &[(191, 128..=190), (223, 192..=222)],
};
const CMIS: Layout = Layout { vendor: 129..=144, part_number: 148..=163, serial: 166..=181, sums: &[(222, 128..=221)] };

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the module is of the form {0:#04x}, which is not known here")]
    Form(u8),
    #[error("the module's memory is cut off")]
    Cut,
    #[error("the checksum of the module's memory is wrong")]
    Sum,
}

/// Form and label of a module, from its memory: the lower page, then page 00h.
pub(crate) fn label(bytes: &[u8]) -> Result<(&'static str, Label), Broken> {
    let (form, layout) = form(*bytes.first().ok_or(Broken::Cut)?)?;
    for (at, over) in layout.sums {
        let over = bytes.get(over.clone()).ok_or(Broken::Cut)?;
        let sum = over.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        if *bytes.get(*at).ok_or(Broken::Cut)? != sum {
            return Err(Broken::Sum);
        }
    }
    let field = |place: &RangeInclusive<usize>| bytes.get(place.clone()).and_then(text);
    let serial = field(&layout.serial).and_then(|serial| serial_number(&serial).map(str::to_owned));
    Ok((form, Label { vendor: field(&layout.vendor), part_number: field(&layout.part_number), serial }))
}

fn form(identifier: u8) -> Result<(&'static str, Layout), Broken> {
    Ok(match identifier {
        0x03 => ("SFP", SFF_8472),
        0x0c => ("QSFP", SFF_8636),
        0x0d => ("QSFP+", SFF_8636),
        0x11 => ("QSFP28", SFF_8636),
        0x18 => ("QSFP-DD", CMIS),
        0x19 => ("OSFP", CMIS),
        0x1a => ("SFP-DD", CMIS),
        0x1b => ("DSFP", CMIS),
        0x1e => ("QSFP+ with CMIS", CMIS),
        0x1f => ("SFP-DD with CMIS", CMIS),
        0x20 => ("SFP+ with CMIS", CMIS),
        other => return Err(Broken::Form(other)),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::{fs, os::unix::fs::symlink};

    use proptest::prelude::*;
    use railgauge_wire::{Interface, RdmaDevice};

    use super::{super::vpd::tests::written, *};

    fn host() -> (tempfile::TempDir, HostFacts) {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let function = |address: &str| format!("sys/devices/pci0000:15/0000:15:01.0/{address}");
        for path in [DMI, DEVICES, "sys/class/infiniband/mlx5_0", "sys/class/infiniband/mlx5_1", "sys/class/net/eth0"] {
            fs::create_dir_all(at(path)).unwrap();
        }
        for (address, class) in [("0000:18:00.0", "infiniband/mlx5_0"), ("0000:18:00.1", "infiniband/mlx5_1")] {
            fs::create_dir_all(at(&function(address))).unwrap();
            symlink(at(&function(address)), at(&format!("{DEVICES}/{address}"))).unwrap();
            symlink(at(&function(address)), at(&format!("sys/class/{class}/device"))).unwrap();
        }
        symlink(at(&function("0000:18:00.1")), at("sys/class/net/eth0/device")).unwrap();
        let device = |name: &str| RdmaDevice { name: name.into(), ..RdmaDevice::default() };
        let interface = Interface { name: "eth0".into(), ..Interface::default() };
        let facts = HostFacts {
            rdma: vec![device("mlx5_0"), device("mlx5_1")],
            interfaces: vec![interface],
            ..HostFacts::default()
        };
        (root, facts)
    }

    #[test]
    fn a_card_with_two_functions_is_one_part() {
        let (root, facts) = host();
        let data = written("Card", &[("PN", "P1"), ("SN", "MT2326XZ0DQ8")]);
        fs::write(root.path().join(format!("{DEVICES}/0000:18:00.0/vpd")), data).unwrap();
        let tree = Tree::new(root.path());
        let parts = of(&tree, &facts);
        let [card] = parts.cards.as_slice() else { panic!("{parts:?}") };
        assert_eq!((card.pci.as_str(), card.label.serial.as_deref()), ("0000:18:00.0", Some("MT2326XZ0DQ8")));
        assert_eq!((card.devices.len(), card.interfaces.as_slice()), (2, &["eth0".to_owned()][..]));
        assert!(tree.unreadable().is_empty());
    }

    #[test]
    fn the_machine_has_serial_numbers_and_placeholders_are_none() {
        let (root, facts) = host();
        let dmi = |file: &str, text: &str| fs::write(root.path().join(DMI).join(file), text).unwrap();
        dmi("product_serial", "J1234567\n");
        dmi("sys_vendor", "Maker\n");
        dmi("board_serial", "To Be Filled By O.E.M.\n");
        dmi("board_vendor", "Maker\n");
        let parts = of(&Tree::new(root.path()), &facts);
        assert_eq!(parts.machine.serial.as_deref(), Some("J1234567"));
        assert_eq!(parts.machine.vendor.as_deref(), Some("Maker"));
        assert!(parts.board.is_empty() && parts.chassis.is_empty() && parts.cards.is_empty());
    }

    #[test]
    fn the_memory_of_a_module_is_read_in_halves() {
        let whole = module(0x11, "Maker", "P1", "S1234");
        let part =
            |part: Part| Ok(whole[part.offset.into()..usize::from(part.offset) + usize::from(part.length)].to_vec());
        assert_eq!(memory(part).unwrap(), whole);
        assert!(memory(|_| Err(io::Error::from_raw_os_error(libc::EIO))).is_err());
    }

    #[test]
    fn nothing_there_is_not_known_and_damaged_data_is_said() {
        let (root, facts) = host();
        let tree = Tree::new(root.path());
        assert!(of(&tree, &facts).is_empty() && tree.unreadable().is_empty());
        let mut data = written("Card", &[("SN", "MT2326XZ0DQ8")]);
        data[20] ^= 1;
        fs::write(root.path().join(format!("{DEVICES}/0000:18:00.0/vpd")), data).unwrap();
        let tree = Tree::new(root.path());
        assert!(of(&tree, &facts).is_empty());
        let noted = tree.unreadable();
        assert!(noted.len() == 1 && noted.values().all(|why| why.contains("checksum")), "{noted:?}");
    }

    /// A module's memory with this form, label and right sums.
    pub(crate) fn module(identifier: u8, vendor: &str, part_number: &str, serial: &str) -> Vec<u8> {
        let (_, layout) = form(identifier).unwrap();
        let mut bytes = vec![0; 2 * usize::from(HALF)];
        bytes[0] = identifier;
        bytes[128] = identifier;
        for (place, value) in [(&layout.vendor, vendor), (&layout.part_number, part_number), (&layout.serial, serial)] {
            bytes[place.clone()].copy_from_slice(format!("{value:<16}").as_bytes());
        }
        for (at, over) in layout.sums {
            bytes[*at] = bytes[over.clone()].iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        }
        bytes
    }

    #[test]
    fn every_form_has_its_places() {
        for (identifier, form) in [(0x03, "SFP"), (0x11, "QSFP28"), (0x0d, "QSFP+"), (0x18, "QSFP-DD"), (0x19, "OSFP")]
        {
            let (found, label) =
                super::label(&module(identifier, "Mellanox", "MCP1600-C003E30L", "MT2031VS01234")).unwrap();
            assert_eq!(found, form);
            let wanted = ["Mellanox", "MCP1600-C003E30L", "MT2031VS01234"].map(|text| Some(text.to_owned()));
            assert_eq!([label.vendor, label.part_number, label.serial], wanted, "{form}");
        }
    }

    #[test]
    fn no_label_and_placeholders_are_not_known() {
        let (_, label) = super::label(&module(0x11, "", "", "")).unwrap();
        assert!(label.is_empty());
        let (_, label) = super::label(&module(0x11, "Maker", "P1", "0000000000000000")).unwrap();
        assert_eq!((label.vendor.as_deref(), label.serial), (Some("Maker"), None));
    }

    #[test]
    fn what_is_damaged_says_nothing() {
        let bytes = module(0x11, "Maker", "P1", "S1234");
        assert_eq!(label(&bytes[..200]), Err(Broken::Cut));
        assert_eq!(label(&[]), Err(Broken::Cut));
        let mut other = bytes.clone();
        other[196] = b'T';
        assert_eq!(label(&other), Err(Broken::Sum));
        assert_eq!(label(&[0xff; 256]), Err(Broken::Form(0xff)));
        assert_eq!(label(&[0; 256]), Err(Broken::Form(0)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), identifier: u8) {
            let _ = label(&[&[identifier][..], &bytes].concat());
        }
    }
}

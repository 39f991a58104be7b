//! What is written on the parts of this host: serial numbers, part numbers, makers. The kernel shows most of it to root only; what
//! it does not show is not known, and said once.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    path::{Path, PathBuf},
};

use railgauge_wire::facts::{Card, HostFacts, Label, Module, Parts, serial_number};

use super::{module, pci, rdma, vpd};
use crate::system::{
    module_eeprom::{self, MODULE, Part},
    tree::Tree,
};

const DMI: &str = "sys/class/dmi/id";
const NET: &str = "sys/class/net";
const DEVICES: &str = "sys/bus/pci/devices";

/// The parts of the host of a tree, whose devices and interfaces are known.
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

/// What the firmware says of the machine, its board or its chassis. Makers and models without a serial number are told by
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

/// A small file that root may read; for others it is noted once, whatever files there are.
fn bytes(tree: &Tree, path: &Path, what: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    match tree.open(path).and_then(|file| file.take(vpd::LONGEST).read_to_end(&mut bytes)) {
        Ok(_) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tree.note(what, "only root may read them");
            None
        }
        // What is not there is not known. Cards without such data answer with errors of several kinds.
        Err(_) => None,
    }
}

/// What is on a card: its first function, RDMA devices, interfaces.
type Carried = (String, Vec<String>, Vec<String>);

/// The cards that carry RDMA devices and interfaces. Functions of one card tell the same, so the first one is asked.
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

/// The modules in the ports of interfaces that have hardware below.
fn modules(tree: &Tree, facts: &HostFacts) -> Vec<Module> {
    let mut found = Vec::new();
    for interface in facts.interfaces.iter().filter(|one| tree.has(format!("{NET}/{}/device", one.name))) {
        let name = &interface.name;
        let noted = |why: &str| tree.note(format!("module of {name}"), why);
        match memory(|part| module_eeprom::read(name, part)) {
            Ok(bytes) => match module::read(&bytes) {
                Ok((form, label)) => found.push(Module { interface: name.clone(), form: form.to_owned(), label }),
                Err(why) => noted(&why.to_string()),
            },
            Err(error) => match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => {
                    tree.note("labels of cables and optics", "CAP_NET_ADMIN is needed to read them");
                    break;
                }
                // No driver for it, or nothing in the port: drivers have several words for that.
                Some(libc::EOPNOTSUPP | libc::EINVAL | libc::EIO | libc::ENODEV | libc::ENXIO) => {}
                _ => noted(&error.to_string()),
            },
        }
    }
    found
}

/// Both halves of a module's page 0, each of which is a question of its own.
fn memory(mut read: impl FnMut(Part) -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let mut half = |offset| read(Part { address: MODULE, page: 0, offset, length: module::HALF });
    let mut bytes = half(0)?;
    // The second half stands behind the first, however much a driver answers.
    bytes.truncate(module::HALF.into());
    bytes.append(&mut half(module::HALF)?);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use railgauge_wire::facts::{Interface, RdmaDevice};

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
        let whole = super::super::module::tests::written(0x11, "Maker", "P1", "S1234");
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
}

//! What drives a device, and what follows from it where verbs do not tell.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use crate::{
    facts::rdma::{CLASS, driver::emulation},
    system::tree::Tree,
    verbs::device::Speaks,
};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Driver {
    /// Its module; `None` where sysfs does not say.
    pub name: Option<String>,
    /// Whether the device is an emulation in software.
    pub software: bool,
    /// Version that the module states itself. Drivers of the kernel's own tree state none, or the same for ever.
    pub version: Option<String>,
    pub kernel: Option<(u32, u32)>,
}

/// The driver of EFA, and what the names of its devices begin with.
const EFA: &str = "efa";

/// What mlx5_core states as its version in kernels before 5.10, whatever it is.
const MLX5_IN_TREE: &str = "5.0-0";

impl Driver {
    /// The driver of `device`, from sysfs and procfs below `tree`.
    pub(crate) fn of(tree: &Tree, device: &str) -> Self {
        let at = format!("{CLASS}/{device}");
        let linked = tree.target(format!("{at}/device/driver"));
        let linked = linked.and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
        let (name, software) = match (emulation(tree, &at), linked) {
            (Some(emulation), _) => (Some(emulation.to_owned()), true),
            (None, Some(name)) => (Some(name), false),
            // A renamed siw has nothing below it; a NIC whose driver cannot be read has.
            (None, None) => (None, !tree.has(format!("{at}/device"))),
        };
        let version = name.as_ref().and_then(|name| tree.text(format!("sys/module/{name}/version")));
        let kernel = tree.text("proc/sys/kernel/osrelease").and_then(|release| version_of(&release));
        Self { name, software, version, kernel }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name)
    }

    /// Whether it derives the UDP source port of a connected queue pair from flow label and queue pair numbers as
    /// `rdma_get_udp_sport` does (kernel: include/rdma/ib_verbs.h). Others have rules of their own, as older kernels and
    /// drivers from outside of the kernel's tree may.
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

    /// What comes of asking for PCIe relaxed ordering, in words: the flag is optional, so that nobody refuses it.
    pub(crate) fn relaxed_ordering(&self) -> String {
        match (self.name.as_deref(), self.kernel) {
            _ if self.software => "none: an emulation moves bytes with the CPU".to_owned(),
            // Optional flags came with kernel 5.6; libibverbs takes them away where the kernel does not know them
            // (rdma-core libibverbs/verbs.c, ibv_reg_mr_iova2).
            (_, Some((major, minor))) if (major, minor) < (5, 6) => {
                format!("unknown: kernel {major}.{minor} may not know the flag, and libibverbs then leaves it out")
            }
            (Some("mlx5_core"), Some(_)) => "possible: mlx5 passes it on to the device".to_owned(),
            (Some(driver), _) => format!("unknown: nothing tells whether {driver} heeds the flag"),
            (None, _) => "unknown: the driver is not known".to_owned(),
        }
    }
}

/// Major and minor number of `6.12.48+deb13-amd64`.
fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// `Err` if a device has no reliable connections that a link could be made of: what it is, and what works there.
pub(crate) fn must_connect(device: &str, driver: &Driver, speaks: Speaks) -> Result<(), Failure> {
    let refuse = |what: &str, remedy| {
        let cause = format!("{device}: {what}");
        Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy))
    };
    // Its names begin with `efa_`, or with `rdmap` where udev renames devices: the driver tells.
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

    /// A device in a tree: with these files, and with this driver below it.
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

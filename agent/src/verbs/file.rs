//! Whether a device can be opened: its file `/dev/infiniband/uverbs*`, and the provider that libibverbs needs for its driver.
//!
//! In a container sysfs may show devices whose files were not passed on, or that its devices cgroup forbids: only opening one shows that
//! (open(2): EPERM). libibverbs leaves out devices without a file or without a provider (rdma-core libibverbs/init.c, `try_access_device`,
//! `try_drivers`).

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};

use railgauge_wire::{DeviceFile, Failure, Gather, Kind, Stage, remedy};

use crate::system::tree::Tree;

const CLASS: &str = "sys/class/infiniband_verbs";

/// By RDMA device; `listed` are those of libibverbs, if it answers. Opening one changes nothing. Unknown for a tree of another host.
pub(crate) fn files(tree: &Tree, listed: Option<&[String]>) -> BTreeMap<String, DeviceFile> {
    if !tree.is_here() {
        return BTreeMap::new();
    }
    let named = tree.names(CLASS).into_iter().filter_map(|name| {
        let device = tree.text(format!("{CLASS}/{name}/ibdev"))?;
        let file = match looked_at(Path::new("/dev/infiniband"), &name) {
            DeviceFile::Open if listed.is_some_and(|listed| !listed.contains(&device)) => DeviceFile::NoProvider,
            file => file,
        };
        Some((device, file))
    });
    named.gathered()
}

fn looked_at(folder: &Path, name: &str) -> DeviceFile {
    let path = folder.join(name);
    match File::options().read(true).write(true).open(&path) {
        Ok(_) => DeviceFile::Open,
        Err(error) => judged(path.to_string_lossy().into_owned(), &error),
    }
}

fn judged(path: String, error: &io::Error) -> DeviceFile {
    match error.kind() {
        ErrorKind::NotFound => DeviceFile::Missing(path),
        ErrorKind::PermissionDenied => DeviceFile::Refused(path),
        // It exists and may be opened; the device itself has a problem.
        _ => DeviceFile::Open,
    }
}

/// Why libibverbs, which lists `listed`, has no device `name`.
pub(crate) fn unlisted(tree: &Tree, name: &str, listed: &[String]) -> Failure {
    let at = format!("sys/class/infiniband/{name}");
    let there = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
    let (cause, remedy) = match files(tree, Some(listed)).remove(name) {
        Some(DeviceFile::Missing(path)) => (format!("{name}: {path} is missing"), remedy::LOAD_IB_UVERBS.into()),
        None if !tree.has(&at) => (format!("no RDMA device {name} on this host"), remedy::NAME_RDMA_DEVICE.into()),
        None if tree.is_here() => (format!("{name} has no file in /dev/infiniband"), remedy::LOAD_IB_UVERBS.into()),
        _ => {
            let driver = tree.target(format!("{at}/device/driver"));
            let driver = driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
            let driver = driver.unwrap_or_else(|| "its driver".to_owned());
            let cause = format!("the kernel has {name}, and libibverbs has no provider for it ({driver})");
            (cause, remedy::INSTALL_PROVIDER.with([("driver", driver)]))
        }
    };
    Failure::new(Stage::Open, Kind::Configuration, format!("{cause}; devices of libibverbs: {there}")).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_opened_to_see_whether_that_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("uverbs0"), "").unwrap();
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        assert_eq!(looked_at(folder.path(), "uverbs0"), DeviceFile::Open);
        assert_eq!(looked_at(folder.path(), "uverbs1"), DeviceFile::Missing(path("uverbs1")));
        // What a devices cgroup answers.
        let refused = judged(path("uverbs2"), &io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(refused, DeviceFile::Refused(path("uverbs2")));
        assert_eq!(judged(path("uverbs2"), &io::Error::from_raw_os_error(libc::EBUSY)), DeviceFile::Open);
    }

    /// Pollara 400 with an rdma-core before 61.
    #[test]
    fn a_device_without_a_provider_is_not_taken_for_a_wrong_name() {
        let root = tempfile::tempdir().unwrap();
        let [device, driver] =
            ["class/infiniband/ionic_0/device", "bus/pci/drivers/ionic"].map(|path| root.path().join("sys").join(path));
        std::fs::create_dir_all(&device).unwrap();
        std::fs::create_dir_all(&driver).unwrap();
        std::os::unix::fs::symlink(driver, device.join("driver")).unwrap();
        let tree = Tree::new(root.path());
        let listed = ["mlx5_0".to_owned()];
        let failure = unlisted(&tree, "ionic_0", &listed);
        assert!(failure.cause.contains("no provider for it (ionic)") && failure.cause.contains("mlx5_0"), "{failure}");
        let remedy = failure.remedy.unwrap();
        assert_eq!((remedy.id.as_ref(), remedy.commands()[0].command.as_str()), ("install-provider", "ibv_devices"));
        assert_eq!(unlisted(&tree, "ionic_9", &listed).remedy.unwrap().id, "name-rdma-device");
    }
}

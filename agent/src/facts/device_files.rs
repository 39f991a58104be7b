//! The files by which programs open RDMA devices. In a container sysfs may show devices whose files were not passed on, or that its
//! devices cgroup forbids: only opening one tells (open(2): EPERM).

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};

use railgauge_wire::{facts::DeviceFile, gather::Gather};

use crate::system::tree::Tree;

/// Which file belongs to which device (kernel Documentation/infiniband/user_verbs.rst).
const CLASS: &str = "sys/class/infiniband_verbs";

/// The file of every RDMA device, by the device's name. Opening one changes nothing. Nothing is known of a tree that is not
/// this host's.
pub(crate) fn ask(tree: &Tree) -> BTreeMap<String, DeviceFile> {
    if !tree.is_here() {
        return BTreeMap::new();
    }
    let named = tree.names(CLASS).into_iter().filter_map(|name| {
        let device = tree.text(format!("{CLASS}/{name}/ibdev"))?;
        Some((device, looked_at(Path::new("/dev/infiniband"), &name)))
    });
    named.gathered()
}

/// One file of a folder of device files.
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
        // It is there and may be opened; the device has troubles of its own.
        _ => DeviceFile::Open,
    }
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
}

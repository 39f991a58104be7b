use std::{fs, os::unix::fs::symlink, path::Path};

use super::*;

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A device below a bridge, with what must not be read next to it.
fn host() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let function = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
    for (path, text) in [
        (format!("{function}/vendor"), "0x15b3\n"),
        (format!("{function}/resource0"), "registers"),
        (format!("{function}/vpd"), "serial"),
        (format!("{function}/infiniband/mlx5_0/node_type"), "1: CA\n"),
        (format!("{function}/infiniband/mlx5_0/ports/1/counters/port_xmit_data"), "7\n"),
        (format!("{function}/infiniband/mlx5_0/ports/1/gid_attrs/types/0"), "RoCE v2\n"),
        ("sys/devices/pci0000:00/0000:00:01.0/max_link_speed".into(), "16.0 GT/s PCIe\n"),
        ("proc/sys/kernel/hostname".into(), "gpu1\n"),
        ("proc/self/environ".into(), "SECRET=1"),
        ("dev/kmsg".into(), "6,1,100,-;private\n"),
        ("home/user/.ssh/id_ed25519".into(), "key"),
    ] {
        write(root.path(), &path, text);
    }
    fs::create_dir_all(root.path().join("sys/class/infiniband")).unwrap();
    let device = format!("../../../{function}/infiniband/mlx5_0");
    symlink(device, root.path().join("sys/class/infiniband/mlx5_0")).unwrap();
    let place = root.path().join(function);
    symlink("../..", place.join("infiniband/mlx5_0/device")).unwrap();
    // A door out of the tree, in a place that is read.
    symlink("/home/user", place.join("infiniband/mlx5_0/ports/1/counters/door")).unwrap();
    symlink("../../../../../../../../../home/user/.ssh", place.join("infiniband/mlx5_0/ports/1/hw_counters")).unwrap();
    root
}

fn text(entries: &[RawEntry], path: &str) -> Option<String> {
    let entry = entries.iter().find(|entry| entry.path == path)?;
    entry.content.bytes().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn devices_and_the_functions_above_them_are_read_and_nothing_else() {
    let host = host();
    let (entries, left_out) = read_below(host.path().to_str().unwrap(), Vec::new());
    let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
    let function = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
    for (path, content) in [
        (format!("{function}/vendor"), "0x15b3\n"),
        (format!("{function}/infiniband/mlx5_0/ports/1/gid_attrs/types/0"), "RoCE v2\n"),
        ("sys/devices/pci0000:00/0000:00:01.0/max_link_speed".into(), "16.0 GT/s PCIe\n"),
        ("proc/sys/kernel/hostname".into(), "gpu1\n"),
    ] {
        assert_eq!(text(&entries, &path).as_deref(), Some(content), "{path}: {paths:#?}");
    }
    let link = entries.iter().find(|entry| entry.path == "sys/class/infiniband/mlx5_0").unwrap();
    assert_eq!(link.content, RawContent::Link { to: format!("{function}/infiniband/mlx5_0") });
    for secret in ["resource0", "vpd", "environ", "kmsg", "home", ".ssh"] {
        assert!(!paths.iter().any(|path| path.contains(secret)), "{secret}: {paths:#?}");
    }
    let whys: Vec<&str> = left_out.iter().map(|left| left.path.as_str()).collect();
    assert!(whys.iter().any(|path| path.ends_with("counters/door")), "{whys:?}");
    assert!(whys.contains(&"dev/kmsg"), "{whys:?}");
}

#[test]
fn pages_join_into_what_was_read() {
    let (mut entries, mut from, mut pages) = (Vec::new(), 0, 0);
    loop {
        let page = page(from).unwrap();
        entries.extend(page.entries);
        pages += 1;
        match page.next {
            Some(next) => from = next,
            None => break,
        }
    }
    assert!(entries.is_sorted_by(|a, b| a.path < b.path) && !entries.is_empty() && pages >= 1);
    assert!(entries.iter().any(|entry| entry.path == "proc/sys/kernel/osrelease"));
    assert!(page(1 << 40).is_err());
}

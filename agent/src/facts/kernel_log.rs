//! Xids: the NVIDIA driver's messages about GPU errors, only in the kernel's log (NVIDIA's manual "XID Errors"). The log has records of
//! `/dev/kmsg` (kernel documentation: ABI/testing/dev-kmsg).

use std::io::{ErrorKind, Read};
use std::path::Path;

use railgauge_wire::Xid;

use crate::system::tree::Tree;

const LOG: &str = "dev/kmsg";
/// Longest record of the log: shorter buffers are refused.
const RECORD: usize = 8 << 10;
/// Several times the largest ring of a kernel.
const MOST: usize = 64 << 20;
/// The last ones.
const KEPT: usize = 64;

const DEVICES: &str = "sys/bus/pci/devices";
const NVIDIA: &str = "0x10de";

/// Whether Xids are possible. A log has thousands of records, each a system call: hosts without an NVIDIA device and its driver skip
/// them.
fn may_have_any(tree: &Tree) -> bool {
    let is_nvidia =
        |device: &String| tree.text(format!("{DEVICES}/{device}/vendor")).is_some_and(|vendor| vendor.trim() == NVIDIA);
    !tree.has(DEVICES) || tree.has("sys/module/nvidia") || tree.names(DEVICES).iter().any(is_nvidia)
}

/// Since boot, oldest first; `None`, with a note, where the log is missing or forbidden.
pub(crate) fn xids(tree: &Tree) -> Option<Vec<Xid>> {
    if !may_have_any(tree) {
        return Some(Vec::new());
    }
    let mut file = match tree.open(LOG) {
        Ok(file) => file,
        Err(error) => {
            tree.failed(Path::new(LOG), &error);
            return None;
        }
    };
    let (mut text, mut buffer) = (Vec::new(), vec![0; RECORD]);
    while text.len() < MOST {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => text.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The record was overwritten: the next call has the oldest remaining one.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
            Err(error) => {
                tree.failed(Path::new(LOG), &error);
                return None;
            }
        }
    }
    let mut found: Vec<Xid> = String::from_utf8_lossy(&text).lines().filter_map(xid).collect();
    found.drain(..found.len().saturating_sub(KEPT));
    Some(found)
}

/// `4,1234,98765432,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=x, GPU has fallen off the bus.`
fn xid(record: &str) -> Option<Xid> {
    let (prefix, message) = record.split_once(';')?;
    let microseconds: u64 = prefix.split(',').nth(2)?.parse().ok()?;
    let (pci, rest) = message.strip_prefix("NVRM: Xid (PCI:")?.split_once("): ")?;
    let (code, text) = rest.split_once(',').unwrap_or((rest, ""));
    Some(Xid {
        pci: pci.to_owned(),
        code: code.trim().parse().ok()?,
        at: microseconds / 1_000_000,
        text: text.trim().chars().take(200).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_read_only_where_something_can_have_written_xids() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(LOG, "4,2,98765432,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1\n");
        write("sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n");
        let found = || xids(&Tree::new(root.path())).unwrap().len();
        assert_eq!(found(), 0);
        write("sys/bus/pci/devices/0000:1b:00.0/vendor", "0x10de\n");
        assert_eq!(found(), 1);
        std::fs::remove_dir_all(root.path().join("sys/bus/pci/devices/0000:1b:00.0")).unwrap();
        write("sys/module/nvidia/version", "580.1\n");
        assert_eq!(found(), 1);
    }

    #[test]
    fn xids_are_found_among_other_records() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let log = "6,1,100,-;Linux version 6.8\n SUBSYSTEM=x\n\
                   4,2,98765432,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, name=x, GPU has fallen off the bus.\n\
                   4,3,1,-;NVRM: Xid (PCI:0000:1b:00): many\n4,4\n";
        std::fs::write(root.path().join(LOG), log).unwrap();
        let text = "pid=1, name=x, GPU has fallen off the bus.".to_owned();
        assert_eq!(xids(&Tree::new(root.path())).unwrap(), [Xid { pci: "0000:1b:00".into(), code: 79, at: 98, text }]);
    }
}

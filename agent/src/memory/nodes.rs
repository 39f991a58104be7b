//! On which NUMA nodes memory lies: the kernel takes pages from another node where the wanted one is full or closed.

use std::ptr;

/// Pages of a buffer that are asked for; spread evenly.
const SAMPLES: usize = 64;

/// Nodes of pages spread over a buffer that has been touched; pages of which the kernel tells nothing are left out. Empty where it tells
/// nothing at all: it has no NUMA, or forbids the question (`move_pages`).
pub(crate) fn nodes(bytes: &[u8]) -> Vec<u32> {
    let step = (bytes.len() / SAMPLES).max(1);
    let pages: Vec<*const u8> = bytes.chunks(step).map(<[u8]>::as_ptr).collect();
    let mut status = vec![-libc::ENOENT; pages.len()];
    // SAFETY: both arrays have `pages.len()` entries and outlive the call; without target nodes nothing is moved and the kernel only writes
    // to `status`. The addresses are those of a live buffer.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len() as libc::c_ulong,
            pages.as_ptr(),
            ptr::null::<libc::c_int>(),
            status.as_mut_ptr(),
            0,
        )
    };
    if rc < 0 {
        return Vec::new();
    }
    status.into_iter().filter_map(|node| u32::try_from(node).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_memory_lies_on_a_node() {
        let bytes = vec![7_u8; 1 << 20];
        let nodes = nodes(&bytes);
        // Where the kernel answers it answers for every page, and this machine has all nodes that it names.
        assert!(nodes.is_empty() || nodes.len() >= SAMPLES, "{nodes:?}");
        for node in nodes {
            assert!(std::path::Path::new(&format!("/sys/devices/system/node/node{node}")).exists(), "{node}");
        }
    }

    #[test]
    fn a_buffer_without_bytes_has_no_pages() {
        assert!(nodes(&[]).is_empty());
    }
}

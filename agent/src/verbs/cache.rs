//! Open devices, one context and one protection domain for each thread of a link, shared by all links of this process and
//! kept warm: opening a device takes milliseconds to seconds, a plan opens thousands of links.
//!
//! Threads share no context: mlx5 has 16 doorbell registers in each, and queue pairs beyond the first few take a lock to ring
//! theirs (rdma-core providers/mlx5/mlx5.c).

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use railgauge_wire::failure::Failure;

use super::{device::Device, domain::Domain};

/// By name of the device and number of the thread.
type Open = HashMap<(String, u32), Arc<Domain>>;

static OPEN: Mutex<Option<Open>> = Mutex::new(None);

/// The domain of device `name` for thread number `thread` of a link, opened at the first call.
pub(crate) fn domain(name: &str, thread: u32) -> Result<Arc<Domain>, Failure> {
    let key = (name.to_owned(), thread);
    let mut open = OPEN.lock();
    let open = open.get_or_insert_default();
    if let Some(domain) = open.get(&key) {
        // A device that was reset or unplugged answers nothing any more: forget it and open it again.
        if domain.device().limits().is_ok() {
            return Ok(domain.clone());
        }
        open.remove(&key);
    }
    let domain = Domain::new(&Device::open(name)?)?;
    open.insert(key, domain.clone());
    Ok(domain)
}

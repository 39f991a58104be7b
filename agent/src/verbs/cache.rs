//! Open devices, one context and one protection domain each, shared by all links of this process and kept warm: opening
//! a device takes milliseconds to seconds, a plan opens thousands of links.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use railgauge_wire::failure::Failure;

use super::{device::Device, domain::Domain};

static OPEN: Mutex<Option<HashMap<String, Arc<Domain>>>> = Mutex::new(None);

/// The domain of device `name`, opened at the first call.
///
/// # Errors
/// There is no such device, or it does not open.
pub(crate) fn domain(name: &str) -> Result<Arc<Domain>, Failure> {
    let mut open = OPEN.lock();
    let open = open.get_or_insert_default();
    if let Some(domain) = open.get(name) {
        // A device that was reset or unplugged answers nothing any more: forget it and open it again.
        if domain.device().limits().is_ok() {
            return Ok(domain.clone());
        }
        open.remove(name);
    }
    let domain = Domain::new(&Device::open(name)?)?;
    open.insert(name.to_owned(), domain.clone());
    Ok(domain)
}

//! The state of GPUs: NVML for NVIDIA GPUs, AMD SMI for AMD GPUs.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Cards, Vendor, amd, driver, state};

/// Whether AMD SMI was called last and may not have returned yet.
static ASKED_AMD_SMI: AtomicBool = AtomicBool::new(false);

pub(crate) fn asked() -> Vendor {
    if ASKED_AMD_SMI.load(Ordering::Relaxed) { Vendor::Amd } else { Vendor::Nvidia }
}

/// Libraries that start, or else those whose driver is there.
pub(crate) fn of_host() -> Box<dyn Cards> {
    let is_amd = || driver::driver().is_ok_and(|driver| driver.vendor == Vendor::Amd);
    if !state::starts() {
        ASKED_AMD_SMI.store(true, Ordering::Relaxed);
        if amd::starts() || is_amd() {
            return Box::new(amd::state::AmdCards::default());
        }
        ASKED_AMD_SMI.store(false, Ordering::Relaxed);
    }
    Box::new(state::NvidiaCards::default())
}

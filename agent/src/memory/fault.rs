//! A fault for tests: proof that wrong bytes are found.
//!
//! With `RAILGAUGE_FAULT=flip-bit` in its environment the agent flips one bit of every pattern it is about to send.
//! Nothing else reads the variable; without it this file does nothing.

use std::sync::OnceLock;

/// Flips one bit in the middle of `bytes` if the environment asks for it.
pub fn apply(bytes: &mut [u8]) {
    if asked()
        && let Some(byte) = bytes.get_mut(bytes.len() / 2)
    {
        *byte ^= 0x10;
        crate::log!("RAILGAUGE_FAULT=flip-bit: one bit of the pattern was flipped on purpose");
    }
}

/// Whether the environment asks for it.
pub fn asked() -> bool {
    static ASKED: OnceLock<bool> = OnceLock::new();
    *ASKED.get_or_init(|| match std::env::var_os("RAILGAUGE_FAULT") {
        None => false,
        Some(fault) if fault == "flip-bit" => {
            crate::log!("RAILGAUGE_FAULT=flip-bit: THIS AGENT CORRUPTS WHAT IT SENDS, for a test");
            true
        }
        Some(fault) => {
            crate::log!("RAILGAUGE_FAULT={}: not known, ignored", fault.display());
            false
        }
    })
}

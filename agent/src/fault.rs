//! Faults for tests: proof that wrong bytes and wrong GIDs are found.
//!
//! `RAILGAUGE_FAULT` in the agent's environment is `flip-bit`, which flips one bit of every pattern that is about to be
//! sent, or `roce-v1`, which takes every GID for one of RoCE version 1. Nothing else reads the variable; without it this
//! file does nothing.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    FlipBit,
    RoceV1,
}

/// Flips one bit in the middle of `bytes` if the environment asks for it.
pub(crate) fn flip_bit(bytes: &mut [u8]) {
    if flips_bits()
        && let Some(byte) = bytes.get_mut(bytes.len() / 2)
    {
        *byte ^= 0x10;
        crate::system::log!("RAILGAUGE_FAULT=flip-bit: one bit of the pattern was flipped on purpose");
    }
}

/// Whether [`flip_bit`] will.
pub(crate) fn flips_bits() -> bool {
    asked() == Some(Fault::FlipBit)
}

/// Whether GIDs are to be taken for those of RoCE version 1.
pub(crate) fn roce_v1() -> bool {
    asked() == Some(Fault::RoceV1)
}

fn asked() -> Option<Fault> {
    static ASKED: OnceLock<Option<Fault>> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let fault = std::env::var_os("RAILGAUGE_FAULT")?;
        match fault.to_str() {
            Some("flip-bit") => {
                crate::system::log!("RAILGAUGE_FAULT=flip-bit: THIS AGENT CORRUPTS WHAT IT SENDS, for a test");
                Some(Fault::FlipBit)
            }
            Some("roce-v1") => {
                crate::system::log!("RAILGAUGE_FAULT=roce-v1: THIS AGENT MISTAKES THE TYPE OF ITS GIDS, for a test");
                Some(Fault::RoceV1)
            }
            _ => {
                crate::system::log!("RAILGAUGE_FAULT={}: not known, ignored", fault.display());
                None
            }
        }
    })
}

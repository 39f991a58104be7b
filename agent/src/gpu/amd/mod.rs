//! AMD's GPUs by AMD SMI.

mod layout;
mod smi;
pub(super) mod state;

pub(crate) use smi::NAMES;

pub(super) fn starts() -> bool {
    smi::smi().is_ok()
}

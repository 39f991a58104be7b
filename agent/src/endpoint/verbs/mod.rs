//! One end of a verbs connection.
//!
//! | file | holds |
//! | --- | --- |
//! | [`choice`] | which device, port and GID, and what they are |
//! | [`settings`] | every knob resolved against them |
//! | [`join`] | whether the peer fits, and queue pairs connected to its own |

pub(crate) mod choice;
pub(crate) mod join;
pub(crate) mod settings;

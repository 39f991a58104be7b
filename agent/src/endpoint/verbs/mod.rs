//! One end of a verbs connection.
//!
//! | file | holds |
//! | --- | --- |
//! | [`choice`] | which device, port and GID, and what they are |
//! | [`driver`] | what drives a device, and what follows from that |
//! | [`settings`] | every knob resolved against them |
//! | [`open`] | device and settings together, and what the peer and the record are told of them |
//! | [`join`] | whether the peer fits, and queue pairs connected to its own |

pub(crate) mod choice;
pub(crate) mod driver;
pub(crate) mod join;
pub(crate) mod open;
pub(crate) mod settings;

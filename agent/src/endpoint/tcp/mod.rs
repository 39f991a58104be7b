//! One end of a TCP connection.
//!
//! | file | holds |
//! | --- | --- |
//! | [`place`] | which address and interface, and what they are |
//! | [`congestion`] | congestion control of connections |
//! | [`socket`] | listening, and the settings of connected sockets |
//! | [`handshake`] | connecting with a token |

pub(crate) mod congestion;
pub(crate) mod handshake;
pub(crate) mod place;
pub(crate) mod socket;

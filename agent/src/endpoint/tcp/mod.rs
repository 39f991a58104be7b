//! One end of a TCP connection.
//!
//! | file | holds |
//! | --- | --- |
//! | [`place`] | which address and interface, and what they are |
//! | [`socket`] | listening, and the settings of connected sockets |
//! | [`handshake`] | connecting with a token |

pub(crate) mod handshake;
pub(crate) mod place;
pub(crate) mod socket;

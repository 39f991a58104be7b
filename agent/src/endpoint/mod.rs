//! Endpoints of connections, for pairs and for ranks of a collective alike: device, address, settings, and joining with a peer.
//! [`crate::fabric`] and [`crate::collective`] send over the connections.

pub(crate) mod tcp;
pub(crate) mod verbs;

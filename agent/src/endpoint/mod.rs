//! How one end of a connection comes to be, for pairs and for ranks of a collective alike: which device and address, which
//! settings, and how it joins with a peer's end.
//!
//! What is sent over the connection is no business of this module: pairs do that in [`crate::fabric`], ranks in
//! [`crate::collective`].
//!
//! | file | holds |
//! | --- | --- |
//! | [`verbs`] | device, port and GID; every setting resolved; queue pairs connected to a peer's |
//! | [`tcp`] | address and interface; listening, and connecting with a token; socket settings |

pub(crate) mod tcp;
pub(crate) mod verbs;

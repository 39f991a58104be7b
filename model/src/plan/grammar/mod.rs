//! The grammars of texts: pure functions from a text to a value or an error. Lists of hosts are read at the border, since files of others
//! have them too.

pub mod quantity;
pub mod sweep;
pub mod words;

use crate::border::wrong;

pub use crate::border::hostlist;
pub use wrong::{Wrong, nearest};

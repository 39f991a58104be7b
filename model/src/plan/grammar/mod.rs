//! The small languages inside texts. Pure: a text in, a value or what is wrong with it out. Lists of hosts are read at the border, since
//! the files of others have them too.

pub mod quantity;
pub mod sweep;
pub mod words;

use crate::border::wrong;

pub use crate::border::hostlist;
pub use wrong::{Wrong, nearest};

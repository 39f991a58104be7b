//! The small languages inside texts. Pure: a text in, a value or what is wrong with it out.

pub mod hostlist;
pub mod quantity;
pub mod sweep;
pub mod words;
mod wrong;

pub use wrong::{Wrong, nearest};

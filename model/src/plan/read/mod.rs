//! Reading TOML tables by their tables of keys, with every mistake written down on the way.

mod book;
pub mod file;
mod table;
mod text;
mod values;

pub use book::Book;
pub use table::{At, Table};
pub use text::{Words, texts_of};

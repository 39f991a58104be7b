mod book;
pub mod file;
mod table;
mod text;
mod values;

pub use book::Book;
pub use table::{At, Raw, Table};
pub use text::{Words, texts_of};

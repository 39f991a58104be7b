mod keys;
pub mod reference;
pub mod schema;

pub use keys::{Key, Section, Shape, Unset, expected, one_of, sections};
pub(crate) use keys::{key, keys};

mod keys;
pub mod reference;
pub mod schema;

pub use keys::{Key, Section, Shape, Unset, expected, one_of};
pub(crate) use keys::{key, keys};
pub use reference::sections;

mod keys;
pub mod reference;
pub mod schema;

pub use keys::{Key, Preset, Section, Shape, aims, expected, key, one_of, operations, sections};

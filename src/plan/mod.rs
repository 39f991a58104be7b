//! TOML to a [`Plan`] that cannot be wrong, or every mistake with its place in the file.

pub mod model;

pub use model::Plan;

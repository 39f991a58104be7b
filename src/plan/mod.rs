//! TOML to a [`Plan`] that cannot be wrong, or every mistake with its place in the file.

mod metrics;
pub mod model;

pub use metrics::metrics_of;
pub use model::Plan;

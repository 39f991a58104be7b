//! The checks, one file each, as listed in [`railgauge_model::checks`].

mod rule;

pub(super) use rule::Need;
pub use rule::{Check, Rule, Spoils, Subject};

/// Declares a file of this folder for every check of the list, and the table of all checks.
macro_rules! declare {
    ($($module:ident = $name:literal,)*) => {
        $(mod $module;)*

        pub const CHECKS: &[Check] = &[$(Check { name: $name, rule: $module::RULE }),*];
    };
}

railgauge_model::checks!(declare);

//! Panics as values.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic said; empty where that is no text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panicked(pub String);

/// Runs `work`. What it touched must not be used again once it has panicked.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    // The callers drop what `work` borrowed once it has panicked.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        Panicked(words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default())
    })
}

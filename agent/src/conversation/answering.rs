//! Panics become failures: a request is answered whatever happens to the thread that works on it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

/// Runs `work`. The outer error is a panic, in words; what `work` touched must not be used again then.
///
/// # Errors
/// `work` panicked.
pub(super) fn caught<T>(stage: Stage, work: impl FnOnce() -> T) -> Result<T, Failure> {
    // The callers drop what `work` borrowed once it has panicked.
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Failure::new(stage, Kind::Internal, format!("the agent panicked: {words}")).remedy(remedy::REPORT_DEFECT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_with_its_words() {
        assert_eq!(caught(Stage::Open, || 1), Ok(1));
        let failure = caught(Stage::Open, || panic!("index {} out of range", 7)).unwrap_err();
        assert!(failure.cause.contains("index 7 out of range"), "{failure}");
    }
}

//! Panics become failures: a request is answered whatever happens to the thread that works on it.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use crate::system::panics::{self, Panicked};

/// Runs `work`. The outer error is a panic, in words; what `work` touched must not be used again then.
pub(super) fn caught<T>(stage: Stage, work: impl FnOnce() -> T) -> Result<T, Failure> {
    panics::caught(work).map_err(|Panicked(words)| {
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

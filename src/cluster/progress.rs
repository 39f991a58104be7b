//! Where a try to bring a host up is, for the failure that tells that its time ran out.

use std::sync::Arc;

use parking_lot::Mutex;
use railgauge_wire::failure::Stage;

/// The stage of a try and what is done in it. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<Mutex<(Stage, &'static str)>>);

impl Progress {
    /// A try that begins.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((Stage::Connect, "connecting"))))
    }

    /// Notes what is done next.
    pub(super) fn to(&self, stage: Stage, doing: &'static str) {
        *self.0.lock() = (stage, doing);
    }

    /// What is done now.
    pub(super) fn now(&self) -> (Stage, &'static str) {
        *self.0.lock()
    }
}

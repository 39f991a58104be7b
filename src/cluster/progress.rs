use std::sync::Arc;

use parking_lot::Mutex;
use railgauge_wire::Stage;

/// The stage of a try and its current action. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<Mutex<(Stage, &'static str)>>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new((Stage::Connect, "connecting"))))
    }

    pub(super) fn to(&self, stage: Stage, doing: &'static str) {
        *self.0.lock() = (stage, doing);
    }

    pub(super) fn now(&self) -> (Stage, &'static str) {
        *self.0.lock()
    }
}

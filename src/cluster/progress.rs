use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use railgauge_wire::failure::Stage;

use super::{launcher::Pending, trouble::Trouble};

/// The stage of a try and its current action. Clones share it.
#[derive(Clone)]
pub(crate) struct Progress(Arc<Mutex<Now>>);

struct Now {
    stage: Stage,
    doing: &'static str,
    late: Option<Pending<'static, Option<Trouble>>>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.now()).finish()
    }
}

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Now { stage: Stage::Connect, doing: "connecting", late: None })))
    }

    pub(super) fn to(&self, stage: Stage, doing: &'static str) {
        let mut now = self.0.lock();
        (now.stage, now.doing) = (stage, doing);
    }

    pub(super) fn now(&self) -> (Stage, &'static str) {
        let now = self.0.lock();
        (now.stage, now.doing)
    }

    pub(super) fn when_late(&self, ask: Pending<'static, Option<Trouble>>) {
        self.0.lock().late = Some(ask);
    }

    pub(super) async fn why_late(&self) -> Option<Trouble> {
        let ask = self.0.lock().late.take();
        match ask {
            Some(ask) => ask.await,
            None => None,
        }
    }
}

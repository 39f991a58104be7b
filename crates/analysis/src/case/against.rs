//! Objections to a case. Separate, because nearly all of millions of cases have none.

use railgauge_wire::Failure;

use super::{Doubt, Implausible, NotRun};

/// Objections to a case, accessible as fields of its [`CaseResult`](super::CaseResult) by `Deref`.
#[derive(Debug, Clone, Default)]
pub struct Against<'a> {
    pub failures: Vec<(u32, &'a Failure)>,
    pub not_run: Option<NotRun>,
    pub doubts: Vec<Doubt>,
    /// Losses that TCP repaired, and effects of the plan's value on packets: not objections.
    pub excused: Vec<Doubt>,
    /// Ends whose bytes on the wire were not compared with the payload: `gpu01 mlx5_0`.
    pub uncounted: Vec<String>,
    pub lacks: Implausible,
}

impl Against<'_> {
    fn is_nothing(&self) -> bool {
        let Self { failures, not_run, doubts, excused, uncounted, lacks } = self;
        failures.is_empty()
            && not_run.is_none()
            && doubts.is_empty()
            && excused.is_empty()
            && uncounted.is_empty()
            && lacks.absent.is_empty()
            && lacks.impossible.is_empty()
    }
}

static NOTHING: Against<'static> = Against {
    failures: Vec::new(),
    not_run: None,
    doubts: Vec::new(),
    excused: Vec::new(),
    uncounted: Vec::new(),
    lacks: Implausible { absent: Vec::new(), impossible: Vec::new() },
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Aside<'a>(Option<Box<Against<'a>>>);

impl<'a> From<Against<'a>> for Aside<'a> {
    fn from(against: Against<'a>) -> Self {
        Self((!against.is_nothing()).then(|| Box::new(against)))
    }
}

impl<'a> Aside<'a> {
    pub(super) fn get(&self) -> &Against<'a> {
        self.0.as_deref().unwrap_or(&NOTHING)
    }

    pub(super) fn take(&mut self) -> Against<'a> {
        self.0.take().map(|against| *against).unwrap_or_default()
    }
}

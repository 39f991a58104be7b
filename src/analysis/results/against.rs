//! What speaks against a case. Of millions of cases nearly all are well, so that this stands aside.

use std::ops::Deref;

use railgauge_wire::failure::Failure;

use super::{CaseResult, NotRun};
use crate::analysis::{
    plausible::Implausible,
    truth::{Doubt, Uncounted},
};

/// What speaks against a case, and fields of its [`CaseResult`] by that's `Deref`.
#[derive(Debug, Clone, Default)]
pub struct Against<'a> {
    /// Repeat and failure, of every repeat that was tried and not measured.
    pub failures: Vec<(u32, &'a Failure)>,
    /// Why repeats without any try were not run.
    pub not_run: Option<NotRun>,
    /// Why its samples must not be trusted, each reason once and with its host.
    pub doubts: Vec<Doubt>,
    /// Losses that TCP made good, and what one of the plan's values made of the packets: nothing that speaks against them.
    pub excused: Vec<Doubt>,
    /// Ends whose bytes on the wire were not compared with the payload, each reason once.
    pub uncounted: Vec<Uncounted>,
    /// What its samples lack, or say and cannot be true.
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

/// [`Against`], or nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Aside<'a>(Option<Box<Against<'a>>>);

impl<'a> From<Against<'a>> for Aside<'a> {
    fn from(against: Against<'a>) -> Self {
        Self((!against.is_nothing()).then(|| Box::new(against)))
    }
}

impl<'a> Deref for CaseResult<'a> {
    type Target = Against<'a>;

    fn deref(&self) -> &Against<'a> {
        self.against.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl<'a> CaseResult<'a> {
    pub(super) fn change(&mut self, change: impl FnOnce(&mut Against<'a>)) {
        // Taken out of its box: most cases have none, and need none after it.
        let mut against = self.against.0.take().map(|against| *against).unwrap_or_default();
        change(&mut against);
        self.against = against.into();
    }
}

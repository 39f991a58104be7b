//! A case of a pair with everything its measurement needs, and the result of one try of any case.

use std::sync::Arc;

use railgauge_model::{
    journal::event::{Case, LinkRecord, Outcome, Sample, Started},
    plan::{Plan, model::Test},
};
use railgauge_wire::{Bytes, Failure, HostFacts, LinkId, Nanoseconds};

use super::super::links::{self, Link, Wanted};
use super::traffic::Traffic;
use crate::cluster::Agent;

pub(crate) type HostAgent = (Agent, Arc<HostFacts>);

pub(crate) struct Tried<Open> {
    pub case: Case,
    pub open: Option<Open>,
    /// When something of a failed pass completed last, on the initiator's clock; `None` where unknown.
    pub progress: Option<Nanoseconds>,
    pub outcome: Outcome,
}

impl<Open> Tried<Open> {
    /// A case that leaves nothing open.
    pub(crate) fn new(
        case: Case,
        repeat: u32,
        started_at: Started,
        link: Option<LinkRecord>,
        result: Result<Sample, Failure>,
    ) -> Self {
        let outcome = Outcome { case: case.id, repeat, started_at, link, link_line: None, result };
        Self { case, open: None, progress: None, outcome }
    }

    pub(crate) fn map<T>(self, turn: impl FnOnce(Open) -> T) -> Tried<T> {
        Tried { case: self.case, open: self.open.map(turn), progress: self.progress, outcome: self.outcome }
    }
}

pub(crate) struct PairCase {
    pub plan: Arc<Plan>,
    pub index: usize,
    pub case: Case,
    pub repeat: u32,
    pub from: HostAgent,
    pub to: HostAgent,
    pub warm: Option<Link>,
    pub id: LinkId,
    pub max_size: Bytes,
    pub traffic: Traffic,
}

impl PairCase {
    pub(crate) fn test(&self) -> &Test {
        &self.plan.tests[self.index]
    }

    pub(crate) async fn link(&self) -> Result<Link, Failure> {
        if let Some(link) = &self.warm {
            return Ok(link.clone());
        }
        let Self { plan, case, from, to, id, max_size, .. } = self;
        let (test, flow, qps) = (self.test(), &case.flow, case.cell.qps);
        let (token, rides_out) = (links::token()?, self.traffic.rides_out);
        let hosts = &plan.hosts;
        let wanted = Wanted { hosts, test, flow, qps, max_size: *max_size, id: *id, token, rides_out };
        links::open(wanted, (&from.0, &from.1), (&to.0, &to.1)).await
    }

    pub(crate) fn tried(self, started_at: Started, link: Option<Link>, result: Result<Sample, Failure>) -> Tried<Link> {
        let record = link.as_ref().map(|link| link.record.clone());
        Tried { open: link, ..Tried::new(self.case, self.repeat, started_at, record, result) }
    }
}

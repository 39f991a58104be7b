//! The outcome of a planned case: its samples, and objections to them.

use std::ops::Deref;

use jiff::Timestamp;
use railgauge_model::{
    journal::event::{Case, LinkRecord, Sample, Started},
    plan::model::{Grouping, Test},
    schedule::{Cell, alone, blocks},
};
use railgauge_wire::{
    Algorithm, Bytes, Failure, Op,
    remedy::{self, Remedy},
};

use super::{Against, Aside, Doubt, Few, Objection, Objections, OtherLink, OtherThan, Part};
use crate::{
    journal::Try,
    words::{count, lane, link_name, neighbour_words, value_words},
};

#[derive(Debug, Clone)]
pub struct CaseResult<'a> {
    pub case: &'a Case,
    pub test: &'a Test,
    pub repeats: u32,
    pub link: Option<&'a LinkRecord>,
    /// In the order of the journal.
    pub tries: Few<&'a Try>,
    pub samples: Few<(u32, &'a Sample)>,
    pub failure: Option<&'a Failure>,
    /// `None` for flows that share no NIC.
    pub part: Option<Box<Part>>,
    pub(crate) against: Aside<'a>,
    pub state: State,
}

railgauge_wire::words! {
    State {
        Measured = "measured",
        Short = "too few repeats",
        /// Verification was requested, but no bytes were compared.
        Unverified = "not verified",
        Contaminated = "contaminated",
        Impossible = "impossible value",
        NoValue = "no value",
        NotRun = "not run",
        Failed = "failed",
        Wrong = "wrong bytes",
    }
}

impl State {
    /// Whether the value of such a case may be compared with others.
    pub const fn is_trusted(self) -> bool {
        matches!(self, Self::Measured | Self::Short)
    }

    /// After a number of cases: `28 with an impossible value`.
    pub const fn of_cases(self) -> &'static str {
        match self {
            Self::Short => "with too few repeats",
            Self::Impossible => "with an impossible value",
            Self::NoValue => "without a value",
            Self::Wrong => "with wrong bytes",
            Self::Measured | Self::Unverified | Self::Contaminated | Self::NotRun | Self::Failed => self.word(),
        }
    }
}

impl CaseResult<'_> {
    /// Start of the first try; `None` if not tried, or at an impossible time, which the judgement of the sample reports.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.tries.iter().map(|attempt| &attempt.started_at).min().and_then(Started::time)
    }

    pub fn checked(&self) -> (u64, u64) {
        self.samples.iter().fold((0_u64, 0_u64), |(verified, wrong), (_, sample)| {
            // An agent may claim any number, which must not overflow.
            (verified.saturating_add(sample.checked.verified.0), wrong.saturating_add(sample.checked.wrong.0))
        })
    }

    pub(crate) fn attempt(&self, sample: &Sample) -> Option<&Try> {
        self.tries.iter().copied().find(|attempt| attempt.result.as_ref().is_ok_and(|own| std::ptr::eq(own, sample)))
    }

    pub fn link_name(&self) -> String {
        link_name(&self.case.flow, self.case.cell.transport)
    }

    /// Distinguishes cases of the same test, size and link: `4 queue pairs`, `bf16, NCCL_ALGO=Ring`. Has only what the
    /// test varies, so it is empty for most.
    pub fn variant(&self) -> String {
        let words = [Some(self.variant_at_any_value()), self.case.cell.applied.as_deref().map(value_words)];
        words.into_iter().flatten().filter(|words| !words.is_empty()).collect::<Vec<_>>().join(", ")
    }

    pub fn variant_at_any_value(&self) -> String {
        let mut words = self.variant_in_any_environment();
        let env = self.test.collective.as_ref().filter(|collective| collective.env.len() > 1);
        if let Some(manner) = env.and(self.case.cell.manner.as_ref()) {
            let env = manner.env.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ");
            words += if words.is_empty() { "" } else { ", " };
            words += if env.is_empty() { "environment as it is" } else { &env };
        }
        words
    }

    pub fn variant_in_any_environment(&self) -> String {
        let (test, cell) = (self.test, &self.case.cell);
        let mut words = Vec::new();
        if test.qps.len() > 1 {
            words.push(count(cell.qps as usize, lane(cell.transport)));
        }
        if test.beside.is_some() && test.collective.is_none() {
            words.push(neighbour_words(cell.neighbours));
        }
        if let Some((collective, manner)) = test.collective.as_ref().zip(cell.manner.as_ref()) {
            if !matches!(collective.grouping, Grouping::All | Grouping::Pairs) {
                words.push(format!("{} ranks", self.case.flow.ranks()));
            }
            if collective.datatypes.len() > 1 {
                words.push(manner.datatype.to_string());
            }
            if let Some(reduction) = manner.reduction.filter(|_| collective.reductions.len() > 1) {
                words.push(reduction.to_string());
            }
            if collective.algorithms.len() > 1 {
                words.push(manner.algorithm.map_or("automatic algorithm", Algorithm::word).to_owned());
            }
        }
        words.join(", ")
    }

    pub fn error(&self) -> Option<String> {
        self.against().words()
    }

    /// Empty if nothing is wrong.
    pub fn against(&self) -> Objections {
        let mut found = Vec::new();
        let (_, wrong) = self.checked();
        if wrong > 0 {
            found.push(Objection::WrongBytes(self.wrong_bytes(wrong)));
        }
        if let Some(failure) = self.failure.filter(|_| !self.failures.is_empty()) {
            found.push(failed(failure, self.case));
        }
        found.extend(self.not_run.clone().map(Objection::NotRun));
        let missing = self.repeats as usize - self.samples.len().min(self.repeats as usize);
        if missing > 0 && !self.samples.is_empty() {
            found.push(Objection::RepeatsMissing { missing, of: self.repeats as usize });
        }
        if self.test.verify && !self.samples.is_empty() && self.samples.iter().any(|(_, s)| self.is_unverified(s)) {
            let verified = self.samples.iter().map(|(_, sample)| sample.checked.verified).min();
            found.push(Objection::Unverified { verified_bytes: verified.unwrap_or_default() });
        }
        found.extend(self.lacks.absent.iter().cloned().map(Objection::Absent));
        found.extend(self.lacks.impossible.iter().cloned().map(Objection::Impossible));
        found.extend(self.contradiction().map(Objection::OtherLink));
        found.extend(self.doubts.iter().cloned().map(Objection::Contaminated));
        Objections(found)
    }

    /// Whether bytes were not compared: for a pair, one message per queue pair or stream; for a group, what its ranks
    /// hold; both before and after the window.
    pub(crate) fn is_unverified(&self, sample: &Sample) -> bool {
        let (cell, flow) = (&self.case.cell, &self.case.flow);
        let least = match flow.members.is_empty() {
            true => cell.size.max(Bytes(1)).saturating_mul(2 * u64::from(cell.qps.max(1))),
            false => verified(self.test, self.case),
        };
        sample.checked.verified < least
    }

    pub fn remedy(&self) -> Option<Remedy> {
        let of_doubts = || self.doubts.iter().find_map(Doubt::remedy);
        let again = || (self.state == State::Contaminated).then(|| remedy::RESUME_RUN.into());
        self.failure.and_then(Failure::told_remedy).or_else(of_doubts).or_else(again)
    }

    /// What carried the bytes differs from the plan.
    pub(crate) fn contradiction(&self) -> Option<OtherLink> {
        let own = self.samples.iter().filter_map(|(_, sample)| self.attempt(sample)?.link.as_deref());
        own.chain(self.link.filter(|_| !self.samples.is_empty())).find_map(|link| self.contradicts(link))
    }

    fn contradicts(&self, link: &LinkRecord) -> Option<OtherLink> {
        let host = self.case.flow.from.host.to_string();
        let carrier = link.transport;
        if carrier.transport() != self.case.cell.transport {
            let wanted = self.case.cell.transport;
            return Some(OtherLink { host, what: OtherThan::Transport { wanted, carrier } });
        }
        if let Some(wanted) = self.test.collective.as_ref().and_then(|collective| collective.carried_by)
            && wanted != link.transport
        {
            return Some(OtherLink { host, what: OtherThan::Carrier { wanted, carrier } });
        }
        let wanted = self.test.gpu_path.filter(|wanted| *wanted != link.gpu_path)?;
        Some(OtherLink { host, what: OtherThan::GpuPath { wanted, gpu_path: link.gpu_path } })
    }
}

/// With the host in front, `gpu02: join: …`; both ends, or all ranks, if it is unknown.
fn failed(failure: &Failure, case: &Case) -> Objection {
    let ends = match case.flow.members.is_empty() {
        true => format!("{} → {}", case.flow.from.host, case.flow.to.host),
        false => case.flow.name(),
    };
    Objection::Failed { failure: Box::new(without_remedy(failure)), ends }
}

pub(crate) fn without_remedy(failure: &Failure) -> Failure {
    Failure { remedy: None, ..failure.clone() }
}

pub fn of_host(host: &str, failure: &Failure) -> String {
    without_remedy(failure).at(host).to_string()
}

/// Bytes compared by all ranks of a group: the result of the operation on each, before the window and after it. A
/// reduction to one rank leaves it only there, a scattered one leaves a part on each rank, everything else the whole on
/// every rank (nccl-tests, `doc/PERFORMANCE.md`).
pub(crate) fn verified(test: &Test, case: &Case) -> Bytes {
    let (Cell { op, size, .. }, flow) = (&*case.cell, &case.flow);
    let width = case.cell.manner.as_ref().map_or(Bytes(1), |manner| manner.datatype.bytes());
    let of = |op: Op| match op {
        Op::Reduce | Op::ReduceScatter => *size,
        _ => size.saturating_mul(flow.ranks().into()),
    };
    let once = match blocks(test, flow.members.len(), *size, width) {
        Some(all) => width.saturating_mul(all.iter().flatten().sum()),
        None => of(*op),
    };
    // And after flows were measured alone. Of a second communicator before and after it ran alongside, and afterwards of the first as well;
    // alongside a command as often as alone.
    let twice = |other: Bytes| Some(other.saturating_mul(2));
    let beside = test.beside.as_ref();
    let other = beside.and_then(|beside| beside.op.map_or(twice(once), |op| twice(of(op))));
    let again = alone(test, flow.members.len()) > 0 || beside.is_some_and(|beside| beside.op.is_some());
    once.saturating_mul(2 + u64::from(again)).saturating_add(other.unwrap_or_default())
}

impl<'a> Deref for CaseResult<'a> {
    type Target = Against<'a>;

    fn deref(&self) -> &Against<'a> {
        self.against.get()
    }
}

impl<'a> CaseResult<'a> {
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Against<'a>)) {
        // Taken out of its box: most cases have none, and need none after it.
        let mut against = self.against.take();
        change(&mut against);
        self.against = against.into();
    }
}

//! What is to be done about a verdict whose reason tells it. Grounds that belong to a case, a part or a flow have none here: what is to be
//! done about these is told with them.

use railgauge_wire::{
    failure::{Failure, Kind},
    remedy::{self, Remedy},
};

use super::{Ground, OfParts, OfRun, OfSoak, Reason, flows_and_more};
use crate::analysis::words::count;

/// What a ground says is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it is about, in words that do not tell what is to be done.
    pub about: String,
    /// What is to be done.
    pub remedy: Remedy,
}

impl Step {
    fn new(about: impl Into<String>, remedy: impl Into<Remedy>) -> Self {
        Self { about: about.into(), remedy: remedy.into() }
    }

    /// The same step about a ground, which tells a failure.
    fn of_failure(failure: &Failure, told: impl FnOnce(Box<Failure>) -> OfRun) -> Option<Self> {
        let remedy = failure.told_remedy()?;
        let bare = Failure { remedy: None, ..failure.clone() };
        Some(Self::new(told(Box::new(bare)).to_string(), remedy))
    }
}

impl Reason {
    /// What the first ground that tells it says is to be done.
    pub fn step(&self) -> Option<Step> {
        self.grounds().iter().find_map(|ground| match ground {
            Ground::Run(ground) => of_run(ground),
            Ground::Parts(OfParts::TooNoisy(_)) => Some(Step::new("too noisy to tell", remedy::MEASURE_AGAIN)),
            Ground::Parts(OfParts::OverTime(_)) => Some(Step::new(ground.to_string(), remedy::MEASURE_AGAIN)),
            Ground::Soak(OfSoak::SoakWrongBytes { .. }) => Some(Step::new(ground.to_string(), remedy::WRONG_BYTES)),
            Ground::Soak(OfSoak::SoakFailed { first, flows, failure: Some(failure), .. })
                if failure.kind == Kind::Corruption =>
            {
                let about = format!("wrong bytes in {}", flows_and_more(first, *flows));
                Some(Step::new(about, remedy::WRONG_BYTES))
            }
            _ => None,
        })
    }
}

fn of_run(ground: &OfRun) -> Option<Step> {
    match ground {
        OfRun::Interrupted => Some(Step::new("the run was interrupted", remedy::RESUME_RUN)),
        OfRun::BrokeOff => Some(Step::new("the run broke off", remedy::RESUME_RUN)),
        OfRun::Prevented { cause, remedy } => {
            let remedy = remedy.clone().unwrap_or_else(|| remedy::RESUME_RUN.into());
            Some(Step::new(format!("the run could not go on: {cause}"), remedy))
        }
        OfRun::Unreadable { places, resumable, .. } => {
            let remedy = if *resumable { remedy::RESUME_RUN } else { remedy::DAMAGED_RECORDS };
            Some(Step::new(format!("{} of records.jsonl cannot be read", count(*places, "place")), remedy))
        }
        OfRun::Contradictory { lines, .. } => {
            let lines = count(*lines, "line");
            Some(Step::new(format!("{lines} of records.jsonl cannot be right"), remedy::DAMAGED_RECORDS))
        }
        OfRun::Lost { hosts, failure } => {
            Step::of_failure(failure, |failure| OfRun::Lost { hosts: hosts.clone(), failure })
        }
        OfRun::CameBack { hosts, failure } => {
            Step::of_failure(failure, |failure| OfRun::CameBack { hosts: hosts.clone(), failure })
        }
        OfRun::MissedSoak { hosts, failure } => {
            Step::of_failure(failure, |failure| OfRun::MissedSoak { hosts: hosts.clone(), failure })
        }
        OfRun::UndoFailed { change, failure } => {
            Step::of_failure(failure, |failure| OfRun::UndoFailed { change: change.clone(), failure })
        }
        OfRun::UndoNotReached { change } => {
            Some(Step::new(format!("`undo` of {change} was not reached"), remedy::RESUME_RUN))
        }
        OfRun::StillRunning | OfRun::Silent { .. } | OfRun::Unused { .. } => None,
    }
}

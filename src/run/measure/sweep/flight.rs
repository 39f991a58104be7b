//! A case that both ends of a link were told of.

use std::time::Duration;

use railgauge_model::journal::event::Case;
use railgauge_wire::{
    case::{CaseAccount, CaseSpec},
    failure::Failure,
    link::LinkId,
    message::Ask,
};
use tokio::time::Instant;

use super::account;
use crate::cluster::{Agent, Asked};

/// What both ends said of a case.
pub(super) type Accounts = (Result<CaseAccount, Failure>, Result<CaseAccount, Failure>);

/// A case that is under way, or waits for those before it.
pub(super) struct Flight {
    /// The case.
    pub case: Case,
    from: End,
    to: End,
    /// When the last answer must be here; known once the case is the first that is under way.
    until: Option<(Instant, Duration)>,
}

struct End {
    asked: Asked,
    said: Option<Result<CaseAccount, Failure>>,
}

impl End {
    fn new(agent: &Agent, link: LinkId, case: &CaseSpec) -> Self {
        Self { asked: agent.send(Ask::Case { link, case: Box::new(case.clone()) }), said: None }
    }

    /// Resolves when it has answered; at once if it has.
    async fn answered(&mut self, host: &str) {
        if self.said.is_none() {
            let said = self.asked.answer().await.and_then(|answer| account::of(host, answer));
            self.said = Some(said);
        }
    }

    /// What it said; the failure of an end that said nothing in time.
    fn take(self, limit: Duration) -> Result<CaseAccount, Failure> {
        self.said.unwrap_or_else(|| Err(self.asked.late(limit)))
    }
}

impl Flight {
    /// Tells both ends of a case.
    pub(super) fn new(case: Case, ends: (&Agent, &Agent), link: LinkId, spec: &CaseSpec) -> Self {
        let (from, to) = (End::new(ends.0, link, spec), End::new(ends.1, link, spec));
        Self { case, from, to, until: None }
    }

    /// Waits until both have answered, at most `limit` from the first call on. The other end of one that has answered has no more
    /// than `patience`: it is as far, or it hangs. The wait may be given up and begun again.
    pub(super) async fn answered(&mut self, hosts: (&str, &str), limit: Duration, patience: Duration) {
        let until = *self.until.get_or_insert_with(|| (Instant::now() + limit, limit));
        let (mut deadline, mut is_short) = (until.0, false);
        while self.from.said.is_none() || self.to.said.is_none() {
            if (self.from.said.is_some() || self.to.said.is_some()) && !is_short {
                is_short = true;
                deadline = deadline.min(Instant::now() + patience);
                self.until = Some((deadline, patience));
            }
            let (from, to) = (self.from.said.is_none(), self.to.said.is_none());
            tokio::select! {
                () = self.from.answered(hosts.0), if from => {}
                () = self.to.answered(hosts.1), if to => {}
                () = tokio::time::sleep_until(deadline) => return,
            }
        }
    }

    /// What both said.
    pub(super) fn accounts(self) -> (Case, Accounts) {
        let limit = self.until.map_or(Duration::ZERO, |(_, limit)| limit);
        (self.case, (self.from.take(limit), self.to.take(limit)))
    }
}

use std::time::Duration;

use railgauge_model::journal::event::Case;
use railgauge_wire::{Ask, CaseAccount, CaseSpec, Failure, LinkId};
use tokio::time::Instant;

use super::account;
use crate::cluster::{Agent, Asked};

pub(super) type Accounts = (Result<CaseAccount, Failure>, Result<CaseAccount, Failure>);

pub(super) struct Flight {
    pub case: Case,
    from: End,
    to: End,
    told: Instant,
    since: Option<Instant>,
    until: Option<(Instant, Duration)>,
}

struct End {
    asked: Asked,
    said: Option<Result<CaseAccount, Failure>>,
    heard: Option<Instant>,
}

impl End {
    fn new(agent: &Agent, link: LinkId, case: &CaseSpec) -> Self {
        Self { asked: agent.send(Ask::Case { link, case: Box::new(case.clone()) }), said: None, heard: None }
    }

    async fn answered(&mut self, host: &str) {
        if self.said.is_none() {
            let said = self.asked.answer().await.and_then(|answer| account::of(host, answer));
            (self.said, self.heard) = (Some(said), Some(Instant::now()));
        }
    }

    fn lasted(&self) -> Option<(Instant, Duration)> {
        let account = self.said.as_ref()?.as_ref().ok()?;
        Some((self.heard?, account.took.into()))
    }

    fn has_failed(&self) -> bool {
        self.said.as_ref().is_some_and(|said| said.as_ref().map_or(true, |account| account.failure.is_some()))
    }

    fn take(self, limit: Duration) -> Result<CaseAccount, Failure> {
        self.said.unwrap_or_else(|| Err(self.asked.late(limit)))
    }
}

impl Flight {
    pub(super) fn new(case: Case, ends: (&Agent, &Agent), link: LinkId, spec: &CaseSpec) -> Self {
        let (from, to) = (End::new(ends.0, link, spec), End::new(ends.1, link, spec));
        Self { case, from, to, told: Instant::now(), since: None, until: None }
    }

    /// Waits until both have answered, at most `limit` from the first call on. Once one has answered, the other has at most `patience`: it
    /// is as far, or it hangs. If the responder is done and the initiator is not, that counts from the end of a whole timed pass (`pass`):
    /// an early claim of completion must not shorten the other's time. Cancel-safe.
    pub(super) async fn answered(&mut self, hosts: (&str, &str), limit: Duration, pass: Duration, patience: Duration) {
        let since = *self.since.get_or_insert_with(Instant::now);
        let until = *self.until.get_or_insert((since + limit, limit));
        let (mut deadline, mut is_short) = (until.0, false);
        while self.from.said.is_none() || self.to.said.is_none() {
            if (self.from.said.is_some() || self.to.said.is_some()) && !is_short {
                is_short = true;
                let is_done = self.from.said.is_none() && !self.to.has_failed();
                let over = if is_done { (since + pass).max(Instant::now()) } else { Instant::now() };
                deadline = deadline.min(over + patience);
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

    pub(super) fn give_up(&mut self, waited: Duration) {
        self.until = Some((Instant::now(), waited));
    }

    /// Start and end on the controller's clock. `before` is the end of the case that it waited for.
    pub(super) fn times(&self, before: Option<Instant>) -> (Instant, Instant) {
        let first = self.since.unwrap_or(self.told);
        match self.from.lasted().or(self.to.lasted()) {
            Some((heard, took)) => {
                let began = began(self.told, heard, took, before);
                (began, (began + took).min(heard))
            }
            None => (first, Instant::now()),
        }
    }

    pub(super) fn accounts(self) -> (Case, Accounts) {
        let limit = self.until.map_or(Duration::ZERO, |(_, limit)| limit);
        (self.case, (self.from.take(limit), self.to.take(limit)))
    }
}

/// Start of a case that was announced at `told`, and whose answer arrived after it had taken this long. What it waited for ended at
/// `before`: it began right then, however late its answer is processed. The latency of an answer makes it seem to have begun later, but a
/// wrong duration never earlier than possible.
fn began(told: Instant, heard: Instant, took: Duration, before: Option<Instant>) -> Instant {
    let latest = heard.checked_sub(took).unwrap_or(told);
    before.map_or(latest, |before| before.min(latest)).clamp(told, heard.max(told))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_began_as_long_before_its_answer_as_it_took() {
        let told = Instant::now();
        let at = |ms| told + Duration::from_millis(ms);
        let took = Duration::from_millis(100);
        assert_eq!(began(told, at(900), took, None), at(800));
        assert_eq!(began(told, at(900), took, Some(at(300))), at(300));
        assert_eq!(began(told, at(900), took, Some(at(850))), at(800));
        assert_eq!(began(told, at(900), Duration::MAX, None), told);
        assert_eq!(began(told, at(900), Duration::from_secs(5), None), told);
    }
}

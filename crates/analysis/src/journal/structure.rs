//! Checks the lines of a journal against each other: each may be valid, but in a place where no run writes it.

use std::collections::{BTreeMap, HashMap, HashSet};

use jiff::Timestamp;
use railgauge_model::journal::event::Event;

use super::{
    Contradiction, Journal, JournalEnd,
    planned::{self, Offer},
    soaked::Parts,
    times,
};

#[derive(Default)]
pub(super) struct Structure {
    hosts: HashMap<String, usize>,
    began: Option<Timestamp>,
    offers: BTreeMap<String, Offer>,
    planned: Option<(usize, BTreeMap<String, Offer>)>,
    confirming: Vec<(usize, usize)>,
    outcomes: HashSet<(u64, u32)>,
    soak: Parts,
    found: Vec<Contradiction>,
}

impl Structure {
    fn contradicts(&mut self, line: usize, what: String) {
        self.found.push(Contradiction { line, what, by_clock: false });
    }

    pub(super) fn gap(&mut self) {
        self.outcomes.clear();
    }

    pub(super) fn begin(&mut self, journal: &Journal, line: usize) {
        for (at, host) in journal.plan.hosts.iter().enumerate() {
            self.hosts.entry(host.name.clone()).or_insert(at);
        }
        self.began = self.time(line, &journal.time.0);
    }

    fn time(&mut self, line: usize, at: &str) -> Option<Timestamp> {
        let time = at.parse().ok();
        if time.is_none() {
            self.contradicts(line, format!("it was written at `{at}`, which is not a time"));
        }
        time
    }

    /// Notes an event that cannot be at this line, which must be left out.
    pub(super) fn admits(&mut self, journal: &Journal, line: usize, at: &str, event: &Event) -> bool {
        let at = self.time(line, at);
        let ended =
            matches!(journal.end, JournalEnd::Finished | JournalEnd::Interrupted | JournalEnd::Prevented { .. });
        if ended && !matches!(event, Event::Resumed { .. } | Event::Started { .. }) {
            self.contradicts(line, "it is after the end of the run, which was not resumed".to_owned());
            return false;
        }
        if let Event::HostUp { host, .. } | Event::HostLost { host, .. } | Event::Watched { host, .. } = event
            && !self.hosts.contains_key(host)
        {
            self.contradicts(line, format!("it is about host `{host}`, which the plan does not have"));
            return false;
        }
        let failure = match event {
            Event::HostLost { failure, .. } | Event::Configured { failure: Some(failure), .. } => Some(failure),
            Event::Outcome(outcome) => outcome.result.as_ref().err(),
            _ => None,
        };
        let named = failure.into_iter().flat_map(|failure| [&failure.host, &failure.peer]).flatten();
        if let Some(foreign) = named.into_iter().find(|host| !self.hosts.contains_key(*host)) {
            self.contradicts(line, format!("its failure is about host `{foreign}`, which the plan does not have"));
            return false;
        }
        match event {
            Event::HostUp { host, facts, .. } => {
                if let Some(planned) = self.hosts.get(host).and_then(|&at| journal.plan.hosts.get(at)) {
                    self.offers.insert(host.clone(), Offer::of(planned, facts));
                }
            }
            // Hosts answer the next process again.
            Event::Resumed { .. } => {
                self.offers.clear();
                self.outcomes.clear();
                self.soak.resumed();
            }
            Event::Soaked(part) => {
                if let Some(what) = self.soak.contradiction(journal, part, (self.began, at)) {
                    self.contradicts(line, what);
                    return false;
                }
            }
            Event::Planned { .. } if !journal.cases.is_empty() => {
                self.contradicts(line, "a second list of planned cases".to_owned());
                return false;
            }
            Event::Planned { .. } => self.planned = Some((line, self.offers.clone())),
            Event::Confirming { .. } => self.confirming.push((line, journal.further.len())),
            Event::Outcome(outcome) => {
                let (case, repeat) = (outcome.case, outcome.repeat);
                if !self.outcomes.insert((case, repeat)) {
                    self.contradicts(line, format!("a second outcome of repeat {repeat} of case {case}"));
                    return false;
                }
                if let (Some(began), Some(at), Some(started)) = (self.began, at, outcome.started_at.time())
                    && !times::within(began, started, at)
                {
                    self.contradicts(line, format!("case {case} began at {}, outside of the run", outcome.started_at));
                }
            }
            _ => {}
        }
        true
    }

    /// Everything that contradicts itself; `damaged` if lines could not be read.
    pub(super) fn finish(mut self, journal: &Journal, damaged: bool) -> Vec<Contradiction> {
        // Another version may have made another schedule from the same plan.
        let same = journal.version == env!("CARGO_PKG_VERSION");
        if let Some((line, offers)) = self.planned.take().filter(|_| same) {
            let mut what = planned::contradiction(&journal.plan, &offers, &journal.cases);
            if what.is_some() && damaged {
                // A host's data may be lost and reported again to a later process.
                let mut all = self.offers.clone();
                for host in &journal.plan.hosts {
                    if let Some(up) = journal.hosts.get(&host.name) {
                        all.entry(host.name.clone()).or_insert_with(|| Offer::of(host, &up.facts));
                    }
                }
                all.extend(offers);
                what = planned::contradiction(&journal.plan, &all, &journal.cases);
            }
            if let Some(what) = what {
                self.contradicts(line, format!("the planned cases are not those of the plan: {what}"));
            } else if let Some((at, what)) = planned::strange(&journal.plan, &journal.cases, &journal.further) {
                let line = self.confirming.iter().rev().find(|(_, before)| *before <= at);
                self.contradicts(line.map_or(1, |(line, _)| *line), what);
            }
        }
        self.found.sort_by_key(|found| found.line);
        self.found
    }
}

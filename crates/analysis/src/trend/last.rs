//! The state of the plans' components after all runs, from `night`: the trend is never better.

use std::collections::HashMap;

use super::{Change, Everything, History, Part, Reported, Series, State, Way, reason};

/// Ends changes for the worse of components that a later run measured as good against their peers and limits: one night
/// is enough for that, but not to show that the old level is back. Also ends those of links and groups at a host that
/// became good, unless later values are nearer to the fallen level. Accepts what the plan waives.
pub(super) fn repaired(everything: &Everything, changes: &mut [Change], series: &mut [Series]) {
    let ended: HashMap<&str, Option<&str>> = everything
        .trend
        .reported
        .iter()
        .flat_map(|one| &one.components)
        .filter(|one| matches!(one.state, "good" | "waived"))
        .map(|one| (one.name.as_str(), (one.state == "good").then_some(one.since.as_str())))
        .collect();
    // The date if it is good, `None` if it is waived.
    let since = |name: &str, change: &Change| {
        ended.get(name).copied().filter(|since| since.is_none_or(|since| since > change.since.as_str()))
    };
    let of_series = |at: usize, alert: usize, change: &Change| {
        let (about, one) = (&everything.series[at], &series[at]);
        let hosts = match &about.part {
            Some(part) => part.hosts(everything.groups_of.values()),
            None => about.hosts(&everything.subjects),
        };
        let ends: Vec<_> = hosts.into_iter().filter_map(|host| since(&format!("host {host}"), change)).collect();
        let Some(since) = ends.iter().copied().min()? else { return Some(None) };
        let is_back = || {
            one.points
                .last()
                .is_some_and(|(_, value)| (value / one.accepted).ln().abs() < 0.5 * one.alerts[alert].size())
        };
        let is_judged = matches!(about.part, Some(Part::Host(_) | Part::Nic(..)));
        (is_judged || one.span.1.as_str() < since || is_back()).then_some(Some(since))
    };
    let of_all = |change: &Change| {
        change.members.iter().map(|(at, alert)| of_series(*at, *alert, change)).collect::<Option<Vec<_>>>()
    };
    let ends: Vec<Option<Option<String>>> = changes
        .iter()
        .map(|change| since(&change.name, change).or_else(|| of_all(change)?.into_iter().max()))
        .map(|end| end.map(|since| since.map(str::to_owned)))
        .collect();
    for (change, since) in changes.iter_mut().zip(ends) {
        let Some(since) = since.filter(|_| (change.way, change.state) == (Way::Worse, State::Open)) else { continue };
        let before = reason::change(change, series);
        change.state = if since.is_some() { State::WentAway } else { State::Accepted };
        for (at, alert) in &change.members {
            let alert = &mut series[*at].alerts[*alert];
            if alert.state == State::Open {
                (alert.state, alert.end) = (change.state, since.clone());
            }
        }
        change.sentence = change.sentence.replacen(&before, &reason::change(change, series), 1);
    }
}

impl History {
    pub fn report(&mut self, reported: Vec<Reported>) {
        self.reported = reported;
    }
}

//! Changes for the worse whose series ended. Other hardware, an edit or another name ends no change: it is over if its
//! place is back at the level before, or if everything that remains is unchanged. All series of a place, watched as
//! one, show whether it is back, and whether it fell when one replaced another.

use std::mem::discriminant;

use railgauge_stats::{
    Refusal,
    changepoint::{self, AlertEnd, Kind, Watch},
    robust::{MAD_TO_SIGMA, median},
};

use super::{
    Alert, Epoch, Everything, How, NEARBY, Options, Place, Rule, Series, Standing, State, Taken, Way,
    alerts::{of_alert, rules, watch_each},
    date,
    parts::sign,
};
use crate::history::Swap;

/// Fewest nights of a series for a comparison with its peers.
const NIGHTS: usize = 7;
/// Fewest peers needed to judge the successor of a series.
const PEERS: usize = 3;
/// Nights before and after a series takes a place whose levels are compared, at most, and fewest.
const LAST: usize = 14;
const FEWEST: usize = 3;
/// In standard deviations; the same as for a level that is back.
const MARGIN: f64 = 1.5;

/// Settles every change for the worse whose series ended, and adds those that appeared when one series replaced another.
///
/// # Errors
/// A statistic refuses the nights, which is a bug.
pub(super) fn settle(everything: &Everything, series: &mut [Series], options: &Options) -> Result<(), Refusal> {
    let rules = rules(options);
    let several: Vec<&Place> = everything.places.iter().filter(|place| place.members.len() > 1).collect();
    let nights: Vec<_> = several.iter().map(|place| place.nights.as_slice()).collect();
    let watched = watch_each(&nights, &rules)?;
    let look = Look { everything, least: rules.least };
    for (place, watch) in several.into_iter().zip(&watched) {
        look.replaced(series, place, watch);
        look.fallen(series, place, watch);
        if look.is_one_subject(place) {
            look.went_on(series, place, watch);
            look.passed(series, place, watch);
        }
    }
    for place in &everything.places {
        for (number, &at) in place.members.iter().enumerate() {
            look.ended(series, at, place.members.get(number + 1).copied());
        }
    }
    Ok(())
}

impl Alert {
    fn settle(&mut self, (state, end): (State, Option<i64>), taken: Taken) {
        self.state = state;
        self.end = end.map(date).or_else(|| self.end.take());
        self.taken = Some(taken);
    }
}

struct Look<'a> {
    everything: &'a Everything,
    /// Smallest reported effect, as a difference of logarithms.
    least: f64,
}

impl Look<'_> {
    /// Changes of series whose hardware was replaced: the place as a whole shows whether the level before is back.
    fn replaced(&self, series: &mut [Series], place: &Place, watch: &Watch) {
        let Some((&holder, before)) = place.members.split_last() else { return };
        for (&at, &next) in before.iter().zip(&place.members[1..]) {
            if self.everything.series[at].standing != Standing::Replaced {
                continue;
            }
            for number in ended(&series[at]) {
                let alert = &series[at].alerts[number];
                let is_gone = self.everything.series[holder].standing == Standing::Gone;
                let settled = match like(watch, alert) {
                    Some(AlertEnd::WentAway(_)) => (State::Ended, None),
                    Some(AlertEnd::Accepted(day)) => (State::Accepted, Some(day)),
                    // Intermittent nights are not evidence any more.
                    None if alert.rule == Rule::Intermittent => (State::Ended, None),
                    _ if self.is_like_peers(series, holder, alert) => (State::Ended, None),
                    _ if is_gone && self.remains_well(series, holder, alert) => (State::Ended, None),
                    _ => self.left(alert),
                };
                let taken = self.taken(series, at, next, holder, series[at].accepted);
                series[at].alerts[number].settle(settled, taken);
            }
        }
    }

    /// Adds changes that appeared when the last series of a place took it: its own nights have no level before.
    fn fallen(&self, series: &mut [Series], place: &Place, watch: &Watch) {
        let Some((&holder, before)) = place.members.split_last() else { return };
        for found in self.open(holder, watch) {
            if known(series, place, found, |state| state != State::WentAway).is_some() {
                continue;
            }
            // The first series that began with the change, or after it.
            let ends = |at: usize| self.everything.series[at].ends();
            let next = place.members[1..].iter().position(|&at| ends(at).0 + NEARBY >= found.since);
            let (Some(next), one) = (next, &series[holder]) else { continue };
            let taken = self.taken(series, before[next], place.members[next + 1], holder, accepted(one, watch));
            let alert = of_alert(found, one.metric, one.alive, &one.points);
            // If the place is not measured any more, the reason for that decides.
            let state = if one.alive { State::Left } else { State::Ended };
            series[holder].alerts.push(Alert { state, taken: Some(taken), ..alert });
        }
    }

    /// Changes for the worse of a place that are open, and began before its last series or with it.
    fn open<'w>(&self, holder: usize, watch: &'w Watch) -> impl Iterator<Item = &'w changepoint::Alert> {
        let until = self.everything.series[holder].ends().0 + NEARBY;
        let is_open = move |found: &&changepoint::Alert| {
            found.effect < 0.0 && found.end == AlertEnd::Open && found.since <= until
        };
        watch.alerts.iter().filter(is_open)
    }

    /// Whether only the hardware of a place changed: values with other settings are not a level before.
    fn is_one_subject(&self, place: &Place) -> bool {
        let of = |at: &usize| &self.everything.series[*at];
        place.members.windows(2).all(|two| of(&two[0]).part.is_none() && of(&two[0]).subject == of(&two[1]).subject)
    }

    /// A successor far worse than its peers: if its place was already bad before, it is the same change, open since its first night.
    fn went_on(&self, series: &mut [Series], place: &Place, watch: &Watch) {
        let Some((&holder, before)) = place.members.split_last() else { return };
        let apart = |alert: &&Alert| alert.rule == Rule::Peers && alert.state == State::Open;
        let Some(apart) = series[holder].alerts.iter().find(apart).cloned() else { return };
        let size = apart.size();
        let first = self.everything.series[holder].ends().0;
        let open: Vec<_> = self.open(holder, watch).filter(|found| found.kind != Kind::Intermittent).collect();
        if 2.0 * open.iter().map(|found| found.effect.abs()).sum::<f64>() >= size {
            series[holder].alerts.retain(|alert| *alert != apart);
            let old = accepted(&series[holder], watch);
            for found in open {
                let counts = |state| !matches!(state, State::WentAway | State::Accepted);
                if let Some(known) = known(series, place, found, counts) {
                    go_on(series, known, holder);
                    continue;
                }
                let one = &series[holder];
                let alert = of_alert(found, one.metric, one.alive, &one.points);
                let taken = before.last().map(|&last| self.taken(series, last, holder, holder, old));
                series[holder].alerts.push(Alert { taken, ..alert });
            }
            let one = &mut series[holder];
            one.accepted = old;
            one.alerts.sort_by_key(|alert| alert.day);
            return;
        }
        // It may date from the first night of the place, which no night can show.
        let nights = |from: i64, until: i64| -> Vec<f64> {
            let within = place.nights.iter().filter(|night| (from..until).contains(&night.day));
            within.filter_map(|night| median(&night.runs).ok()).collect()
        };
        let old = nights(i64::MIN, first);
        let was = median(&old[old.len().saturating_sub(LAST)..]);
        let (Ok(was), Some(begun), false) = (was, place.nights.first(), old.len() < FEWEST) else { return };
        let is_low = |level: f64| level - self::level(&series[holder]) < size / 2.0;
        let since = begun.day;
        if is_low(was)
            && is_low(median(&old[..old.len().min(LAST)]).unwrap_or(f64::MAX))
            && let Some(alert) = series[holder].alerts.iter_mut().find(|alert| **alert == apart)
        {
            (alert.since, alert.day) = (date(since), since);
        }
    }

    /// Adds changes for the worse that came and went with one occupant of a place: its own nights have no level before.
    fn passed(&self, series: &mut [Series], place: &Place, watch: &Watch) {
        let ends = |at: usize| self.everything.series[at].ends();
        for found in watch.alerts.iter().filter(|found| found.effect < 0.0 && found.kind != Kind::Intermittent) {
            if !matches!(found.end, AlertEnd::WentAway(_)) {
                continue;
            }
            let came = |at: &&usize| (ends(**at).0 - found.since).abs() <= NEARBY;
            let Some(&at) = place.members.iter().find(came) else { continue };
            let is_first = ends(at).0 == place.nights.first().map_or(0, |night| night.day);
            if is_first || known(series, place, found, |_| true).is_some() {
                continue;
            }
            let one = &series[at];
            let alert = of_alert(found, one.metric, true, &one.points);
            series[at].alerts.push(alert);
        }
    }

    /// Changes of a series without a successor, or with one by an edit: `next`.
    fn ended(&self, series: &mut [Series], at: usize, next: Option<usize>) {
        let standing = self.everything.series[at].standing;
        if !matches!(standing, Standing::Gone | Standing::Retired) {
            return;
        }
        for number in ended(&series[at]) {
            let (one, alert) = (&series[at], &series[at].alerts[number]);
            let taken = alert.taken.clone().unwrap_or_else(|| match next {
                Some(next) => self.taken(series, at, next, next, one.accepted),
                None => self.end(at, one.accepted),
            });
            let is_over = standing == Standing::Gone && self.remains_well(series, at, alert);
            let settled = if is_over { (State::Ended, None) } else { self.left(alert) };
            series[at].alerts[number].settle(settled, taken);
        }
    }

    /// Not known to be over, unless an epoch accepts it.
    fn left(&self, alert: &Alert) -> (State, Option<i64>) {
        let declared = self.everything.trend.epochs.iter().filter(|epoch| epoch.declared && epoch.day > alert.day);
        declared.map(|epoch| epoch.day).min().map_or((State::Left, None), |day| (State::Accepted, Some(day)))
    }

    /// Levels of series of the same kind measured before a change and no worse since.
    fn peers(&self, series: &[Series], at: usize, since: i64) -> Vec<f64> {
        let known = |&other: &usize| {
            let (one, collected) = (&series[other], &self.everything.series[other]);
            one.alive && collected.ends().0 < since && !one.is_worse() && one.nights >= NIGHTS
        };
        self.alike(series, at).filter(known).map(|other| level(&series[other])).collect()
    }

    fn alike<'a>(&'a self, series: &'a [Series], at: usize) -> impl Iterator<Item = usize> + 'a {
        let of = &self.everything.series;
        let class = move |at: usize| of[at].part.as_ref().map(discriminant);
        let same = move |other: &usize| {
            *other != at
                && (of[*other].line, class(*other)) == (of[at].line, class(at))
                && series[*other].kind == series[at].kind
        };
        (0..series.len()).filter(same)
    }

    /// Whether the successor of a worse series is as good as its peers, which never were worse.
    fn is_like_peers(&self, series: &[Series], holder: usize, alert: &Alert) -> bool {
        let peers = self.peers(series, holder, alert.day);
        let one = &series[holder];
        one.alive && one.nights >= NIGHTS && peers.len() >= PEERS && self.is_healthy(level(one), &peers, alert)
    }

    /// Whether all that remains without a host keeps its level, and all that is new is as good.
    fn remains_well(&self, series: &[Series], at: usize, alert: &Alert) -> bool {
        let peers = self.peers(series, at, alert.day);
        let last = self.everything.series[at].ends().1;
        let new = |other: &usize| series[*other].alive && self.everything.series[*other].ends().0 >= last;
        let mut new = self.alike(series, at).filter(new);
        !peers.is_empty() && new.all(|other| self.is_healthy(level(&series[other]), &peers, alert))
    }

    /// Whether a level is not lower than that of the peers. Halfway to the change is neither.
    fn is_healthy(&self, level: f64, peers: &[f64], alert: &Alert) -> bool {
        let Ok(centre) = median(peers) else { return false };
        let away: Vec<f64> = peers.iter().map(|peer| (peer - centre).abs()).collect();
        let spread = median(&away).map_or(0.0, |away| MAD_TO_SIGMA * away);
        let half = alert.size() / 2.0;
        level >= centre - (MARGIN * spread).max(self.least).min(half)
    }

    fn taken(&self, series: &[Series], at: usize, next: usize, holder: usize, before: f64) -> Taken {
        let (old, new) = (&self.everything.series[at], &self.everything.series[next]);
        let hosts = if old.subject == new.subject { self.replaced_at(at, next) } else { Vec::new() };
        let how = if old.subject == new.subject && old.part.is_none() { How::Hardware } else { How::Edit };
        let first = new.ends().0;
        let is_edit = |epoch: &&Epoch| {
            how == How::Edit && epoch.edited.contains(&old.line) && (old.ends().1..=first).contains(&epoch.day)
        };
        let edit = self.everything.trend.epochs.iter().find(is_edit).map(|epoch| epoch.what.clone());
        let after = if how == How::Hardware { self.unread(&hosts, first) } else { None };
        Taken { how, date: date(first), after, hosts, edit, before, now: Some(series[holder].centre) }
    }

    /// The last night on which the old part was read, if there are nights before that of the new one.
    fn unread(&self, hosts: &[String], first: i64) -> Option<String> {
        let night = |run: usize| self.everything.days.get(run).copied().unwrap_or_default();
        let then = |swap: &&Swap| night(swap.new.runs.0) == first && hosts.contains(&swap.new.host);
        let until = self.everything.swaps.iter().filter(then).map(|swap| night(swap.old.runs.1)).min()?;
        (first - until > 1).then(|| date(until))
    }

    fn replaced_at(&self, at: usize, next: usize) -> Vec<String> {
        let (old, new) = (&self.everything.series[at], &self.everything.series[next]);
        let flow = &self.everything.subjects[old.subject].flow;
        let ends = [&flow.from, &flow.to].into_iter().enumerate();
        let other = ends.filter(|(end, _)| old.devices[*end] != new.devices[*end]);
        other.map(|(_, port)| port.host.to_string()).collect()
    }

    fn end(&self, at: usize, before: f64) -> Taken {
        let one = &self.everything.series[at];
        let how = if one.standing == Standing::Gone { How::Host } else { How::Plan };
        Taken { how, date: date(one.ends().1), after: None, hosts: one.gone.clone(), edit: None, before, now: None }
    }
}

pub(super) fn go_on(series: &mut [Series], (at, alert): (usize, usize), holder: usize) {
    let mut alert = series[at].alerts.remove(alert);
    (alert.state, alert.end) = (State::Open, None);
    let one = &mut series[holder];
    if let Some(taken) = alert.taken.as_ref().filter(|_| at != holder) {
        one.accepted = taken.before;
    }
    one.alerts.push(alert);
    one.alerts.sort_by_key(|alert| alert.day);
}

fn ended(one: &Series) -> Vec<usize> {
    let is_ended = |alert: &Alert| alert.way == Way::Worse && alert.state == State::Ended;
    (0..one.alerts.len()).filter(|&number| is_ended(&one.alerts[number])).collect()
}

/// Level before the oldest open change of a place, in the unit of the metric.
fn accepted(one: &Series, place: &Watch) -> f64 {
    (sign(one.metric) * place.accepted).exp()
}

/// The last series of a place that has a change for the worse of the place, and its alert, if its state counts.
fn known(
    series: &[Series],
    place: &Place,
    found: &changepoint::Alert,
    counts: impl Fn(State) -> bool,
) -> Option<(usize, usize)> {
    let same =
        |alert: &Alert| alert.way == Way::Worse && counts(alert.state) && is_same(found.kind, found.since, alert);
    place.members.iter().rev().find_map(|&at| Some((at, series[at].alerts.iter().position(same)?)))
}

fn like(watch: &Watch, alert: &Alert) -> Option<AlertEnd> {
    let same = watch.alerts.iter().filter(|found| found.effect < 0.0 && is_same(found.kind, found.since, alert));
    // An open one outweighs any other.
    same.map(|found| found.end).max_by_key(|end| *end == AlertEnd::Open)
}

/// Whether a change of a place is one that its series has. The first of the intermittent nights moves with time.
fn is_same(kind: Kind, since: i64, alert: &Alert) -> bool {
    match (kind == Kind::Intermittent, alert.rule == Rule::Intermittent) {
        (true, true) => true,
        (false, false) => (since - alert.day).abs() <= NEARBY,
        _ => false,
    }
}

/// On a scale on which higher is better.
fn level(one: &Series) -> f64 {
    sign(one.metric) * one.centre.ln()
}

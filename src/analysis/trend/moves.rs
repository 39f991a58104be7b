//! What was replaced, and what that means: a change that came or went with a part names it, and a part that was slow in one slot and is
//! in another is the same change for the worse.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{
    Alert, How, Series, State, Way,
    assemble::Everything,
    calendar::{date, day},
    judge::NEARBY,
    passing::Passing,
    replaced::go_on,
    swapped::{Before, Replaced, Since, Slow},
    travelled::{Nights, Travelled, travelled},
};
use crate::analysis::{
    history::{PartKind, Seated, Stay, Swap},
    words::count,
};

/// Parts that are named beside one change.
const NAMED: usize = 3;

/// Everything that was replaced, in the order of time.
pub(super) fn replaced(everything: &Everything, series: &[Series]) -> Vec<Replaced> {
    if everything.swaps.is_empty() {
        return Vec::new();
    }
    let moves = Moves::new(everything);
    let mut all: Vec<Replaced> = everything.swaps.iter().map(|swap| moves.one(series, swap)).collect();
    moves.together(&mut all);
    went_with(&mut all);
    all
}

/// A slot at a time: host, kind and address of the slot, and the first run of the part that is there.
type Key<'s> = (&'s str, PartKind, &'s str, usize);

fn key(stay: &Stay) -> Key<'_> {
    (&stay.host, stay.slot.kind, &stay.slot.at, stay.runs.0)
}

struct Moves<'a> {
    everything: &'a Everything,
    passing: Passing<'a>,
    /// By the stay that ended: what took the place of its part.
    next: HashMap<Key<'a>, &'a Swap>,
    /// Stays of parts that were in other slots later.
    ended: HashSet<Key<'a>>,
}

impl<'a> Moves<'a> {
    fn new(everything: &'a Everything) -> Self {
        let parts = || everything.swaps.iter().filter(|swap| swap.renamed.is_empty());
        let ended = parts().flat_map(|swap| [Some(&swap.old), swap.from.as_ref()]).flatten().map(key).collect();
        let next = parts().map(|swap| (key(&swap.old), swap)).collect();
        Self { everything, passing: Passing::new(everything), next, ended }
    }

    fn night(&self, run: usize) -> i64 {
        self.everything.days.get(run).copied().unwrap_or_default()
    }

    fn nights(&self, stay: &Stay) -> (i64, i64) {
        (self.night(stay.runs.0), self.night(stay.runs.1))
    }

    fn one(&self, series: &[Series], swap: &Swap) -> Replaced {
        let Swap { old, new, from, to, renamed } = swap;
        let (day, until) = (self.night(new.runs.0), self.night(old.runs.1));
        let since = |stay: &Stay| Since {
            host: stay.host.clone(),
            part: stay.first_name().to_owned(),
            since: date(self.night(stay.runs.0)),
            since_day: self.night(stay.runs.0),
            until: self.ended.contains(&key(stay)).then(|| date(self.night(stay.runs.1))),
            travelled: None,
        };
        Replaced {
            date: date(day),
            day,
            until: date(until),
            until_day: until,
            host: new.host.clone(),
            kind: new.slot.kind,
            part: swap.name(),
            by: new.id.0,
            old: old.id.1.clone(),
            new: new.id.1.clone(),
            renamed: !renamed.is_empty(),
            from: from.as_ref().map(|from| self.before(series, swap, from)),
            to: to.as_ref().map(since),
            stay: new.clone(),
        }
    }

    fn before(&self, series: &[Series], swap: &Swap, from: &Stay) -> Before {
        let until_day = self.night(from.runs.1);
        let slow = self.passing.stood(series, from, self.nights(from)).map(|stood| {
            let (old, new) = (self.passing.places(&from.left()), self.passing.places(&swap.new.came()));
            // A link between the two slots passes the part wherever it is.
            let only = |one: &BTreeSet<usize>, other| one.difference(other).copied().collect::<Vec<usize>>();
            let (mut left, came) = self.slots(swap, from);
            // What was before the part became slow says nothing of where the slowness went.
            left.with.0 = left.with.0.max(stood.since);
            let travelled =
                travelled(self.everything, (&only(&old, &new), left), (&only(&new, &old), came), stood.size);
            Slow { since: date(stood.since), series: stood.series, travelled, with: Vec::new() }
        });
        let (host, part) = (from.host.clone(), from.name().to_owned());
        Before { host, part, until: date(until_day), until_day, within: None, slow, stay: from.clone() }
    }

    /// The nights of the two slots with the part and without it.
    fn slots(&self, swap: &Swap, from: &Stay) -> (Nights, Nights) {
        let new = self.nights(&swap.new);
        // Since the part was read elsewhere it is not in the old slot, until it comes back or what took its place goes.
        let back = self.next.get(&key(&swap.new)).and_then(|next| next.to.as_ref());
        let back = back.filter(|to| (&to.host, &to.slot) == (&from.host, &from.slot));
        let next = self.next.get(&key(from)).map(|next| &next.new);
        let first = next.map_or(new.0, |next| self.night(next.runs.0).min(new.0));
        let last = match (next, back) {
            (Some(next), _) if self.ended.contains(&key(next)) => self.night(next.runs.1),
            (_, Some(back)) => self.night(back.runs.0) - 1,
            _ => i64::MAX,
        };
        let left = Nights { with: self.nights(from), without: (first, last) };
        // While it was read in the old slot it was not in the new one.
        let before =
            (self.night(swap.old.runs.0), self.night(swap.old.runs.1).max(self.night(from.runs.1).min(new.0 - 1)));
        (left, Nights { with: new, without: before })
    }

    /// Parts that were moved together: what is in a machine was moved with it, and of parts of the same links nothing tells which one it is.
    fn together(&self, all: &mut [Replaced]) {
        let mut moved: HashMap<(String, String, i64), Vec<usize>> = HashMap::new();
        for (at, one) in all.iter().enumerate() {
            if let Some(from) = &one.from {
                moved.entry((from.host.clone(), one.host.clone(), one.day)).or_default().push(at);
            }
        }
        for group in moved.values().filter(|group| group.len() > 1) {
            let machine = group.iter().find(|at| all[**at].kind == PartKind::Machine);
            if let Some(words) = machine.map(|at| format!("machine {}", all[*at].new)) {
                for &at in group {
                    let one = &mut all[at];
                    let Some(from) = one.from.as_mut().filter(|_| one.kind != PartKind::Machine) else { continue };
                    (from.within, from.slow) = (Some(words.clone()), None);
                }
                continue;
            }
            let slow = |at: &&usize| all[**at].from.as_ref().is_some_and(|from| from.slow.is_some());
            let slow: Vec<(usize, BTreeSet<usize>)> =
                group.iter().filter(slow).map(|&at| (at, self.passing.places(&all[at].stay.came()))).collect();
            for (at, places) in &slow {
                let others = slow.iter().filter(|(other, of)| other != at && !of.is_disjoint(places));
                let with: Vec<String> =
                    others.map(|(other, _)| format!("{} {}", all[*other].kind.noun(), all[*other].new)).collect();
                if let Some(slow) = all[*at].from.as_mut().and_then(|from| from.slow.as_mut()) {
                    slow.with = with;
                }
            }
        }
    }
}

/// What is known of a part where it came to is told of the slot that it left, too.
fn went_with(all: &mut [Replaced]) {
    let told: HashMap<(String, PartKind, String, i64), Travelled> = all
        .iter()
        .filter_map(|one| {
            let slow = one.from.as_ref()?.slow.as_ref()?;
            Some(((one.host.clone(), one.kind, one.new.clone(), one.day), slow.travelled))
        })
        .collect();
    for one in all {
        let Some(to) = &mut one.to else { continue };
        to.travelled = told.get(&(to.host.clone(), one.kind, one.old.clone(), to.since_day)).copied();
    }
}

/// A part that was bad where it was before and is bad where it is now: the change is still so, whatever took the place of what. That it
/// is bad where it is now is known from a change that came with it, or that stands there since before: the part ended none.
pub(super) fn follow(everything: &Everything, replaced: &[Replaced], series: &mut [Series]) {
    let passing = Passing::new(everything);
    let bad = |one: &&Replaced| {
        let slow = one.from.as_ref().and_then(|before| before.slow.as_ref());
        slow.is_some_and(|slow| slow.travelled != Travelled::WithSlot)
    };
    for one in replaced.iter().filter(bad) {
        let part = one.stay.came();
        for at in passing.of_host(part.host) {
            if !passing.passes(*at, &part) {
                continue;
            }
            let stands = |alert: &Alert| {
                let by_hardware = alert.taken.as_ref().is_some_and(|taken| taken.how == How::Hardware);
                alert.way == Way::Worse && alert.state == State::Left && by_hardware && alert.day <= one.day + NEARBY
            };
            let members = &everything.places[series[*at].place].members;
            // Of what is not measured any more nobody knows whether it is still so.
            let Some(&holder) = members.last().filter(|holder| series[**holder].alive) else { continue };
            while let Some(alert) = series[*at].alerts.iter().position(stands) {
                go_on(series, (*at, alert), holder);
            }
        }
    }
}

/// Where a change for the worse is now: some of it is over, and all that stands of it passes a host to which its part was taken with the
/// slow values. `None` where it is where it was, or nobody knows.
pub(super) fn went_on(
    everything: &Everything,
    replaced: &[Replaced],
    members: &[(usize, usize)],
    series: &[Series],
) -> Option<String> {
    let stands = |(at, alert): &&(usize, usize)| matches!(series[*at].alerts[*alert].state, State::Open | State::Left);
    let standing: Vec<usize> = members.iter().filter(stands).map(|(at, _)| *at).collect();
    if standing.is_empty() || standing.len() == members.len() {
        return None;
    }
    let passes = |at: usize, host: &str| {
        let flow = &everything.subjects[everything.series[at].subject].flow;
        flow.hosts().into_iter().any(|end| **end == *host)
    };
    let moved = |one: &&Replaced| {
        one.to.as_ref().is_some_and(|to| {
            to.travelled == Some(Travelled::WithPart)
                && to.host != one.host
                && members.iter().all(|(at, _)| passes(*at, &one.host))
                && standing.iter().all(|at| passes(*at, &to.host))
        })
    };
    // The latest: a part may have been taken along several times.
    let one = replaced.iter().rfind(moved)?;
    let to = one.to.as_ref()?;
    Some(format!("until {}, host {} since {}", one.until, to.host, to.since))
}

/// What was replaced when a change came or went, or while it stood, in words: where half of what changed passes the part, or more.
pub(super) fn beside(
    everything: &Everything,
    passing: &Passing<'_>,
    replaced: &[Replaced],
    members: &[(usize, usize)],
    series: &[Series],
) -> Vec<String> {
    if replaced.is_empty() {
        return Vec::new();
    }
    let alerts = || members.iter().map(|(at, alert)| &series[*at].alerts[*alert]);
    let ends = alerts().filter(|alert| !matches!(alert.state, State::Open | State::Left));
    let days: BTreeSet<i64> =
        alerts().map(|alert| alert.day).chain(ends.filter_map(|alert| day(alert.end.as_deref()?).ok())).collect();
    // While it stands, what is replaced does not end it.
    let stands = alerts().filter(|alert| matches!(alert.state, State::Open | State::Left)).map(|alert| alert.day).min();
    let hosts: HashSet<&str> = members
        .iter()
        .flat_map(|(at, _)| everything.subjects[everything.series[*at].subject].flow.hosts())
        .map(|host| &**host)
        .collect();
    let is_near = |one: &Replaced| {
        let (first, last) = (one.day.min(one.until_day + 1) - NEARBY, one.day + NEARBY);
        days.range(first..=last).next().is_some()
    };
    let stood = |one: &Replaced| stands.is_some_and(|since| since < one.until_day.min(one.day));
    let most_pass = |part: &Seated<'_>| {
        let passing = members.iter().filter(|(at, _)| passing.passes(*at, part)).count();
        2 * passing >= members.len()
    };
    // A part that left a slot in which no other is known tells of that slot, too.
    let emptied = |one: &Replaced| {
        is_near(one)
            && one.from.as_ref().is_some_and(|from| {
                hosts.contains(from.host.as_str())
                    && most_pass(&from.stay.left())
                    && !replaced.iter().any(|other| other.host == from.host && other.old == one.new)
            })
    };
    let is_of = |one: &&Replaced| hosts.contains(one.host.as_str()) && most_pass(&one.stay.came()) || emptied(one);
    let looked_at = replaced.iter().filter(|one| is_near(one) || stood(one));
    let found: Vec<&Replaced> = looked_at.filter(is_of).collect();
    // With another machine all of its parts are others.
    let machines = found.iter().filter(|one| one.kind == PartKind::Machine).map(|one| (one.host.as_str(), one.day));
    let machines: HashSet<(&str, i64)> = machines.collect();
    let within = |one: &&Replaced| one.kind != PartKind::Machine && machines.contains(&(one.host.as_str(), one.day));
    let mut told: Vec<&Replaced> = found.iter().copied().filter(|one| !within(one)).collect();
    // What came or went with it first, then the latest.
    told.sort_by_key(|one| (!is_near(one), std::cmp::Reverse(one.day)));
    // Slow values that went with a part were away while it was.
    let took_it = |one: &Replaced| {
        let came = one.from.as_ref().and_then(|from| Some(from.slow.as_ref()?.travelled));
        let left = one.to.as_ref().and_then(|to| to.travelled);
        [came, left].contains(&Some(Travelled::WithPart))
    };
    let words = |one: &&Replaced| {
        let words = one.words();
        if is_near(one) || took_it(one) { words } else { format!("{words}; that did not end it") }
    };
    let mut all: Vec<String> = told.iter().take(NAMED).map(words).collect();
    if told.len() > NAMED {
        all.push(format!("{} more were replaced since then or at about that time", count(told.len() - NAMED, "part")));
    }
    all
}

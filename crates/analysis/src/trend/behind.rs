//! Effects of a bad part on the pairs and hosts behind it, in rotating plans.
//!
//! A pair that is only measured now and then is low since its first turn after its host became slow, and a host whose pairs mostly leave
//! its group is low on most nights while the group's uplinks are. Neither changed by itself: the part has a series of its own, measured
//! every night. Only a listed change explains others, and none that lasts longer, is larger, or started at another time.

use std::collections::{BTreeSet, HashMap};

use railgauge_stats::{
    Refusal,
    changepoint::{Night, Rules, watch},
};

use super::{Alert, Collected, Everything, Groups, Part, Rule, Series, State, Watched, Way, alerts::size, day};

/// Factor by which something must be worse than the part to be bad itself, as in localise.
const LOWER: f64 = 1.3;
/// Share of a part's effect, and standard deviations of a night, by which it may shift the median of pairs, since
/// only some pass it: fewer of them are good.
const SHIFTS: (f64, f64) = (0.25, 3.0);
/// Tolerance in days of the first night of a change.
const NEAR: i64 = 3;
/// Delay in days of the first night of a small one.
const VAGUE: i64 = 21;

/// A change for the worse: its series, its days, and its effect as a positive difference of logarithms.
#[derive(Clone, Copy)]
struct Fall {
    at: usize,
    always: bool,
    from: i64,
    until: i64,
    effect: f64,
}

impl Fall {
    fn of(at: usize, one: &Series, alert: &Alert) -> Self {
        let last = || one.points.last().map_or(alert.day, |(day, _)| day + 1);
        let until = match alert.state {
            State::Open => i64::MAX,
            _ => alert.end.as_deref().and_then(|end| day(end).ok()).unwrap_or_else(last),
        };
        Self { at, always: alert.rule != Rule::Intermittent, from: alert.day, until, effect: alert.size() }
    }

    const fn lasts(&self) -> bool {
        self.until == i64::MAX
    }

    fn covers(&self, size: f64, until: i64, least: f64) -> bool {
        size <= LOWER * self.effect + least && until <= self.until.saturating_add(NEAR)
    }

    /// Whether it caused another change of what is measured every night: at the same time.
    fn makes(&self, other: &Self, least: f64) -> bool {
        let begins = other.from - self.from;
        let together = if other.always { self.always && begins.abs() <= NEAR } else { begins >= -NEAR };
        together && other.from < self.until && self.covers(other.effect, other.until, least)
    }

    /// Whether it caused a change of a pair, which is measured now and then: better before it, and better after its end.
    fn makes_pair(&self, other: &Self, one: &Series, least: f64) -> bool {
        let value = |(_, value): &(i64, f64)| value.ln();
        let on = |from: i64, until: i64| -> Vec<f64> {
            one.points.iter().filter(|(day, _)| (from..until).contains(day)).map(value).collect()
        };
        let middle = |values: &[f64]| railgauge_stats::robust::median(values).ok();
        let before = middle(&on(i64::MIN, self.from - NEAR));
        let Some(during) = middle(&on(self.from - NEAR, self.until)) else { return false };
        let half = other.effect.min(self.effect) / 2.0;
        let fell = before.is_none_or(|before| (before - during).abs() >= half);
        let is_low = |value: f64| match before {
            Some(before) => (before - value).abs() >= half,
            // Its first turn came later.
            None => (value - during).abs() < half,
        };
        let still = on(self.until, i64::MAX).into_iter().any(is_low);
        fell && !still
            && other.from < self.until
            && (self.always || !other.always)
            && self.covers(other.effect, self.until, least)
    }

    fn ends_as(&self, other: &Self, least: f64) -> bool {
        !self.lasts() && (other.from - self.until).abs() <= NEAR && other.effect <= LOWER * self.effect + least
    }

    /// Whether it may have shifted the median of others, some of whose pairs pass it; `scale` is their standard deviation.
    fn shifts(&self, other: &Self, scale: f64, least: f64) -> bool {
        let small = (SHIFTS.0 * self.effect).min(SHIFTS.1 * scale);
        // The date of so small a step is uncertain.
        let then = (self.from - NEAR..=self.from + VAGUE).contains(&other.from);
        self.always && then && other.effect <= small && self.covers(other.effect, other.until, least)
    }
}

fn falls(at: usize, one: &Series) -> impl Iterator<Item = Fall> {
    let worse = one.alerts.iter().filter(|alert| alert.way == Way::Worse);
    worse.map(move |alert| Fall::of(at, one, alert))
}

/// Removes from every series what a part on its path explains: changes for the worse, suspicions and deviating last
/// nights. [`Series::behind`] names that part.
pub(super) fn settle(everything: &Everything, series: &mut [Series], least: f64) {
    let mut kinds: HashMap<(usize, String), Vec<usize>> = HashMap::new();
    for (at, (one, collected)) in series.iter().zip(&everything.series).enumerate().filter(|(_, (_, of))| of.rotating) {
        kinds.entry((collected.line, one.kind.clone())).or_default().push(at);
    }
    let none = Groups::default();
    for ((line, _), members) in kinds {
        let groups = everything.groups_of.get(&line).unwrap_or(&none);
        Kind { everything, groups, members, least }.settle(series);
    }
}

/// Noise only counts nights without a fault, neither of the series nor, in rotating plans, of a part on the pair's path or of a host of the
/// group, whose other hosts may be measured on other nights.
///
/// # Errors
/// A statistic refuses the input.
pub(super) fn calm(everything: &Everything, series: &mut [Series], rules: &Rules) -> Result<(), Refusal> {
    let none = Groups::default();
    let groups = |at: usize| everything.groups_of.get(&everything.series[at].line).unwrap_or(&none);
    let mut by_part: HashMap<(usize, String, &Part), Vec<Fall>> = HashMap::new();
    for (at, of) in everything.series.iter().enumerate() {
        let Some(part) = &of.part else { continue };
        by_part.entry((of.line, series[at].kind.clone(), part)).or_default().extend(falls(at, &series[at]));
    }
    for (at, of) in everything.series.iter().enumerate() {
        if series[at].state != Watched::TooNoisy {
            continue;
        }
        let passed = match &of.part {
            None if of.rotating => Part::of(&everything.subjects[of.subject], groups(at)),
            None => BTreeSet::new(),
            Some(part) => {
                part.hosts([groups(at)].into_iter()).into_iter().map(|host| Part::Host(host.into())).collect()
            }
        };
        let of_parts = passed.iter().filter_map(|part| by_part.get(&(of.line, series[at].kind.clone(), part)));
        let bad: Vec<Fall> =
            falls(at, &series[at]).chain(of_parts.flatten().copied()).filter(|fall| fall.always).collect();
        let is_apart = |night: &&Night| !bad.iter().any(|fall| (fall.from..fall.until).contains(&night.day));
        let apart: Vec<Night> = of.nights.iter().filter(is_apart).cloned().collect();
        if apart.iter().any(|night| !night.runs.is_empty()) {
            let watch = watch(&apart, rules)?;
            if !watch.blind {
                series[at].state = Watched::of(watch.grade);
            }
        }
    }
    Ok(())
}

struct Kind<'a> {
    everything: &'a Everything,
    groups: &'a Groups,
    members: Vec<usize>,
    least: f64,
}

impl Kind<'_> {
    fn of(&self, at: usize) -> &Collected {
        &self.everything.series[at]
    }

    fn parts(&self, is: impl Fn(&Part) -> bool) -> Vec<usize> {
        self.members.iter().copied().filter(|&at| self.of(at).part.as_ref().is_some_and(&is)).collect()
    }

    fn settle(&self, series: &mut [Series]) {
        let all = |of: &[usize], series: &[Series]| -> Vec<Fall> {
            of.iter().flat_map(|&at| falls(at, &series[at]).collect::<Vec<_>>()).collect()
        };
        let hosts = self.parts(|part| matches!(part, Part::Host(_) | Part::Nic(..)));
        let others = self.parts(|part| !matches!(part, Part::Host(_) | Part::Nic(..)));
        let uplinks = self.parts(|part| matches!(part, Part::Out(_) | Part::Between(..)));
        let taken = || others.iter().chain(&hosts).any(|&at| !series[at].alerts.is_empty());
        if !taken() {
            return;
        }
        // Effects of hosts and other groups on a group, on nights on which its few pairs were theirs.
        let (of_hosts, of_groups) = (all(&hosts, series), all(&uplinks, series));
        for &at in &others {
            let part = self.of(at).part.as_ref();
            let mine = of_hosts.iter().filter(|fall| self.is_in(fall.at, part)).chain(&of_groups);
            let mine: Vec<Fall> = mine.filter(|fall| fall.always && fall.at != at).copied().collect();
            self.take(series, at, (&[], &mine));
        }
        // Effects of uplinks on the hosts behind them, unless everything fell, or the whole group.
        let every = all(&self.parts(|part| *part == Part::All), series);
        let uplinks: Vec<Fall> = all(&uplinks, series)
            .into_iter()
            .filter(|fall| !every.iter().any(|all| all.makes(fall, self.least)) && !self.whole(fall, series))
            .collect();
        for &at in &hosts {
            let mine: Vec<Fall> =
                uplinks.iter().filter(|fall| self.is_in(at, self.of(fall.at).part.as_ref())).copied().collect();
            self.take(series, at, (&mine, &uplinks));
        }
        // Effects of all of these on pairs.
        let mut by_part: HashMap<&Part, Vec<Fall>> = HashMap::new();
        for fall in all(&others, series).into_iter().chain(all(&hosts, series)) {
            if let Some(part) = &self.everything.series[fall.at].part {
                by_part.entry(part).or_default().push(fall);
            }
        }
        for &at in self.members.iter().filter(|&&at| self.of(at).part.is_none()) {
            let one = &series[at];
            if one.alerts.is_empty() && one.suspicion.is_none() && one.repeat.is_none() {
                continue;
            }
            let passed = Part::of(&self.everything.subjects[self.of(at).subject], self.groups);
            let mine: Vec<Fall> = passed.iter().filter_map(|part| by_part.get(part)).flatten().copied().collect();
            self.take(series, at, (&mine, &[]));
        }
    }

    /// Whether the traffic inside the group fell as well as that across its border: then the hosts are to blame.
    fn whole(&self, fall: &Fall, series: &[Series]) -> bool {
        let within = |group: &str| {
            let own = self.parts(|part| *part == Part::Within(group.to_owned()));
            own.into_iter().any(|at| falls(at, &series[at]).any(|other| other.makes(fall, self.least)))
        };
        match &self.of(fall.at).part {
            Some(Part::Out(group)) => within(group),
            Some(Part::Between(a, b)) => within(a) || within(b),
            _ => false,
        }
    }

    /// `None` means any group.
    fn is_in(&self, host: usize, group: Option<&Part>) -> bool {
        let Some(Part::Host(host) | Part::Nic(host, ..)) = &self.of(host).part else { return false };
        let mut own = self.groups.of(host);
        match group {
            Some(Part::Out(name) | Part::Within(name)) => own.any(|group| group == name),
            Some(Part::Between(a, b)) => own.any(|group| group == a || group == b),
            _ => true,
        }
    }

    /// Removes what changes on its path explain, and intermittent nights that any of them may have made low.
    fn take(&self, series: &mut [Series], at: usize, (passed, any): (&[Fall], &[Fall])) {
        let (one, pair, least) = (&series[at], self.of(at).part.is_none(), self.least);
        let makes = |alert: &Alert| {
            let fall = Fall::of(at, one, alert);
            if alert.way == Way::Better {
                return passed.iter().find(|cause| cause.ends_as(&fall, least)).map(|cause| cause.at);
            }
            let of = if alert.rule == Rule::Intermittent && !any.is_empty() { any } else { passed };
            let by = |cause: &&Fall| if pair { cause.makes_pair(&fall, one, least) } else { cause.makes(&fall, least) };
            let cause = of.iter().find(by);
            let cause = cause.or_else(|| any.iter().find(|cause| cause.shifts(&fall, size(one.scale_percent), least)));
            cause.map(|cause| cause.at)
        };
        let made: Vec<Option<usize>> = one.alerts.iter().map(makes).collect();
        let lasting = |size: f64, since: i64| {
            let mut now = passed.iter().chain(any).filter(|cause| cause.lasts() && cause.always);
            now.find(|cause| since >= cause.from - NEAR && cause.covers(size, i64::MAX, least)).map(|cause| cause.at)
        };
        let suspected = one.suspicion.as_ref().and_then(|found| lasting(found.size(), found.day));
        let far_off = one.points.last().filter(|_| one.repeat.is_some());
        let far_off = far_off.and_then(|(day, value)| lasting((value / one.centre).ln().abs(), *day));
        let behind = made.iter().flatten().next().copied().or(suspected).or(far_off);
        let name = behind.map(|part| series[part].link.clone());
        let one = &mut series[at];
        let mut made = made.into_iter();
        one.alerts.retain(|_| made.next().flatten().is_none());
        if suspected.is_some() {
            one.suspicion = None;
        }
        one.repeat = one.repeat.filter(|_| far_off.is_none());
        one.behind = name.or_else(|| one.behind.take());
    }
}

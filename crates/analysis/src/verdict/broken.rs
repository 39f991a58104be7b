//! Which values break a limit: all, all of some sizes or settings, or some. In the first two cases no single part is the cause.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

use railgauge_stats::robust::{Level, outlier_cut};

use crate::{
    limits::Scoped,
    words::{count, size},
};

const TOLD: usize = 3;
/// A size or setting is a cause if the others' rate of failures would break all of its cases with at most this probability.
const BY_CHANCE: f64 = 0.05;

const SCATTER: usize = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub by: BrokenBy,
    pub on: MeasuredOn,
    /// Without cases with wrong bytes.
    pub cases: usize,
    /// Whether the limit lies within the scatter of one kind: those that break it miss it by less than the least
    /// effect, do not stand out, and share no host.
    pub within_scatter: bool,
}

/// The first two are in words: `all 12 cases of 64 KiB broke it`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenBy {
    All(String),
    /// All of some sizes or settings, on several hosts. Others may break it as well; the number counts those not explained.
    AllOfKind(String),
    Some,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasuredOn {
    Pairs,
    Groups,
    Hosts,
}

pub(super) struct Held<'s, 'r> {
    pub scope: &'s [Scoped<'r>],
    pub judged: &'s [(Scoped<'r>, bool)],
    /// With wrong bytes.
    pub wrong: &'s [Scoped<'r>],
    /// Without a value.
    pub missing: &'s [Scoped<'r>],
    pub is_near: bool,
}

type OfKind<'k> = &'k dyn Fn(&Scoped<'_>) -> bool;

impl Broken {
    /// `None` where no value breaks the limit.
    pub(super) fn of(held: &Held<'_, '_>) -> Option<Self> {
        let violating: Vec<&Scoped<'_>> = held.violating().collect();
        let (first, _) = violating.first()?;
        let on = if first.case.cell.transport.is_within_host() {
            MeasuredOn::Hosts
        } else if first.case.flow.members.is_empty() {
            MeasuredOn::Pairs
        } else {
            MeasuredOn::Groups
        };
        let within_scatter = held.is_near && held.is_within_scatter(&violating);
        Some(Self { by: held.by(&violating), on, cases: violating.len(), within_scatter })
    }
}

impl<'s, 'r> Held<'s, 'r> {
    fn violating(&self) -> impl Iterator<Item = &'s Scoped<'r>> {
        self.judged.iter().filter(|(_, violates)| *violates).map(|(one, _)| one)
    }

    /// Whether nothing that breaks the limit is apart from the rest of its size and setting, and no host is in all of it.
    fn is_within_scatter(&self, violating: &[&Scoped<'r>]) -> bool {
        let kind = |(result, row): &Scoped<'_>| (row.size_bytes, result.variant());
        let log = |(_, row): &Scoped<'_>| row.value.filter(|value| *value > 0.0).map(f64::ln);
        let is_ordinary = |one: &&Scoped<'r>| {
            let of_kind = self.judged.iter().map(|(other, _)| other).filter(|other| kind(other) == kind(one));
            let logs: Vec<f64> = of_kind.filter_map(log).collect();
            let level = Level::of(&logs, 0.0).ok().filter(|_| logs.len() >= SCATTER);
            let away = level.zip(log(one)).map(|(level, log)| (log - level.centre).abs() / level.scale);
            away.is_some_and(|away| away <= outlier_cut(logs.len(), Some(logs.len())))
        };
        !shared_host(violating.iter().copied()) && violating.iter().all(is_ordinary)
    }

    fn by(&self, violating: &[&Scoped<'r>]) -> BrokenBy {
        // A host shared by all of these, but not by the whole scope, may be the cause.
        if violating.len() < 2 || shared_host(violating.iter().copied()) && !shared_host(self.scope.iter()) {
            return BrokenBy::Some;
        }
        if violating.len() == self.judged.len() {
            return BrokenBy::All(self.told(&|_| true, "", ""));
        }
        let of_size = |(_, row): &Scoped<'_>| size(row.size_bytes);
        let of_setting = |(result, _): &Scoped<'_>| result.variant();
        let of_both = |one: &Scoped<'_>| format!("{} with {}", of_size(one), of_setting(one));
        let kinds: [&dyn Fn(&Scoped<'_>) -> String; 3] = [&of_size, &of_setting, &of_both];
        let told = kinds.into_iter().filter_map(|kind| self.all_of_kind(violating, kind));
        // The first of those that leave the fewest unexplained.
        let told = told.min_by_key(|(others, _)| *others);
        told.map_or(BrokenBy::Some, |(_, words)| BrokenBy::AllOfKind(words))
    }

    /// In words, if all cases of some kinds break the limit, each kind on hosts that cannot be the cause; with
    /// the number of others. The others have causes of their own.
    fn all_of_kind(&self, violating: &[&Scoped<'r>], kind: &dyn Fn(&Scoped<'_>) -> String) -> Option<(usize, String)> {
        let mut order: Vec<String> = Vec::new();
        let mut kinds: HashMap<String, Vec<&Scoped<'r>>> = HashMap::new();
        for one in violating {
            let of = kinds.entry(kind(one));
            if let Entry::Vacant(new) = &of {
                order.push(new.key().clone());
            }
            of.or_default().push(one);
        }
        for (one, _) in self.judged.iter().filter(|(_, violates)| !violates) {
            kinds.remove(&kind(one));
        }
        let of_all = shared_host(self.scope.iter());
        let is_several = |own: &Vec<&Scoped<'r>>| {
            let first = own.first().map(|one| hosts_of(one));
            let several = own.iter().any(|one| Some(hosts_of(one)) != first);
            several && (of_all || !shared_host(own.iter().copied()))
        };
        kinds.retain(|_, own| is_several(own));
        let others = |kinds: &HashMap<String, Vec<&Scoped<'r>>>| {
            let of_kinds: usize = kinds.values().map(Vec::len).sum();
            (self.judged.len() - of_kinds, violating.len() - of_kinds)
        };
        // If many others break it too, a kind with few cases may have no case that keeps it, by chance.
        let (all, broken) = others(&kinds);
        let rate = broken as f64 / all.max(1) as f64;
        let looked_at = self.judged.iter().map(|(one, _)| kind(one)).collect::<BTreeSet<_>>().len() as f64;
        kinds.retain(|_, own| looked_at * rate.powf(own.len() as f64) <= BY_CHANCE);
        if kinds.is_empty() {
            return None;
        }
        let (others, broken) = others(&kinds);
        order.retain(|name| kinds.contains_key(name));
        let more = order.len().saturating_sub(TOLD);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named: Vec<&str> = order.iter().take(TOLD).map(String::as_str).collect();
        let besides = if broken > 0 { format!(", and {broken} of the other {others}") } else { String::new() };
        let is_of = |one: &Scoped<'_>| kinds.contains_key(&kind(one));
        Some((broken, self.told(&is_of, &format!(" of {}{more}", named.join(", ")), &besides)))
    }

    fn told(&self, is_of: OfKind<'_>, of: &str, besides: &str) -> String {
        let number = |of: &[Scoped<'r>]| of.iter().filter(|one| is_of(one)).count();
        let judged = self.judged.iter().filter(|(one, _)| is_of(one)).count();
        let (missing, wrong) = (number(self.missing), number(self.wrong));
        let others = number(self.scope).saturating_sub(judged + missing + wrong);
        let left_out: Vec<String> =
            [(missing, "no value"), (wrong, "wrong bytes"), (others, "a value that could not be judged")]
                .into_iter()
                .filter(|(cases, _)| *cases > 0)
                .map(|(cases, what)| format!("{cases} {} {what}", if cases == 1 { "has" } else { "have" }))
                .collect();
        match left_out.as_slice() {
            [] => format!("all {}{of} broke it{besides}", count(judged, "case")),
            left_out => format!("all {}{of} broke it{besides}; {}", count(judged, "judged case"), left_out.join(", ")),
        }
    }
}

fn hosts_of<'r>((result, _): &Scoped<'r>) -> BTreeSet<&'r str> {
    let flow = &result.case.flow;
    [&flow.from, &flow.to].into_iter().chain(&flow.members).map(|port| &*port.host).collect()
}

fn shared_host<'s, 'r: 's>(mut cases: impl Iterator<Item = &'s Scoped<'r>>) -> bool {
    let Some(first) = cases.next() else { return false };
    let mut shared: BTreeSet<&str> = hosts_of(first);
    cases.all(|one| {
        let hosts = hosts_of(one);
        shared.retain(|host| hosts.contains(host));
        !shared.is_empty()
    })
}

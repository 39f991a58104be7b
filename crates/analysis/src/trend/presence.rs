//! Values that series should have: on the last night, and on any before, because an intermittent failure is one, too.

use std::collections::{BTreeSet, HashMap, HashSet};

use railgauge_model::schedule::Cell;
use railgauge_stats::changepoint::Night;
use railgauge_wire::Metric;

use super::{Groups, Key, Lines, Order, Part, Past, PlanVersion, Watch, lines::Varying};
use crate::history::Subject;

/// Turns without a value after which a pair of a rotating plan is missing even on nights of others. A single night may
/// fail, and turns are far apart.
pub(super) const LOST_TURNS: usize = 2;
/// Nights within which each part of a rotating plan must have its turn.
const TURNS: usize = 3;
/// Days without a run after which a plan counts as ended.
const ENDED: i64 = 14;
/// Nights that make a plan regular, so that days without a run do not end it yet.
const REGULAR: usize = 7;
/// Last nights of a plan that show how long it pauses.
const RECENT: usize = 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Present,
    Missing(usize),
    Stopped,
    Gone,
    Replaced,
    Retired,
}

pub(crate) struct Collected {
    pub subject: usize,
    pub part: Option<Part>,
    pub metric: Metric,
    pub plan: String,
    /// The first version of its plan, and the last one that measured it.
    pub line: usize,
    pub version: usize,
    /// Positions of its last value and, of a pair, of the newest run that was to measure it.
    pub last: usize,
    pub newest: Option<usize>,
    pub rotating: bool,
    pub standing: Standing,
    pub gone: Vec<String>,
    pub hardware: Vec<String>,
    pub devices: [usize; 2],
    pub nights: Vec<Night>,
    /// Runs of the last night without a value, and all of its runs, where too few later ones answered.
    pub unanswered: Option<(usize, usize)>,
    /// Position among the places.
    pub place: usize,
}

impl Collected {
    /// Hosts of a pair or a collective, or of a host or a NIC; none for other parts.
    pub(super) fn hosts<'a>(&'a self, subjects: &'a [Subject]) -> Vec<&'a str> {
        match &self.part {
            Some(Part::Host(host) | Part::Nic(host, ..)) => vec![host],
            Some(_) => Vec::new(),
            None => subjects[self.subject].flow.hosts().into_iter().map(|host| &**host).collect(),
        }
    }

    pub(super) fn valued(&self) -> impl DoubleEndedIterator<Item = &Night> {
        self.nights.iter().filter(|night| !night.runs.is_empty())
    }

    pub(super) fn ends(&self) -> (i64, i64) {
        let day = |night: Option<&Night>| night.map_or(0, |night| night.day);
        (day(self.valued().next()), day(self.valued().next_back()))
    }
}

/// Test, cell, and the number of the settings: what a subject measures, without the place.
type Kind<'a> = (&'a str, &'a Cell, usize);

pub(super) struct Presence<'a> {
    subjects: &'a [Subject],
    settings: &'a [usize],
    last: i64,
    plans: HashMap<usize, Plan<'a>>,
}

#[derive(Debug, Default)]
struct Plan<'a> {
    nights: BTreeSet<i64>,
    version: usize,
    /// Subjects planned on its last night; `None` if a run ended before planning.
    planned: Option<HashSet<usize>>,
    kinds: HashSet<Kind<'a>>,
    hosts: HashSet<String>,
}

/// A run of a plan, given by its first version.
pub(super) struct Planned<'r> {
    pub line: usize,
    pub version: usize,
    pub said: Option<&'r PlanVersion>,
    pub day: i64,
    pub planned: Option<&'r [usize]>,
}

impl<'a> Presence<'a> {
    /// Until the day `last`, from runs in order of time.
    pub(super) fn new<'r>(
        (subjects, settings): (&'a [Subject], &'a [usize]),
        last: i64,
        runs: impl Iterator<Item = Planned<'r>>,
    ) -> Self {
        let mut plans: HashMap<usize, Plan<'a>> = HashMap::new();
        for Planned { line, version, said, day, planned } in runs {
            let plan = plans.entry(line).or_default();
            if plan.nights.insert(day) || plan.version != version {
                plan.planned = planned.map(|_| HashSet::new());
            }
            plan.version = version;
            if let Some(said) = said {
                plan.hosts.clone_from(&said.hosts);
            }
            if let Some(planned) = planned {
                plan.planned.get_or_insert_default().extend(planned);
            }
        }
        let mut presence = Self { subjects, settings, last, plans: HashMap::new() };
        for plan in plans.values_mut() {
            plan.kinds = plan.planned.iter().flatten().map(|&subject| presence.kind(subject)).collect();
        }
        presence.plans = plans;
        presence
    }

    fn kind(&self, subject: usize) -> Kind<'a> {
        let Subject { test, cell, .. } = &self.subjects[subject];
        (test, cell, self.settings[subject])
    }

    /// First and last version of each plan.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, usize)> {
        self.plans.iter().map(|(line, plan)| (*line, plan.version))
    }

    fn lives(&self, plan: usize) -> bool {
        let Some(known) = self.plans.get(&plan) else { return false };
        let ago = known.nights.last().map_or(i64::MAX, |night| self.last - night);
        ago == 0 || ago <= ENDED && known.nights.len() >= REGULAR
    }

    /// Nights since the last one of a regular plan that never paused so long while others ran: its runs stopped, without a declaration.
    fn late(&self, plan: usize) -> Option<usize> {
        let known = self.plans.get(&plan)?;
        let nights: Vec<i64> = known.nights.iter().rev().take(RECENT).copied().collect();
        let ago = self.last - nights.first()?;
        let pause = nights.windows(2).map(|pair| pair[0] - pair[1]).max()?;
        (nights.len() >= REGULAR && ago > pause).then(|| usize::try_from(ago).unwrap_or(usize::MAX))
    }

    pub(super) fn expected(&self, plan: usize, subject: usize) -> bool {
        let planned = |known: &Plan<'_>| known.planned.as_ref().is_none_or(|planned| planned.contains(&subject));
        self.lives(plan) && self.plans.get(&plan).is_some_and(planned)
    }

    /// Whether a subject will have another turn: its plan still runs, has its hosts and measures the same kind.
    pub(super) fn has_turns(&self, plan: usize, subject: usize) -> bool {
        let hosts = self.subjects[subject].flow.hosts();
        let has = |known: &Plan<'_>| hosts.iter().all(|host| known.hosts.contains(&***host));
        let has = |known: &Plan<'_>| has(known) && known.kinds.contains(&self.kind(subject));
        self.lives(plan) && self.plans.get(&plan).is_some_and(has)
    }

    /// Sets the standing of every series; `days` are those of the runs. Ends before the day `accepted` are accepted.
    pub(super) fn judge(
        &self,
        series: &mut [Collected],
        varying: &Varying,
        groups: &HashMap<usize, Groups>,
        (days, accepted): (&[i64], i64),
    ) {
        let mut latest: HashMap<(usize, Metric, usize), i64> = HashMap::new();
        for one in series.iter().filter(|one| one.part.is_none()) {
            let known = latest.entry((one.subject, one.metric, one.line)).or_insert(i64::MIN);
            *known = one.ends().1.max(*known);
        }
        let none = Groups::default();
        let groups = |line: usize| groups.get(&line).unwrap_or(&none);
        let parts: HashMap<usize, HashSet<Part>> =
            self.plans.iter().map(|(line, known)| (*line, known.parts(self.subjects, groups(*line)))).collect();
        for one in series.iter_mut() {
            let is_latest = one.part.is_some() || latest[&(one.subject, one.metric, one.line)] <= one.ends().1;
            one.standing = match self.plans.get(&one.line).filter(|_| self.lives(one.line)) {
                _ if !is_latest => Standing::Replaced,
                None => Standing::Retired,
                Some(known) => {
                    one.gone = known.lacks(one, self.subjects);
                    if one.gone.is_empty() {
                        self.standing(one, known, varying, (&parts[&one.line], groups(one.line)), accepted)
                    } else if varying.drawn.contains(&known.version) {
                        // Where hosts change each night, one of them may be back tomorrow.
                        one.gone.clear();
                        Standing::Present
                    } else {
                        Standing::Gone
                    }
                }
            };
            self.newest(one, days);
        }
    }

    /// Of a series whose plan still runs and has its hosts.
    fn standing(
        &self,
        one: &Collected,
        known: &Plan<'_>,
        varying: &Varying,
        (parts, groups): (&HashSet<Part>, &Groups),
        accepted: i64,
    ) -> Standing {
        let night = one.ends().1;
        // Other hosts are not an edit where they change each night.
        let edited = one.version != known.version && !varying.drawn.contains(&known.version);
        let since = known.nights.range(night.saturating_add(1)..).count();
        let due = match (&one.part, &known.planned) {
            (_, None) => true,
            // On some nights no pair stays in a group; missing pairs show a failure.
            (Some(Part::Within(_)), Some(_)) => false,
            (Some(part), Some(_)) => {
                let measured = parts.contains(part) || since >= TURNS && groups.has(part);
                varying.rotating.contains(&known.version) && measured && known.kinds.contains(&self.kind(one.subject))
            }
            (None, Some(planned)) if one.rotating || edited => planned.contains(&one.subject),
            // A removed NIC is not even planned.
            (None, Some(_)) => true,
        };
        if edited && !due {
            // What an edit removed has ended, as if its plan had.
            if one.valued().count() < REGULAR || self.last - night > ENDED {
                return Standing::Retired;
            }
            let left = one.part.is_none() && !one.rotating && accepted <= night;
            let stopped = left && !known.measures_alike(one, self.subjects);
            return if stopped { Standing::Stopped } else { Standing::Present };
        }
        let late = || self.late(one.line).filter(|_| accepted <= night);
        let missing = if since > 0 { Some(since) } else { late() };
        missing.filter(|_| due).map_or(Standing::Present, Standing::Missing)
    }

    /// A night has a value as soon as one of its runs has one: what the newest run lacks is missing too.
    fn newest(&self, one: &mut Collected, days: &[i64]) {
        let now = self.plans.get(&one.line).and_then(|known| known.nights.last().copied());
        let lost = one.nights.iter().rev().take_while(|night| night.runs.is_empty()).count();
        // A pair of a rotating plan is due at its turn, and after several lost turns until it has a value.
        let due = || lost >= LOST_TURNS && self.has_turns(one.line, one.subject);
        let turn = |newest: usize| !one.rotating || Some(days[newest]) == now || due();
        let is_lost = one.newest.is_some_and(|newest| newest > one.last && turn(newest));
        one.standing = match one.standing {
            // Nights of other pairs' turns do not count.
            Standing::Missing(_) if one.rotating && one.part.is_none() => Standing::Missing(lost.max(1)),
            Standing::Present if is_lost => Standing::Missing(if one.rotating { lost.max(1) } else { 1 }),
            other => other,
        };
        let of_now = !one.rotating || one.nights.last().map(|night| night.day) == now;
        one.unanswered = one.unanswered.filter(|_| one.standing == Standing::Present && of_now);
    }
}

impl Plan<'_> {
    fn lacks(&self, one: &Collected, subjects: &[Subject]) -> Vec<String> {
        let hosts = one.hosts(subjects).into_iter().filter(|host| !self.hosts.contains(*host));
        hosts.map(str::to_owned).collect()
    }

    /// Whether the last night measured the same with other settings, so that a new series started.
    fn measures_alike(&self, one: &Collected, subjects: &[Subject]) -> bool {
        self.planned.iter().flatten().any(|&other| subjects[other] == subjects[one.subject])
    }

    fn parts(&self, subjects: &[Subject], groups: &Groups) -> HashSet<Part> {
        let planned = self.planned.iter().flatten().filter_map(|&subject| subjects.get(subject));
        planned.flat_map(|subject| Part::of(subject, groups)).collect()
    }
}

/// Runs in which a series should have a value and has none.
pub(super) struct Absent<'a> {
    order: &'a Order<'a>,
    /// Positions in time of the runs of a plan in all its versions. Leaves out a run that ended before planning if
    /// another of the same night did not.
    runs: HashMap<usize, Vec<usize>>,
    measured: HashSet<(usize, usize)>,
    rotating: &'a HashSet<usize>,
}

impl<'a> Absent<'a> {
    pub(super) fn new(order: &'a Order<'a>, lines: &Lines, rotating: &'a HashSet<usize>) -> Self {
        let (mut runs, mut measured): (HashMap<usize, Vec<usize>>, _) = (HashMap::new(), HashSet::new());
        let mut planned_nights: HashSet<(usize, i64)> = HashSet::new();
        for (at, &day) in order.days.iter().enumerate() {
            let Past { plan, planned, .. } = order.at(at);
            runs.entry(lines.of(*plan)).or_default().push(at);
            measured.extend(planned.iter().flatten().map(|&subject| (*plan, subject)));
            if planned.is_some() {
                planned_nights.insert((lines.of(*plan), day));
            }
        }
        for (line, runs) in &mut runs {
            runs.retain(|&at| order.at(at).planned.is_some() || !planned_nights.contains(&(*line, order.days[at])));
        }
        Self { order, runs, measured, rotating }
    }

    /// Positions in time of the runs that each series lacks, from the positions of its values; `lost` are those with an explicit failure,
    /// which alone count for what was never measured before. If other hardware took a place, the series with the last value lacks the run.
    pub(super) fn of(
        &self,
        series: &[(&Key, Vec<usize>)],
        lost: &HashMap<(Watch, usize), HashSet<usize>>,
    ) -> Vec<Vec<usize>> {
        let mut alike: HashMap<(&Watch, usize), Vec<usize>> = HashMap::new();
        for (at, (key, _)) in series.iter().enumerate() {
            alike.entry((&key.watch, key.plan)).or_default().push(at);
        }
        let mut absent: Vec<Vec<usize>> = vec![Vec::new(); series.len()];
        let none = HashSet::new();
        for ((watch, plan), members) in alike {
            let valued: HashSet<usize> = members.iter().flat_map(|&at| series[at].1.iter().copied()).collect();
            let Some(&first) = valued.iter().min() else { continue };
            let lost = lost.get(&(watch.clone(), plan)).unwrap_or(&none);
            for &run in self.runs.get(&plan).into_iter().flatten().filter(|run| !valued.contains(run)) {
                if !(lost.contains(&run) || run > first && self.is_due(watch, run)) {
                    continue;
                }
                let before = |at: &usize| series[*at].1.partition_point(|place| *place < run).checked_sub(1);
                let latest = |at: &usize| before(at).map(|last| series[*at].1[last]);
                let earliest = |at: &usize| std::cmp::Reverse(series[*at].1.first().copied());
                if let Some(owner) = members.iter().copied().max_by_key(|at| (latest(at), earliest(at))) {
                    absent[owner].push(run);
                }
            }
        }
        absent
    }

    /// Whether something should have a value of a run even if the run does not mention it.
    fn is_due(&self, watch: &Watch, run: usize) -> bool {
        let Past { plan, planned, part, .. } = self.order.at(run);
        match watch {
            Watch::Subject { .. } if *part => false,
            Watch::Subject { subject, .. } => {
                !self.rotating.contains(plan) && self.measured.contains(&(*plan, *subject))
            }
            Watch::Part { .. } => planned.is_none(),
        }
    }
}

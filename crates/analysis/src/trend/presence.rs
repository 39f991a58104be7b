//! Series without the value that they should have on the last night.

use std::collections::{BTreeSet, HashMap, HashSet};

use railgauge_model::schedule::Cell;
use railgauge_stats::changepoint::Night;
use railgauge_wire::Metric;

use super::{Groups, Part, PlanVersion};
use crate::history::Subject;

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
    /// The first version of its plan.
    pub line: usize,
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

#[derive(Debug)]
pub(super) struct Presence {
    last: i64,
    plans: HashMap<usize, Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    nights: BTreeSet<i64>,
    version: usize,
    /// Subjects planned on its last night; `None` if a run ended before planning.
    planned: Option<HashSet<usize>>,
    hosts: HashSet<String>,
}

impl Presence {
    pub(super) fn new(last: i64) -> Self {
        Self { last, plans: HashMap::new() }
    }

    /// In order of time; `said` is the content of that version.
    pub(super) fn run(
        &mut self,
        plan: usize,
        (version, said): (usize, Option<&PlanVersion>),
        day: i64,
        planned: Option<&[usize]>,
    ) {
        let plan = self.plans.entry(plan).or_default();
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
        let planned = |known: &Plan| known.planned.as_ref().is_none_or(|planned| planned.contains(&subject));
        self.lives(plan) && self.plans.get(&plan).is_some_and(planned)
    }

    pub(super) fn kinds<'a>(&self, subjects: &'a [Subject], settings: &'a [usize]) -> Kinds<'a> {
        let mut kinds = Kinds { subjects, settings, of: HashMap::new() };
        for (plan, known) in &self.plans {
            let of = known.planned.iter().flatten().map(|&subject| kinds.kind(subject)).collect();
            kinds.of.insert(*plan, of);
        }
        kinds
    }

    /// Whether a subject will have another turn: its plan still runs, has its hosts and measures the same kind.
    pub(super) fn has_turns(&self, plan: usize, subject: usize, kinds: &Kinds<'_>) -> bool {
        let hosts = kinds.subjects[subject].flow.hosts();
        let has = |known: &Plan| hosts.iter().all(|host| known.hosts.contains(&***host));
        self.lives(plan) && self.plans.get(&plan).is_some_and(has) && kinds.has(plan, subject)
    }

    /// Sets the standing of every series; `plans` are the numbers of their plans and of the last version that measured
    /// each. Ends before the day `accepted` are accepted.
    pub(super) fn judge(
        &self,
        series: &mut [Collected],
        plans: &[(usize, usize)],
        subjects: &[Subject],
        (rotating, drawn, groups, kinds): (&HashSet<usize>, &HashSet<usize>, &HashMap<usize, Groups>, &Kinds<'_>),
        accepted: i64,
    ) {
        let last = |one: &Collected| one.valued().next_back().map_or(i64::MIN, |night| night.day);
        let mut latest: HashMap<(usize, Metric, usize), i64> = HashMap::new();
        for (one, (plan, _)) in series.iter().zip(plans).filter(|(one, _)| one.part.is_none()) {
            let known = latest.entry((one.subject, one.metric, *plan)).or_insert(i64::MIN);
            *known = last(one).max(*known);
        }
        let none = Groups::default();
        let parts: HashMap<usize, HashSet<Part>> = self
            .plans
            .iter()
            .map(|(plan, known)| (*plan, known.parts(subjects, groups.get(plan).unwrap_or(&none))))
            .collect();
        for (one, &(plan, version)) in series.iter_mut().zip(plans) {
            let night = last(one);
            let replaced =
                one.part.is_none() && latest.get(&(one.subject, one.metric, plan)).is_some_and(|other| *other > night);
            if replaced {
                one.standing = Standing::Replaced;
                continue;
            }
            if !self.lives(plan) {
                continue;
            }
            let known = &self.plans[&plan];
            one.gone = known.lacks(one, subjects);
            if !one.gone.is_empty() {
                // Where hosts change each night, one of them may be back tomorrow.
                one.standing = if drawn.contains(&known.version) { Standing::Present } else { Standing::Gone };
                if one.standing == Standing::Present {
                    one.gone.clear();
                }
                continue;
            }
            // Other hosts are not an edit where they change each night.
            let edited = version != known.version && !drawn.contains(&known.version);
            let since = known.nights.range(night.saturating_add(1)..).count();
            let due = match (&one.part, &known.planned) {
                (_, None) => true,
                // On some nights no pair stays in a group; missing pairs show a failure.
                (Some(Part::Within(_)), Some(_)) => false,
                (Some(part), Some(_)) => {
                    let may = || since >= TURNS && groups.get(&plan).unwrap_or(&none).has(part);
                    let measured = parts[&plan].contains(part) || may();
                    rotating.contains(&known.version) && measured && kinds.has(plan, one.subject)
                }
                (None, Some(planned)) if one.rotating || edited => planned.contains(&one.subject),
                // A removed NIC is not even planned.
                (None, Some(_)) => true,
            };
            if edited && !due {
                // What an edit removed has ended, as if its plan had.
                let regular = one.valued().count() >= REGULAR;
                if regular && self.last - night <= ENDED {
                    let left = one.part.is_none() && !one.rotating && accepted <= night;
                    let stopped = left && !known.measures_alike(one, subjects);
                    one.standing = if stopped { Standing::Stopped } else { Standing::Present };
                }
                continue;
            }
            let late = || self.late(plan).filter(|_| accepted <= night);
            let missing = if since > 0 { Some(since) } else { late() };
            one.standing = missing.filter(|_| due).map_or(Standing::Present, Standing::Missing);
        }
    }
}

/// Measured by each plan on its last night, without the places: test, cell, and the number of the settings.
pub(super) struct Kinds<'a> {
    subjects: &'a [Subject],
    settings: &'a [usize],
    of: HashMap<usize, HashSet<(&'a str, &'a Cell, usize)>>,
}

impl<'a> Kinds<'a> {
    fn kind(&self, subject: usize) -> (&'a str, &'a Cell, usize) {
        let Subject { test, cell, .. } = &self.subjects[subject];
        (test, cell, self.settings[subject])
    }

    fn has(&self, plan: usize, subject: usize) -> bool {
        self.of.get(&plan).is_some_and(|of| of.contains(&self.kind(subject)))
    }
}

impl Plan {
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

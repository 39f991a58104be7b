//! Tests within hosts: which GPU, NUMA node, NIC or host is slower than its peers of all hosts, and the further cases that settle it.
//!
//! A part is measured by itself, so its value is compared with those of all parts of all hosts. With enough hosts, the
//! loss of a place on all of them (a socket with fewer memory modules, a way between two sockets) is subtracted first
//! and reported. What stands out is measured again in the same way: all that ran at the same time on its host, and the
//! same on a host on which nothing stood out. The same place of other hosts gives the good level.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use railgauge_model::{
    journal::event::Case,
    plan::{headline, model::Test},
    schedule::Flow,
};
use railgauge_stats::robust::{Level, median, outlier_cut};
use railgauge_wire::{Better, Gpu, Transport};

use super::{
    Alike, Confirmation, DecidedBy, Further, Good, Localisation, Named, OpenReason, PartName, Scatter, Standing,
    TooNoisy, Which,
    conditions::Conditions,
    pick::{self, Rows, of_row},
    told::{percent, value},
};
use crate::{
    case::CaseResult,
    gpus,
    journal::Journal,
    row::Row,
    words::{self, brief, count, number, part_words, worse},
};

pub(super) const COUNTED: &str = "part";
/// Parts needed to distinguish one: itself and three for comparison.
const FEWEST: usize = 4;
/// Number of values below which the spread is at least the least effect.
const FEW: usize = 12;
const REPEATS: usize = 3;
/// Suspect hosts measured again, worst first.
const HOSTS: usize = 8;
/// Standard deviations above the centre from which on a value shows the others to be low: a fault never adds bandwidth.
/// As for two clusters of pairs, twice the usual threshold, for non-normal tails.
const FAR_ABOVE: f64 = 8.0;
/// A multiple of the threshold at which an effect counts even on a busy host or a virtual machine.
const FAR: f64 = 4.0;

/// The cases of a test within hosts: at its reference, with the largest size. `None` for tests of networks.
fn screened<'r>(test: &Test, results: &'r [CaseResult<'r>], rows: &'r [Row]) -> Option<Rows<'r>> {
    if !test.transport.is_within_host() {
        return None;
    }
    let mut all = pick::at_reference(test, results, rows);
    let size = all.iter().map(|(result, _)| result.case.cell.size).max()?;
    all.retain(|(result, _)| result.case.cell.size == size);
    Some(all)
}

/// `None` for tests of networks.
pub(super) fn found(
    journal: &Journal,
    test: &Test,
    (results, rows): (&[CaseResult<'_>], &[Row]),
    (further, further_rows): (&[CaseResult<'_>], &[Row]),
) -> Option<Localisation> {
    let cases = screened(test, results, rows)?;
    let (first, row) = *cases.first()?;
    let mut found = Localisation::of(journal, first, row, COUNTED);
    let mut values: Vec<(&CaseResult<'_>, f64)> =
        cases.iter().filter_map(|(result, row)| Some((*result, of_row(result, row)?))).collect();
    found.pairs = values.len();
    found.missing = cases.len() - values.len();
    let with_value: HashSet<u64> = values.iter().map(|(result, _)| result.case.id).collect();
    let of_values = cases.iter().map(|(result, _)| (*result, with_value.contains(&result.case.id)));
    found.unmeasured = super::unmeasured(test, of_values);
    if values.len() < FEWEST {
        found.too_few = Some([values.len(), FEWEST]);
        let got = count(values.len(), COUNTED);
        found.remarks.push(format!("a fault cannot be located among {got}, {FEWEST} are needed"));
        return Some(found);
    }
    let places = Places::of(&values);
    values.iter_mut().for_each(|(result, log)| *log -= places.offset(result));
    let noise = Scatter::noise(Scatter::of(row.metric, cases.iter().map(|(result, _)| *result)));
    let floor = if values.len() < FEW { noise.max(found.least) } else { noise };
    let logs: Vec<f64> = values.iter().map(|(_, log)| *log).collect();
    let level = Level::of(&logs, floor).ok()?;
    let cut = outlier_cut(values.len(), Some(level.n));
    let threshold = (cut * level.scale).max(found.least);
    found.good = vec![Good {
        which: Which::Parts,
        centre: found.metric_value(level.centre),
        spread_percent: 100.0 * level.scale.exp_m1(),
        n: level.n,
    }];
    found.level_of = values.iter().map(|(result, _)| (result.case.id, 0)).collect();
    found.noise = level.scale;
    let low: Vec<(&CaseResult<'_>, f64)> =
        values.iter().filter(|(_, log)| *log < level.centre - threshold).copied().collect();
    found.alike = places.low(test, found.metric.better(), threshold);
    let above = values.iter().filter(|(_, log)| *log > level.centre + (FAR_ABOVE * level.scale).max(found.least));
    let above: Vec<f64> = above.map(|(_, log)| log - level.centre).collect();
    if let Ok(by) = median(&above) {
        found.unexplained = Some(format!(
            "{} of {} are better than the median of all by {} %, so that the others may be the bad ones",
            above.len(),
            count(values.len(), COUNTED),
            brief(found.percent(by).abs())
        ));
    }
    // A part at half the rate must stand out.
    let seen_from = cut * level.scale;
    found.too_noisy = TooNoisy::of(&found.good[0], seen_from, found.metric.better());
    let measured = Measured { level, cut, threshold, better: found.metric.better() };
    for suspects in apart(&values, &low) {
        let mut named = measured.named(&found, test, &suspects);
        let programs = |result: &CaseResult<'_>| programs(journal, result);
        let again = Again::of((test, first), &suspects, (&low, &places), (further, further_rows), programs);
        // A part is excused by what ran on all of it.
        let beside = suspects.iter().map(|(result, _)| programs(result)).min().unwrap_or_default();
        measured.settle(&mut named, &again, &Conditions::new(journal), beside);
        let own = further.iter().filter(|result| again.own.iter().any(|one| one.told.case == result.case.id));
        let all = suspects.iter().map(|(result, _)| *result).chain(own);
        (named.meanwhile, named.meanwhile_remedy) = gpus::told(all, &suspects[0].0.case.flow.from.host).unzip();
        for One { told, .. } in again.controls {
            if !found.controls.iter().any(|known| known.case == told.case) {
                found.controls.push(told);
            }
        }
        found.suspects.push(named);
    }
    found.suspects.sort_by(|a, b| a.change_percent.total_cmp(&b.change_percent));
    Some(found)
}

/// Other programs on a GPU of this case: during its passes or, if NVML did not report then, when the facts of its host were collected.
fn programs(journal: &Journal, result: &CaseResult<'_>) -> u32 {
    gpus::others(result).unwrap_or_else(|| {
        let flow = &result.case.flow;
        let up = journal.hosts.get(&*flow.from.host).filter(|_| result.case.cell.transport == Transport::Gpu);
        let of_case = |gpu: &&Gpu| [flow.from.rail, flow.to.rail].contains(&gpu.index);
        up.into_iter()
            .flat_map(|up| up.facts.gpus.iter().filter(of_case))
            .filter_map(|gpu| gpu.processes)
            .max()
            .unwrap_or(0)
    })
}

/// Source and target of the bytes.
type Place = (u32, u32);

fn place(result: &CaseResult<'_>) -> Place {
    (result.case.flow.from.rail, result.case.flow.to.rail)
}

/// Differences of places from the median of all values, as logarithms; only places that enough hosts have.
struct Places(BTreeMap<Place, f64>);

impl Places {
    fn of(values: &[(&CaseResult<'_>, f64)]) -> Self {
        let mut by_place: BTreeMap<Place, Vec<f64>> = BTreeMap::new();
        values.iter().for_each(|(result, log)| by_place.entry(place(result)).or_default().push(*log));
        let Ok(centre) = median(&values.iter().map(|(_, log)| *log).collect::<Vec<_>>()) else {
            return Self(BTreeMap::new());
        };
        let several = by_place.into_iter().filter(|(_, logs)| logs.len() >= FEWEST);
        Self(several.filter_map(|(place, logs)| Some((place, median(&logs).ok()? - centre))).collect())
    }

    fn offset(&self, result: &CaseResult<'_>) -> f64 {
        self.0.get(&place(result)).copied().unwrap_or_default()
    }

    fn low(&self, test: &Test, better: Better, threshold: f64) -> Vec<Alike> {
        let part = part_words(test.transport).unwrap_or_default();
        let low = self.0.iter().filter(|(_, offset)| **offset < -threshold);
        low.map(|((from, to), offset)| Alike {
            place: match from == to {
                true => format!("{part} {from}"),
                false => format!("way from {part} {from} to {part} {to}"),
            },
            change_percent: percent(better, *offset),
        })
        .collect()
    }
}

/// A host with only low parts is one suspect; every other low part is its own.
fn apart<'r>(
    values: &[(&'r CaseResult<'r>, f64)],
    low: &[(&'r CaseResult<'r>, f64)],
) -> Vec<Vec<(&'r CaseResult<'r>, f64)>> {
    let mut of_host: BTreeMap<&str, usize> = BTreeMap::new();
    values.iter().for_each(|(result, _)| *of_host.entry(&result.case.flow.from.host).or_default() += 1);
    let mut by_host: BTreeMap<&str, Vec<(&CaseResult<'_>, f64)>> = BTreeMap::new();
    low.iter().for_each(|one| by_host.entry(&one.0.case.flow.from.host).or_default().push(*one));
    by_host
        .into_iter()
        .flat_map(|(host, low)| match (low.len(), of_host.get(host)) {
            (several @ 2.., Some(all)) if several == *all => vec![low],
            _ => low.into_iter().map(|one| vec![one]).collect(),
        })
        .collect()
}

struct Measured {
    level: Level,
    cut: f64,
    threshold: f64,
    better: Better,
}

impl Measured {
    fn percent(&self, log: f64) -> f64 {
        percent(self.better, log)
    }

    fn named(&self, found: &Localisation, test: &Test, suspects: &[(&CaseResult<'_>, f64)]) -> Named {
        let flow = &suspects[0].0.case.flow;
        let host = flow.from.host.to_string();
        let logs: Vec<f64> = suspects.iter().map(|(_, log)| *log).collect();
        let effect = median(&logs).unwrap_or(suspects[0].1) - self.level.centre;
        let part = part_words(test.transport).unwrap_or_default();
        let is_nic = test.transport == Transport::Nic;
        let (kind, name, rail) = match (suspects.len(), flow.from == flow.to) {
            (2.., _) => ("host", format!("host {host}"), None),
            // Named as a NIC of pairs, so that both refer to one part.
            (_, true) if is_nic => {
                let device = suspects[0].0.link.map_or_else(String::new, |link| format!(" ({})", link.from_device));
                ("nic", format!("rail {} of {host}{device}", flow.from.rail), Some(flow.from.rail))
            }
            (_, true) => (part, format!("{part} {} of {host}", flow.from.rail), None),
            (_, false) => {
                ("way", format!("way from {part} {} to {part} {} of {host}", flow.from.rail, flow.to.rail), None)
            }
        };
        let z = effect.abs() / self.level.scale.max(f64::MIN_POSITIVE);
        let all = format!("{} {}", number(found.metric_value(self.level.centre)), found.unit);
        let slow = if self.better == Better::Higher { "low" } else { "slow" };
        let of = if suspects.len() > 1 {
            format!("all of its {} are {slow}, typically ", count(logs.len(), "part"))
        } else {
            "it is ".into()
        };
        let reason = format!(
            "{of}{} ({} reach {all}); it differs by {} standard deviations, {} are needed",
            worse(effect, self.better == Better::Higher),
            Which::Parts,
            brief(z),
            brief(self.cut)
        );
        let method = "value against the median of all parts of all hosts, less what its place takes on all of them (docs/tests.md)";
        let part = PartName { kind, name, hosts: vec![host], rail, ..PartName::default() };
        Named {
            change_percent: self.percent(effect),
            n: logs.len(),
            bad: logs.len(),
            standard_errors: z,
            needed: self.cut,
            reason,
            cases: suspects.iter().map(|(result, _)| result.case.id).collect(),
            decided_by: Some(DecidedBy::Peers),
            ..Named::new(part, method)
        }
    }

    /// Sets a suspect's standing from its further cases. `beside`: programs on its GPUs at first.
    ///
    /// Results alongside other programs than the controls have are excluded if two results are without; otherwise nothing is confirmed.
    fn settle(&self, named: &mut Named, again: &Again, conditions: &Conditions, beside: u32) {
        named.further = again.own.iter().map(|one| one.told.clone()).collect();
        if again.own.is_empty() {
            return;
        }
        let valued = |all: &'_ [One]| all.iter().filter_map(|one| Some((one.programs, one.log?))).collect::<Vec<_>>();
        let (own, controls) = (valued(&again.own), valued(&again.controls));
        let usual = controls.iter().map(|(programs, _)| *programs).min().unwrap_or_default();
        let alone: Vec<f64> = own.iter().filter(|(programs, _)| *programs <= usual).map(|(_, log)| *log).collect();
        let is_shared = alone.len() < 2 && (alone.len() < own.len() || beside > usual);
        let (own, left_out) = match (alone.len(), own.len()) {
            (0 | 1, _) => (own.into_iter().map(|(_, log)| log).collect(), 0),
            (without, all) => (alone, all - without),
        };
        let controls: Vec<f64> = controls.into_iter().map(|(_, log)| log).collect();
        let (centre, moved) = match median(&controls) {
            Ok(centre) => (centre, centre - self.level.centre),
            Err(_) => (self.level.centre, 0.0),
        };
        // Half of what stood out, because values selected for being low regress to the mean.
        let bad = own.iter().filter(|log| **log < centre - self.threshold / 2.0).count();
        let effect = median(&own).map(|log| log - centre).unwrap_or_default();
        let bounded = conditions.against(named.reach.iter().map(String::as_str), effect.abs() > FAR * self.threshold);
        let (standing, open) = match (own.len(), controls.len()) {
            (0 | 1, _) => (Standing::Open, Some(OpenReason::TooFew)),
            (_, 0 | 1) => (Standing::Open, Some(OpenReason::NoControls)),
            _ if moved.abs() > self.threshold => (Standing::Open, Some(OpenReason::ControlsUnsteady)),
            (all, _) if bad == all => bounded.map_or((Standing::Confirmed, None), |why| (Standing::Open, Some(why))),
            _ if bad == 0 => (Standing::Cleared, None),
            _ => bounded.map_or((Standing::Intermittent, None), |why| (Standing::Open, Some(why))),
        };
        // Without a bad result, or without a result, there is nothing for the program to excuse.
        let (standing, open) =
            if is_shared && bad > 0 { (Standing::Open, Some(OpenReason::SharedGpu)) } else { (standing, open) };
        let (change, tests) = (self.percent(effect), count(own.len(), "further test"));
        let tests = match left_out {
            0 => tests,
            n => format!("{tests} ({n} during another program left out)"),
        };
        named.confirmation = (own.len() > 1).then_some(Confirmation {
            change_percent: change,
            n: own.len(),
            bad,
            controls: controls.len(),
            controls_change_percent: self.percent(moved),
            ..Confirmation::default()
        });
        named.bad_share = (standing == Standing::Intermittent).then(|| bad as f64 / own.len() as f64);
        (named.standing, named.open) = (standing, open);
        let by = words::change(change);
        let words = match (standing, open) {
            (Standing::Confirmed, _) => format!("confirmed by {tests}: {by}"),
            (Standing::Intermittent, _) => format!("bad in {bad} of {tests}"),
            (Standing::Cleared, _) => format!("shown to be good by {tests}: {by}"),
            (_, Some(open)) => format!("undecided after {tests}: {}", open.words()),
            _ => return,
        };
        named.reason = format!("{}; {words}", named.reason);
    }
}

struct One {
    told: Further,
    /// `None` if not trusted.
    log: Option<f64>,
    programs: u32,
}

struct Again {
    own: Vec<One>,
    controls: Vec<One>,
}

impl Again {
    fn of(
        (test, first): (&Test, &CaseResult<'_>),
        suspects: &[(&CaseResult<'_>, f64)],
        (low, places): (&[(&CaseResult<'_>, f64)], &Places),
        (further, rows): (&[CaseResult<'_>], &[Row]),
        programs: impl Fn(&CaseResult<'_>) -> u32,
    ) -> Self {
        let metric = headline(test.metric, test.op);
        let mut again = Self { own: Vec::new(), controls: Vec::new() };
        let is = |all: &[(&CaseResult<'_>, f64)], flow: &Flow| all.iter().any(|(result, _)| result.case.flow == *flow);
        let doubtful: BTreeSet<&str> = low.iter().map(|(result, _)| &*result.case.flow.from.host).collect();
        let wanted: BTreeSet<Place> = suspects.iter().map(|(result, _)| place(result)).collect();
        // Other parts of the same host may differ from a suspect by design.
        let controls = |result: &CaseResult<'_>| {
            wanted.contains(&place(result)) && !doubtful.contains(&*result.case.flow.from.host)
        };
        for result in further.iter().filter(|one| *one.case.test == *test.name && one.case.cell == first.case.cell) {
            let row = rows.iter().find(|row| row.case == result.case.id && row.metric == metric);
            let log = row.and_then(|row| of_row(result, row)).map(|log| log - places.offset(result));
            let told = Further::of(result, log.map(|log| value(metric.better(), log)));
            let one = || One { told, log, programs: programs(result) };
            if is(suspects, &result.case.flow) {
                again.own.push(one());
            } else if controls(result) {
                again.controls.push(one());
            }
        }
        again
    }
}

pub(super) fn further(
    journal: &Journal,
    found: &Localisation,
    (results, rows): (&[CaseResult<'_>], &[Row]),
) -> Vec<Case> {
    let open = found.suspects.iter().filter(|named| named.standing == Standing::Suspect && !named.waived);
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    for host in open.flat_map(|named| &named.hosts) {
        if hosts.len() < HOSTS {
            hosts.insert(host);
        }
    }
    let test = journal.plan.tests.iter().find(|test| test.name == found.test);
    let Some(cases) = test.and_then(|test| screened(test, results, rows)).filter(|_| !hosts.is_empty()) else {
        return Vec::new();
    };
    let suspected: BTreeSet<&str> = found.suspects.iter().flat_map(|named| &named.hosts).map(String::as_str).collect();
    let host = |result: &CaseResult<'_>| result.case.flow.from.host.to_string();
    let good = cases.iter().find(|(result, _)| result.state.is_trusted() && !suspected.contains(&*host(result)));
    let control = good.map(|(result, _)| host(result));
    hosts.extend(control.as_deref());
    let known =
        || journal.further.iter().filter(|case| *case.test == *found.test && Some(&*case.cell) == found.cell.as_ref());
    let mut held: HashMap<&Flow, usize> = HashMap::new();
    known().for_each(|case| *held.entry(&case.flow).or_default() += 1);
    let mut by_round: BTreeMap<u32, Vec<&Case>> = BTreeMap::new();
    for (result, _) in cases.iter().filter(|(result, _)| hosts.contains(&*host(result))) {
        by_round.entry(result.case.round).or_default().push(result.case);
    }
    let start = known().map(|case| case.round.saturating_add(1)).max().unwrap_or(0);
    let missing = (0..REPEATS).flat_map(|repeat| {
        let wanted = |case: &&Case| held.get(&case.flow).copied().unwrap_or(0) <= repeat;
        by_round.values().map(move |round| round.iter().copied().filter(wanted).collect::<Vec<_>>()).collect::<Vec<_>>()
    });
    (start..)
        .zip(missing.filter(|round| !round.is_empty()))
        .flat_map(|(round, cases)| cases.into_iter().map(move |case| Case { id: 0, round, ..case.clone() }))
        .collect()
}

//! Finds the host or boundary that slows down or breaks a collective: [`railgauge_stats::bisect`] over the journal's further cases.
//!
//! The search is replayed from its start each time, group by group in the order of measurement, so it has no state
//! outside the journal and survives an interruption.

mod tell;
mod unlike;

use std::{collections::BTreeMap, sync::Arc};

use railgauge_model::{
    journal::event::Case,
    plan::{headline, model::Test},
    schedule::{Cell, Flow},
};
use railgauge_stats::{
    Refusal,
    bisect::{Repeats, Search, Setting},
    robust::Level,
};
use railgauge_wire::{Better, Memory, Transport};

pub use unlike::GroupsUnlike;

use super::{
    Localisation, Named, Standing, names, node,
    pick::{self, of_row},
};
use crate::{
    case::{CaseResult, State},
    journal::Journal,
    limits::is_broken,
    row::Row,
    words::{count, were},
};

/// Smallest effect searched for: good groups of one size differ by up to 3 %.
const LEAST: f64 = 0.03;
/// Groups of one size needed for one to stand out.
const COMPANY: usize = 3;
/// Standard deviations by which it must be low.
const LOW: f64 = 3.0;
/// Untrusted results after which a search is given up.
const PATIENCE: usize = 3;

struct Played {
    search: Search,
    hosts: Vec<Arc<str>>,
    leaves: Vec<(String, Vec<u32>)>,
    overlap: Option<String>,
    /// Groups by number of their hosts, with the case and the logarithm of its value on a scale on which more is better.
    answers: Vec<(Vec<u32>, u64, Option<f64>)>,
    stopped: Option<String>,
}

struct Scene<'a> {
    journal: &'a Journal,
    test: &'a Test,
    cell: Arc<Cell>,
    /// Cases of the test at its first value.
    all: Vec<&'a CaseResult<'a>>,
    screen: Vec<(&'a CaseResult<'a>, &'a Row)>,
    wrong: &'static str,
    /// Whether a group failed or a value breaks an expectation, which is more than a difference between groups.
    demanded: bool,
}

impl<'a> Scene<'a> {
    /// `None` for pairs, and if nothing is wrong.
    fn new(journal: &'a Journal, test: &'a Test, results: &'a [CaseResult<'a>], rows: &'a [Row]) -> Option<Self> {
        test.collective.as_ref()?;
        let all = pick::at_reference(test, results, rows);
        let sizes = all.iter().map(|(result, _)| result.case.cell.size);
        let is_rate = headline(test.metric, test.op).better() == Better::Higher;
        let size = if is_rate { sizes.max() } else { sizes.min() }?;
        let cell = all.iter().find(|(result, _)| result.case.cell.size == size)?.0.case.cell.clone();
        let cases = all.iter().map(|(result, _)| *result).collect();
        let screen: Vec<_> = all.into_iter().filter(|(result, _)| result.case.cell == cell).collect();
        let scene = Self { journal, test, cell, all: cases, screen, wrong: "", demanded: false };
        let (fails, broken) = (scene.fails(), is_broken(journal, test, results, rows));
        let wrong = if fails {
            "a group failed"
        } else if broken {
            "a value breaks an expectation"
        } else if scene.one_is_low() || scene.unlike().is_some() {
            "groups of one size do not reach the same"
        } else {
            return None;
        };
        Some(Self { wrong, demanded: fails || broken, ..scene })
    }

    fn fails(&self) -> bool {
        let gone = |result: &CaseResult<'_>| {
            result.case.flow.hosts().into_iter().any(|host| self.journal.lost.contains_key(&**host))
        };
        self.screen.iter().any(|(result, _)| result.state == State::Failed && !gone(result))
    }

    fn one_is_low(&self) -> bool {
        let mut sizes: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (result, row) in &self.screen {
            sizes.entry(result.case.flow.hosts().len()).or_default().extend(of_row(result, row));
        }
        sizes.values().filter(|values| values.len() >= COMPANY).any(|values| {
            let low = |level: Level| values.iter().any(|v| *v < level.centre - (LOW * level.scale).max(LEAST));
            Level::of(values, self.noise()).is_ok_and(low)
        })
    }

    /// Scatter of a group's value by its repeats; 0 if unknown.
    fn noise(&self) -> f64 {
        self.repeats().map_or(0.0, Repeats::noise)
    }

    fn play(&self, further: &[CaseResult<'_>], rows: &[Row]) -> Result<Played, Refusal> {
        // Hosts that took part at all: the same in every replay.
        let seen = |name: &&String| {
            let of = |result: &CaseResult<'_>| result.case.flow.hosts().iter().any(|host| ***host == ***name);
            self.screen.iter().any(|(result, _)| result.state != State::NotRun && of(result))
        };
        let hosts: Vec<Arc<str>> = self.test.hosts.iter().filter(seen).map(|name| name.as_str().into()).collect();
        let numbers: Vec<u32> = (0..).take(hosts.len()).collect();
        let least = LEAST.max((self.journal.plan.localise.least_percent / 100.0).ln_1p());
        let (leaf_of, leaf_names, overlap) = names::groups(&self.journal.plan.groups, &hosts);
        let of_leaf = |leaf: usize| {
            let inside = numbers.iter().zip(&leaf_of).filter(move |(_, of)| **of as usize == leaf);
            inside.map(|(number, _)| *number).collect()
        };
        let leaves: Vec<Vec<u32>> = (0..leaf_names.len()).map(of_leaf).collect();
        let noise = self.noise();
        let setting = Setting { least, noise, references: BTreeMap::new(), leaves: leaves.clone() };
        let search = Search::new(&numbers, setting)?;
        let leaves = leaf_names.into_iter().zip(leaves).collect();
        let mut played = Played { search, hosts, leaves, overlap, answers: Vec::new(), stopped: None };
        let mut aside = 0;
        let own = |result: &&CaseResult<'_>| *result.case.test == *self.test.name && result.case.cell == self.cell;
        for result in further.iter().filter(own) {
            let group = played.numbers(&result.case.flow);
            let wanted = played.search.next_group().map(|wanted| sorted(wanted.to_vec()));
            let trusted = result.state.is_trusted();
            if wanted != group {
                played.stopped = Some("what was measured again does not follow from these results".to_owned());
            } else if result.state == State::NotRun {
                played.stopped = Some("a group was not run".to_owned());
            } else if trusted || result.state == State::Failed {
                let row = rows.iter().find(|row| row.case == result.case.id && self.is_headline(row));
                let value = row.and_then(|row| of_row(result, row));
                played.search.answer(value);
                played.answers.push((group.unwrap_or_default(), result.case.id, value));
            } else {
                // Repeat it: a disturbed result is not evidence about the group.
                aside += 1;
                if aside >= PATIENCE {
                    played.stopped = Some(format!("{} not to be trusted", were(aside, "result")));
                }
            }
            if played.stopped.is_some() {
                break;
            }
        }
        Ok(played)
    }

    fn is_headline(&self, row: &Row) -> bool {
        row.metric == headline(self.test.metric, self.test.op)
    }
}

impl Played {
    fn numbers(&self, flow: &Flow) -> Option<Vec<u32>> {
        let number = |host: &&Arc<str>| self.hosts.iter().position(|known| known == *host).map(|at| at as u32);
        flow.hosts().iter().map(number).collect::<Option<Vec<_>>>().map(sorted)
    }

    fn names(&self, numbers: &[u32]) -> Vec<String> {
        numbers.iter().map(|&number| self.hosts[number as usize].to_string()).collect()
    }
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers
}

pub(super) fn next(
    journal: &Journal,
    test: &Test,
    (results, rows): (&[CaseResult<'_>], &[Row]),
    (further, further_rows): (&[CaseResult<'_>], &[Row]),
) -> Option<Case> {
    let scene = Scene::new(journal, test, results, rows)?;
    let played = scene.play(further, further_rows).ok().filter(|played| played.stopped.is_none())?;
    let hosts: Vec<Arc<str>> =
        sorted(played.search.next_group()?.to_vec()).iter().map(|&n| played.hosts[n as usize].clone()).collect();
    let flow = Flow::group(&hosts, test.collective.as_ref()?.ranks_per_host)?;
    let round = u32::try_from(played.answers.len()).unwrap_or(u32::MAX);
    Some(Case { id: 0, test: test.name.as_str().into(), round, flow, cell: scene.cell })
}

/// `None` without anything to search for.
pub(super) fn found(
    journal: &Journal,
    test: &Test,
    (results, rows): (&[CaseResult<'_>], &[Row]),
    (further, further_rows): (&[CaseResult<'_>], &[Row]),
) -> Option<Localisation> {
    let scene = Scene::new(journal, test, results, rows)?;
    let (first, row) = scene.screen.first()?;
    let mut found = Localisation::of(journal, first, row, "group");
    found.pairs = scene.screen.iter().filter(|(result, row)| of_row(result, row).is_some()).count();
    found.missing = scene.screen.len() - found.pairs;
    found.unmeasured =
        super::unmeasured(test, scene.screen.iter().map(|(result, row)| (*result, of_row(result, row).is_some())));
    let played = scene.play(further, further_rows);
    match &played {
        Ok(played) => found.tell_groups(played, scene.demanded),
        Err(Refusal::TooFew { need, got }) => {
            let got = count(*got, "host");
            let words = format!("a slow collective cannot be taken apart among {got}, {need} are needed");
            found.remarks.push(words);
        }
        Err(refusal) => found.remarks.push(format!("a slow collective cannot be taken apart: {refusal}")),
    }
    found.tell_unlike(&scene, played.as_ref().ok());
    // Something is wrong, so the absence of a suspect does not mean that nothing is bad.
    if found.suspects.is_empty() && found.two_clusters.is_none() {
        let looked = found.remarks.join("; ");
        found.unexplained = Some(format!("{}, and no part of the cluster explains it: {looked}", scene.wrong));
    }
    Some(found)
}

/// Whether a known bad part of these pairs, or within a host, on the path of a collective explains its slowness. Waived
/// parts explain nothing: the collective may have another fault.
pub(super) fn is_explained(journal: &Journal, pairs: &[Localisation], test: &Test) -> bool {
    let runs_on = |host: &String| test.hosts.contains(host);
    let passes = |part: &Named| {
        let in_groups = || part.groups.iter().filter_map(|group| journal.plan.groups.get(group)).flatten().any(runs_on);
        match (part.hosts.is_empty(), part.groups.is_empty()) {
            (false, _) => part.hosts.iter().any(runs_on),
            (true, false) => in_groups(),
            (true, true) => true,
        }
    };
    // Slow processor memory does not slow down traffic between GPUs, and vice versa. A NIC slows down its own traffic:
    // between hosts, not over TCP, and from GPUs alone if only their memory was tried.
    let between_hosts = || journal.cases.iter().any(|case| *case.test == *test.name && case.flow.hosts().len() > 1);
    let same_memory = |found: &Localisation| {
        let Some(of) = journal.plan.tests.iter().find(|test| test.name == found.test) else { return false };
        match of.transport {
            Transport::Nic => {
                let passes_it = !of.memory.has_gpu() || test.memory.has_gpu();
                passes_it && test.transport != Transport::Tcp && between_hosts()
            }
            by => {
                let passed = if by == Transport::Gpu { Memory::Cuda } else { Memory::Host };
                test.memory.any(|memory| *memory == passed)
            }
        }
    };
    let explains =
        |found: &&Localisation| found.counted == "pair" || found.counted == node::COUNTED && same_memory(found);
    let mut suspects = pairs.iter().filter(explains).flat_map(|found| &found.suspects);
    suspects.any(|suspect| suspect.standing == Standing::Confirmed && !suspect.waived && passes(suspect))
}

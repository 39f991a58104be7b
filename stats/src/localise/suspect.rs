//! What is said of a suspect.

use std::collections::{BTreeMap, HashMap};

use super::{
    Findings, Part, Port, Way,
    cover::{Cover, Table},
    links::Links,
    peel::{MEDIAN_ERROR, Peeled},
};
use crate::{
    robust::median_in_place,
    shift::{Interval, paired_shift},
};

/// A part that stands out, with what the results say of it. All numbers are differences of logarithms unless named
/// otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The part.
    pub part: Part,
    /// Median difference of its pairs from good pairs; negative.
    pub effect: f64,
    /// 95 % interval of the effect (of the pseudomedian, by the signed rank distribution); `None` below six pairs. It does
    /// not know that the part was picked for being low; the probes' interval is free of that.
    pub interval: Option<Interval>,
    /// The effect in standard errors.
    pub z: f64,
    /// What suspects at its ends explain of the effect, for a way; 0 for other parts.
    pub explained: f64,
    /// What this rests on.
    pub evidence: Evidence,
}

/// What a suspicion rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// Positions of its results among the pairs given: those that touch no other suspect, if there are three of them.
    pub pairs: Vec<usize>,
    /// Different results of pairs and paths among them; repeats count once.
    pub n: usize,
    /// How many of these are low by more than half of the effect.
    pub low: usize,
    /// Different hosts at the other ends.
    pub partners: usize,
}

/// Standard deviations below the centre from which a single pair shows no more that its ends are good.
const DOUBT: f64 = 3.0;

/// A suspect as parts and cells.
struct Draft {
    part: Part,
    cells: Vec<u32>,
}

pub(super) fn findings(table: &Table, cover: &Cover, peeled: Peeled, links: Links) -> Findings {
    let drafts =
        peeled.taken.iter().map(|(part, cells)| Draft { part: cover.parts[*part].clone(), cells: cells.clone() });
    let drafts = join(drafts.collect(), table);
    let unjudged = unjudged(table, &drafts);
    let Links { found, explained } = links;
    let links = found.into_iter().map(|(part, cells)| Draft { part, cells });
    let drafts: Vec<Draft> = drafts.into_iter().chain(links).collect();
    let mut pairs_of: Vec<Vec<usize>> = vec![Vec::new(); table.cells.len()];
    table.cell_of.iter().enumerate().for_each(|(pair, &cell)| pairs_of[cell].push(pair));
    let touching = touching(table, &drafts);
    let mut suspects: Vec<Suspect> =
        drafts.iter().map(|draft| describe(table, draft, &touching, &pairs_of, &explained)).collect();
    suspects.sort_by(|a, b| a.effect.total_cmp(&b.effect).then_with(|| a.part.cmp(&b.part)));
    Findings {
        suspects,
        levels: if table.pooled { vec![table.levels[0]] } else { table.levels.to_vec() },
        level_of: table.cell_of.iter().map(|&at| if table.pooled { 0 } else { table.cells[at].stratum }).collect(),
        unjudged,
        cut: peeled.cut,
        link_cut: peeled.link_cut,
    }
}

/// How many suspects each cell touches: those that took it and those at one of its ends.
fn touching(table: &Table, drafts: &[Draft]) -> Vec<usize> {
    let mut numbers: Vec<Vec<usize>> = vec![Vec::new(); table.cells.len()];
    for (number, draft) in drafts.iter().enumerate() {
        draft.cells.iter().for_each(|&at| numbers[at as usize].push(number));
    }
    let ends: HashMap<&Part, usize> =
        drafts.iter().enumerate().filter(|(_, d)| d.part.is_end()).map(|(number, d)| (&d.part, number)).collect();
    for (cell, numbers) in table.cells.iter().zip(&mut numbers) {
        for (port, way) in [(cell.from, Way::Send), (cell.to, Way::Receive)] {
            for way in [Way::Both, way] {
                numbers.extend(ends.get(&Part::Host(port.host, way)));
                numbers.extend(ends.get(&Part::Nic(port, way)));
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
    }
    numbers.iter().map(Vec::len).collect()
}

/// Joins both directions of an end, and all NICs of a host.
fn join(drafts: Vec<Draft>, table: &Table) -> Vec<Draft> {
    let mut by_part: BTreeMap<Part, Vec<u32>> = BTreeMap::new();
    for draft in drafts {
        by_part.entry(draft.part).or_default().extend(draft.cells);
    }
    // A pair of parts becomes one if both are there, or if the larger one is there already.
    let mut merge = |small: &[Part], large: Part| {
        let there = small.iter().all(|part| by_part.contains_key(part)) || by_part.contains_key(&large);
        if there && !small.is_empty() {
            let cells: Vec<u32> = small.iter().filter_map(|part| by_part.remove(part)).flatten().collect();
            by_part.entry(large).or_default().extend(cells);
        }
    };
    let mut ports: Vec<Port> = table.cells.iter().flat_map(|c| [c.from, c.to]).collect();
    ports.sort_unstable();
    ports.dedup();
    for &port in &ports {
        merge(&[Part::Nic(port, Way::Send), Part::Nic(port, Way::Receive)], Part::Nic(port, Way::Both));
    }
    for nics in ports.chunk_by(|a, b| a.host == b.host) {
        let host = nics[0].host;
        for way in [Way::Send, Way::Receive, Way::Both] {
            let small: Vec<Part> = nics.iter().map(|&port| Part::Nic(port, way)).collect();
            merge(&small, Part::Host(host, way));
        }
        merge(&[Part::Host(host, Way::Send), Part::Host(host, Way::Receive)], Part::Host(host, Way::Both));
    }
    by_part.into_iter().map(|(part, cells)| Draft { part, cells }).collect()
}

/// Ends that are no suspects and have no good pair.
fn unjudged(table: &Table, drafts: &[Draft]) -> Vec<Port> {
    let mut good: BTreeMap<Port, bool> = BTreeMap::new();
    for (at, cell) in table.cells.iter().enumerate() {
        let fine = table.live[at] && table.score(at) > -DOUBT;
        for end in [cell.from, cell.to] {
            *good.entry(end).or_default() |= fine;
        }
    }
    let is_suspect = |port: Port| {
        drafts.iter().any(|draft| match draft.part {
            Part::Host(host, _) => host == port.host,
            Part::Nic(nic, _) => nic == port,
            _ => {
                draft.part.is_shared()
                    && draft.cells.iter().any(|&at| {
                        let cell = &table.cells[at as usize];
                        cell.from == port || cell.to == port
                    })
            }
        })
    };
    good.into_iter().filter_map(|(port, good)| (!good && !is_suspect(port)).then_some(port)).collect()
}

fn describe(table: &Table, draft: &Draft, touching: &[usize], pairs_of: &[Vec<usize>], explained: &[f64]) -> Suspect {
    let clean: Vec<u32> = draft.cells.iter().copied().filter(|&at| touching[at as usize] <= 1).collect();
    let cells = if clean.len() >= 3 { clean } else { draft.cells.clone() };
    let residuals: Vec<f64> = cells.iter().map(|&at| table.residual(at as usize)).collect();
    let mut scores: Vec<f64> = cells.iter().map(|&at| table.score(at as usize)).collect();
    let effect = median_in_place(&mut residuals.clone());
    let error = if scores.len() == 1 { 1.0 } else { MEDIAN_ERROR / (scores.len() as f64).sqrt() };
    let mut partners: Vec<u32> = cells
        .iter()
        .flat_map(|&at| {
            let cell = &table.cells[at as usize];
            let own = |port: Port| match draft.part {
                Part::Host(host, _) => port.host == host,
                Part::Nic(nic, _) => port == nic,
                _ => false,
            };
            [cell.from, cell.to].into_iter().filter(move |&port| !own(port)).map(|port| port.host)
        })
        .collect();
    partners.sort_unstable();
    partners.dedup();
    Suspect {
        part: draft.part.clone(),
        effect,
        interval: paired_shift(&residuals, 0.95).ok().and_then(|shift| shift.interval),
        z: median_in_place(&mut scores) / error,
        explained: if draft.part.is_link() {
            median_in_place(&mut cells.iter().map(|&at| explained[at as usize]).collect::<Vec<_>>())
        } else {
            0.0
        },
        evidence: Evidence {
            n: cells.len(),
            low: residuals.iter().filter(|&&r| r < effect / 2.0).count(),
            partners: partners.len(),
            pairs: cells.iter().flat_map(|&at| pairs_of[at as usize].iter().copied()).collect(),
        },
    }
}

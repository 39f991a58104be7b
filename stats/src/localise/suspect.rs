use std::collections::{BTreeMap, BTreeSet};

use foldhash::HashMap;

use super::{
    Evidence, FEWEST_HOSTS, Findings, HALF, Pair, Part, Port, Setting, Suspect, TwoClusters, Way,
    clusters::two_clusters,
    confirm::LIKE,
    cover::{Cell, Cover, Table, partners},
    cuts,
    links::{self, Link, Links},
    model::{CUTS, Explanation, MEDIAN_ERROR, explain, is_half},
    shaky::shaky,
};
use crate::{
    lists::Lists,
    refusal::Refusal,
    robust::{median_in_place, outlier},
    shift::paired_shift,
};

/// Standard deviations below the centre from which a single pair no longer shows that its ends are good.
const DOUBT: f64 = 3.0;

pub(super) struct Draft {
    pub(super) part: Part,
    pub(super) cells: Vec<u32>,
    pub(super) alternatives: Vec<Part>,
    /// Share of its low results, where it may be bad in some.
    shaky: Option<f64>,
    latent: bool,
    /// Whether it remains if an end proves good: not a separate look.
    instead: bool,
    under: Vec<Part>,
}

impl Draft {
    pub(super) fn new(part: Part, cells: Vec<u32>) -> Self {
        Self { part, cells, alternatives: Vec::new(), shaky: None, latent: false, instead: false, under: Vec::new() }
    }
}

/// Finds suspects among all parts that the pairs touch.
///
/// Sources: the shorth's centre and scale (Andrews et al. 1972), one reweighting step (Rousseeuw & Leroy 1987); a part's
/// median against 1.2533 s / √n, the standard error of a median of normal values. A part is a suspect below 4 standard
/// errors, or more where so many parts are looked at, or so few pairs were measured, that chance would reach 4 in more
/// than one run of a hundred (Šidák–Bonferroni over parts, Student's t for the scale).
///
/// # Errors
/// Fewer than [`FEWEST_HOSTS`] hosts, a value that is not finite, a host without a group where groups are given, or a
/// least effect that is negative.
pub fn localise(pairs: &[Pair], setting: &Setting<'_>) -> Result<Findings, Refusal> {
    check(pairs, setting)?;
    let table = Table::new(pairs, setting);
    let mut cover = Cover::new(&table, setting);
    let best = explain(table, &mut cover, setting);
    Ok(findings(best, &cover))
}

fn check(pairs: &[Pair], setting: &Setting<'_>) -> Result<(), Refusal> {
    if let Some(at) = pairs.iter().position(|p| !p.value.is_finite()) {
        return Err(Refusal::NotFinite { at });
    }
    if !(setting.least >= 0.0 && setting.least.is_finite() && setting.noise >= 0.0 && setting.noise.is_finite()) {
        return Err(Refusal::Parameter("the least effect and the noise are not negative"));
    }
    let mut hosts: Vec<u32> = pairs.iter().flat_map(|p| [p.from.host, p.to.host]).collect();
    hosts.sort_unstable();
    hosts.dedup();
    if hosts.len() < FEWEST_HOSTS {
        return Err(Refusal::TooFew { need: FEWEST_HOSTS, got: hosts.len() });
    }
    let grouped = setting.groups.is_empty() || hosts.iter().all(|&h| (h as usize) < setting.groups.len());
    if grouped { Ok(()) } else { Err(Refusal::Parameter("a host has no group although groups are given")) }
}

fn findings(explanation: Explanation, cover: &Cover) -> Findings {
    let clusters = two_clusters(&explanation);
    let Explanation { table, taken, links, mut share, cut, link_cut, contested, other_cuts } = explanation;
    let table = &table;
    let drafts = taken.iter().map(|(part, cells)| Draft {
        alternatives: match cover.parts[*part] {
            Part::Cut(_) => other_cuts.clone(),
            _ => alternatives(cover, *part, table),
        },
        ..Draft::new(cover.parts[*part].clone(), cells.clone())
    });
    let drafts: Vec<Draft> = drafts.collect();
    let unjudged = unjudged(table, &drafts);
    let Links { found, explained, .. } = links;
    let before = found.len();
    let links: Vec<Link> = found.into_iter().chain(paths_at(table, &drafts)).collect();
    let shaky = shaky(table, cover, &taken, &links, before);
    share.extend(links.iter().flat_map(|(_, cells)| cells));
    let boundaries = few_across(table, cover, &share);
    let across = |cells: &[u32]| {
        let of = boundaries.iter().filter(|of| cells.iter().all(|at| of.cells.binary_search(at).is_ok()));
        of.map(|of| of.part.clone()).collect::<Vec<_>>()
    };
    let ways = links.iter().enumerate().map(|(number, (part, cells))| {
        let mut under = across(cells);
        under.extend(shaky.iter().filter(|end| end.links.contains(&number)).map(|end| end.part.clone()));
        let ends = drafts.iter().map(|draft| &draft.part).filter(|part| part.is_end());
        under.extend(ends.filter(|end| cells.iter().all(|&at| touches(table, end, at))).cloned());
        Draft { under, instead: number >= before, ..Draft::new(part.clone(), cells.clone()) }
    });
    let ways: Vec<Draft> = ways.collect();
    let shaky: Vec<Draft> = shaky
        .iter()
        .map(|end| {
            let low: Vec<u32> = end.links.iter().flat_map(|&link| links[link].1.iter().copied()).collect();
            let mut under = across(&low);
            // A bad part also lowers a good end behind it.
            let behind = |draft: &&Draft| {
                let of = || cover.parts.iter().position(|part| *part == draft.part).map(|part| &cover.cells[part]);
                draft.part.is_shared()
                    && of().is_some_and(|of| {
                        2 * end.cells.iter().filter(|at| of.binary_search(at).is_ok()).count() >= end.cells.len()
                    })
            };
            under.extend(drafts.iter().filter(behind).map(|draft| draft.part.clone()));
            Draft {
                shaky: Some(end.share),
                latent: !end.stands_out,
                under,
                ..Draft::new(end.part.clone(), end.cells.clone())
            }
        })
        .collect();
    let mut drafts: Vec<Draft> = drafts.into_iter().chain(ways).chain(shaky).chain(boundaries).collect();
    let looks = drafts.iter().filter(|draft| !draft.instead && !draft.latent).count();
    // An end that is bad one way is under the same end if that is bad at times both ways.
    let both: Vec<Part> = drafts.iter().filter(|d| d.part.is_end()).map(|d| d.part.clone()).collect();
    for draft in &mut drafts {
        let own = draft.part.clone();
        let holds = |part: &&Part| match (&own, part) {
            (Part::Host(host, Way::Send | Way::Receive), Part::Host(other, Way::Both)) => other == host,
            (Part::Nic(port, _), Part::Host(other, _)) => *other == port.host,
            (Part::Nic(port, Way::Send | Way::Receive), Part::Nic(other, Way::Both)) => other == port,
            _ => false,
        };
        draft.under.extend(both.iter().filter(holds).cloned());
    }
    for draft in drafts.iter_mut().filter(|draft| draft.part.is_end()) {
        draft.alternatives.extend(group_of(table, cover, draft));
    }
    // If half of all cells are low at no part that hosts share, the others may as well be better than usual.
    let at_ends = drafts.iter().filter(|draft| !draft.part.is_shared() && draft.shaky.is_none());
    let at_ends: BTreeSet<u32> = at_ends.flat_map(|draft| draft.cells.iter().copied()).collect();
    let is_half = is_half(at_ends.len(), table.cells.len());
    let pairs_of = Lists::new(table.cells.len(), table.cell_of.iter().map(|at| *at as usize).zip(0..));
    let touching = touching(table, &drafts);
    let mut described: Vec<(Suspect, Vec<Part>)> = drafts
        .into_iter()
        .map(|draft| (describe(table, &draft, &touching, &pairs_of, &explained), draft.under))
        .collect();
    described.sort_by(|(a, _), (b, _)| {
        a.latent.cmp(&b.latent).then(a.effect.total_cmp(&b.effect)).then_with(|| a.part.cmp(&b.part))
    });
    let place = |part: &Part| described.iter().position(|(suspect, _)| suspect.part == *part);
    let under: Vec<Vec<usize>> = described.iter().map(|(_, under)| under.iter().filter_map(place).collect()).collect();
    let seen_from: Vec<f64> =
        (0..2 - usize::from(table.pooled)).map(|kind| link_cut[kind] * table.levels[kind].scale).collect();
    let level_of: Vec<usize> =
        table.cell_of.iter().map(|&at| if table.pooled { 0 } else { table.cells[at as usize].stratum }).collect();
    let kind = |pair: &usize| table.cells[table.cell_of[*pair] as usize].stratum;
    let apart = apart(table, &level_of, clusters.as_ref());
    let suspects = described.into_iter().zip(under).map(|((suspect, _), under)| {
        let pairs = &suspect.evidence.pairs;
        let open = pairs.iter().filter(|pair| apart[kind(pair)] > LIKE * -suspect.effect).count();
        let is_cut = suspect.latent && matches!(suspect.part, Part::Cut(_));
        let contested = 2 * open > pairs.len() && !is_cut
            || (suspect.part.is_link() || suspect.latent) && (is_half || !suspect.peers)
            || contested.iter().any(|part| cover.parts[*part] == suspect.part);
        Suspect { under, looks, contested, ..suspect }
    });
    Findings {
        suspects: suspects.collect(),
        levels: if table.pooled { vec![table.levels[0]] } else { table.levels.to_vec() },
        level_of,
        seen_from,
        unjudged,
        cut: cut[usize::from(!table.pooled && table.levels[1].n > table.levels[0].n)],
        link_cut: link_cut[usize::from(!table.pooled && table.levels[1].n > table.levels[0].n)],
        controls: controls(table, &pairs_of),
        premise: table.premise,
        two_clusters: clusters,
    }
}

/// Difference by kind of pairs that nothing separates; unlimited where good ones scatter so much that any difference may be noise.
fn apart(table: &Table, level_of: &[usize], clusters: Option<&TwoClusters>) -> [f64; 2] {
    let mut apart = [0.0_f64; 2];
    for (pair, &level) in level_of.iter().enumerate() {
        let in_clusters = clusters.filter(|clusters| clusters.is_good[pair].is_some());
        let by = in_clusters.map_or(0.0, |clusters| clusters.good - clusters.bad);
        let is_noisy = outlier::LEAST * table.levels[level].scale > HALF;
        let kind = table.cells[table.cell_of[pair] as usize].stratum;
        apart[kind] = apart[kind].max(if is_noisy { f64::INFINITY } else { by });
    }
    apart
}

fn touches(table: &Table, end: &Part, at: u32) -> bool {
    let cell = &table.cells[at as usize];
    end.clone().only(Way::Both).passed(cell.from, cell.to, &[])
}

/// Boundaries, rails and partitions of the hosts most of whose few pairs are low: too few to name one, but a reason to measure more pairs
/// across it. A partition has all low pairs; others that fit nearly as well are its alternatives.
fn few_across(table: &Table, cover: &Cover, low: &BTreeSet<u32>) -> Vec<Draft> {
    let hosts = |at: &u32| {
        let cell = &table.cells[*at as usize];
        (cell.from.host.min(cell.to.host), cell.from.host.max(cell.to.host))
    };
    let between: BTreeSet<(u32, u32)> = low.iter().map(hosts).collect();
    let latent =
        |part: usize| Draft { latent: true, ..Draft::new(cover.parts[part].clone(), cover.cells[part].clone()) };
    let good = |part: usize| cover.cells[part].iter().filter(|at| !low.contains(at)).count();
    let most = |part: &usize| 2 * good(*part) < cover.cells[*part].len();
    let boundary = |part: &usize| matches!(cover.parts[*part], Part::Boundary(..) | Part::Rail(_));
    let touched: BTreeSet<usize> =
        low.iter().flat_map(|&at| cover.of_cell(at)).map(|part| *part as usize).filter(boundary).collect();
    let chosen: Vec<usize> = touched.into_iter().filter(|part| between.len() <= FEW_PATHS && most(part)).collect();
    let named: BTreeSet<&Part> = chosen.iter().map(|&part| &cover.parts[part]).collect();
    // Where both directions are low, or only one was measured, further pairs decide.
    let needless = |part: &Part| {
        let both = part.clone().only(Way::Both);
        *part != both && named.contains(&both)
    };
    let chosen = chosen.iter().filter(|&&part| !needless(&cover.parts[part]));
    let mut drafts: Vec<Draft> = chosen.map(|&part| latent(part)).collect();
    let all = |cut: &usize| low.iter().all(|at| cover.cells[*cut].binary_search(at).is_ok());
    let mut cuts: Vec<usize> = cover.cuts.clone().filter(|cut| most(cut) && all(cut)).collect();
    cuts.sort_by_key(|&cut| (good(cut), &cover.parts[cut]));
    if let Some((&first, others)) = cuts.split_first().filter(|_| drafts.is_empty() && between.len() >= cuts::FEWEST) {
        let alternatives = others.iter().take(CUTS).map(|cut| cover.parts[*cut].clone()).collect();
        drafts.push(Draft { alternatives, ..latent(first) });
    }
    drafts
}

/// The low ways of ends that also have good ones. Such an end is bad at times, or it is good and the ways are bad, or what
/// they pass. They remain where an end proves good.
fn paths_at(table: &Table, drafts: &[Draft]) -> Vec<Link> {
    let mut found = Vec::new();
    for draft in drafts.iter().filter(|draft| draft.part.is_end()) {
        let low = match (&draft.part, kinds(table, &draft.cells, false)) {
            (_, Some((low, _))) => low,
            // One direction has few ways, and the other is good.
            (Part::Host(_, Way::Send | Way::Receive) | Part::Nic(_, Way::Send | Way::Receive), None) => {
                draft.cells.clone()
            }
            _ => continue,
        };
        let low: BTreeSet<usize> = low.into_iter().map(|at| at as usize).collect();
        let links = links::ways(table, draft.cells.iter().map(|&at| at as usize), |at| low.contains(&at));
        if links.len() <= FEW_PATHS {
            found.extend(links);
        }
    }
    found
}

fn kinds(table: &Table, cells: &[u32], known: bool) -> Option<(Vec<u32>, Vec<u32>)> {
    let (low, good): (Vec<u32>, Vec<u32>) = cells.iter().partition(|&&at| table.score(at as usize) < -DOUBT);
    if low.is_empty() || 10 * low.len() >= 8 * cells.len() {
        return None;
    }
    let of =
        |cells: &[u32]| median_in_place(&mut cells.iter().map(|&at| table.residual(at as usize)).collect::<Vec<_>>());
    // Values that spread around a small effect are not of two kinds.
    (known || of(&low) < 3.0 * of(&good)).then_some((low, good))
}

const FEW_PATHS: usize = 8;

const CONTROL: f64 = 3.0;

fn controls(table: &Table, pairs_of: &Lists<usize>) -> Vec<usize> {
    let good = |&at: &usize| table.live[at] && table.score(at).abs() < CONTROL;
    (0..table.cells.len()).filter(good).filter_map(|at| pairs_of.of(at).first().copied()).collect()
}

/// The group of an end that is low within it only, if no good pair of other hosts in it shows that it is good.
fn group_of(table: &Table, cover: &Cover, draft: &Draft) -> Option<Part> {
    let low = |at: &u32| table.score(*at as usize) < -DOUBT;
    let mut low_here = draft.cells.iter().filter(|at| low(at)).peekable();
    let first = &table.cells[**low_here.peek()? as usize];
    if !cover.is_grouped() || low_here.any(|at| table.cells[*at as usize].stratum == 1) {
        return None;
    }
    let group = cover.group(first.from.host);
    let is_good = |at: usize| {
        let cell = &table.cells[at];
        let within = cell.stratum == 0 && cover.group(cell.from.host) == group;
        within && !low(&(at as u32)) && !touches(table, &draft.part, at as u32)
    };
    (!(0..table.cells.len()).any(is_good)).then_some(Part::Group(group))
}

/// Share of common pairs from which the results do not separate two parts.
const SAME: f64 = 0.95;

/// Other shared parts that touch the same cells, or all but a few.
fn alternatives(cover: &Cover, part: usize, table: &Table) -> Vec<Part> {
    let own = &cover.parts[part];
    if !own.is_shared() {
        return Vec::new();
    }
    let cells = &cover.cells[part];
    let is_own = |at: u32| cells.binary_search(&at).is_ok();
    let near = cells.iter().flat_map(|&at| cover.of_cell(at).iter().copied());
    let mut near: Vec<u32> = near.filter(|&other| other as usize != part).collect();
    near.sort_unstable();
    near.dedup();
    let same = |&other: &u32| {
        let others = &cover.cells[other as usize];
        let both = others.iter().filter(|&&at| is_own(at)).count();
        // A good part is not an alternative: an inner pair or two that are fine show that the switch of a group is.
        let beyond = others.iter().filter(|&&at| !is_own(at));
        let good = beyond.filter(|&&at| table.live[at as usize] && table.score(at as usize) > -DOUBT).count();
        // A group's switch may explain few pairs within it that are all low.
        let switch =
            matches!((own, &cover.parts[other as usize]), (Part::Uplink(a, Way::Both), Part::Group(b)) if a == b);
        cover.parts[other as usize].is_shared()
            && good == 0
            && (switch || both as f64 >= SAME * (cells.len() + others.len() - both) as f64)
    };
    near.iter().filter(|other| same(other)).map(|&other| cover.parts[other as usize].clone()).collect()
}

/// By cell: the suspects that took it and those at one of its ends.
fn touching(table: &Table, drafts: &[Draft]) -> Vec<usize> {
    let mut numbers: Vec<Vec<usize>> = vec![Vec::new(); table.cells.len()];
    // A low path at a bad end is evidence for the end as well.
    for (number, draft) in drafts.iter().enumerate().filter(|(_, draft)| draft.shaky.is_none() && !draft.part.is_link())
    {
        draft.cells.iter().for_each(|&at| numbers[at as usize].push(number));
    }
    let ends: HashMap<&Part, usize> = drafts
        .iter()
        .enumerate()
        .filter(|(_, d)| d.part.is_end() && d.shaky.is_none())
        .map(|(number, d)| (&d.part, number))
        .collect();
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

fn describe(table: &Table, draft: &Draft, touching: &[usize], pairs_of: &Lists<usize>, explained: &[f64]) -> Suspect {
    let clean: Vec<u32> = draft.cells.iter().copied().filter(|&at| touching[at as usize] <= 1).collect();
    let all = if clean.len() >= 3 { clean } else { draft.cells.clone() };
    // The low results of a part that is bad at times give its effect when bad.
    let at_times = draft.part.is_end().then(|| kinds(table, &all, draft.shaky.is_some())).flatten();
    let share = draft.shaky.or(at_times.as_ref().map(|(low, _)| low.len() as f64 / all.len() as f64));
    let n = if at_times.is_some() { all.len() } else { 0 };
    let cells = at_times.map_or(all, |(low, _)| low);
    let residuals: Vec<f64> = cells.iter().map(|&at| table.residual(at as usize)).collect();
    let mut scores: Vec<f64> = cells.iter().map(|&at| table.score(at as usize)).collect();
    let effect = median_in_place(&mut residuals.clone());
    let ways = [Way::Send, Way::Receive].map(|way| {
        let end = draft.part.clone().only(way);
        let is_low = |cell: &Cell| end.is_end() && end.passed(cell.from, cell.to, &[]);
        cells.iter().zip(&residuals).filter(|(at, r)| **r < effect / 2.0 && is_low(&table.cells[**at as usize])).count()
    });
    let error = if scores.len() == 1 { 1.0 } else { MEDIAN_ERROR / (scores.len() as f64).sqrt() };
    Suspect {
        part: draft.part.clone(),
        effect,
        effects: [0, 1].map(|kind| {
            let of = cells.iter().map(|&at| at as usize).filter(|&at| table.cells[at].stratum == kind);
            let mut of: Vec<f64> = of.map(|at| table.residual(at)).collect();
            (!of.is_empty()).then(|| median_in_place(&mut of))
        }),
        interval: paired_shift(&residuals, 0.95).ok().and_then(|shift| shift.interval),
        z: median_in_place(&mut scores) / error,
        // Nothing explains what remains if the end proves good.
        explained: if draft.part.is_link() && !draft.instead {
            median_in_place(&mut cells.iter().map(|&at| explained[at as usize]).collect::<Vec<_>>())
        } else {
            0.0
        },
        evidence: Evidence {
            n: n.max(cells.len()),
            low: residuals.iter().filter(|&&r| r < effect / 2.0).count(),
            partners: partners(table, &cells, &draft.part),
            pairs: cells.iter().flat_map(|&at| pairs_of.of(at as usize).iter().copied()).collect(),
        },
        alternatives: draft.alternatives.clone(),
        peers: peers(table, &draft.cells),
        share,
        latent: draft.latent,
        instead: draft.instead,
        contested: false,
        both_ways: ways.iter().all(|low| *low >= 2),
        looks: 1,
        under: Vec::new(),
    }
}

/// Fewest good pairs of one kind that show what that kind reaches.
const PEERS: usize = 3;

/// Whether other good cells remain of a kind that a part touches. For a slow group, the pairs inside other groups are enough; what lies
/// between two groups has none.
fn peers(table: &Table, cells: &[u32]) -> bool {
    let touched = |stratum: usize| cells.iter().any(|&at| table.cells[at as usize].stratum == stratum);
    let good = |stratum: usize| {
        let live = (0..table.cells.len()).filter(|&at| table.live[at] && table.cells[at].stratum == stratum);
        live.filter(|&at| table.score(at) > -DOUBT).take(PEERS).count()
    };
    (0..2).any(|stratum| touched(stratum) && good(stratum) >= 1.max(PEERS.min(cells.len() / 4)))
}

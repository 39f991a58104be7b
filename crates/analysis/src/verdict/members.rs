//! Missing members of bonds: with them, the ceiling of a row would be higher.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use railgauge_wire::{
    facts::{HostFacts, Interface},
    unit::Bytes,
};

use crate::{
    case::CaseResult,
    ceiling::{LinkEnd, lacks_members, whole},
    journal::Journal,
    limits::Scoped,
    reason::{Id, Reason},
    row_ceiling::RowCeilings,
};

/// Ratio of ceilings beyond rounding.
const HIGHER: f64 = 1.0 + 1e-9;

/// Bonds that lower the ceilings of these rows by members without traffic, each once. `results` are those of the test.
pub(super) fn missing(journal: &Journal, results: &[&CaseResult<'_>], scope: &[Scoped<'_>]) -> Vec<Reason> {
    let mut found: BTreeMap<(&str, &str), &Interface> = BTreeMap::new();
    let lacking = journal.hosts.iter().filter(|(_, up)| lacks_members(&up.facts));
    let mended: BTreeMap<&str, HostFacts> = lacking.map(|(host, up)| (host.as_str(), whole(&up.facts, None))).collect();
    if mended.is_empty() {
        return Vec::new();
    }
    let whole_facts = |host: &str| mended.get(host).or_else(|| Some(&journal.hosts.get(host)?.facts));
    let rounds = rounds(results);
    for (result, row) in scope {
        let Some(ceiling) = row.ceiling else { continue };
        let round = rounds.get(&round(result)).map_or(&[][..], Vec::as_slice);
        let about = if row.metric.is_sum() { round } else { &[*result] };
        let bonds: Vec<_> = about.iter().flat_map(|result| bonds(journal, result)).collect();
        let new: BTreeMap<_, _> = bonds.into_iter().filter(|(key, _)| !found.contains_key(key)).collect();
        let ceiling_with = || RowCeilings::new(whole_facts, round.iter().copied()).of(result, row.metric);
        let could = if new.is_empty() { None } else { ceiling_with() };
        let Some(could) = could.filter(|could| *could > ceiling * HIGHER) else { continue };
        for ((host, name), bond) in new {
            let others = whole(&journal.hosts[host].facts, Some(name));
            let but_this = |name: &str| if name == host { Some(&others) } else { whole_facts(name) };
            let without = RowCeilings::new(but_this, round.iter().copied()).of(result, row.metric);
            if without.is_some_and(|without| could > without * HIGHER) {
                found.insert((host, name), bond);
            }
        }
    }
    found.into_iter().map(|((host, _), bond)| lack(host, bond)).collect()
}

type Round<'r> = (u32, Bytes, u32, Option<&'r str>);

fn round<'r>(result: &'r CaseResult<'_>) -> Round<'r> {
    let cell = &result.case.cell;
    (result.case.round, cell.size, cell.qps, cell.applied.as_deref())
}

fn rounds<'r>(results: &[&'r CaseResult<'r>]) -> HashMap<Round<'r>, Vec<&'r CaseResult<'r>>> {
    let mut rounds: HashMap<Round<'r>, Vec<&CaseResult<'_>>> = HashMap::new();
    for result in results.iter().filter(|result| result.part.is_some()) {
        rounds.entry(round(result)).or_default().push(result);
    }
    rounds
}

type Bond<'j> = ((&'j str, &'j str), &'j Interface);

fn bonds<'j>(journal: &'j Journal, result: &CaseResult<'_>) -> Vec<Bond<'j>> {
    let flow = &result.case.flow;
    let ends = result.link.map(|link| [(&flow.from.host, &link.from_device), (&flow.to.host, &link.to_device)]);
    let bond = |(host, device): (&Arc<str>, &String)| {
        let (host, up) = journal.hosts.get_key_value(&**host)?;
        let bond = LinkEnd::find(Some(&up.facts), device).interface?;
        bond.idle_members().next().map(|_| ((host.as_str(), bond.name.as_str()), bond))
    };
    ends.into_iter().flatten().filter_map(bond).collect()
}

fn lack(host: &str, bond: &Interface) -> Reason {
    Reason::new(Id::FewerMembers)
        .all(bond.idle_members().map(|member| member.name.clone()).collect())
        .hosts([host])
        .with("host", host)
        .with("bond", &bond.name)
        .with("carrying", bond.members.iter().filter(|member| member.carries()).count())
        .with("of", bond.members.len())
}

//! Names of the parts of a verdict: many hosts that are bad in the same direction are grouped.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_model::plan::hostlist;
use railgauge_wire::natural;
use serde_json::json;

use crate::{
    localise::{Named, TOGETHER, Way, only},
    reason::Value,
    words::some,
};

const NAMED: usize = 8;

/// The whole host that a part is, if the verdict has no more details on it.
fn host(part: Option<&Named>) -> Option<(Way, &str)> {
    let part = part.filter(|part| part.meanwhile.is_none())?;
    Some((part.way, part.host()?))
}

/// In order. At least [`TOGETHER`] hosts that are bad in the same direction are at the position of the first.
pub(super) fn named(all: &[(&str, Option<&Named>)]) -> Value {
    let mut ways: BTreeMap<Way, Vec<&str>> = BTreeMap::new();
    for (way, host) in all.iter().filter_map(|(_, part)| host(*part)) {
        ways.entry(way).or_default().push(host);
    }
    ways.retain(|_, hosts| hosts.len() >= TOGETHER);
    let mut texts: Vec<String> = Vec::new();
    let mut done: BTreeSet<Way> = BTreeSet::new();
    for (name, part) in all {
        if let Some((way, hosts)) = host(*part).and_then(|(way, _)| Some((way, ways.get(&way)?))) {
            if done.insert(way) {
                let mut hosts = hosts.clone();
                natural::sort(&mut hosts);
                texts.push(format!("hosts {}{}", hostlist::listed(hosts.into_iter()), only(way)));
            }
            continue;
        }
        let others = part.iter().flat_map(|part| &part.alternatives).map(|part| part.name.as_str());
        let names = std::iter::once(*name).chain(others).collect::<Vec<_>>().join(" or ");
        texts.push(match part.and_then(|part| part.meanwhile.as_ref()) {
            Some(words) => format!("{names} ({words})"),
            None => names,
        });
    }
    Value::Data(all.iter().map(|(name, _)| json!(name)).collect(), some(&texts, NAMED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::localise::PartName;

    fn part(kind: &'static str, name: String, hosts: Vec<String>, way: Way) -> Named {
        Named { part: PartName { kind, name, hosts, way, ..PartName::default() }, ..Named::default() }
    }

    #[test]
    fn hosts_are_together_by_direction() {
        let hosts = |way: Way, all: &[usize]| -> Vec<Named> {
            // For any wording of a name.
            all.iter().map(|n| part("host", format!("the machine gpu{n}"), vec![format!("gpu{n}")], way)).collect()
        };
        let text = |parts: &[Vec<Named>]| {
            let all: Vec<&Named> = parts.iter().flatten().collect();
            let Value::Data(_, text) = named(&all.iter().map(|part| (&*part.name, Some(*part))).collect::<Vec<_>>())
            else {
                panic!()
            };
            text
        };
        let both = |all: &[usize]| hosts(Way::Both, all);
        let path = vec![part("path", "path between gpu1 and gpu2".into(), Vec::new(), Way::Both)];
        assert_eq!(text(&[both(&[1, 2, 3]), path, both(&[4])]), "hosts gpu[1-4], path between gpu1 and gpu2");
        let receive = hosts(Way::Receive, &[5, 6, 7, 8]);
        assert_eq!(text(&[both(&[1]), receive.clone()]), "the machine gpu1, hosts gpu[5-8], receiving");
        assert_eq!(text(&[both(&[1, 2, 3]), receive[..1].to_vec()]).matches(", ").count(), 3);
    }
}

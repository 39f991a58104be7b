//! Groups of hosts by their names: `rack1-node03`, `r1n03`, `node03.pod2.example`.

use std::collections::BTreeMap;

/// Words for a part of a cluster that hosts share. `r` alone counts only in front of another number: `r1n04`.
const WORDS: [&str; 12] =
    ["rack", "rk", "pod", "row", "su", "leaf", "block", "island", "cabinet", "cab", "cell", "rail-group"];

/// Groups by name, each with its hosts in their order; none if the names do not have them, or only some hosts' do.
pub(super) fn groups(hosts: &[String]) -> BTreeMap<String, Vec<&str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for host in hosts {
        let Some(group) = group_of(host) else { return BTreeMap::new() };
        found.entry(group).or_default().push(host);
    }
    let is_useful = found.len() > 1 && found.values().all(|hosts| hosts.len() > 1);
    let is_free = hosts.iter().all(|host| !found.contains_key(host));
    if is_useful && is_free { found } else { BTreeMap::new() }
}

/// The group in a name: the word and its number.
fn group_of(host: &str) -> Option<String> {
    let lower = host.to_ascii_lowercase();
    let numbered = |word: &str| {
        lower.match_indices(word).find_map(|(at, _)| {
            let begins = lower[..at].chars().next_back().is_none_or(|c| !c.is_ascii_alphabetic());
            let rest = lower[at + word.len()..].trim_start_matches(['-', '_']);
            let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
            (begins && !number.is_empty() && number.len() < rest.len() + usize::from(at > 0))
                .then(|| format!("{word}{number}"))
        })
    };
    WORDS.iter().find_map(|word| numbered(word)).or_else(|| short(&lower))
}

/// `r1` of `r1n04`: a letter for the rack, a letter for the host.
fn short(name: &str) -> Option<String> {
    let rest = name.strip_prefix('r')?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let rest = rest[number.len()..].trim_start_matches(['-', '_']);
    let letters = rest.chars().take_while(char::is_ascii_alphabetic).count();
    let is_host = letters > 0 && rest[letters..].starts_with(|c: char| c.is_ascii_digit());
    (!number.is_empty() && is_host).then(|| format!("r{number}"))
}

#[cfg(test)]
mod tests {
    use railgauge_model::plan::hostlist::{expand, fold};

    use super::*;

    fn told(list: &str) -> Vec<String> {
        let hosts = expand(list).unwrap();
        let found = groups(&hosts);
        found.iter().map(|(name, hosts)| format!("{name}={}", fold(hosts.iter().copied()))).collect()
    }

    #[test]
    fn names_tell_groups_only_where_it_is_evident() {
        assert_eq!(told("rack1-node[1-2],rack2-node[1-2]"), ["rack1=rack1-node[1-2]", "rack2=rack2-node[1-2]"]);
        assert_eq!(told("r1n[01-02],r2n[01-03]"), ["r1=r1n[01-02]", "r2=r2n[01-03]"]);
        assert_eq!(told("gpu1.pod7.x,gpu2.pod7.x,gpu3.pod8.x,gpu4.pod8.x").len(), 2);
        // One group, a lonely host, a name without a group, plain numbers, and words that only look like one.
        for list in [
            "rack1-node[1-4]",
            "rack1-node[1-2],rack2-node1",
            "rack1-node[1-2],rack2-node[1-2],login",
            "gpu[001-016]",
            "track1-a,track1-b,track2-a,track2-b",
            "rack[1-4]",
            "r[1-4]",
        ] {
            assert_eq!(told(list), Vec::<String>::new(), "{list}");
        }
    }
}

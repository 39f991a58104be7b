//! Hosts whose agents read other files or load other libraries than the system's: their facts may not be of their hardware.

use std::collections::BTreeMap;

use super::{journal::Journal, words::some};

/// A sentence, without its full stop, for each set of variables that agents were started with, with its hosts.
pub fn told(journal: &Journal) -> Vec<String> {
    let mut hosts: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for (name, host) in journal.hosts.iter().filter(|(_, host)| !host.facts.overrides.is_empty()) {
        hosts.entry(host.facts.overrides.keys().map(String::as_str).collect()).or_default().push(name);
    }
    let words = |(set, hosts): (Vec<&str>, Vec<&str>)| {
        let (shown, set) = (some(&hosts, 8), set.join(", "));
        format!("{shown}: what is reported as hardware may not be this host's: {set} are set")
    };
    hosts.into_iter().map(words).collect()
}

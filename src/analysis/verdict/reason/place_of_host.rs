//! Where the hosts stand that a verdict names, for whoever walks there.

use std::fmt;

use serde::Serialize;

/// Hosts that are named with their places in one sentence.
const NAMED: usize = 4;

/// Where hosts stand, in the order in which the verdict names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename = "where")]
pub struct OfPlaces {
    /// Each host with its place, as the plan writes it.
    pub hosts: Vec<Placed>,
}

/// A host and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// The host.
    pub host: String,
    /// Its rack, or rack and slot with `/` between them.
    pub place: String,
}

/// `where: gpu031 (rack A12, slot 7)`.
impl fmt::Display for OfPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<String> = self.hosts.iter().take(NAMED).map(ToString::to_string).collect();
        write!(f, "where: {}", named.join(", "))?;
        match self.hosts.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

/// `gpu031 (rack A12, slot 7)`. A rack that is called so, and a height unit (`u07`), need no word before them.
impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, place } = self;
        let (rack, slot) = place.split_once('/').map_or((place.as_str(), None), |(rack, slot)| (rack, Some(slot)));
        let begins = |text: &str, word: &str| text.to_ascii_lowercase().starts_with(word);
        let is_unit = |slot: &str| begins(slot, "u") && slot[1..].starts_with(|c: char| c.is_ascii_digit());
        write!(f, "{host} ({}{rack}", if begins(rack, "rack") { "" } else { "rack " })?;
        if let Some(slot) = slot {
            let bare = is_unit(slot) || begins(slot, "slot");
            write!(f, ", {}{slot}", if bare { "" } else { "slot " })?;
        }
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_words_only_where_it_lacks_them() {
        let told = |place: &str| Placed { host: "gpu031".into(), place: place.into() }.to_string();
        assert_eq!(told("A12/7"), "gpu031 (rack A12, slot 7)");
        assert_eq!(told("rack12/u07"), "gpu031 (rack12, u07)");
        assert_eq!(told("Rack 3/Slot 2"), "gpu031 (Rack 3, Slot 2)");
        assert_eq!(told("A12"), "gpu031 (rack A12)");
        assert_eq!(told("A12/ü"), "gpu031 (rack A12, slot ü)");
        assert_eq!(told("A12/upper"), "gpu031 (rack A12, slot upper)");
    }

    #[test]
    fn of_many_hosts_the_first_are_named() {
        let hosts = (0..6).map(|at| Placed { host: format!("gpu{at}"), place: "A1".into() }).collect();
        let words = OfPlaces { hosts }.to_string();
        assert!(words.contains("gpu3") && !words.contains("gpu4") && words.ends_with("and 2 more"), "{words}");
    }
}

//! The case of a reason, and places of hosts.

use std::fmt;

use serde::Serialize;

use super::{Reason, Value};
use crate::{case::CaseResult, row::Row, together, words::some};

/// Hosts named with their places in one sentence.
const NAMED: usize = 4;

impl Reason {
    pub(crate) fn case(self, result: &CaseResult<'_>) -> Self {
        let (case, flow) = (result.case, &result.case.flow);
        self.about(result.link_name())
            .hosts([&flow.from.host, &flow.to.host])
            .with("case", case.id)
            .with("size", case.cell.size)
            .with("variant", Some(result.variant()).filter(|variant| !variant.is_empty()))
            .with("src_rail", flow.from.rail)
            .with("dst_rail", flow.to.rail)
    }

    pub(crate) fn row(self, (result, row): (&CaseResult<'_>, &Row)) -> Self {
        self.case(result).about(together::name(result, row.metric))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Placed {
    pub host: String,
    /// Rack, or rack and slot joined by `/`.
    pub place: String,
}

impl Placed {
    pub(crate) fn all(hosts: &[Self]) -> Value {
        let named: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        Value::Data(serde_json::to_value(hosts).unwrap_or_default(), some(&named, NAMED))
    }
}

/// `gpu031 (rack A12, slot 7)`. A rack named so, and a height unit (`u07`), need no word before them.
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
    use crate::reason::place::*;

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
}

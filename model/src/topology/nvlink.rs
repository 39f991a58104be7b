//! NVLink domains as `railgauge discover` writes them: hosts whose GPUs reach each other by NVLink, according to NVML.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    MOST_CABLES, Told, Unread,
    unread::{self},
};
use crate::border::text::printable;

/// Hosts of each domain by its name, `UUID.CLIQUE`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// A host with GPUs in several domains is in all of them.
    pub domains: BTreeMap<String, BTreeSet<String>>,
}

/// Reads the file.
///
/// # Errors
/// It is not such a document, or it has too many hosts.
pub fn read(text: &str) -> Result<Told, Unread> {
    let document: Document = unread::json(text)?;
    let hosts: usize = document.domains.values().map(BTreeSet::len).sum();
    if hosts > MOST_CABLES {
        return Err(Unread::Whole(format!("it has {hosts} hosts")));
    }
    let named = |(name, hosts): (String, BTreeSet<String>)| {
        (printable(&name), hosts.iter().map(|host| printable(host)).collect())
    };
    let domains = document.domains.into_iter().map(named).collect();
    Ok(Told { source: "nvlink".into(), domains, ..Told::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_are_read_and_anything_else_is_refused() {
        let told = read(r#"{"domains": {"50f12b3c.1": ["gpu1", "gpu2"], "50f12b3c.2": ["gpu3"]}}"#).unwrap();
        assert_eq!((told.domains.len(), told.domains["50f12b3c.1"].len(), told.cables.len()), (2, 2, 0));
        for text in ["", "[]", "{}", r#"{"domains": {"a": "gpu1"}}"#, r#"{"domains": {}, "more": 1}"#] {
            assert!(read(text).is_err(), "{text}");
        }
        let wrong = read("{\"domains\":\n{\"a\": [1]}}").unwrap_err();
        assert!(wrong.to_string().contains("line 2"), "{wrong}");
    }
}

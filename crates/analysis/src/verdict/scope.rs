use std::fmt;

use railgauge_model::plan::model::Expectation;
use railgauge_wire::Bytes;
use serde::Serialize;

use crate::words::sizes;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// In bytes; `None` for all.
    pub sizes: Option<(Bytes, Bytes)>,
    /// All if empty.
    pub rails: Vec<u32>,
    pub group: Option<String>,
}

impl Scope {
    pub fn of(wanted: &Expectation) -> Self {
        Self { sizes: wanted.sizes, rails: wanted.rails.clone(), group: wanted.group.clone() }
    }

    /// `None` if the scope is the whole test.
    #[must_use]
    pub fn narrowed(self) -> Option<Self> {
        (self.sizes.is_some() || !self.rails.is_empty() || self.group.is_some()).then_some(self)
    }

    /// Only restrictions, in words: `64 KiB to 8 MiB`, `rails 0, 1`, `group leaf1`.
    pub fn parts(&self) -> Vec<String> {
        let rails = match self.rails.as_slice() {
            [] => None,
            [rail] => Some(format!("rail {rail}")),
            rails => Some(format!("rails {}", rails.iter().map(u32::to_string).collect::<Vec<_>>().join(", "))),
        };
        let group = self.group.as_ref().map(|group| format!("group {group}"));
        [self.sizes.map(sizes), rails, group].into_iter().flatten().collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.sizes.is_none().then(|| "all sizes".to_owned());
        f.write_str(&all.into_iter().chain(self.parts()).collect::<Vec<_>>().join(", "))
    }
}

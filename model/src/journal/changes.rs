use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use serde::{Deserialize, Serialize, Serializer};

/// Name of a counter → difference. Empty takes no heap memory: a run may have millions of samples.
#[allow(clippy::box_collection, reason = "an empty map takes 24 bytes, too")]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "BTreeMap<String, u64>")]
pub struct Changes(Option<Box<BTreeMap<String, u64>>>);

static NONE: BTreeMap<String, u64> = BTreeMap::new();

impl Deref for Changes {
    type Target = BTreeMap<String, u64>;

    fn deref(&self) -> &Self::Target {
        self.0.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for Changes {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.get_or_insert_default()
    }
}

impl From<BTreeMap<String, u64>> for Changes {
    fn from(all: BTreeMap<String, u64>) -> Self {
        Self((!all.is_empty()).then(|| Box::new(all)))
    }
}

impl<const N: usize> From<[(String, u64); N]> for Changes {
    fn from(all: [(String, u64); N]) -> Self {
        BTreeMap::from(all).into()
    }
}

impl PartialEq for Changes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_a_map_and_nothing_takes_no_memory() {
        let mut changes: Changes = serde_json::from_str("{}").unwrap();
        assert!(changes.is_empty() && changes.0.is_none() && size_of::<Changes>() == 8);
        changes.insert("b".into(), 2);
        changes.insert("a".into(), 1);
        assert_eq!(serde_json::to_string(&changes).unwrap(), r#"{"a":1,"b":2}"#);
        assert_eq!(serde_json::from_str::<Changes>(r#"{"a":1,"b":2}"#).unwrap(), changes);
        changes.clear();
        assert_eq!(changes, Changes::default());
        assert!(serde_json::from_str::<Changes>("null").is_err());
    }
}

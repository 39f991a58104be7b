use railgauge_wire::remedy::Remedy;
use serde::{Deserialize, Serialize};

use super::observed::{Observation, Severity, Usual, Value, WantedBy};

pub(super) const UNKNOWN: &str = "it is not known whether the host meets the plan's requirement";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub check: String,
    pub severity: Severity,
    pub waived: bool,
    #[serde(default)]
    pub unread: bool,
    /// In the plan's order; empty if it is about switches.
    pub hosts: Vec<String>,
    /// As plans name them; empty for whole hosts.
    pub devices: Vec<String>,
    pub what: String,
    /// As seen and as wanted; `None` if not about one value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observation>,
    /// The key of `[preflight]`, `mtu` or `firmware.mlx5_core`, of an unmet demand that no check reports. `None` for a check: `observed`
    /// has its fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub meaning: String,
    pub remedy: Remedy,
    pub source: String,
}

impl Finding {
    /// Whether another one reports the same of its hosts, by its check and the size of what it found.
    pub fn is_alike(&self, other: &Self) -> bool {
        self.check == other.check
            && match (&self.observed, &other.observed) {
                (Some(own), Some(other)) => own.is_alike(other),
                (own, other) => own.is_none() == other.is_none(),
            }
    }
}

#[derive(Debug, Clone)]
pub struct Found {
    pub(super) severity: Severity,
    pub(super) unread: bool,
    pub(super) host: Option<String>,
    pub(super) device: Option<String>,
    pub(super) what: String,
    pub(super) observed: Option<Observation>,
    pub(super) key: Option<String>,
    pub(super) meaning: Option<&'static str>,
    pub(super) remedy: Remedy,
}

impl Found {
    pub fn host(severity: Severity, host: &str, what: impl Into<String>, remedy: impl Into<Remedy>) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self {
            severity,
            unread: false,
            host: Some(host.to_owned()),
            device: None,
            what,
            observed: None,
            key: None,
            meaning: None,
            remedy,
        }
    }

    pub fn fabric(severity: Severity, what: impl Into<String>, remedy: impl Into<Remedy>) -> Self {
        Self { host: None, ..Self::host(severity, "", what, remedy) }
    }

    #[must_use]
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    #[must_use]
    pub fn observed(mut self, observed: Observation) -> Self {
        self.observed = Some(observed);
        self
    }

    #[must_use]
    pub(super) fn seen(self, fact: impl Into<String>, seen: impl Into<Value>) -> Self {
        self.observed(Observation::seen(fact, seen))
    }

    /// As `seen`, where the check itself wants a value.
    #[must_use]
    pub(super) fn wants(self, fact: impl Into<String>, seen: impl Into<Value>, wanted: impl Into<Value>) -> Self {
        self.observed(Observation::seen(fact, seen).wanted(wanted, WantedBy::Check))
    }

    #[must_use]
    pub(super) fn usual<T>(self, fact: impl Into<String>, seen: impl Into<Value>, usual: &Usual<T>) -> Self
    where
        T: Clone + Into<Value>,
    {
        let by = if usual.wanted { WantedBy::Plan } else { WantedBy::Others };
        self.observed(Observation::seen(fact, seen).wanted(usual.value.clone(), by))
    }

    /// The unit of what was observed.
    #[must_use]
    pub(super) fn unit(mut self, unit: &str) -> Self {
        self.observed = self.observed.map(|observed| observed.unit(unit));
        self
    }

    #[must_use]
    pub fn departs(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    #[must_use]
    pub const fn unread(mut self) -> Self {
        self.unread = true;
        self
    }

    #[must_use]
    pub const fn meaning(mut self, meaning: &'static str) -> Self {
        self.meaning = Some(meaning);
        self
    }
}

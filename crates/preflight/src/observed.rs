use std::cmp::Ordering;

use railgauge_wire::GigabitsPerSecond;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Notice,
    Warning,
    /// Something the plan needs cannot work, or is not as wanted.
    Failure,
}

impl Severity {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Usual<T> {
    pub value: T,
    pub wanted: bool,
}

impl<T: Clone + PartialOrd> Usual<T> {
    pub(super) fn of(wanted: Option<T>, values: impl IntoIterator<Item = T>) -> Option<Self> {
        match wanted {
            Some(value) => Some(Self { value, wanted: true }),
            None => Some(Self { value: majority(values)?, wanted: false }),
        }
    }

    /// A deviation is a failure if the plan wants the value.
    pub(super) const fn severity(&self, otherwise: Severity) -> Severity {
        if self.wanted { Severity::Failure } else { otherwise }
    }

    pub(super) fn words(&self, shown: impl FnOnce(&T) -> String) -> String {
        let who = if self.wanted { "the plan requires" } else { "others have" };
        format!("{who} {}", shown(&self.value))
    }
}

/// The value that more than half have. Unordered values such as NaN have no majority.
fn majority<T: Clone + PartialOrd>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut sorted: Vec<T> = values.into_iter().collect();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let middle = sorted.get(sorted.len() / 2)?.clone();
    let holders = sorted.iter().filter(|value| **value == middle).count();
    (holders * 2 > sorted.len()).then_some(middle)
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    /// The key of `[preflight]` if there is one (`mtu`), else its name in `facts.json` (`memlock_bytes`).
    pub fact: String,
    /// `B`, `Gb/s`, `GT/s`, `lanes`, `s`, `%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    pub seen: Option<Value>,
    /// `None` where any other value would do. Whether a higher one would depends on the fact.
    pub wanted: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_by: Option<WantedBy>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WantedBy {
    Plan,
    Others,
    /// The check itself: what the tests of the plan need, what the hardware can do, or what is recommended.
    Check,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Flag(bool),
    Integer(i64),
    Decimal(Decimal),
    Word(String),
    List(Vec<Value>),
}

/// A number with a total order, so that findings can be sorted.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decimal(pub f64);

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl Observation {
    pub(super) fn seen(fact: impl Into<String>, seen: impl Into<Value>) -> Self {
        Self { fact: fact.into(), unit: None, seen: Some(seen.into()), wanted: None, wanted_by: None }
    }

    pub(super) fn wanted(mut self, wanted: impl Into<Value>, by: WantedBy) -> Self {
        (self.wanted, self.wanted_by) = (Some(wanted.into()), Some(by));
        self
    }

    /// The largest share of a bandwidth that it can cost, as a difference of logarithms; `None` where unknown.
    pub fn takes_at_most(&self) -> Option<f64> {
        let seen = self.seen.as_ref()?.number()?;
        let most = match self.unit.as_deref()? {
            "Gb/s" | "lanes" => (self.wanted.as_ref()?.number()? / seen).ln(),
            // The used share of a port's rate.
            "%" => -(-seen / 100.0).ln_1p(),
            _ => return None,
        };
        most.is_finite().then_some(most.max(0.0))
    }

    /// Size of the deviation, for comparison within its fact; `None` without numbers.
    fn size(&self) -> Option<f64> {
        let off = || {
            let seen = self.seen.as_ref()?.number()?;
            let wanted = self.wanted.as_ref().and_then(Value::number).filter(|wanted| *wanted > 0.0);
            Some(wanted.map_or(seen, |wanted| (seen / wanted).ln()).abs())
        };
        self.takes_at_most().or_else(off)
    }

    /// Whether another one of the same fact deviates by at least half as much. An unread value is not known to deviate.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        let is_less = self.size().zip(other.size()).is_some_and(|(own, other)| other < own / 2.0);
        self.fact == other.fact && self.seen.is_some() == other.seen.is_some() && !is_less
    }

    pub(super) fn unit(mut self, unit: &str) -> Self {
        self.unit = Some(unit.to_owned());
        self
    }
}

impl Value {
    const fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Decimal(Decimal(number)) => Some(*number),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// Integers stay integers in JSON; one that does not fit becomes a decimal.
macro_rules! integers {
    ($($type:ty),*) => {
        $(impl From<$type> for Value {
            fn from(number: $type) -> Self {
                i64::try_from(number).map_or(Self::Decimal(Decimal(number as f64)), Self::Integer)
            }
        })*
    };
}

integers!(u8, u32, u64, usize, i64);

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Decimal(Decimal(number))
    }
}

impl From<GigabitsPerSecond> for Value {
    fn from(rate: GigabitsPerSecond) -> Self {
        rate.0.into()
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl From<String> for Value {
    fn from(word: String) -> Self {
        Self::Word(word)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(list: Vec<T>) -> Self {
        Self::List(list.into_iter().map(Into::into).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_comes_before_the_majority() {
        assert_eq!(Usual::of(Some(9000), [1500, 1500]), Some(Usual { value: 9000, wanted: true }));
        assert_eq!(Usual::of(None, [9000, 1500, 9000]), Some(Usual { value: 9000, wanted: false }));
        assert_eq!(Usual::of(None, [9000, 1500]), None);
        assert_eq!(Usual::<u32>::of(None, []), None);
    }
}

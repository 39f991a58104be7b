//! Reasons of verdicts as data. The table in `texts` makes their sentences for readers.

mod place;
mod texts;
mod value;

use std::{collections::BTreeMap, fmt, ops::Deref};

use railgauge_model::plan::hostlist;
use railgauge_wire::{Failure, remedy::Remedy};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeStruct},
};

use crate::words::count;

pub use crate::reason::place::Placed;
pub use crate::reason::texts::Id;
pub use crate::reason::value::{Value, frequency};

const NAMED: usize = 8;

#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    pub id: Id,
    /// Worst first: hosts, ports, flows, links or parts.
    pub subject: Vec<String>,
    /// Total number; `subject` has the first of them.
    pub count: usize,
    pub hosts: Vec<String>,
    pub values: BTreeMap<&'static str, Value>,
    pub remedy: Option<Remedy>,
}

impl Reason {
    pub(super) const fn new(id: Id) -> Self {
        Self { id, subject: Vec::new(), count: 0, hosts: Vec::new(), values: BTreeMap::new(), remedy: None }
    }

    pub(super) fn first(mut self, subject: impl fmt::Display, count: usize) -> Self {
        (self.subject, self.count) = (vec![subject.to_string()], count);
        self
    }

    pub(super) fn about(self, subject: impl fmt::Display) -> Self {
        self.first(subject, 1)
    }

    pub(super) fn all(mut self, subject: Vec<String>) -> Self {
        (self.count, self.subject) = (subject.len(), subject);
        self
    }

    pub(super) fn hosts<H: fmt::Display>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = hosts.into_iter().map(|host| host.to_string()).collect();
        self
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        match value.into() {
            Value::Absent => {}
            value => drop(self.values.insert(name, value)),
        }
        self
    }

    pub(super) fn remedy(mut self, remedy: Option<Remedy>) -> Self {
        self.remedy = remedy;
        self
    }

    pub(super) fn failed(self, failure: &Failure) -> Self {
        let bare = Failure { remedy: None, ..failure.clone() };
        let fields = serde_json::to_value(failure).unwrap_or_default();
        self.with("failure", Value::Data(fields, bare.to_string())).remedy(failure.told_remedy())
    }

    /// Null for a missing value.
    pub fn json(&self, name: &str) -> serde_json::Value {
        self.values.get(name).and_then(|value| serde_json::to_value(value).ok()).unwrap_or_default()
    }

    /// Empty for a missing value.
    pub fn text(&self, name: &str) -> String {
        self.value(name).unwrap_or_default()
    }

    /// `a → b and 3 more`.
    pub fn subject(&self) -> String {
        let named = &self.subject[..self.subject.len().min(NAMED)];
        match self.count.saturating_sub(named.len()) {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    }

    fn value(&self, name: &str) -> Option<String> {
        let (name, noun) = name.split_once(':').map_or((name, None), |(name, noun)| (name, Some(noun)));
        let of_subject = |text: String| (!self.subject.is_empty()).then_some(text);
        match name {
            "subject" => of_subject(self.subject()),
            "count" => of_subject(count(self.count, noun.unwrap_or_default())),
            "place" => {
                let rest = ["size", "variant"].into_iter().filter_map(|name| self.value(name));
                of_subject(std::iter::once(self.subject()).chain(rest).collect::<Vec<_>>().join(", "))
            }
            "hosts" => (!self.hosts.is_empty()).then(|| hostlist::listed(self.hosts.iter().map(String::as_str))),
            _ => self.values.get(name)?.text(noun),
        }
    }

    fn required(&self, text: &str) -> String {
        let (filled, whole) = self.filled(text);
        debug_assert!(whole, "{filled}: {self:?}");
        filled
    }

    /// Replaces values, absent ones by capitals; returns whether all are present.
    fn filled(&self, text: &str) -> (String, bool) {
        let (mut filled, mut rest, mut whole) = (String::new(), text, true);
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            let value = self.value(name);
            whole &= value.is_some();
            filled += before;
            filled += &value.unwrap_or_else(|| name.to_uppercase());
            rest = after;
        }
        (filled + rest, whole)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.id.words();
        while let Some((before, (part, after))) =
            rest.split_once('[').and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
        {
            f.write_str(&self.required(before))?;
            if let (part, true) = self.filled(part) {
                f.write_str(&part)?;
            }
            rest = after;
        }
        f.write_str(&self.required(rest))
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("id", &self.id)?;
        if !self.subject.is_empty() {
            fields.serialize_entry("subject", &self.subject)?;
            fields.serialize_entry("count", &self.count)?;
        }
        if !self.hosts.is_empty() {
            fields.serialize_entry("hosts", &self.hosts)?;
        }
        for (name, value) in &self.values {
            fields.serialize_entry(name, value)?;
        }
        let measured = ["observed", "required"].into_iter().find_map(|name| self.values.get(name));
        if let Some(unit) = measured.and_then(Value::unit) {
            fields.serialize_entry("unit", unit)?;
        }
        fields.end()
    }
}

/// Two fields in JSON: `reason`, their sentences, and `reasons`, a list of objects.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reasons(Vec<Reason>);

impl Reasons {
    pub fn new(reason: Reason) -> Self {
        Self(vec![reason])
    }

    pub fn push(&mut self, reason: Reason) {
        self.0.push(reason);
    }

    /// The first reason with a remedy of its own.
    pub fn step(&self) -> Option<(&Reason, &Remedy)> {
        self.0.iter().find_map(|reason| Some((reason, reason.remedy.as_ref()?)))
    }
}

impl Deref for Reasons {
    type Target = [Reason];

    fn deref(&self) -> &[Reason] {
        &self.0
    }
}

impl Extend<Reason> for Reasons {
    fn extend<T: IntoIterator<Item = Reason>>(&mut self, reasons: T) {
        self.0.extend(reasons);
    }
}

impl FromIterator<Reason> for Reasons {
    fn from_iter<T: IntoIterator<Item = Reason>>(reasons: T) -> Self {
        Self(Vec::from_iter(reasons))
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, reason) in self.0.iter().enumerate() {
            write!(f, "{}{reason}", if at > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl Serialize for Reasons {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Reasons", 2)?;
        fields.serialize_field("reason", &self.to_string())?;
        fields.serialize_field("reasons", &self.0)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::reason::*;

    #[test]
    fn a_part_of_a_text_is_left_out_where_a_value_is_absent() {
        let lasted = |failure: Option<&str>| {
            Reason::new(Id::SoakGpusUnread)
                .first("gpu01 GPU 0", 3)
                .with("unread", 2_u64)
                .with("windows", 9_u64)
                .with("failure", failure)
        };
        assert_eq!(lasted(None).to_string(), "gpu01 GPU 0 and 2 more not read in 2 of 9 windows");
        // The text inside a value is not a template.
        let told = lasted(Some("[{count}]")).to_string();
        assert_eq!(told, "gpu01 GPU 0 and 2 more not read in 2 of 9 windows: [{count}]");
    }

    #[test]
    fn fields_have_the_unit_of_what_was_observed() {
        let over = Reason::new(Id::SoakOverLimit).about("p").with("observed", Value::Number(0.5, "/s"));
        let json = serde_json::to_value(over).unwrap();
        assert_eq!(
            json,
            serde_json::json!({ "id": "soak-over-limit", "subject": ["p"], "count": 1, "observed": 0.5, "unit": "/s" })
        );
    }

    #[test]
    fn every_text_can_be_filled() {
        let ids: BTreeSet<Id> = Id::ALL.iter().copied().collect();
        assert_eq!(ids.len(), Id::ALL.len());
        for id in ids {
            let (mut open, mut name) = (None, None);
            for (at, c) in id.words().char_indices() {
                match c {
                    '[' | ']' => assert!((c == ']') == open.is_some() && name.is_none(), "{id:?}"),
                    '{' | '}' => assert!((c == '}') == name.is_some(), "{id:?}"),
                    _ => {}
                }
                match c {
                    '[' => open = Some(at),
                    ']' => open = None,
                    '{' => name = Some(at),
                    '}' => name = None,
                    _ => {}
                }
            }
            assert!(open.is_none() && name.is_none() && !id.words().is_empty(), "{id:?}");
        }
    }
}

//! Values of reasons: their JSON, and their text.

use std::fmt;

use railgauge_wire::{Bytes, Nanoseconds};
use serde::{Serialize, Serializer};

use crate::words::{self, amount, change, lasting, lasting_about, moment, number, size};

/// In JSON times and moments are in nanoseconds, sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Absent,
    Flag(bool),
    Count(u64),
    Counted(usize, &'static str),
    /// With its unit.
    Number(f64, &'static str),
    /// With its unit, and its text in the unit of the plan.
    Shown(f64, &'static str, String),
    /// A difference in percent.
    Change(f64),
    Time(Nanoseconds),
    About(Nanoseconds, Nanoseconds),
    AtLeast(Nanoseconds),
    /// Nanoseconds since 1970.
    Moment(Nanoseconds),
    Size(Bytes),
    Amount(Bytes),
    Text(String),
    List(Vec<String>),
    Data(serde_json::Value, String),
}

impl Value {
    pub fn data<T: Serialize + fmt::Display>(of: &T) -> Self {
        Self::Data(serde_json::to_value(of).unwrap_or_default(), of.to_string())
    }

    /// A time with its error; a minimum if its start or end was not seen.
    pub const fn time(length: Nanoseconds, error: Nanoseconds, open: bool) -> Self {
        if open { Self::AtLeast(length) } else { Self::About(length, error) }
    }

    /// As part of a sentence; `None` without text.
    pub(super) fn text(&self, noun: Option<&str>) -> Option<String> {
        Some(match (self, noun) {
            (Self::Absent | Self::Flag(false), _) => return None,
            (Self::List(all), _) if all.is_empty() => return None,
            (Self::Flag(true), _) => String::new(),
            (Self::Count(n), Some(noun)) => words::count(usize::try_from(*n).unwrap_or(usize::MAX), noun),
            (Self::Count(n), None) => n.to_string(),
            (Self::Counted(n, noun), _) => words::count(*n, noun),
            (Self::Number(n, "/s"), _) => frequency(*n),
            (Self::Number(n, ""), _) => number(*n),
            (Self::Number(n, unit), _) => format!("{} {unit}", number(*n)),
            (Self::Change(percent), _) => change(*percent),
            (Self::Time(time), _) => lasting(*time),
            (Self::About(time, error), _) => lasting_about(*time, *error),
            (Self::AtLeast(time), _) => format!("at least {}", lasting(*time)),
            (Self::Moment(at), _) => moment(*at),
            (Self::Size(bytes), _) => size(*bytes),
            (Self::Amount(bytes), _) => amount(*bytes),
            (Self::List(all), _) => all.join(", "),
            (Self::Text(text) | Self::Shown(.., text) | Self::Data(_, text), _) => text.clone(),
        })
    }

    pub(super) const fn unit(&self) -> Option<&'static str> {
        match self {
            Self::Number(_, unit) | Self::Shown(_, unit, _) => Some(unit),
            Self::Time(_) | Self::About(..) | Self::AtLeast(_) => Some("ns"),
            Self::Size(_) | Self::Amount(_) => Some("B"),
            _ => None,
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => to.serialize_unit(),
            Self::Flag(flag) => to.serialize_bool(*flag),
            Self::Count(n) => to.serialize_u64(*n),
            Self::Counted(n, _) => to.serialize_u64(*n as u64),
            Self::Number(n, _) | Self::Shown(n, ..) | Self::Change(n) => to.serialize_f64(*n),
            Self::Time(time) | Self::About(time, _) | Self::AtLeast(time) | Self::Moment(time) => time.serialize(to),
            Self::Size(bytes) | Self::Amount(bytes) => bytes.serialize(to),
            Self::Text(text) => to.serialize_str(text),
            Self::List(all) => all.serialize(to),
            Self::Data(fields, _) => fields.serialize(to),
        }
    }
}

/// Rises per second, in a readable unit: `12/s`, `3/min`, `0.5/h`.
pub fn frequency(per_second: f64) -> String {
    let short = |value: f64| {
        let text = number(value);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match per_second {
        rate if rate >= 1.0 || rate == 0.0 => format!("{}/s", short(rate)),
        rate if rate * 60.0 >= 1.0 => format!("{}/min", short(rate * 60.0)),
        rate => format!("{}/h", short(rate * 3600.0)),
    }
}

macro_rules! values {
    ($($from:ty: $value:ident => $into:expr;)*) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $into
            }
        }
    )*};
}

values! {
    bool: flag => Self::Flag(flag);
    u64: n => Self::Count(n);
    u32: n => Self::Count(n.into());
    usize: n => Self::Count(n as u64);
    Bytes: bytes => Self::Size(bytes);
    Nanoseconds: time => Self::Time(time);
    String: text => Self::Text(text);
    &str: text => Self::Text(text.to_owned());
    &String: text => Self::Text(text.clone());
    Vec<String>: list => Self::List(list);
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Into::into)
    }
}

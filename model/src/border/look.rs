//! One look at JSON as it comes, without building it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor},
};

use super::text;

/// The farthest from zero that a number may be: as nanoseconds 146 years, and with them the clocks that count from 1970
/// until 2116; as bytes four exbibytes. Two of them add up within 64 bits with a sign.
pub const FARTHEST: u64 = 1 << 62;

/// Fields whose numbers are no amounts of ours, with all below them: what the kernel counts and tells may be any 64 bits,
/// seeds and addresses are bits only, and an expectation of all sizes ends with the highest. Whoever calculates with them sees to overflow.
const FREE: &[&str] =
    &["Counters", "counters", "from_counters", "to_counters", "Facts", "facts", "seed", "address", "expect"];

/// Fields whose text may have several lines: what a plan's author writes in them is kept as it is.
const IN_LINES: &[&str] = &["description", "apply", "undo", "command"];

/// Sizes and contents of a JSON value, as the border checks them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    /// Bytes of all texts and names.
    pub said: usize,
    /// Bytes of the longest one.
    pub longest: usize,
    /// Whether one of them holds what cannot be printed.
    pub unprintable: bool,
    /// The first number farther from zero than [`FARTHEST`]: its place and what it is.
    pub impossible: Option<String>,
}

/// Looks at JSON.
///
/// # Errors
/// It is not a regular file.
pub fn look(bytes: &[u8]) -> serde_json::Result<Look> {
    let mut all = Looker::default();
    let mut from = serde_json::Deserializer::from_slice(bytes);
    Below { all: &mut all, free: false, in_lines: false }.deserialize(&mut from)?;
    from.end()?;
    let mut seen = all.seen;
    seen.impossible = all.number.map(|number| {
        let place: Vec<&str> = all.place.iter().rev().map(String::as_str).collect();
        format!("`{}` is {number}", text::printable(&place.join(".")))
    });
    Ok(seen)
}

pub(super) fn has_lines(field: &str) -> bool {
    IN_LINES.contains(&field)
}

#[derive(Default)]
struct Looker {
    seen: Look,
    /// The first number that cannot be.
    number: Option<String>,
    /// Where it stands, innermost first.
    place: Vec<String>,
}

impl Looker {
    fn text(&mut self, text: &str, in_lines: bool) {
        self.seen.said += text.len();
        self.seen.longest = self.seen.longest.max(text.len());
        let printable = if in_lines { text::has_printable_lines(text) } else { text::is_printable(text) };
        self.seen.unprintable |= !printable;
    }

    /// Notes that a number stands below `name`, if it was found there just now.
    fn below(&mut self, had: bool, name: impl FnOnce() -> String) {
        if self.number.is_some() && !had {
            self.place.push(name());
        }
    }
}

struct Below<'l> {
    all: &'l mut Looker,
    free: bool,
    in_lines: bool,
}

impl Below<'_> {
    fn number(self, is_far: bool, number: impl fmt::Display) {
        if is_far && !self.free && self.all.number.is_none() {
            self.all.number = Some(number.to_string());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Below<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// The name of a field, without a copy where it stands there as it is.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'n>(#[serde(borrow)] Cow<'n, str>);

impl<'de> Visitor<'de> for Below<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.number(number > FARTHEST, number);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.number(number.unsigned_abs() > FARTHEST, number);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.number(number.abs() > FARTHEST as f64, format_args!("{number:e}"));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.all.text(text, self.in_lines);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { all, free, in_lines } = self;
        let mut place = 0_usize;
        loop {
            let had = all.number.is_some();
            let below = Below { all: &mut *all, free, in_lines };
            let Some(()) = items.next_element_seed(below)? else { return Ok(()) };
            all.below(had, || place.to_string());
            place += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Self { all, free, .. } = self;
        while let Some(Name(name)) = fields.next_key()? {
            all.text(&name, false);
            let had = all.number.is_some();
            let free = free || FREE.contains(&&*name);
            fields.next_value_seed(Below { all: &mut *all, free, in_lines: has_lines(&name) })?;
            all.below(had, || name.into_owned());
        }
        Ok(())
    }
}

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor},
};

use super::text;

/// The largest magnitude of a number. As nanoseconds it is 146 years, so clocks since 1970 fit until 2116; as bytes it is 4 EiB. The sum of
/// two fits into an `i64`.
pub const FARTHEST: u64 = 1 << 62;

/// Fields whose numbers, and all below them, may be any 64 bits: kernel counters, seeds, addresses, the upper bound of an expectation for
/// all sizes. Code that calculates with them must handle overflow.
const FREE: &[&str] =
    &["Counters", "counters", "from_counters", "to_counters", "Facts", "facts", "seed", "address", "expect"];

/// Fields whose text may have several lines, as the plan's author wrote it.
const IN_LINES: &[&str] = &["description", "apply", "undo", "command"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Look {
    pub said: usize,
    pub longest: usize,
    pub unprintable: bool,
    /// Place and value of the first number beyond [`FARTHEST`].
    pub impossible: Option<String>,
}

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
    number: Option<String>,
    place: Vec<String>,
}

impl Looker {
    fn text(&mut self, text: &str, in_lines: bool) {
        self.seen.said += text.len();
        self.seen.longest = self.seen.longest.max(text.len());
        let printable = if in_lines { text::has_printable_lines(text) } else { text::is_printable(text) };
        self.seen.unprintable |= !printable;
    }

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

/// A field name, borrowed where it has no escapes.
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

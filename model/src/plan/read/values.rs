//! Typed values of a table. A reader returns `None` if there is no value, or after recording a mistake.

use std::{ops::Range, path::PathBuf};

use railgauge_wire::unit::Nanoseconds;
use toml::de::DeValue;

use super::{
    table::{At, Raw, Table},
    text::{Words, texts_of},
};
use crate::plan::{
    format::{Shape, expected},
    grammar::{Wrong, nearest, quantity},
    mistakes::Mistake,
};

impl<'a> Table<'a> {
    fn quoted(&self, name: &str) -> Option<At<Words>> {
        let raw = self.raw(name)?;
        Some(At { value: Words::new(self.book, &raw.value, raw.span.clone())?, span: raw.span, own: raw.own })
    }

    pub fn parsed<T>(&self, name: &str, grammar: impl FnOnce(&str) -> Result<T, Wrong>) -> Option<At<T>> {
        let words = self.quoted(name)?;
        match grammar(&words.value.text) {
            Ok(value) => Some(words.map(|_| value)),
            Err(wrong) => {
                self.book.add(words.value.mistake(wrong));
                None
            }
        }
    }

    /// Not empty, and of one line unless it describes something.
    pub fn text(&self, name: &str) -> Option<At<String>> {
        let text = self.quoted(name)?.map(|words| words.text);
        let message = match &text.value {
            value if value.trim().is_empty() => format!("`{name}` is empty"),
            value if value.contains(['\n', '\r']) && name != "description" => format!("`{name}` contains a line break"),
            _ => return Some(text),
        };
        self.wrong(text.span, message, "write a non-empty string on one line, or leave the key out");
        None
    }

    /// Relative paths start from the plan's directory.
    pub fn path(&self, name: &str) -> Option<At<PathBuf>> {
        let directory = self.book.directory;
        self.text(name).map(|text| text.map(|text| directory.join(text)))
    }

    pub fn flag(&self, name: &str) -> Option<At<bool>> {
        let raw = self.raw(name)?;
        let value = raw.value.as_bool()?;
        Some(raw.map(|_| value))
    }

    pub fn whole<N: TryFrom<u64>>(&self, name: &str) -> Option<At<N>> {
        let raw = self.raw(name)?;
        let Shape::Whole(least, most) = self.key(name).shape else { return None };
        let number =
            bounded(name, (least, most), &raw.value, &raw.span).map_err(|mistake| self.book.add(*mistake)).ok()?;
        Some(At { value: N::try_from(number).ok()?, span: raw.span, own: raw.own })
    }

    pub fn wholes<N: TryFrom<u64>>(&self, name: &str) -> Option<At<Vec<At<N>>>> {
        let raw = self.raw(name)?;
        let Shape::Wholes(least, most) = self.key(name).shape else { return None };
        Some(At { value: self.numbers(name, (least, most), &raw), span: raw.span.clone(), own: raw.own })
    }

    /// The numbers of a value within bounds; those outside are reported and omitted.
    pub fn numbers<N: TryFrom<u64>>(&self, name: &str, bounds: (u64, u64), raw: &Raw<'_>) -> Vec<At<N>> {
        let elements: Vec<(&DeValue<'_>, Range<usize>)> = match &*raw.value {
            DeValue::Array(list) => list.iter().map(|value| (value.get_ref(), value.span())).collect(),
            one => vec![(one, raw.span.clone())],
        };
        let mut numbers = Vec::new();
        for (value, span) in elements {
            match bounded(name, bounds, value, &span) {
                Ok(number) => numbers.extend(N::try_from(number).ok().map(|value| At { value, span, own: raw.own })),
                Err(mistake) => self.book.add(*mistake),
            }
        }
        numbers
    }

    pub fn word(&self, name: &str) -> Option<At<&'static str>> {
        let Shape::Word(words) = self.key(name).shape else { return None };
        let text = self.quoted(name)?.map(|words| words.text);
        let words = words();
        match words.iter().find(|word| **word == text.value) {
            Some(word) => Some(text.map(|_| *word)),
            None => {
                self.book.add(not_a_word(name, &text, &words));
                None
            }
        }
    }

    /// One or several of the words of its key, with places; unknown words are reported.
    pub fn words(&self, name: &str) -> Vec<At<&'static str>> {
        let Shape::Words(words) = self.key(name).shape else { return Vec::new() };
        let Some(raw) = self.raw(name) else { return Vec::new() };
        let words = words();
        let mut known = Vec::new();
        for text in texts_of(self.book, &raw.value, raw.span.clone()) {
            let text = At { value: text.text, span: text.span, own: raw.own };
            match words.iter().find(|word| **word == text.value) {
                Some(word) => known.push(text.map(|_| *word)),
                None => self.book.add(not_a_word(name, &text, &words)),
            }
        }
        known
    }

    pub fn term<T>(&self, name: &str, from_word: impl FnOnce(&str) -> Option<T>) -> Option<At<T>> {
        let word = self.word(name)?;
        Some(At { value: from_word(word.value)?, span: word.span, own: word.own })
    }

    pub fn time(&self, name: &str) -> Option<At<Nanoseconds>> {
        let Shape::Time(least, most) = self.key(name).shape else { return None };
        let time = self.parsed(name, quantity::duration)?;
        let bound = |text| quantity::duration(text).unwrap_or_default();
        if (bound(least)..=bound(most)).contains(&time.value) {
            return Some(time);
        }
        let message = format!("`{name}` must be from \"{least}\" to \"{most}\"");
        self.wrong(time.span, message, "is the unit right?");
        None
    }

    /// Texts, each with its place; one text is a list of one.
    pub fn texts(&self, name: &str) -> Option<At<Vec<Words>>> {
        let raw = self.raw(name)?;
        Some(At { value: texts_of(self.book, &raw.value, raw.span.clone()), span: raw.span, own: raw.own })
    }

    /// A percentage within the bounds of its key.
    pub fn percent(&self, name: &str) -> Option<At<f64>> {
        let Shape::Percent(least, most) = self.key(name).shape else { return None };
        let raw = self.raw(name)?;
        let value = match &*raw.value {
            DeValue::String(_) => self.parsed(name, quantity::percent)?.value,
            DeValue::Integer(number) => number.to_string().parse().unwrap_or(f64::NAN),
            DeValue::Float(number) => number.as_str().parse().unwrap_or(f64::NAN),
            _ => return None,
        };
        if (least..=most).contains(&value) {
            return Some(raw.map(|_| value));
        }
        let help = "write two percent as 2 or \"2%\"";
        self.wrong(raw.span, format!("`{name}` must be from {least} to {most} percent"), help);
        None
    }
}

fn bounded(
    name: &str,
    (least, most): (u64, u64),
    value: &DeValue<'_>,
    span: &Range<usize>,
) -> Result<u64, Box<Mistake>> {
    let number = value.as_integer().and_then(|number| i128::from_str_radix(number.as_str(), number.radix()).ok());
    number.and_then(|number| u64::try_from(number).ok()).filter(|number| (least..=most).contains(number)).ok_or_else(
        || {
            let mistake = Mistake::at(span.clone(), format!("`{name}` must be from {least} to {most}"));
            mistake.help("write a number within these bounds").into()
        },
    )
}

fn not_a_word(name: &str, text: &At<String>, words: &[&str]) -> Mistake {
    let mistake = Mistake::at(text.span.clone(), format!("`{name}` cannot be \"{}\"", text.value));
    match nearest(&text.value, words.iter().copied()) {
        Some(near) => mistake.label(format!("did you mean \"{near}\"?")),
        None => mistake,
    }
    .help(expected(words))
}

//! Typed values of a table. A reader returns `None` if there is no value, or after recording a mistake.

use std::{borrow::Cow, fmt::Display, ops::Range, path::PathBuf, time::Duration};

use railgauge_wire::Nanoseconds;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toml::de::DeValue;

use super::{
    table::{At, Raw, Table, unsupported},
    text::{Words, texts_of},
};
use crate::border;
use crate::plan::{
    Mistake, PerEnd, Shape, Wrong,
    format::expected,
    grammar::{nearest, quantity},
};

impl<'a> Table<'a> {
    fn quoted(&self, name: &str) -> Option<At<Words>> {
        let raw = self.raw(name)?;
        Some(At { value: Words::of_number(self.book, &raw.value, raw.span.clone())?, span: raw.span, own: raw.own })
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
        self.reject(text.span, message, "write a non-empty string on one line, or leave the key out")
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
        self.numbers(name, (least, most), &raw).pop()
    }

    pub fn wholes<N: TryFrom<u64>>(&self, name: &str) -> Option<At<Vec<At<N>>>> {
        let raw = self.raw(name)?;
        let Shape::Wholes(least, most) = self.shape(name) else { return None };
        Some(At { value: self.numbers(name, (least, most), &raw), span: raw.span.clone(), own: raw.own })
    }

    /// The numbers of a value within bounds; those outside are reported and omitted.
    pub fn numbers<N: TryFrom<u64>>(&self, name: &str, (least, most): (u64, u64), raw: &Raw<'_>) -> Vec<At<N>> {
        let elements: Vec<(&DeValue<'_>, Range<usize>)> = match &*raw.value {
            DeValue::Array(list) => list.iter().map(|value| (value.get_ref(), value.span())).collect(),
            one => vec![(one, raw.span.clone())],
        };
        let mut numbers = Vec::new();
        for (value, span) in elements {
            let number =
                value.as_integer().and_then(|digits| u64::from_str_radix(digits.as_str(), digits.radix()).ok());
            match number.filter(|number| (least..=most).contains(number)) {
                Some(number) => numbers.extend(N::try_from(number).ok().map(|value| At { value, span, own: raw.own })),
                None => {
                    let message = format!("`{name}` must be from {least} to {most}");
                    self.wrong(span, message, "write a number within these bounds");
                }
            }
        }
        numbers
    }

    pub fn word(&self, name: &str) -> Option<At<&'static str>> {
        let Shape::Word(words) = self.shape(name) else { return None };
        self.known(name, self.quoted(name)?.map(|words| words.text), &words())
    }

    /// One or several of the words of its key, with places; unknown words are reported.
    pub fn words(&self, name: &str) -> Vec<At<&'static str>> {
        let Shape::Words(words) = self.key(name).shape else { return Vec::new() };
        let Some(raw) = self.raw(name) else { return Vec::new() };
        let texts = texts_of(self.book, &raw.value, raw.span.clone()).into_iter();
        let texts = texts.map(|text| At { value: text.text, span: text.span, own: raw.own });
        let words = words();
        texts.filter_map(|text| self.known(name, text, &words)).collect()
    }

    /// The one of `words` that this is; reports any other.
    fn known(&self, name: &str, text: At<String>, words: &[&'static str]) -> Option<At<&'static str>> {
        if let Some(word) = words.iter().find(|word| **word == text.value) {
            return Some(text.map(|_| *word));
        }
        if let Some(why) = unsupported(&text.value) {
            let message = format!("`{name}` = \"{}\" is not supported", text.value);
            self.book.wrong(text.span, message, format!("{why}; {}", expected(words)));
            return None;
        }
        let mistake = Mistake::at(text.span, format!("`{name}` cannot be \"{}\"", text.value));
        let mistake = match nearest(&text.value, words.iter().copied()) {
            Some(near) => mistake.label(format!("did you mean \"{near}\"?")),
            None => mistake,
        };
        self.book.add(mistake.help(expected(words)));
        None
    }

    /// The settings whose fields have the names of the keys that `keep` takes; the defaults if the plan is wrong, which has been reported.
    /// Keys of other shapes than these are read one by one.
    pub fn settings<T: DeserializeOwned + Default>(&self, keep: impl Fn(&str) -> bool) -> T {
        let value = |name: &'static str, shape: Shape| {
            Some(match shape {
                Shape::Text => json!(self.text(name)?.value),
                Shape::Path => serde_json::to_value(self.path(name)?.value).ok()?,
                Shape::Flag => json!(self.flag(name)?.value),
                Shape::Whole(..) => json!(self.whole::<u64>(name)?.value),
                Shape::Word(_) => json!(self.word(name)?.value),
                Shape::Percent(..) => json!(self.percent(name)?.value),
                Shape::Time(..) => json!(Duration::from(self.time(name)?.value)),
                Shape::Texts => self.texts(name)?.value.into_iter().map(|words| words.text).collect(),
                Shape::Words(_) => self.words(name).into_iter().map(|word| word.value).collect(),
                _ => return None,
            })
        };
        let keys = self.section.keys.iter().filter(|key| keep(key.name));
        let found: Map<String, Value> =
            keys.filter_map(|key| Some((key.name.to_owned(), value(key.name, key.shape)?))).collect();
        border::typed(&Value::Object(found)).unwrap_or_default()
    }

    /// Reports keys that do not apply here, each with why.
    pub fn refuse<'n>(&self, names: impl IntoIterator<Item = &'n str>, why: &str) {
        for name in names {
            if let Some(span) = self.name_span(name) {
                self.wrong(span, format!("`{name}` {why}"), "leave it out");
            }
        }
    }

    /// The values of a list, each once; another one of the same is reported, and an empty list of the plan.
    pub fn unique<T: PartialEq + Display>(&self, name: &str, list: Vec<At<T>>) -> Vec<T> {
        let mut unique: Vec<T> = Vec::new();
        for at in list {
            if unique.contains(&at.value) {
                let message = format!("{} is listed twice in `{name}`", at.value);
                self.wrong(at.span, message, "list every value once");
            } else {
                unique.push(at.value);
            }
        }
        let is_empty = |raw: &Raw<'_>| raw.value.as_array().is_some_and(|list| list.is_empty());
        if let Some(span) = self.raw(name).filter(is_empty).and(self.written(name)) {
            self.wrong(span, format!("`{name}` is empty"), "leave it out, or give a value");
        }
        unique
    }

    /// [`Self::unique`] of a list of words.
    pub fn terms<T>(&self, name: &str, from_word: impl Fn(&str) -> Option<T>) -> Vec<T> {
        self.unique(name, self.words(name)).into_iter().filter_map(from_word).collect()
    }

    pub fn term<T>(&self, name: &str, from_word: impl FnOnce(&str) -> Option<T>) -> Option<At<T>> {
        let word = self.word(name)?;
        Some(At { value: from_word(word.value)?, span: word.span, own: word.own })
    }

    /// What `read` reads of a key, once for both ends or from a table for each.
    pub fn per_end<T: Clone>(&self, name: &str, read: impl Fn(&Table<'_>, &str) -> Option<T>) -> Option<At<PerEnd<T>>> {
        let Raw { value, span, own } = self.raw(name)?;
        let value = match (self.key(name).shape, value) {
            (Shape::PerEnd(ends), Cow::Borrowed(DeValue::Table(entries))) => {
                let ends = Table::new(self.book, ends, span.clone(), Some(entries));
                let (from, to) = (read(&ends, "from"), read(&ends, "to"));
                PerEnd { from: from?, to: to? }
            }
            _ => PerEnd::same(read(self, name)?),
        };
        Some(At { value, span, own })
    }

    pub fn time(&self, name: &str) -> Option<At<Nanoseconds>> {
        let Shape::Time(least, most) = self.key(name).shape else { return None };
        let time = self.parsed(name, quantity::duration)?;
        let bound = |text| quantity::duration(text).unwrap_or_default();
        if (bound(least)..=bound(most)).contains(&time.value) {
            return Some(time);
        }
        let message = format!("`{name}` must be from \"{least}\" to \"{most}\"");
        self.reject(time.span, message, "is the unit right?")
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
        self.reject(raw.span, format!("`{name}` must be from {least} to {most} percent"), help)
    }
}

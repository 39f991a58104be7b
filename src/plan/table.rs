//! Reading one table of a plan by its table of keys.

use std::{borrow::Cow, ops::Range, path::PathBuf};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    book::Book,
    keys::{Key, Preset, Section, Shape, one_of},
    mistake::Mistake,
    quantity,
    wrong::{Wrong, nearest},
};

/// A table being read. A key that is not written here may be inherited from another table of the same kind
/// (`[defaults]`), and else has the preset of its key.
#[derive(Debug)]
pub struct Table<'a> {
    /// Where mistakes go.
    pub book: &'a Book<'a>,
    /// Its header, or all of an inline table.
    pub span: Range<usize>,
    section: &'static Section,
    entries: Option<&'a DeTable<'a>>,
    inherits: Option<&'a Table<'a>>,
}

/// A value that was read, and where it stands.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Its place; for a preset, the place of the table.
    pub span: Range<usize>,
    /// Whether it is written in this very table, and not inherited or preset.
    pub own: bool,
}

impl<T> At<T> {
    /// The same place with another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At { value: change(self.value), span: self.span, own: self.own }
    }
}

/// A value as it stands in the file.
pub type Raw<'a> = At<Cow<'a, DeValue<'a>>>;

impl<'a> Table<'a> {
    /// Looks at the names and types of everything in a table. `entries` is `None` for a table that is not there.
    pub fn new(
        book: &'a Book<'a>,
        section: &'static Section,
        span: Range<usize>,
        entries: Option<&'a DeTable<'a>>,
    ) -> Self {
        for (name, value) in entries.into_iter().flatten() {
            match section.key(name.get_ref()) {
                None => book.add(unknown(section, name)),
                Some(key) => {
                    if let Err(mistake) = typed(key, value) {
                        book.add(*mistake);
                    }
                }
            }
        }
        Self { book, span, section, entries, inherits: None }
    }

    /// The same table, taking what it does not say from another of the same kind.
    #[must_use]
    pub fn inherit(mut self, from: &'a Table<'a>) -> Self {
        self.inherits = Some(from);
        self
    }

    fn key(&self, name: &str) -> &'static Key {
        debug_assert!(self.section.key(name).is_some(), "{name} is not in the table of [{}]", self.section.path);
        self.section.key(name).unwrap_or(&self.section.keys[0])
    }

    /// Where a key's value is written in this very table, whatever it is.
    pub fn written(&self, name: &str) -> Option<Range<usize>> {
        self.entries.and_then(|entries| entries.get(name)).map(Spanned::span)
    }

    /// Where a key's name is written in this very table.
    pub fn name_span(&self, name: &str) -> Option<Range<usize>> {
        self.entries.and_then(|entries| entries.get_key_value(name)).map(|(name, _)| name.span())
    }

    /// A value as it stands in the file or as its key presets it. `None` if neither, or if its type is wrong, which
    /// has been said. Says so if it is required and missing.
    pub fn raw(&self, name: &str) -> Option<Raw<'a>> {
        let key = self.key(name);
        if let Some(value) = self.entries.and_then(|entries| entries.get(name)) {
            let value = At { value: Cow::Borrowed(value.get_ref()), span: value.span(), own: true };
            return key.shape.fits(&value.value).then_some(value);
        }
        if let Some(found) =
            self.inherits.filter(|table| table.entries.is_some_and(|entries| entries.contains_key(name)))
        {
            return found.raw(name).map(|found| At { own: false, ..found });
        }
        match key.preset {
            Preset::Value(text) => {
                let value = DeValue::parse(text).ok()?.into_inner();
                Some(At { value: Cow::Owned(value), span: self.span.clone(), own: false })
            }
            Preset::Words(_) => None,
            Preset::Required => {
                let header =
                    if self.section.path.is_empty() { "the plan".into() } else { format!("[{}]", self.section.path) };
                let mistake = Mistake::at(self.span.clone(), format!("`{name}` is missing in {header}"))
                    .help(format!("add {name} = …: {}", key.shape.words()));
                self.book.add(mistake);
                None
            }
        }
    }

    /// A text and where its first character stands.
    fn text_at(&self, name: &str) -> Option<(At<String>, usize)> {
        let raw = self.raw(name)?;
        let text = raw.value.as_str()?.to_owned();
        let start = inside(self.book, &raw.span, &text);
        Some((At { value: text, span: raw.span, own: raw.own }, start))
    }

    /// A text read by a grammar.
    pub fn parsed<T>(&self, name: &str, grammar: impl FnOnce(&str) -> Result<T, Wrong>) -> Option<At<T>> {
        let (text, start) = self.text_at(name)?;
        match grammar(&text.value) {
            Ok(value) => Some(At { value, span: text.span, own: text.own }),
            Err(wrong) => {
                self.book.add(wrong_in(self.book, &text.span, start, wrong));
                None
            }
        }
    }

    /// A text that is not empty and has no control characters.
    pub fn text(&self, name: &str) -> Option<At<String>> {
        let text = self.text_at(name)?.0;
        let message = match &text.value {
            value if value.trim().is_empty() => format!("`{name}` is empty"),
            value if value.contains(char::is_control) && name != "description" => {
                format!("`{name}` holds a control character")
            }
            _ => return Some(text),
        };
        self.book.add(Mistake::at(text.span, message).help("write a text, or leave the key out"));
        None
    }

    /// A path, taken from the plan's directory if relative.
    pub fn path(&self, name: &str) -> Option<At<PathBuf>> {
        let directory = self.book.directory;
        self.text(name).map(|text| text.map(|text| directory.join(text)))
    }

    /// `true` or `false`.
    pub fn flag(&self, name: &str) -> Option<At<bool>> {
        let raw = self.raw(name)?;
        let value = raw.value.as_bool()?;
        Some(raw.map(|_| value))
    }

    /// A whole number within the bounds of its key.
    pub fn whole<N: TryFrom<u64>>(&self, name: &str) -> Option<At<N>> {
        let raw = self.raw(name)?;
        let number = bounded(self.key(name), &raw.value, &raw.span).map_err(|mistake| self.book.add(*mistake)).ok()?;
        Some(At { value: N::try_from(number).ok()?, span: raw.span, own: raw.own })
    }

    /// One whole number or several, each with its place.
    pub fn wholes<N: TryFrom<u64>>(&self, name: &str) -> Option<At<Vec<At<N>>>> {
        let raw = self.raw(name)?;
        Some(At { value: self.numbers(self.key(name), &raw), span: raw.span.clone(), own: raw.own })
    }

    /// The numbers of a value within the bounds of a key; those outside are written down and left out.
    pub fn numbers<N: TryFrom<u64>>(&self, key: &Key, raw: &Raw<'_>) -> Vec<At<N>> {
        let elements: Vec<(&DeValue<'_>, Range<usize>)> = match &*raw.value {
            DeValue::Array(list) => list.iter().map(|value| (value.get_ref(), value.span())).collect(),
            one => vec![(one, raw.span.clone())],
        };
        let mut numbers = Vec::new();
        for (value, span) in elements {
            match bounded(key, value, &span) {
                Ok(number) => numbers.extend(N::try_from(number).ok().map(|value| At { value, span, own: raw.own })),
                Err(mistake) => self.book.add(*mistake),
            }
        }
        numbers
    }

    /// One of the words of its key.
    pub fn word(&self, name: &str) -> Option<At<&'static str>> {
        let Shape::Word(words) = self.key(name).shape else { return None };
        let text = self.text_at(name)?.0;
        let words = words();
        match words.iter().find(|word| **word == text.value) {
            Some(word) => Some(text.map(|_| *word)),
            None => {
                self.book.add(not_a_word(name, &text, &words));
                None
            }
        }
    }

    /// One or several of the words of its key, each with its place; those that are none are written down.
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

    /// One of the field's words.
    pub fn term<T>(&self, name: &str, from_word: impl FnOnce(&str) -> Option<T>) -> Option<At<T>> {
        let word = self.word(name)?;
        Some(At { value: from_word(word.value)?, span: word.span, own: word.own })
    }

    /// A duration within the bounds of its key, in nanoseconds.
    pub fn time(&self, name: &str) -> Option<At<u64>> {
        let Shape::Time(least, most) = self.key(name).shape else { return None };
        let time = self.parsed(name, quantity::duration)?;
        let bound = |text| quantity::duration(text).unwrap_or(0);
        if (bound(least)..=bound(most)).contains(&time.value) {
            return Some(time);
        }
        let message = format!("`{name}` must be from \"{least}\" to \"{most}\"");
        self.book.add(Mistake::at(time.span, message).help("longer or shorter is likely a slip of the unit"));
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
            DeValue::String(text) => match quantity::percent(text) {
                Ok(value) => value,
                Err(wrong) => {
                    let start = inside(self.book, &raw.span, text);
                    self.book.add(wrong_in(self.book, &raw.span, start, wrong));
                    return None;
                }
            },
            DeValue::Integer(number) => number.to_string().parse().unwrap_or(f64::NAN),
            DeValue::Float(number) => number.as_str().parse().unwrap_or(f64::NAN),
            _ => return None,
        };
        if (least..=most).contains(&value) {
            return Some(raw.map(|_| value));
        }
        let help = "percentages are written 90 or \"90%\", not 0.9";
        self.book.add(Mistake::at(raw.span, format!("`{name}` must be from {least} to {most} percent")).help(help));
        None
    }

    /// A table inside this one; an empty one if it is not there.
    pub fn table(&self, name: &str) -> Table<'a> {
        let Shape::Table(section) = self.key(name).shape else {
            return Table {
                book: self.book,
                span: self.span.clone(),
                section: self.section,
                entries: None,
                inherits: None,
            };
        };
        let inner = self.entries.and_then(|entries| entries.get(name));
        let span = inner.map_or(self.span.clone(), Spanned::span);
        Table::new(self.book, section, span, inner.and_then(|inner| inner.get_ref().as_table()))
    }

    /// The tables of a list.
    pub fn tables(&self, name: &str) -> Vec<Table<'a>> {
        let Shape::Tables(section) = self.key(name).shape else { return Vec::new() };
        let list = self.entries.and_then(|entries| entries.get(name)).and_then(|list| list.get_ref().as_array());
        let tables = list.into_iter().flatten().filter_map(|value| Some((value.span(), value.get_ref().as_table()?)));
        tables.map(|(span, entries)| Table::new(self.book, section, span, Some(entries))).collect()
    }
}

/// A text in the file.
#[derive(Debug, Clone)]
pub struct Words {
    /// What it says.
    pub text: String,
    /// Its place, with quotes.
    pub span: Range<usize>,
    /// Where its first character stands.
    pub start: usize,
}

/// The texts of a value, each with its place; one text is a list of one.
pub fn texts_of(book: &Book<'_>, value: &DeValue<'_>, span: Range<usize>) -> Vec<Words> {
    let one = |value: &DeValue<'_>, span: Range<usize>| {
        let text = value.as_str()?.to_owned();
        let start = inside(book, &span, &text);
        Some(Words { text, span, start })
    };
    match value {
        DeValue::Array(list) => list.iter().filter_map(|value| one(value.get_ref(), value.span())).collect(),
        value => one(value, span).into_iter().collect(),
    }
}

/// Where the first character of a text stands: behind the quote, if the file has the text as it is. A text with
/// escapes is marked as a whole.
fn inside(book: &Book<'_>, span: &Range<usize>, text: &str) -> usize {
    let written = book.text.get(span.clone()).unwrap_or_default();
    match written.get(1..written.len().saturating_sub(1)) {
        Some(inner) if inner == text => span.start + 1,
        _ => span.end,
    }
}

/// What a grammar found in a text, at the very characters where that is possible.
pub fn wrong_in(_: &Book<'_>, span: &Range<usize>, start: usize, wrong: Wrong) -> Mistake {
    if start < span.end && !wrong.at.is_empty() {
        return Mistake::wrong(0, start, wrong);
    }
    Mistake::at(span.clone(), wrong.message).help(wrong.help)
}

fn unknown(section: &Section, name: &Spanned<Cow<'_, str>>) -> Mistake {
    let known = section.keys.iter().map(|key| key.name);
    let header = if section.path.is_empty() { "a plan".into() } else { format!("[{}]", section.path) };
    let mistake = Mistake::at(name.span(), format!("unknown key `{}` in {header}", name.get_ref()));
    match nearest(name.get_ref(), known.clone()) {
        Some(near) => mistake.label("unknown key").help(format!("did you mean `{near}`?")),
        None => mistake.label("unknown key").help(format!("keys here are {}", known.collect::<Vec<_>>().join(", "))),
    }
}

fn typed(key: &Key, value: &Spanned<DeValue<'_>>) -> Result<(), Box<Mistake>> {
    if key.shape.fits(value.get_ref()) {
        return Ok(());
    }
    let message = format!("`{}` must be {}", key.name, key.shape.words());
    // An element of the wrong type is the place to look at.
    let wrong = value.get_ref().as_array().and_then(|list| {
        let kind = list.first().map(|first| first.get_ref().type_str());
        list.iter().find(|element| Some(element.get_ref().type_str()) != kind || !element.get_ref().is_str())
    });
    let (span, found) = wrong.map_or((value.span(), value.get_ref()), |element| (element.span(), element.get_ref()));
    Err(Box::new(Mistake::at(span, message).label(format!("this is {}", kind_of(found)))))
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

fn bounded(key: &Key, value: &DeValue<'_>, span: &Range<usize>) -> Result<u64, Box<Mistake>> {
    let (Shape::Whole(least, most) | Shape::Wholes(least, most)) = key.shape else {
        return Err(Mistake::at(span.clone(), format!("`{}` must be {}", key.name, key.shape.words())).into());
    };
    let number = value.as_integer().and_then(|number| i128::from_str_radix(number.as_str(), number.radix()).ok());
    number
        .and_then(|number| u64::try_from(number).ok())
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| Mistake::at(span.clone(), format!("`{}` must be from {least} to {most}", key.name)).into())
}

fn not_a_word(name: &str, text: &At<String>, words: &[&str]) -> Mistake {
    let mistake = Mistake::at(text.span.clone(), format!("`{name}` cannot be \"{}\"", text.value));
    match nearest(&text.value, words.iter().copied()) {
        Some(near) => mistake.label(format!("did you mean \"{near}\"?")),
        None => mistake,
    }
    .help(format!("it is {}", one_of(words)))
}

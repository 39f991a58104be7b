use std::{borrow::Cow, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::book::Book;
use crate::plan::{Key, Mistake, Section, Shape, Unset, format::expected, grammar::nearest};

/// A table being read. A missing key may be inherited from another table of the same kind (`[defaults]`), and otherwise has its default.
#[derive(Debug)]
pub struct Table<'a> {
    pub book: &'a Book<'a>,
    pub span: Range<usize>,
    pub(super) section: &'static Section,
    entries: Option<&'a DeTable<'a>>,
    inherits: Option<&'a Table<'a>>,
}

#[derive(Debug, Clone)]
pub struct At<T> {
    pub value: T,
    /// For a default, the place of the table.
    pub span: Range<usize>,
    /// Whether it is written in this table itself.
    pub own: bool,
}

impl<T> At<T> {
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> At<U> {
        At { value: change(self.value), span: self.span, own: self.own }
    }
}

pub type Raw<'a> = At<Cow<'a, DeValue<'a>>>;

impl<'a> Table<'a> {
    /// Checks the names and types of everything in a table. `entries` is `None` for a missing table.
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

    /// The same table, with missing keys inherited from another of the same kind.
    pub fn inherit(mut self, from: &'a Table<'a>) -> Self {
        self.inherits = Some(from);
        self
    }

    /// [`Book::wrong`].
    pub fn wrong(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.book.wrong(span, message, help);
    }

    /// [`wrong`](Self::wrong), for what then has no value.
    pub fn reject<T>(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.book.reject(span, message, help)
    }

    pub(super) fn key(&self, name: &str) -> &'static Key {
        debug_assert!(self.section.key(name).is_some(), "{name} is not in the table of {}", self.section.header);
        self.section.key(name).unwrap_or(&self.section.keys[0])
    }

    /// Of the value of a key, or of an end's.
    pub(super) fn shape(&self, name: &str) -> Shape {
        match self.key(name).shape {
            Shape::PerEnd(ends) => ends.keys[0].shape,
            shape => shape,
        }
    }

    pub fn written(&self, name: &str) -> Option<Range<usize>> {
        self.entries.and_then(|entries| entries.get(name)).map(Spanned::span)
    }

    pub fn has(&self, name: &str) -> bool {
        self.written(name).is_some() || self.inherited(name).is_some()
    }

    /// The nearest table that a key is inherited from. A key that the other table must not have is a mistake there, and is not inherited.
    fn inherited(&self, name: &str) -> Option<&'a Table<'a>> {
        std::iter::successors(self.inherits, |table| table.inherits)
            .find(|table| table.section.key(name).is_some() && table.written(name).is_some())
    }

    pub fn name_span(&self, name: &str) -> Option<Range<usize>> {
        self.entries.and_then(|entries| entries.get_key_value(name)).map(|(name, _)| name.span())
    }

    /// A value of the file or the key's default. `None` if neither, or if its type is wrong, which has been reported. Reports a missing
    /// required key.
    pub fn raw(&self, name: &str) -> Option<Raw<'a>> {
        let key = self.key(name);
        if let Some(value) = self.entries.and_then(|entries| entries.get(name)) {
            let value = At { value: Cow::Borrowed(value.get_ref()), span: value.span(), own: true };
            return key.shape.fits(&value.value).then_some(value);
        }
        if let Some(found) = self.inherited(name) {
            return found.raw(name).map(|found| At { own: false, ..found });
        }
        match key.unset {
            Unset::Is(text) => {
                let value = DeValue::parse(text).ok()?.into_inner();
                Some(At { value: Cow::Owned(value), span: self.span.clone(), own: false })
            }
            Unset::Means(_) => None,
            Unset::Required => {
                // A key written in another way is one mistake, not two.
                let mut written = self.entries.into_iter().flatten().map(|(name, _)| name.get_ref());
                if !written
                    .any(|other| self.section.key(other).is_none() && meant(self.section, other) == Some((None, name)))
                {
                    self.book.add(missing(self.section, key, self.span.clone()));
                }
                None
            }
        }
    }

    pub fn table(&self, name: &str) -> Table<'a> {
        let Shape::Table(section) = self.key(name).shape else {
            return Table::new(self.book, self.section, self.span.clone(), None);
        };
        let inner = self.entries.and_then(|entries| entries.get(name));
        let span = inner.map_or(self.span.clone(), Spanned::span);
        Table::new(self.book, section, span, inner.and_then(|inner| inner.get_ref().as_table()))
    }

    pub fn tables(&self, name: &str) -> Vec<Table<'a>> {
        let Shape::Tables(section) = self.key(name).shape else { return Vec::new() };
        let list = self.entries.and_then(|entries| entries.get(name)).and_then(|list| list.get_ref().as_array());
        let tables = list.into_iter().flatten().filter_map(|value| Some((value.span(), value.get_ref().as_table()?)));
        tables.map(|(span, entries)| Table::new(self.book, section, span, Some(entries))).collect()
    }
}

fn missing(section: &Section, key: &Key, span: Range<usize>) -> Mistake {
    let mistake = Mistake::at(span, format!("`{}` is missing in {}", key.name, place(section)));
    match key.shape {
        Shape::Table(inner) | Shape::Tables(inner) => mistake.help(format!("add {}: {}", inner.header, key.about)),
        Shape::Text => mistake.help(format!("for example {} = \"text\"", key.name)),
        Shape::Word(words) => {
            mistake.help(format!("for example {} = {}; {}", key.name, key.shape.example(), expected(&words())))
        }
        shape => mistake.help(format!("for example {} = {}; expected {}", key.name, shape.example(), shape.words())),
    }
}

/// The key probably meant by an unknown one, with the inner table that has it: by its name in other tools, by its table, or by its
/// spelling.
fn meant(section: &Section, given: &str) -> Option<(Option<&'static str>, &'static str)> {
    let is_it = |key: &Key| key.name == given || key.peer_names().any(|peer| peer == given.replace('_', "-"));
    let here = section.keys.iter().find(|key| is_it(key)).map(|key| (None, key.name));
    let inside = || {
        section.keys.iter().find_map(|table| match table.shape {
            Shape::Table(inner) => inner.keys.iter().find(|key| is_it(key)).map(|key| (Some(table.name), key.name)),
            _ => None,
        })
    };
    let spelled = || nearest(given, section.keys.iter().map(|key| key.name)).map(|name| (None, name));
    here.or_else(inside).or_else(spelled)
}

/// What other tools measure and this one does not: values, and keys.
const UNSUPPORTED: &[(&str, &str)] = &[
    ("srd", "EFA has transport = \"tcp\", or \"nccl\" with aws-ofi-nccl"),
    ("dc xrc", "connections are those of a queue pair with one peer"),
    ("gather scatter", "`broadcast` and `all_to_all` have the same paths"),
    ("rocm hip", "memory = \"cuda\" is also for AMD GPUs, over tcp or staged"),
    ("local_register register registered symmetric", "NCCL registers no user buffers here"),
    ("use_ooo ooo", "packets are placed out of order if `ece` negotiates it"),
    ("use_srq srq", "every queue pair has a receive queue of its own"),
    ("odp mr_per_qp", "a link registers its memory once"),
    ("comp_vector latency_gap hop_limit use_mem_type", "nothing in a plan does the same"),
];

pub(super) fn unsupported(word: &str) -> Option<&'static str> {
    let word = word.replace('-', "_");
    UNSUPPORTED.iter().find(|(words, _)| words.split(' ').any(|one| one == word)).map(|(_, why)| *why)
}

fn place(section: &Section) -> &'static str {
    if section.header.is_empty() { "the plan" } else { section.header }
}

fn unknown(section: &Section, name: &Spanned<Cow<'_, str>>) -> Mistake {
    let text = format!("unknown key `{}` in {}", name.get_ref(), place(section));
    let mistake = Mistake::at(name.span(), text).label("unknown key");
    if let Some(why) = unsupported(name.get_ref()) {
        return mistake.help(format!("not supported: {why}"));
    }
    match meant(section, name.get_ref()) {
        Some((None, key)) => mistake.help(format!("did you mean `{key}`?")),
        Some((Some(table), key)) => mistake.help(format!("did you mean `{table} = {{ {key} = ... }}`?")),
        None => {
            let known: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
            mistake.help(format!("valid keys are {}", known.join(", ")))
        }
    }
}

fn typed(key: &Key, value: &Spanned<DeValue<'_>>) -> Result<(), Box<Mistake>> {
    if key.shape.fits(value.get_ref()) {
        return Ok(());
    }
    let message = format!("`{}` must be {}", key.name, key.shape.words());
    // A table where a list of tables belongs: its header lacks a bracket, and its content is fine.
    if let (Shape::Tables(section), DeValue::Table(_)) = (key.shape, value.get_ref()) {
        let several = if section.path() == "test" { "a plan may have several tests" } else { "there may be several" };
        let help = format!("write {}: {several}", section.header);
        return Err(Box::new(Mistake::at(value.span(), message).label("this is a single table").help(help)));
    }
    if let (Shape::Word(_), DeValue::Array(_)) = (key.shape, value.get_ref()) {
        let help = format!("both ends of a pair have one `{}`; write a test for each value", key.name);
        return Err(Box::new(Mistake::at(value.span(), message).label("this is a list").help(help)));
    }
    // Mark the first element of the wrong type.
    let elements: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
        DeValue::Array(list) => list.iter().collect(),
        DeValue::Table(table) => table.values().collect(),
        _ => Vec::new(),
    };
    let found = elements.into_iter().find(|element| !key.shape.fits_inside(element.get_ref())).unwrap_or(value);
    let (span, found) = (found.span(), found.get_ref());
    let help = format!("for example {} = {}", key.name, key.shape.example());
    Err(Box::new(Mistake::at(span, message).label(format!("this is {}", kind_of(found))).help(help)))
}

fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;

    use super::meant;
    use crate::plan::{parse, test_table::TEST as SECTION};

    const HEAD: &str = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = \"a[1-2]\" }\n";
    const TEST: &str = "op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\n";

    #[test]
    fn a_key_by_another_name_is_found() {
        for (given, ours) in [
            ("metrc", (None, "metric")),
            ("duration", (None, "measure")),
            ("iters", (None, "measure")),
            ("size", (None, "sizes")),
            ("tx_depth", (Some("knobs"), "depth")),
            ("tclass", (Some("knobs"), "traffic_class")),
            ("depth", (Some("knobs"), "depth")),
        ] {
            assert_eq!(meant(&SECTION, given), Some(ours), "{given}");
        }
        assert_eq!(meant(&SECTION, "colour"), None);
    }

    #[test]
    fn what_only_other_tools_measure_is_named_as_not_supported() {
        for (line, at) in [("service = \"srd\"\n", 4), ("service = \"dc\"\n", 4), ("knobs = { use_srq = true }\n", 4)] {
            let plan = format!("{HEAD}[[test]]\n{line}op = \"write\"\nmetric = \"bandwidth\"\n");
            let wrong = parse("p.toml", &plan, Path::new(".")).unwrap_err();
            assert_eq!(wrong.list.len(), 1, "{wrong}");
            let text = wrong.to_string();
            assert!(text.contains("not supported") && text.contains(&format!("p.toml:{}:", at + 1)), "{text}");
        }
    }

    #[test]
    fn a_quantity_without_a_unit_is_shown_in_a_unit_that_it_may_have() {
        for (metric, limit, number, unit) in [
            ("victim_loss", "at_most", "150", "%"),
            ("bandwidth", "at_least", "90.5", "Gb/s"),
            ("bandwidth", "at_least", "\"5\"", "Gb/s"),
        ] {
            let pattern = if metric == "victim_loss" { "pattern = { victim = \"a1\" }\n" } else { "" };
            let limit = format!("[[test.expect]]\nmetric = \"{metric}\"\n{limit} = {number}\n");
            let wrong =
                parse("p.toml", &format!("{HEAD}[[test]]\n{TEST}{pattern}{limit}"), Path::new(".")).unwrap_err();
            let shown = format!("\"{} {unit}\"", number.trim_matches('"'));
            let help = |one: &crate::plan::Mistake| one.help.as_ref().is_some_and(|help| help.contains(&shown));
            assert!(wrong.list.iter().any(help), "{wrong}");
        }
    }

    #[test]
    fn an_operation_by_its_name_in_other_tools_is_suggested() {
        let plan = format!("{HEAD}[[test]]\nop = \"alltoallv\"\nmetric = \"bandwidth\"\n");
        let text = parse("p.toml", &plan, Path::new(".")).unwrap_err().to_string();
        assert!(text.contains("\"all_to_all_v\"?") && !text.contains("not supported"), "{text}");
    }

    #[test]
    fn a_misspelled_key_is_not_missing_as_well() {
        let plan = format!("{HEAD}[[test]]\nop = \"write\"\ntransport = \"tcp\"\nmetrc = \"latency\"\n");
        let wrong = parse("p.toml", &plan, Path::new(".")).unwrap_err();
        assert_eq!(wrong.list.len(), 1, "{wrong}");
    }

    #[test]
    fn one_missing_bracket_is_one_mistake() {
        let plan = format!("{HEAD}[[test]]\n{TEST}").replace("\"a[1-2]\"", "[\"a\", \"b\"");
        let wrong = parse("p.toml", &plan, Path::new(".")).unwrap_err();
        assert_eq!(wrong.list.len(), 1, "{wrong}");
        let start = wrong.list[0].place.as_ref().unwrap().span.start;
        assert_eq!(plan[..start].matches('\n').count(), 2, "{wrong}");
    }

    #[test]
    fn one_table_where_several_may_stand_is_told_by_its_header() {
        let expect = "metric = \"bandwidth\"\nat_least = \"1 Gb/s\"\n";
        for (plan, line, words) in [
            (format!("{HEAD}[test]\n{TEST}"), 4, "write [[test]]: a plan may have several tests"),
            (
                format!("{HEAD}[test]\n{TEST}[[test.expect]]\n{expect}"),
                4,
                "write [[test]]: a plan may have several tests",
            ),
            (format!("{HEAD}[[test]]\n{TEST}[test.expect]\n{expect}"), 9, "write [[test.expect]]"),
            (format!("{HEAD}[[test]]\n{TEST}expect = {{ metric = \"bandwidth\" }}\n"), 9, "[[test.expect]]"),
        ] {
            let wrong = parse("p.toml", &plan, Path::new(".")).unwrap_err();
            assert_eq!(wrong.list.len(), 1, "{wrong}");
            let text = wrong.to_string();
            assert!(text.contains(words) && text.contains(&format!("p.toml:{line}:")), "{text}");
        }
    }
}

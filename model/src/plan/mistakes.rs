use std::ops::Range;

use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub name: String,
    pub text: String,
}

impl Source {
    /// Line and column of a byte, both counted from 1; columns count characters.
    pub fn position(&self, byte: usize) -> (usize, usize) {
        let byte = self.text.floor_char_boundary(byte);
        let before = &self.text[..byte];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub source: usize,
    /// First byte and the byte after the last.
    pub span: Span,
}

/// A range that implements `Ord`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mistake {
    /// `None` if it is about the whole file.
    pub place: Option<Place>,
    pub message: String,
    pub label: String,
    pub help: Option<String>,
    pub also: Vec<(Place, String)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Mistakes {
    pub sources: Vec<Source>,
    pub list: Vec<Mistake>,
    pub harmless: bool,
}

/// Most mistakes shown in full; a file that is not a plan at all has thousands.
pub(crate) const SHOWN: usize = 50;

impl Mistakes {
    pub(super) fn whole_file(name: &str, message: String, help: &str) -> Self {
        let mistake = Mistake { place: None, message, label: String::new(), help: Some(help.into()), also: vec![] };
        let source = Source { name: name.into(), text: String::new() };
        Self { sources: vec![source], list: vec![mistake], harmless: false }
    }

    /// About what follows `text`.
    pub(super) fn at_end(name: &str, mut text: String, message: String, help: &str) -> Self {
        let at = text.len();
        text.push(char::REPLACEMENT_CHARACTER);
        let mistake = Mistake::at(at..text.len(), message).help(help);
        Self { sources: vec![Source { name: name.into(), text }], list: vec![mistake], harmless: false }
    }

    pub(super) fn tidy(&mut self) {
        self.list.sort_by(|a, b| (&a.place, &a.message).cmp(&(&b.place, &b.message)));
        self.list.dedup_by(|a, b| (&a.place, &a.message) == (&b.place, &b.message));
    }

    /// For machines: `{"version": 1, "plan", "mistakes": [{file, line, column, end_line, end_column, message, label, help, also}], "notes":
    /// [the same]}`; one of the two lists is empty. Lines and columns count from 1 and are null for the whole file; the end is exclusive.
    pub fn json(&self) -> Value {
        let place = |place: &Option<Place>, message: &str| {
            let source = &self.sources[place.as_ref().map_or(0, |place| place.source)];
            let start = place.as_ref().map(|place| source.position(place.span.start));
            let end = place.as_ref().map(|place| source.position(place.span.end));
            json!({
                "file": source.name, "message": message,
                "line": start.map(|at| at.0), "column": start.map(|at| at.1),
                "end_line": end.map(|at| at.0), "end_column": end.map(|at| at.1),
            })
        };
        let mistakes: Vec<Value> = self
            .list
            .iter()
            .map(|mistake| {
                let mut value = place(&mistake.place, &mistake.message);
                value["label"] = json!(mistake.label);
                value["help"] = json!(mistake.help);
                value["also"] =
                    mistake.also.iter().map(|(at, text)| place(&Some(at.clone()), text)).collect::<Vec<_>>().into();
                value
            })
            .collect();
        let name = self.sources.first().map(|source| source.name.as_str());
        let (mistakes, notes) = if self.harmless { (vec![], mistakes) } else { (mistakes, vec![]) };
        json!({ "version": 1, "plan": name, "mistakes": mistakes, "notes": notes })
    }
}

impl std::fmt::Display for Mistakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Mistakes {}

//! Records mistakes while a plan is read; reading continues, so that all of them are found.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    path::Path,
};

use crate::plan::{Mistake, Mistakes, Place, SHOWN, Source, Wrong, allocation::Allocation, grammar::nearest};

#[derive(Debug)]
pub struct Book<'a> {
    pub text: &'a str,
    pub directory: &'a Path,
    pub allocation: Option<&'a Allocation>,
    sources: RefCell<Vec<Source>>,
    mistakes: RefCell<Vec<Mistake>>,
    notes: RefCell<Vec<Mistake>>,
    names: Cell<usize>,
}

/// Limit of host names of all lists of a plan together: a few bytes of text must not fill the memory.
const MOST_NAMES: usize = 1_000_000;

impl<'a> Book<'a> {
    pub fn new(name: &str, text: &'a str, directory: &'a Path) -> Self {
        let plan = Source { name: name.into(), text: text.into() };
        Self {
            text,
            directory,
            allocation: None,
            sources: vec![plan].into(),
            mistakes: RefCell::default(),
            notes: RefCell::default(),
            names: Cell::new(0),
        }
    }

    pub fn source(&self, name: String, text: String) -> usize {
        let mut sources = self.sources.borrow_mut();
        sources.push(Source { name, text });
        sources.len() - 1
    }

    pub fn add(&self, mistake: Mistake) {
        self.mistakes.borrow_mut().push(mistake);
    }

    /// Adds a mistake in the plan's own text, and what to do about it.
    pub fn wrong(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.add(Mistake::at(span, message).help(help));
    }

    /// [`wrong`](Self::wrong), for what then has no value.
    pub fn reject<T>(&self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Option<T> {
        self.wrong(span, message, help);
        None
    }

    pub fn note(&self, note: Mistake) {
        self.notes.borrow_mut().push(note);
    }

    /// Runs `what` without recording its mistakes; if there are any, undoes it and returns the first message.
    pub fn attempt<T>(&self, what: impl FnOnce() -> T) -> Result<T, (T, String)> {
        let (mistakes, notes) = (self.mistakes.borrow().len(), self.notes.borrow().len());
        let made = what();
        let Some(first) = self.mistakes.borrow().get(mistakes).map(|first| first.message.clone()) else {
            return Ok(made);
        };
        self.mistakes.borrow_mut().truncate(mistakes);
        self.notes.borrow_mut().truncate(notes);
        Err((made, first))
    }

    /// Counts host names that are about to be listed. `false` after reporting that all lists together are too long.
    pub fn afford(&self, names: usize, span: &Range<usize>) -> bool {
        let before = self.names.get();
        self.names.set(before.saturating_add(names));
        let fits = self.names.get() <= MOST_NAMES;
        if !fits && before <= MOST_NAMES {
            let mistake = Mistake::at(span.clone(), "the plan's host lists are too long");
            self.add(
                mistake.help("together they may expand to at most 1000000 names: use fewer hosts, groups or tests"),
            );
        }
        fits
    }

    /// The word of `known` closest to `given`. `None` once there are more mistakes than are shown: a search through ten thousand hosts
    /// takes time.
    pub fn nearest<'b>(&self, given: &str, known: impl IntoIterator<Item = &'b str>) -> Option<&'b str> {
        if self.mistakes.borrow().len() > SHOWN { None } else { nearest(given, known) }
    }

    /// The host or group that was most likely meant: one with the same numbers, because gpu9 is not a typing error for gpu1.
    pub fn nearest_host<'b>(&self, given: &str, known: impl IntoIterator<Item = &'b str>) -> Option<&'b str> {
        let numbers = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
        let wanted = numbers(given);
        self.nearest(given, known.into_iter().filter(|name| numbers(name) == wanted))
    }

    /// From 1.
    pub fn line(&self, byte: usize) -> usize {
        self.text.as_bytes()[..byte.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    pub fn close(self) -> Result<Mistakes, Mistakes> {
        if !self.mistakes.borrow().is_empty() {
            return Err(self.into_mistakes());
        }
        let mut notes = Mistakes { sources: self.sources.into_inner(), list: self.notes.into_inner(), harmless: true };
        notes.tidy();
        Ok(notes)
    }

    pub fn into_mistakes(self) -> Mistakes {
        let mut mistakes =
            Mistakes { sources: self.sources.into_inner(), list: self.mistakes.into_inner(), harmless: false };
        mistakes.tidy();
        mistakes
    }
}

impl Mistake {
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self::in_source(0, span, message)
    }

    pub fn in_source(source: usize, span: Range<usize>, message: impl Into<String>) -> Self {
        let place = Some(Place { source, span: span.into() });
        Self { place, message: message.into(), label: String::new(), help: None, also: Vec::new() }
    }

    /// A grammar's error, in a text that starts at this byte of a source.
    pub fn wrong(source: usize, start: usize, wrong: Wrong) -> Self {
        let wrong = wrong.shifted(start);
        Self::in_source(source, wrong.at, wrong.message).help(wrong.help)
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn also(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.also.push((Place { source: 0, span: span.into() }, label.into()));
        self
    }
}

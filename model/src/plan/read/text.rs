//! Texts of the file with the places of their characters, so that a mistake inside one can be marked exactly.

use std::ops::Range;

use toml::de::DeValue;

use super::book::Book;
use crate::{
    border::text::has_printable_lines,
    plan::{Mistake, Wrong},
};

#[derive(Debug, Clone)]
pub struct Words {
    pub text: String,
    pub span: Range<usize>,
    /// Offset of its first character, if all characters are in the file unescaped.
    start: Option<usize>,
}

impl Words {
    /// `None` if the value is not a string, or after reporting that it cannot be printed.
    pub fn new(book: &Book<'_>, value: &DeValue<'_>, span: Range<usize>) -> Option<Self> {
        let text = value.as_str()?.to_owned();
        // Everything printed of a plan, also from a journal, passes this check.
        if !has_printable_lines(&text) {
            let message = "a string with an invisible or control character";
            return book.reject(span, message, "remove the character; if a program needs it, put it into a script");
        }
        // After the quote, unless there are escapes, three quotes, or it is a default that is not in the file.
        let written = book.text.get(span.clone()).unwrap_or_default();
        let same = written.get(1..written.len().saturating_sub(1)) == Some(text.as_str());
        Some(Self { start: same.then_some(span.start + 1), text, span })
    }

    /// Also of a number, as it is written.
    pub fn of_number(book: &Book<'_>, value: &DeValue<'_>, span: Range<usize>) -> Option<Self> {
        match value {
            DeValue::Integer(_) | DeValue::Float(_) => {
                let text = book.text.get(span.clone())?.to_owned();
                Some(Self { start: Some(span.start), text, span })
            }
            value => Self::new(book, value, span),
        }
    }

    /// A grammar's error: at the exact characters if possible, otherwise the whole text.
    pub fn mistake(&self, wrong: Wrong) -> Mistake {
        match self.start {
            Some(start) if !wrong.at.is_empty() => Mistake::wrong(0, start, wrong),
            _ => Mistake::at(self.span.clone(), wrong.message).help(wrong.help),
        }
    }
}

/// The texts of a value; one text is a list of one.
pub fn texts_of(book: &Book<'_>, value: &DeValue<'_>, span: Range<usize>) -> Vec<Words> {
    match value {
        DeValue::Array(list) => {
            list.iter().filter_map(|value| Words::new(book, value.get_ref(), value.span())).collect()
        }
        value => Words::new(book, value, span).into_iter().collect(),
    }
}

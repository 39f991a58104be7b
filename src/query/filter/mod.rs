//! Filters over the columns of the frame: a small part of SQL's search conditions, with the three values of its logic.
//!
//! ```text
//! filter     = and { "or" and }
//! and        = not { "and" not }
//! not        = "not" not | "(" filter ")" | condition
//! condition  = operand ( "=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) operand
//!            | column [ "not" ] "in" "(" constant { "," constant } ")"
//!            | column [ "not" ] "like" text
//!            | column "is" [ "not" ] "null"
//! operand    = product { ( "+" | "-" ) product }
//! product    = factor { ( "*" | "/" ) factor }
//! factor     = "-" factor | "(" operand ")" | column | number | text
//! ```

mod evaluate;
mod lex;
mod like;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use railgauge_model::border::wrong::Wrong;

pub(super) use parse::columns_like;
pub use parse::filter;

/// What is wrong with a filter, with the place in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}\n  {text}\n  {}{} {}", wrong.message, " ".repeat(before(text, wrong)), "^".repeat(length(text, wrong)), wrong.help)]
pub struct FilterError {
    /// The filter.
    pub text: String,
    /// What is wrong, and where.
    pub wrong: Wrong,
}

/// Characters before the place.
fn before(text: &str, wrong: &Wrong) -> usize {
    text.get(..wrong.at.start).map_or(0, |before| before.chars().count())
}

/// Characters of the place; one at the end of the text.
fn length(text: &str, wrong: &Wrong) -> usize {
    text.get(wrong.at.clone()).map_or(1, |at| at.chars().count().max(1))
}

/// A filter whose columns exist and whose comparisons are of values of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Filter {
    /// All of these.
    And(Vec<Filter>),
    /// One of these at least.
    Or(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
    /// Numbers that are compared.
    Numbers(Number, Order, Number),
    /// Texts that are compared, by the numbers of their characters.
    Texts(Text, Order, Text),
    /// Points in time that are compared.
    Times(Time, Order, Time),
    /// A column of text has one of these.
    InTexts(String, Vec<String>),
    /// A column of numbers has one of these.
    InNumbers(String, Vec<f64>),
    /// A column of text is like a pattern.
    Like(String, String),
    /// A column has no value.
    Null(String),
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// `=`
    Same,
    /// `!=`
    Other,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `>=`
    AtLeast,
}

/// A number that is computed for each row.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// Always this.
    Constant(f64),
    /// What a column holds.
    Column(String),
    /// With the other sign.
    Negative(Box<Number>),
    /// Two numbers and what is done with them.
    Of(Box<Number>, Arithmetic, Box<Number>),
}

/// What is done with two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Times,
    /// `/`
    Over,
}

/// A text of each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// Always this.
    Constant(String),
    /// What a column holds.
    Column(String),
}

/// A point in time of each row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Time {
    /// Always this.
    Constant(jiff::Timestamp),
    /// What a column holds.
    Column(String),
}

impl Filter {
    /// Columns that it reads.
    pub fn columns(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        self.gather(&mut found);
        found
    }

    fn gather<'f>(&'f self, found: &mut BTreeSet<&'f str>) {
        match self {
            Self::And(all) | Self::Or(all) => all.iter().for_each(|one| one.gather(found)),
            Self::Not(one) => one.gather(found),
            Self::Numbers(left, _, right) => [left, right].into_iter().for_each(|number| number.gather(found)),
            Self::Texts(left, _, right) => {
                found.extend([left, right].into_iter().filter_map(|text| match text {
                    Text::Column(name) => Some(name.as_str()),
                    Text::Constant(_) => None,
                }));
            }
            Self::Times(left, _, right) => {
                found.extend([left, right].into_iter().filter_map(|time| match time {
                    Time::Column(name) => Some(name.as_str()),
                    Time::Constant(_) => None,
                }));
            }
            Self::InTexts(name, _) | Self::InNumbers(name, _) | Self::Like(name, _) | Self::Null(name) => {
                found.insert(name);
            }
        }
    }
}

impl Number {
    fn gather<'f>(&'f self, found: &mut BTreeSet<&'f str>) {
        match self {
            Self::Constant(_) => {}
            Self::Column(name) => _ = found.insert(name),
            Self::Negative(one) => one.gather(found),
            Self::Of(left, _, right) => [left, right].into_iter().for_each(|one| one.gather(found)),
        }
    }
}

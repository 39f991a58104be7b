//! Which rows a filter keeps. A comparison with null is neither true nor false, as in SQL, and such a row is not kept.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::{Arithmetic, Filter, Number, Order, Text, Time, like::like};
use crate::analysis::frame::{self, Cells, Frame, FrameError};

/// True, false, or unknown, for each row.
type Truths = Vec<Option<bool>>;

impl Filter {
    /// For each row of a frame whether it is kept.
    ///
    /// # Errors
    /// The frame lacks a column of [`Filter::columns`].
    pub fn keeps(&self, frame: &Frame) -> Result<Vec<bool>, FrameError> {
        Ok(self.truths(frame)?.into_iter().map(|truth| truth == Some(true)).collect())
    }

    fn truths(&self, frame: &Frame) -> Result<Truths, FrameError> {
        Ok(match self {
            Self::And(all) => joined(frame, all, false)?,
            Self::Or(all) => joined(frame, all, true)?,
            Self::Not(one) => one.truths(frame)?.into_iter().map(|truth| truth.map(|truth| !truth)).collect(),
            Self::Numbers(left, order, right) => {
                let (left, right) = (left.values(frame)?, right.values(frame)?);
                let pairs = left.into_iter().zip(right);
                pairs.map(|(left, right)| order.holds(left?.partial_cmp(&right?)?).into()).collect()
            }
            Self::Texts(left, order, right) => {
                let (left, right) = (left.values(frame)?, right.values(frame)?);
                left.into_iter().zip(right).map(|(left, right)| order.holds(left?.cmp(right?)).into()).collect()
            }
            Self::Times(left, order, right) => {
                let (left, right) = (left.values(frame)?, right.values(frame)?);
                left.into_iter().zip(right).map(|(left, right)| order.holds(left?.cmp(&right?)).into()).collect()
            }
            Self::InTexts(column, known) => {
                let held = texts(frame, column)?.into_iter();
                held.map(|text| text.map(|text| known.iter().any(|one| one == text))).collect()
            }
            Self::InNumbers(column, known) => {
                numbers(frame, column)?.into_iter().map(|number| number.map(|number| known.contains(&number))).collect()
            }
            Self::Like(column, pattern) => {
                texts(frame, column)?.into_iter().map(|text| text.map(|text| like(text, pattern))).collect()
            }
            Self::Null(column) => nulls(&frame::cells(frame, column)?),
        })
    }
}

/// `and` and `or`: the value that decides is enough, else what is unknown stays so.
fn joined(frame: &Frame, all: &[Filter], decides: bool) -> Result<Truths, FrameError> {
    let mut truths = vec![Some(!decides); frame.height()];
    for one in all {
        for (truth, other) in truths.iter_mut().zip(one.truths(frame)?) {
            *truth = match (*truth, other) {
                (Some(truth), _) | (_, Some(truth)) if truth == decides => Some(decides),
                (Some(_), other) => other,
                (None, _) => None,
            };
        }
    }
    Ok(truths)
}

impl Order {
    fn holds(self, found: Ordering) -> bool {
        match self {
            Self::Same => found.is_eq(),
            Self::Other => found.is_ne(),
            Self::Less => found.is_lt(),
            Self::AtMost => found.is_le(),
            Self::More => found.is_gt(),
            Self::AtLeast => found.is_ge(),
        }
    }
}

impl Number {
    fn values(&self, frame: &Frame) -> Result<Vec<Option<f64>>, FrameError> {
        Ok(match self {
            Self::Constant(number) => vec![Some(*number); frame.height()],
            Self::Column(column) => numbers(frame, column)?,
            Self::Negative(one) => one.values(frame)?.into_iter().map(|number| number.map(|number| -number)).collect(),
            Self::Of(left, what, right) => {
                let pairs = left.values(frame)?.into_iter().zip(right.values(frame)?);
                pairs.map(|(left, right)| Some(what.of(left?, right?)).filter(|value| value.is_finite())).collect()
            }
        })
    }
}

impl Arithmetic {
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Plus => left + right,
            Self::Minus => left - right,
            Self::Times => left * right,
            Self::Over => left / right,
        }
    }
}

impl Text {
    fn values<'f>(&'f self, frame: &'f Frame) -> Result<Vec<Option<&'f str>>, FrameError> {
        match self {
            Self::Constant(text) => Ok(vec![Some(text.as_str()); frame.height()]),
            Self::Column(column) => texts(frame, column),
        }
    }
}

impl Time {
    fn values(&self, frame: &Frame) -> Result<Vec<Option<Timestamp>>, FrameError> {
        match self {
            Self::Constant(time) => Ok(vec![Some(*time); frame.height()]),
            Self::Column(column) => match frame::cells(frame, column)? {
                Cells::Time(times) => Ok(times),
                other => Ok(vec![None; length(&other)]),
            },
        }
    }
}

/// A column of text. The parser asks for no other column so.
fn texts<'f>(frame: &'f Frame, column: &str) -> Result<Vec<Option<&'f str>>, FrameError> {
    Ok(match frame::cells(frame, column)? {
        Cells::Text(texts) => texts,
        other => vec![None; length(&other)],
    })
}

/// A column of numbers. Whole ones above 2^53 are rounded.
fn numbers(frame: &Frame, column: &str) -> Result<Vec<Option<f64>>, FrameError> {
    Ok(match frame::cells(frame, column)? {
        Cells::Real(numbers) => numbers,
        Cells::Whole(numbers) => numbers.into_iter().map(|number| number.map(|number| number as f64)).collect(),
        other => vec![None; length(&other)],
    })
}

fn nulls(cells: &Cells<'_>) -> Truths {
    match cells {
        Cells::Text(all) => all.iter().map(|value| Some(value.is_none())).collect(),
        Cells::Whole(all) => all.iter().map(|value| Some(value.is_none())).collect(),
        Cells::Real(all) => all.iter().map(|value| Some(value.is_none())).collect(),
        Cells::Time(all) => all.iter().map(|value| Some(value.is_none())).collect(),
    }
}

fn length(cells: &Cells<'_>) -> usize {
    nulls(cells).len()
}

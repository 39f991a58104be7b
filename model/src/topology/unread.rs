use serde::de::DeserializeOwned;

use crate::border::{self, Refusal, text::printable};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("line {line}: {why}")]
    Line {
        /// From 1.
        line: usize,
        why: String,
    },
    #[error("{0}")]
    Whole(String),
}

impl Unread {
    pub fn line(line: usize, why: impl Into<String>) -> Self {
        Self::Line { line, why: why.into() }
    }
}

pub(super) fn json<T: DeserializeOwned>(text: &str) -> Result<T, Unread> {
    border::read(text.as_bytes()).map_err(|refusal| match refusal {
        Refusal::Shape(error) if error.line() > 0 => Unread::line(error.line(), printable(&error.to_string())),
        other => Unread::Whole(printable(&other.to_string())),
    })
}

/// Most cables of one source: three levels of switches with 64 ports join 65,536 hosts by 196,608.
pub const MOST_CABLES: usize = 1 << 20;

/// Most remarks on one source; the last gives the number of further ones.
const MOST_REMARKS: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Remarks {
    kept: Vec<String>,
    more: usize,
}

impl Remarks {
    pub fn add(&mut self, remark: String) {
        if self.kept.len() < MOST_REMARKS {
            self.kept.push(remark);
        } else {
            self.more += 1;
        }
    }

    pub fn list(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("{} more remarks", self.more));
        }
        self.kept
    }
}

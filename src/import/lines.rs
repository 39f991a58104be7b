//! Lines with their numbers. Removes prefixes of `mpirun` and `srun`, and separates the lines of every rank or task.

use std::collections::BTreeMap;

use super::ImportError;

const MOST_STREAMS: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub file: &'t str,
    /// Its number in the file, from 1.
    pub number: u64,
    pub text: &'t str,
}

impl<'t> Line<'t> {
    pub(super) fn words(self) -> Vec<&'t str> {
        self.text.split_whitespace().collect()
    }

    pub(super) fn malformed(self, expected: impl AsRef<str>) -> ImportError {
        self.wrong(expected, self.text)
    }

    /// One word of the line is not what it should be.
    pub(super) fn wrong(self, expected: impl AsRef<str>, word: &str) -> ImportError {
        ImportError::malformed(self.file, self.number, expected, word)
    }

    pub(super) fn unsupported(self, what: &str, known: impl AsRef<str>) -> ImportError {
        ImportError::unsupported(self.file, self.number, what, known)
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Lines<'t> {
    pub file: &'t str,
    lines: Vec<Line<'t>>,
}

impl<'t> Lines<'t> {
    pub(super) fn all(&self) -> &[Line<'t>] {
        &self.lines
    }

    pub(super) fn last(&self) -> u64 {
        self.lines.last().map_or(1, |line| line.number)
    }

    pub(super) fn truncated(&self, expected: impl AsRef<str>) -> ImportError {
        ImportError::truncated(self.file, self.last(), expected)
    }
}

pub(super) fn streams<'t>(file: &'t str, text: &'t str) -> Result<Vec<Lines<'t>>, ImportError> {
    let filled = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_srun = filled().next().is_some() && filled().all(|line| of_srun(line).is_some());
    let mut streams: BTreeMap<&str, Vec<Line<'t>>> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let (label, text) = if is_srun { of_srun(line) } else { of_mpirun(line) }.unwrap_or(("", line));
        streams.entry(label).or_default().push(Line { file, number, text: text.trim() });
        if streams.len() > MOST_STREAMS {
            return Err(ImportError::malformed(file, number, format!("at most {MOST_STREAMS} ranks"), line));
        }
    }
    Ok(streams.into_values().map(|lines| Lines { file, lines }).collect())
}

/// `0: text`, as `srun -l` writes it.
fn of_srun(line: &str) -> Option<(&str, &str)> {
    let (task, text) = line.split_once(':')?;
    (!task.is_empty() && task.bytes().all(|byte| byte.is_ascii_digit())).then_some((task, text))
}

/// What `mpirun` writes before the text: `[1,0]<stdout>:` with `--tag-output` of Open MPI 4; of 5 also `[0]<stdout>: ` (`--output
/// rank`), `[1,0][host:pid]<stdout>: ` (`tag-detailed`) and `[prterun-host-7@1,0]<stdout>: ` (`tag-fullname`).
fn of_mpirun(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rank = inside.rsplit_once(',').map_or(inside, |(_, rank)| rank);
    let is_rank = !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit());
    let rest = match rest.strip_prefix('[') {
        Some(process) => process.split_once(']')?.1,
        None => rest,
    };
    let text = rest.strip_prefix("<stdout>")?;
    is_rank.then(|| (inside, text.strip_prefix(':').unwrap_or(text)))
}

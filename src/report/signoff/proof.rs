//! Whether the files of a run directory are those that its records make, and whether the records are those that somebody noted.
//!
//! Every line of the journal has a check sum, and its lines are numbered: that finds damage, and no forgery. A forgery is found by the
//! SHA-256 of the records, if it was noted where the forger could not change it: on the sign-off.

use std::{fs, io, path::Path};

use railgauge_model::directory::{FACTS, FRAME, JOURNAL, JUNIT, PAGE, PLAN, VERDICTS};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{bytes, view::Hash};
use crate::{
    analysis::journal,
    report::{ReportError, write},
};

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sameness {
    /// Byte for byte what it has to be.
    Same,
    /// Something else. A file that another version of railgauge drew differs as well.
    Differs,
    /// It is not there.
    Missing,
}

/// A file and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Its name in the run directory.
    pub file: String,
    /// What became of it.
    pub state: Sameness,
    /// What it was compared with, in words.
    pub with: &'static str,
}

/// What was proven of a run directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Version of this document.
    pub version: u32,
    /// Identity of the run.
    pub run_id: String,
    /// SHA-256 of the records, hexadecimal.
    pub records_sha256: String,
    /// Whether that is the hash that was noted; absent where none was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_noted: Option<bool>,
    /// Lines of the records that are damaged or missing and were not made good for, or that contradict each other.
    pub troubles: Vec<String>,
    /// The other files.
    pub files: Vec<Checked>,
    /// The version of railgauge that measured, and the one that checked.
    pub versions: [String; 2],
}

impl Proof {
    /// Whether everything is as it has to be.
    pub fn holds(&self) -> bool {
        let same = self.files.iter().all(|file| file.state == Sameness::Same);
        self.as_noted != Some(false) && self.troubles.is_empty() && same
    }

    /// Whether something was changed, as far as can be told: the records are not those that were noted, or a plan is not that of the
    /// records.
    pub fn is_refuted(&self) -> bool {
        let differs = |file: &Checked| file.state == Sameness::Differs;
        self.as_noted == Some(false) || !self.troubles.is_empty() || self.files.iter().any(differs)
    }
}

/// SHA-256 of some bytes, hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The hashes of what a run consists of.
pub(super) fn hashes(run: &Path) -> Result<Vec<Hash>, ReportError> {
    let mut hashes = Vec::new();
    for file in [JOURNAL, PLAN, FACTS] {
        let sha256 = bytes(&run.join(file))?.map(|bytes| sha256(&bytes));
        hashes.push(Hash { file: file.to_owned(), sha256 });
    }
    Ok(hashes)
}

/// Draws the files of a run directory again, elsewhere, and compares them. `noted` is the SHA-256 that the records have to have.
///
/// # Errors
/// The records cannot be read or contradict themselves, or there is no space to draw in.
pub fn proof(run: &Path, noted: Option<&str>) -> Result<Proof, ReportError> {
    let path = run.join(JOURNAL);
    let file = |cause: io::Error| ReportError::File { path: path.clone(), cause };
    let records = bytes(&path)?.ok_or_else(|| file(io::ErrorKind::NotFound.into()))?;
    let elsewhere = tempfile::tempdir().map_err(file)?;
    fs::write(elsewhere.path().join(JOURNAL), &records).map_err(file)?;
    let journal = journal::read(&elsewhere.path().join(JOURNAL))?;
    write(elsewhere.path())?;
    let mut files = vec![Checked {
        file: PLAN.to_owned(),
        state: match bytes(&run.join(PLAN))? {
            None => Sameness::Missing,
            Some(plan) if sha256(&plan) == journal.plan_hash => Sameness::Same,
            Some(_) => Sameness::Differs,
        },
        with: "the hash in the records",
    }];
    for name in [FRAME, VERDICTS, JUNIT, PAGE] {
        let state = match bytes(&run.join(name))? {
            None => Sameness::Missing,
            found if found == bytes(&elsewhere.path().join(name))? => Sameness::Same,
            Some(_) => Sameness::Differs,
        };
        files.push(Checked { file: name.to_owned(), state, with: "what the records make" });
    }
    let damaged = journal.unhealed().map(|damage| format!("line {}: {}", damage.line, damage.what));
    let contradictions = journal.contradictions.iter().map(|found| format!("line {}: {}", found.line, found.what));
    let records_sha256 = sha256(&records);
    Ok(Proof {
        version: 1,
        as_noted: noted.map(|noted| noted.eq_ignore_ascii_case(&records_sha256)),
        records_sha256,
        troubles: damaged.chain(contradictions).collect(),
        files,
        versions: [journal.version.clone(), env!("CARGO_PKG_VERSION").to_owned()],
        run_id: journal.run_id,
    })
}

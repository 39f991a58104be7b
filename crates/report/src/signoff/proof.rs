//! Whether the files of a run directory follow from its records, and whether the records have a noted hash.
//!
//! Every line of the journal has a checksum and a number: that finds damage, but not forgery. A forgery is found by the
//! SHA-256 of the records, noted where the forger cannot change it: on the sign-off.

use std::{collections::BTreeMap, fs, io, path::Path};

use railgauge_analysis::{
    frames::FrameFile,
    journal::{self, Journal, plan_hash},
};
use railgauge_model::{
    border::text::path_text,
    directory::{FACTS, FRAME, JOURNAL, JUNIT, PAGE, PLAN, VERDICTS},
    files,
};
use railgauge_wire::HostFacts;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::view::Hash;
use crate::{ReportError, write};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sameness {
    /// Byte for byte.
    Same,
    Differs,
    OtherVersion,
    Missing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    pub file: String,
    pub state: Sameness,
    pub with: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proof {
    pub version: u32,
    pub run_id: String,
    pub records_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_noted: Option<bool>,
    pub troubles: Vec<String>,
    pub files: Vec<Checked>,
    pub versions: [String; 2],
}

impl Proof {
    pub fn holds(&self) -> bool {
        let same = self.files.iter().all(|file| file.state == Sameness::Same);
        self.as_noted != Some(false) && self.troubles.is_empty() && same
    }

    /// Whether a change was found: the records differ from the noted hash, or a plan from the records.
    pub fn is_refuted(&self) -> bool {
        let differs = |file: &Checked| file.state == Sameness::Differs;
        self.as_noted == Some(false) || !self.troubles.is_empty() || self.files.iter().any(differs)
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

pub(super) fn hashes(run: &Path) -> Result<Vec<Hash>, ReportError> {
    let mut hashes = Vec::new();
    for file in [JOURNAL, PLAN, FACTS] {
        let sha256 = bytes(&run.join(file))?.map(|bytes| sha256(&bytes));
        hashes.push(Hash { file: file.to_owned(), sha256 });
    }
    Ok(hashes)
}

/// Regenerates the files of a run directory elsewhere and compares them. `noted` is the expected SHA-256 of the records.
///
/// # Errors
/// A file cannot be read, or there is no disk space. Unusable records are not an error but a result.
pub fn proof(run: &Path, noted: Option<&str>, frames: &dyn FrameFile) -> Result<Proof, ReportError> {
    let path = run.join(JOURNAL);
    let unread = || ReportError::Unread { path: path.clone(), cause: io::ErrorKind::NotFound.into() };
    let records = bytes(&path)?.ok_or_else(unread)?;
    let records_sha256 = sha256(&records);
    let as_noted = noted.map(|noted| noted.eq_ignore_ascii_case(&records_sha256));
    let elsewhere = tempfile::tempdir().map_err(ReportError::Elsewhere)?;
    fs::write(elsewhere.path().join(JOURNAL), &records).map_err(ReportError::Elsewhere)?;
    let drawn = journal::read(&elsewhere.path().join(JOURNAL)).map_err(ReportError::from);
    let drawn = drawn.and_then(|journal| write(elsewhere.path(), frames).map(|_| journal));
    let own = env!("CARGO_PKG_VERSION");
    let journal = match drawn {
        Ok(journal) => journal,
        // Unusable records are a result, and so is their hash.
        Err(error) => {
            let inner = path_text(elsewhere.path()).to_string();
            let trouble = error.to_string().replace(&format!("{inner}/"), "");
            let versions = [String::new(), own.to_owned()];
            let (run_id, files) = (String::new(), Vec::new());
            return Ok(Proof {
                version: 1,
                run_id,
                records_sha256,
                as_noted,
                troubles: vec![trouble],
                files,
                versions,
            });
        }
    };
    let same = |is_same: bool| if is_same { Sameness::Same } else { Sameness::Differs };
    let state_of = |name: &str, judge: &dyn Fn(&[u8]) -> Sameness| -> Result<Sameness, ReportError> {
        Ok(bytes(&run.join(name))?.map_or(Sameness::Missing, |found| judge(&found)))
    };
    let mut files = vec![
        Checked {
            file: PLAN.to_owned(),
            state: state_of(PLAN, &|found| same(plan_hash(found, journal.plan.subset.as_ref()) == journal.plan_hash))?,
            with: "the hash in the records",
        },
        Checked {
            file: FACTS.to_owned(),
            state: state_of(FACTS, &|found| same(are_facts_of(found, &journal)))?,
            with: "the facts in the records",
        },
    ];
    for name in [FRAME, VERDICTS, JUNIT, PAGE] {
        let made = bytes(&elsewhere.path().join(name))?;
        let judge = |found: &[u8]| match same(made.as_deref() == Some(found)) {
            Sameness::Differs if journal.version != own => Sameness::OtherVersion,
            state => state,
        };
        files.push(Checked { file: name.to_owned(), state: state_of(name, &judge)?, with: "what the records make" });
    }
    let damaged = journal.unhealed().map(|damage| format!("line {}: {}", damage.line, damage.what));
    let contradictions = journal.contradictions.iter().map(|found| format!("line {}: {}", found.line, found.what));
    Ok(Proof {
        version: 1,
        as_noted,
        records_sha256,
        troubles: damaged.chain(contradictions).collect(),
        files,
        versions: [journal.version.clone(), own.to_owned()],
        run_id: journal.run_id,
    })
}

/// Whether a file has the hosts' facts of the records. A resumed run writes those of its last hosts.
fn are_facts_of(found: &[u8], journal: &Journal) -> bool {
    let Ok(facts) = serde_json::from_slice::<BTreeMap<String, HostFacts>>(found) else { return false };
    let known = |(host, facts): (&String, &HostFacts)| journal.hosts.get(host).is_some_and(|up| up.facts == *facts);
    (journal.resumed > 0 || facts.len() == journal.hosts.len()) && facts.iter().all(known)
}

/// `None` without the file.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>, ReportError> {
    match files::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(ReportError::Unread { path: path.to_owned(), cause }),
    }
}

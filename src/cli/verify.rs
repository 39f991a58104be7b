//! `railgauge verify RUN`: whether the files of a run directory are those that its records make, and the records those that were signed.

use std::path::PathBuf;

use railgauge_model::directory::JOURNAL;

use super::{Common, Exit, Misuse, common::run_directory};
use crate::{
    analysis::{imported, journal::JournalError},
    report::signoff::{Proof, Sameness, proof},
};

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run directory, which holds records.jsonl
    run: PathBuf,
    /// SHA-256 that records.jsonl has to have, as it stands on the sign-off
    #[arg(long, value_name = "HASH")]
    records: Option<String>,
    /// Print the result as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Draws everything again, elsewhere, and compares. Ends with 1 if something was changed, and with 3 if something is missing or cannot
/// be compared.
///
/// # Errors
/// The directory is not a run directory, its records cannot be read, or nothing can be drawn here.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    run_directory(&args.run)?;
    if let Some(noted) = &args.records
        && (noted.len() != 64 || !noted.chars().all(|c| c.is_ascii_hexdigit()))
    {
        return Err(Misuse("--records takes the SHA-256 of records.jsonl: 64 hexadecimal digits".to_owned()).into());
    }
    let journal = args.run.join(JOURNAL);
    if let Ok(Some(imported)) = imported::read(&journal) {
        return Err(JournalError::Imported { path: journal, tools: imported.tools() }.into());
    }
    let proof = proof(&args.run, args.records.as_deref())?;
    common.answer(args.json, &proof, proof.holds(), |_| text(&proof))?;
    Ok(match (proof.holds(), proof.is_refuted()) {
        (true, _) => Exit::Passed,
        (_, true) => Exit::Failed,
        _ => Exit::Inconclusive,
    })
}

fn text(proof: &Proof) -> String {
    let mut text = String::new();
    for checked in &proof.files {
        let state = match checked.state {
            Sameness::Same => "same",
            Sameness::Differs => "DIFFERS",
            Sameness::OtherVersion => "UNKNOWN",
            Sameness::Missing => "MISSING",
        };
        text += &format!("{state:<8} {}, compared with {}\n", checked.file, checked.with);
    }
    text += &match proof.as_noted {
        Some(true) => "same     records.jsonl, compared with the hash that was given\n".to_owned(),
        Some(false) => format!("DIFFERS  records.jsonl: its SHA-256 is {}\n", proof.records_sha256),
        None => format!("SHA-256 of records.jsonl: {} (compare it with --records)\n", proof.records_sha256),
    };
    for trouble in &proof.troubles {
        text += &format!("DAMAGED  records.jsonl, {trouble}\n");
    }
    let [measured, own] = &proof.versions;
    if proof.files.iter().any(|checked| checked.state == Sameness::OtherVersion) {
        text += &format!("The run was measured by railgauge {measured}, and this is {own}, which draws other files.\n");
    }
    text
}

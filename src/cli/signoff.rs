//! `railgauge signoff RUN`: one page to hand over, rendered from the records of a run, and the proof that it and the run's files match them.

use std::path::PathBuf;

use railgauge_analysis::{imported, journal::JournalError};
use railgauge_frame::Parquet;
use railgauge_model::{border::text::path_text, directory::JOURNAL, plan::count::count};
use railgauge_report::signoff::{self, Proof, Sameness, proof};

use super::{Common, Exit, Misuse, SIGNOFFS, report::exit_of, run_directory, write_page};

/// Arguments of `signoff`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run directory, which holds records.jsonl
    run: PathBuf,
    /// The page to write [default: reports/signoff-<UTC time>.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write no page: verify that the files of the run are those that its records make
    #[arg(long, conflicts_with = "output")]
    verify: bool,
    /// With --verify: SHA-256 that records.jsonl must have, as the sign-off shows it
    #[arg(long, value_name = "HASH", requires = "verify")]
    records: Option<String>,
    /// Print what is on the page, or was verified, as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Writes the page and ends as the run's verdicts do, or verifies the run.
///
/// # Errors
/// The directory is not a run directory, its records cannot be read, or the page cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    run_directory(&args.run)?;
    if args.verify {
        return verify(&args, common);
    }
    let (view, page) = write_page(args.output, "signoff", &SIGNOFFS, |page| signoff::write(&args.run, page))?;
    common.answer(args.json, &view, |screen| {
        screen.answer(view.status, &view.sentence) + &format!("sign-off: {}\n", path_text(&page))
    })?;
    Ok(exit_of(view.status))
}

/// Renders everything again, elsewhere, and compares.
fn verify(args: &Args, common: &Common) -> anyhow::Result<Exit> {
    if let Some(noted) = &args.records
        && (noted.len() != 64 || !noted.chars().all(|c| c.is_ascii_hexdigit()))
    {
        return Err(Misuse("--records takes the SHA-256 of records.jsonl: 64 hexadecimal digits".to_owned()).into());
    }
    let journal = args.run.join(JOURNAL);
    if let Ok(Some(imported)) = imported::read(&journal) {
        return Err(JournalError::Imported { path: journal, tools: imported.tools() }.into());
    }
    let proof = proof(&args.run, args.records.as_deref(), &Parquet)?;
    common.answer(args.json, &proof, |_| text(&proof))?;
    Ok(match (proof.holds(), proof.is_refuted()) {
        (true, _) => Exit::Passed,
        (_, true) => Exit::Failed,
        _ => Exit::Inconclusive,
    })
}

fn text(proof: &Proof) -> String {
    let same = proof.files.iter().filter(|checked| checked.state == Sameness::Same).count();
    let word = if proof.holds() { "VERIFIED" } else { "NOT VERIFIED" };
    let mut text = format!("{word}  {same} of {} are as the records give them\n", count(proof.files.len(), "file"));
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
        text +=
            &format!("The run was measured by railgauge {measured}, and this is {own}, which writes other files.\n");
    }
    text
}

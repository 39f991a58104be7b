//! The rates that `docs/methods.md` promises, measured on noise that is drawn here: `bench/judgement` runs this.
//!
//! ```text
//! judgement [--seed N] [--quick] [--only SECTION] [-o FILE]
//! ```
//!
//! Every row is a rate or a figure with its bar. `--quick` draws fewer runs and keeps the bars.

mod compare;
mod localise;
mod noise;
mod row;
mod trend;

use std::{fs, process::ExitCode};

use row::{Options, Row, summary, table};

/// A section of the benchmark: its name, and what measures it.
type Section = (&'static str, fn(&Options) -> Vec<Row>);

const SECTIONS: [Section; 5] = [
    ("trend", trend::rows),
    ("compare", compare::rows),
    ("localise", localise::rows),
    ("wider", localise::wider::rows),
    ("nights", trend::nights),
];

fn main() -> ExitCode {
    let (options, only, file) = match arguments() {
        Ok(given) => given,
        Err(wrong) => {
            eprintln!("judgement: {wrong}\nusage: judgement [--seed N] [--quick] [--only SECTION] [-o FILE]");
            return ExitCode::from(2);
        }
    };
    let chosen =
        SECTIONS.iter().filter(|(name, _)| only.as_deref().map_or(*name != "nights", |wanted| wanted == *name));
    let rows: Vec<Row> = chosen.flat_map(|(_, measure)| measure(&options)).collect();
    print!("{}", table(&rows));
    if let Some(file) = file
        && let Err(error) = fs::write(&file, row::json(&rows))
    {
        eprintln!("judgement: {file} cannot be written: {error}");
        return ExitCode::from(2);
    }
    let name = only.filter(|name| name == "nights").unwrap_or_else(|| "judgement".to_owned());
    let (line, met) = summary(&name, &rows);
    println!("{line}");
    ExitCode::from(u8::from(!met))
}

fn arguments() -> Result<(Options, Option<String>, Option<String>), String> {
    let (mut options, mut only, mut file) = (Options { seed: 1, quick: false }, None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} takes a value"));
        match word.as_str() {
            "--seed" => options.seed = value()?.parse().map_err(|_| "--seed takes a whole number".to_owned())?,
            "--quick" => options.quick = true,
            "--only" => only = Some(value()?),
            "-o" => file = Some(value()?),
            _ => return Err(format!("{word} is not an option")),
        }
    }
    match &only {
        Some(wanted) if SECTIONS.iter().all(|(name, _)| name != wanted) => Err(format!("{wanted} is not a section")),
        _ => Ok((options, only, file)),
    }
}

//! Makes fixtures of a kit (`docs/dev/bundle.md`): `cargo run --example kit_fixture -- ARCHIVE NAME [FOLDER]`.
//!
//! For every host with files it writes `agent/tests/hosts/NAME-HOST.host` and `tests/hosts/NAME-HOST.json`, below this repository or
//! FOLDER. A kit comes from somebody else: it is read with care, and a file that is there is not replaced.
#![allow(missing_docs, reason = "a program")]

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

#[path = "fixture_of_kit.rs"]
mod fixture_of_kit;
#[path = "read_kit.rs"]
mod read_kit;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (kit, name, folder) = match arguments.as_slice() {
        [kit, name] => (kit, name, PathBuf::from(env!("CARGO_MANIFEST_DIR"))),
        [kit, name, folder] => (kit, name, PathBuf::from(folder)),
        _ => {
            eprintln!("usage: kit_fixture ARCHIVE NAME [FOLDER]");
            return ExitCode::from(2);
        }
    };
    match write(Path::new(kit), name, &folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(kit: &Path, name: &str, folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err("NAME has letters, digits and `-` only".into());
    }
    let (manifest, items) = read_kit::read(fs::File::open(kit)?)?;
    for fixture in fixture_of_kit::fixtures(&manifest, &items)? {
        let stem = format!("{name}-{}", fixture.host);
        let document = serde_json::to_string_pretty(&fixture.facts)? + "\n";
        for (place, text) in [("agent/tests/hosts", &fixture.text), ("tests/hosts", &document)] {
            let end = if place == "tests/hosts" { "json" } else { "host" };
            let path = folder.join(place).join(format!("{stem}.{end}"));
            fs::create_dir_all(folder.join(place))?;
            let new = OpenOptions::new().write(true).create_new(true).open(&path);
            new.map_err(|error| format!("{}: {error}", path.display()))?.write_all(text.as_bytes())?;
            println!("{}", path.display());
        }
        println!("  drivers: {}; left out: {} files", fixture.drivers.join(", "), fixture.skipped.len());
    }
    println!(
        "next: add the names to HOSTS of agent/src/facts/tests/hosts.rs, and the drivers to PROVEN of crates/analysis/src/proven.rs"
    );
    Ok(())
}

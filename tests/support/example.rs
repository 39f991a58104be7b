//! Examples that tests need: built where they are not.

use std::{fs, path::PathBuf, process::Command};

/// The folder of a package's examples, with `name` in it. Cargo builds examples for `cargo test`, but not for
/// `cargo test --test NAME`, so cargo is asked, once for each run of cargo-nextest. `./test` has built all of them, and says so.
pub fn folder_with(package: &str, name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let built = profile.join("examples");
    let is_there = built.join(name).exists() || built.join(format!("lib{name}.so")).exists();
    let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_default();
    let note = built.join(format!("{name}.built-for"));
    let for_this_run = !run.is_empty() && fs::read_to_string(&note).is_ok_and(|noted| noted == run);
    if is_there && (for_this_run || std::env::var_os("RAILGAUGE_EXAMPLES_BUILT").is_some()) {
        return built;
    }
    let of_profile = profile.file_name().unwrap().to_str().unwrap();
    // cargo's profile `dev` writes to `debug`.
    let of_profile = if of_profile == "debug" { "dev" } else { of_profile };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // Build scripts that look at `CARGO_MANIFEST_DIR` would run again, and polars with them.
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        if text.starts_with("CARGO") && text != "CARGO_HOME" && text != "CARGO_TARGET_DIR" {
            cargo.env_remove(variable);
        }
    }
    // Of the whole workspace: for one package, cargo chooses other features of what packages share, and builds our crates a
    // second time.
    cargo.args(["build", "--quiet", "--workspace", "--example", name, "--profile", of_profile]);
    let status =
        cargo.arg("--target-dir").arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.unwrap().success(), "the example {name} of {package} does not build");
    fs::write(note, run).unwrap();
    built
}

//! Examples that tests need: built where they are not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The folder of examples, with `name` in it. Cargo builds examples for `cargo test` and `cargo nextest run`, but not
/// where `--test NAME` is given, so it is asked where the example is missing or old.
pub fn folder_with(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let built = profile.join("examples");
    if is_current(&built.join(name)) || is_current(&built.join(format!("lib{name}.so"))) {
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
    assert!(status.unwrap().success(), "the example {name} does not build");
    built
}

/// Whether no source of an example is newer than the example, by the list of sources that cargo writes next to it. Asking cargo
/// would take every test half a second, and minutes while another cargo builds.
fn is_current(example: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    let sources = fs::read_to_string(example.with_extension("d")).unwrap_or_default();
    let (Some(built), Some((_, sources))) = (changed(example), sources.split_once(": ")) else { return false };
    // A space in a path is written with a backslash before it.
    let sources = sources.replace("\\ ", "\0");
    let mut paths = sources.split_whitespace().map(|path| path.replace('\0', " "));
    paths.all(|path| changed(Path::new(&path)).is_some_and(|changed| changed <= built))
}

//! Examples that tests need: built where they are not.

use std::{path::PathBuf, process::Command};

/// The folder of a package's examples, with `name` in it. Cargo builds examples for `cargo test`, but not for
/// `cargo test --test NAME`, so it is asked; a fresh build is a matter of half a second. What cargo tells this test in
/// its environment is kept from that cargo: build scripts that look at `CARGO_MANIFEST_DIR` would run again, and polars
/// with them. `./test` has built all of them, and says so: asked for one package, cargo chooses other features of what
/// packages share, and builds our crates a second time.
pub fn folder_with(package: &str, name: &str) -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let test = std::env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).unwrap();
    let built = profile.join("examples");
    let is_there = || built.join(name).exists() || built.join(format!("lib{name}.so")).exists();
    if std::env::var_os("RAILGAUGE_EXAMPLES_BUILT").is_some() && is_there() {
        return built;
    }
    let of_profile = profile.file_name().unwrap().to_str().unwrap();
    // cargo's profile `dev` writes to `debug`.
    let of_profile = if of_profile == "debug" { "dev" } else { of_profile };
    let mut cargo = Command::new(cargo);
    for (variable, _) in std::env::vars_os() {
        let text = variable.to_string_lossy();
        if text.starts_with("CARGO") && text != "CARGO_HOME" && text != "CARGO_TARGET_DIR" {
            cargo.env_remove(variable);
        }
    }
    cargo.args(["build", "--quiet", "--package", package, "--example", name, "--profile", of_profile]);
    let status =
        cargo.arg("--target-dir").arg(profile.parent().unwrap()).current_dir(env!("CARGO_MANIFEST_DIR")).status();
    assert!(status.unwrap().success(), "the example {name} does not build");
    built
}

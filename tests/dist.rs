//! What `./dist` refuses and where it stops; `./dist --quick`, which ./test runs, makes a release and tries it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{
    path::Path,
    process::{Command, Output},
};

fn check_glibc(file: &Path, version: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new(root.join("dist")).arg("--glibc").arg(file).arg(version).output().unwrap()
}

#[test]
fn a_program_for_a_newer_glibc_is_refused_with_the_symbols() {
    // This test is linked against the machine's own glibc, where Rust's standard library asks for symbols of 2.34.
    let here = std::env::current_exe().unwrap();
    let refused = check_glibc(&here, "2.17");
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("at most 2.17 is allowed: "), "{said}");
    assert_eq!(check_glibc(&here, "2.99").status.code(), Some(0));
}

#[test]
fn what_is_no_program_for_glibc_is_refused() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(check_glibc(&file, "2.99").status.code(), Some(1));
}

//! What `./dist` refuses and where it stops; `./dist --quick`, which ./test runs, makes a release and tries it.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::skip::skipped;

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

/// What a line of Python with the modules of `./dist` ends with, where pip finds packages in one folder and nowhere else.
fn python(folder: &Path, line: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("python3");
    command.arg("-c").arg(format!("from railgauge_dist import fetch, shell\n{line}"));
    command.env("PYTHONPATH", root.join("build-support")).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(root);
    command.env("RAILGAUGE_DIST_CACHE", folder.join("cache")).env("PIP_CONFIG_FILE", "/dev/null");
    command.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", folder).output().unwrap()
}

/// How the fetching of zig ends: the kind of exception.
fn fetching(folder: &Path, tools: &str) -> String {
    std::fs::write(folder.join("tools.txt"), tools).unwrap();
    let place = folder.join("tools.txt").display().to_string();
    let line = format!(
        "import pathlib\nfetch.TOOLS = pathlib.Path({place:?})\ntry:\n    fetch.Zig()\n    print('fetched')\nexcept \
         shell.Problem as problem:\n    print(type(problem).__name__)"
    );
    let output = python(folder, &line);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn what_cannot_be_fetched_is_told_apart_from_what_is_wrong() {
    if !Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|output| output.status.success()) {
        skipped("there is no pip here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The smallest wheel there can be.
    let made = Command::new("python3")
        .arg("-c")
        .arg(
            "import zipfile\nwith zipfile.ZipFile('rgtool-1.0-py3-none-any.whl', 'w') as wheel:\n    info = \
             'rgtool-1.0.dist-info/'\n    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: rgtool\\nVersion: \
             1.0\\n')\n    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: \
             py3-none-any\\n')\n    wheel.writestr(info + 'RECORD', '')\n",
        )
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(made.success());
    let zeros = "0".repeat(64);
    assert_eq!(fetching(folder.path(), &format!("nosuch==1.0 --hash=sha256:{zeros}\n")), "Unavailable");
    assert_eq!(fetching(folder.path(), &format!("rgtool==1.0 --hash=sha256:{zeros}\n")), "Problem");
    let sum = Command::new("sha256sum").arg(folder.path().join("rgtool-1.0-py3-none-any.whl")).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap();
    let sum = sum.split_whitespace().next().unwrap();
    assert_eq!(fetching(folder.path(), &format!("rgtool==1.0 --hash=sha256:{sum}\n")), "fetched");
}

#[test]
fn an_agent_that_cannot_be_built_for_want_of_a_tool_is_told_by_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let mut dist = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("dist"));
    dist.args(["--agent", "aarch64", "-o"]).arg(folder.path().join("out")).env("PIP_NO_INDEX", "1");
    dist.env("RAILGAUGE_DIST_CACHE", folder.path().join("cache")).env("PIP_FIND_LINKS", folder.path());
    let output = dist.env("PIP_CONFIG_FILE", "/dev/null").output().unwrap();
    assert_eq!(output.status.code(), Some(77), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_program_that_does_not_end_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let output = python(folder.path(), "shell.run('sleep', '60', timeout=0.2)");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("`sleep 60` did not end within 0.2 s"));
}

#[test]
fn what_is_no_program_for_glibc_is_refused() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert_eq!(check_glibc(&file, "2.99").status.code(), Some(1));
}

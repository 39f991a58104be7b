//! `railgauge check` and `railgauge schema` as processes: streams and exit codes.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Command, Output},
};

fn railgauge(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_railgauge")).args(arguments).output().unwrap()
}

fn check(path: &Path) -> (i32, String, String) {
    let output = railgauge(&["check", path.to_str().unwrap()]);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn a_right_plan_is_summed_up_on_stdout() {
    let (code, stdout, stderr) = check(&repository("plans/quickstart.toml"));
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.ends_with("plan quickstart is valid: 3 hosts (node[1-3]), 2 tests, 0 expectations\n"), "{stdout}");
    let output = railgauge(&["check", "-q", repository("plans/quickstart.toml").to_str().unwrap()]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn mistakes_go_to_stderr_without_colours_and_end_with_2() {
    let (code, stdout, stderr) = check(&repository("tests/plans/invalid/unknown-keys.toml"));
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("did you mean `in_flight`?"), "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "coloured although no terminal is there");
}

#[test]
fn json_is_data_and_goes_to_stdout() {
    let wrong = railgauge(&["check", "--json", repository("tests/plans/invalid/unknown-keys.toml").to_str().unwrap()]);
    let value: serde_json::Value = serde_json::from_slice(&wrong.stdout).unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!((&value["version"], &value["mistakes"][1]["line"]), (&1.into(), &2.into()));
    assert!(wrong.stderr.is_empty());
    let right = railgauge(&["check", "--json", repository("plans/quickstart.toml").to_str().unwrap()]);
    let value: serde_json::Value = serde_json::from_slice(&right.stdout).unwrap();
    assert_eq!((right.status.code(), &value["mistakes"]), (Some(0), &serde_json::json!([])));
}

#[test]
fn what_is_no_plan_file_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path, reason: &str| {
        let (code, stdout, stderr) = check(path);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains(reason), "{reason}: {stderr}");
        assert!(stderr.contains("help: "), "{stderr}");
    };
    refused(&folder.path().join("missing.toml"), "No such file");
    refused(folder.path(), "it is a directory, not a file");
    let latin = folder.path().join("latin-1.toml");
    std::fs::write(&latin, b"name = \"caf\xe9\"\n").unwrap();
    refused(&latin, "is not UTF-8: byte 11 (line 1)");
    let place: serde_json::Value =
        serde_json::from_slice(&railgauge(&["check", "--json", latin.to_str().unwrap()]).stdout).unwrap();
    assert_eq!((&place["mistakes"][0]["line"], &place["mistakes"][0]["column"]), (&1.into(), &12.into()));
    let huge = folder.path().join("huge.toml");
    File::create(&huge).unwrap().set_len(100_000_000).unwrap();
    refused(&huge, "is larger than 1 MiB");
    refused(Path::new("/dev/zero"), "is larger than 1 MiB");
    let empty = folder.path().join("empty.toml");
    File::create(&empty).unwrap();
    refused(&empty, "`name` is missing");
}

#[test]
fn a_wrong_command_line_ends_with_2_and_help_with_0() {
    for arguments in
        [&[][..], &["chekc", "x.toml"], &["check"], &["check", "--jsn", "x.toml"], &["check", "-q", "-v", "x.toml"]]
    {
        let output = railgauge(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
    let help = railgauge(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("130  interrupted"));
}

#[test]
fn the_schema_is_json_and_survives_a_reader_that_leaves() {
    let output = railgauge(&["schema"]);
    assert_eq!(output.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["title"], "railgauge plan");
    let script = format!("'{}' schema | head -c 10", env!("CARGO_BIN_EXE_railgauge"));
    let output = Command::new("bash").args(["-o", "pipefail", "-c", &script]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

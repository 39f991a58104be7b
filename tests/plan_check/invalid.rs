//! One file per kind of mistake, and what is said about it.

use std::path::{Path, PathBuf};

use railgauge_model::plan::parse;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans/invalid")
}

#[test]
fn every_kind_of_mistake_is_shown_with_its_place_and_help() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() > 40, "only {} files", files.len());
    insta::with_settings!({ snapshot_path => "../plans/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_name().unwrap().to_str().unwrap();
            // Named without a directory, so that no machine's paths are in the snapshots.
            let mistakes = parse(name, &text, &folder()).expect_err(name);
            for mistake in &mistakes.list {
                assert!(mistake.help.is_some(), "{name}: no help: {}", mistake.message);
            }
            insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), mistakes.to_string());
        }
    });
}

#[test]
fn mistakes_are_told_to_machines_too() {
    let text = std::fs::read_to_string(folder().join("duplicate-in-host-file.toml")).unwrap();
    let mistakes = parse("plan.toml", &text, &folder()).unwrap_err();
    insta::with_settings!({ snapshot_path => "../plans/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_json_snapshot!("as-json", mistakes.json());
    });
}

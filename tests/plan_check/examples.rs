//! The plans that are shipped are right.

use std::path::Path;

use railgauge_model::plan::parse;

#[test]
fn every_example_plan_passes_the_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let mut count = 0;
    let entries = [folder.join("systems"), folder].map(|folder| std::fs::read_dir(folder).unwrap());
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            // The lab writes its ssh_config when it starts.
            let text =
                std::fs::read_to_string(&path).unwrap().replace("/var/tmp/railgauge-lab/ssh_config", "/dev/null");
            let read = parse(path.to_str().unwrap(), &text, path.parent().unwrap());
            let (plan, notes) = read.unwrap_or_else(|mistakes| panic!("{mistakes}"));
            assert!(notes.list.is_empty(), "{notes}");
            assert_eq!(plan.name, path.file_stem().unwrap().to_str().unwrap(), "a plan is called like its file");
            count += 1;
        }
    }
    assert!(count >= 12, "only {count} plans");
}

/// The limits of others are cited, and nobody takes them for ours.
#[test]
fn plans_of_systems_cite_their_limits_and_say_that_they_are_presets() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/systems");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let words = text.replace("\n# ", " ");
        assert!(words.contains("A preset to be adapted"), "{path:?}");
        assert!(words.contains("github.com/"), "{path:?} names no source");
        // A limit in absolute numbers stands below a comment.
        let paragraphs = text.split("\n\n").filter(|part| part.contains("at_least =") || part.contains("at_most ="));
        for paragraph in paragraphs {
            assert!(paragraph.trim_start().starts_with('#'), "{path:?}: no reason for\n{paragraph}");
        }
    }
}

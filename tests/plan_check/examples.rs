//! The plans that are shipped are right.

use std::path::Path;

use railgauge_model::plan::{model::Limit, parse};

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
            if path.parent().unwrap().ends_with("systems") {
                for wanted in plan.tests.iter().flat_map(|test| &test.expect) {
                    let absolute = matches!(wanted.limit, Limit::AtLeast(_) | Limit::AtMost(_));
                    assert_eq!(absolute, wanted.source.is_some(), "{path:?}:{}", wanted.line);
                }
            }
            assert_eq!(plan.name, path.file_stem().unwrap().to_str().unwrap(), "a plan is called like its file");
            count += 1;
        }
    }
    assert!(count >= 12, "only {count} plans");
}

/// The limits of others are not taken for ours.
#[test]
fn plans_of_systems_say_that_they_are_to_be_adapted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/systems");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let words = std::fs::read_to_string(&path).unwrap().replace("\n# ", " ");
        assert!(words.contains("to be adapted"), "{path:?}");
    }
}

/// Of the same limit in a plan of another scale, size or statistic `check` says that it does not apply.
#[test]
fn a_limit_that_does_not_apply_is_noted() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/systems/aws-p5.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let notes = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        let (_, notes) = parse("p.toml", &text.replace(from, to), file.parent().unwrap()).unwrap();
        let lines = notes.list.iter().map(|note| note.place.as_ref().map(|place| place.span.start));
        lines.flatten().count()
    };
    assert_eq!(notes("group_size = 2", "group_size = 2"), 0);
    for (from, to) in [
        ("group_size = 2", "group_size = 4"),
        ("ranks_per_host = 8", "ranks_per_host = 4"),
        ("sizes = [\"8GiB\"]", "sizes = [\"1GiB\"]"),
        ("statistic = \"mean\"", "statistic = \"p99\""),
    ] {
        assert!(notes(from, to) > 0, "{to}");
    }
}

//! The plans that are shipped are right.

use std::path::Path;

use railgauge_model::plan::load;

#[test]
fn every_example_plan_passes_the_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let loaded = load(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            assert!(loaded.notes.list.is_empty(), "{}", loaded.notes);
            assert_eq!(loaded.plan.name, path.file_stem().unwrap().to_str().unwrap(), "a plan is called like its file");
            count += 1;
        }
    }
    assert!(count >= 5, "only {count} plans");
}

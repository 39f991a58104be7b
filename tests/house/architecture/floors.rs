//! Who may import whom: in every crate the modules are on floors, and a module imports only those below it. No files of a crate import one
//! another in a cycle.

use std::collections::BTreeSet;

use super::{
    ROOTS, before_tests, code,
    imports::{Module, arrows, cycles},
    sources,
};

/// A crate's sources and its modules, the lowest first.
const FLOORS: &[(&str, &[&str])] = &[
    (
        "wire/src",
        &[
            "words",
            "gather",
            "natural",
            "shell",
            "unit",
            "measure",
            "terms",
            "remedy",
            "failure",
            "copies",
            "drivers",
            "facts",
            "neighbours",
            "errand",
            "raw",
            "tool",
            "link",
            "step",
            "gpu_state",
            "case",
            "node",
            "group",
            "watch",
            "frame",
            "message",
        ],
    ),
    ("stats/src", STATS),
    ("model/src", &["border", "files", "topology", "plan", "schedule", "journal", "directory"]),
    (
        "agent/src",
        &[
            "system",
            "worker",
            "fault",
            "tools",
            "bench",
            "memory",
            "verbs",
            "gpu",
            "facts",
            "counters",
            "watch",
            "raw",
            "endpoint",
            "fabric",
            "collective",
            "nccl",
            "node",
            "errand",
            "conversation",
        ],
    ),
    ("src", &["draft", "cluster", "run", "import", "live", "query", "night", "kit", "cli"]),
    (
        "crates/analysis/src",
        &[
            "words",
            "compact",
            "parallel",
            "nics",
            "flows",
            "value",
            "settings",
            "sums",
            "status",
            "ceiling",
            "journal",
            "made_test",
            "case",
            "gpus",
            "percentile",
            "truth",
            "together",
            "row",
            "row_ceiling",
            "rows",
            "plausible",
            "results",
            "overrides",
            "imported",
            "frames",
            "proven",
            "reason",
            "history",
            "baseline",
            "limits",
            "localise",
            "outliers",
            "explain",
            "switches",
            "soak",
            "collisions",
            "costs",
            "compare",
            "verdict",
            "trend",
        ],
    ),
];

/// The statistics.
const STATS: &[&str] = &[
    "refusal",
    "lists",
    "rank",
    "shift",
    "student",
    "robust",
    "course",
    "multiple",
    "bisect",
    "collide",
    "changepoint",
    "compare",
    "localise",
    "fabric",
];

/// Pairs that may not be, although the floors would allow them.
const APART: &[(&str, &str, &str)] = &[("src", "live", "run"), ("src", "live", "cluster")];

/// Modules and the crates that they may not use: what is measured and what is judged meet in the journal alone, and only where a run asks
/// for further cases or its report is made.
const FOREIGN: &[(&str, &[&str])] = &[
    ("src/cluster", &["analysis", "frame", "preflight", "report"]),
    ("src/run", &["analysis", "frame", "report"]),
    ("src/import", &["analysis", "frame", "preflight", "report"]),
    ("src/draft", &["analysis", "frame", "report"]),
];

#[test]
fn imports_run_one_way() {
    let mut found = Vec::new();
    for root in ROOTS {
        let files = sources(root).into_iter().map(|(file, text)| (file[root.len() + 1..].to_owned(), text));
        let arrows = arrows(files);
        assert!(!arrows.is_empty(), "{root}");
        if let Some((_, floors)) = FLOORS.iter().find(|(crate_of, _)| *crate_of == root) {
            arrows.iter().for_each(|(of, to)| on_floors(root, floors, of, to));
        }
        found.extend(cycles(&arrows).into_iter().map(|(of, to)| format!("{root}: {of} imports {to}")));
    }
    assert!(found.is_empty(), "{} arrows in cycles:\n{}", found.len(), found.join("\n"));
}

fn on_floors(root: &str, floors: &[&str], of: &Module, targets: &BTreeSet<Module>) {
    let floor = |module: &Module| floors.iter().position(|name| module.first().is_some_and(|own| own == name));
    let Some(own) = of.first().filter(|own| *own != "main") else { return };
    let here = floor(of).unwrap_or_else(|| panic!("{root}: {own} has no floor"));
    for target in targets.iter().filter(|target| !target.is_empty()) {
        assert!(
            floor(target).is_some_and(|there| there <= here),
            "{root}: {of:?} imports {target:?}, which is above it"
        );
        assert!(!APART.contains(&(root, own, &target[0])), "{root}: {of:?} may not import {target:?}");
    }
}

#[test]
fn what_measures_and_what_judges_are_apart() {
    for (place, crates) in FOREIGN {
        let files = sources(place);
        assert!(!files.is_empty(), "{place}");
        for (file, text) in files {
            let text = code(before_tests(&text)).collect::<Vec<_>>().join("\n");
            let used = crates.iter().find(|name| text.contains(&format!("railgauge_{name}")));
            assert!(used.is_none(), "{file} uses railgauge_{used:?}");
        }
    }
}

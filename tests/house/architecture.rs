//! The house rules, held by a test: who may import whom, one heavy dependency in one place, files one can read in one
//! sitting, unsafe code only at the FFI edges.

use std::{
    fs,
    path::{Path, PathBuf},
};

mod errors;
mod floors;
mod imports;
mod remedies;
mod words;

/// Product code.
pub const ROOTS: [&str; 10] = [
    "src",
    "crates/analysis/src",
    "crates/frame/src",
    "crates/preflight/src",
    "crates/report/src",
    "agent/src",
    "agent/bulk/src",
    "model/src",
    "stats/src",
    "wire/src",
];

/// Longest file in lines, tests included.
const LONGEST: usize = 500;

/// A heavy dependency and the only places (path prefixes) that may name it.
const PLACES: &[(&str, &[&str])] = &[
    ("polars", &["crates/frame/src"]),
    ("plotters", &["crates/report/src/chart"]),
    ("minijinja", &["crates/report/src/html", "src/draft"]),
    ("flate2", &["src/kit/archive", "src/cluster/binary.rs"]),
    ("quick_junit", &["crates/report/src/junit"]),
    ("indicatif", &["src/run/progress.rs"]),
    ("openssh", &["src/cluster/launcher/ssh"]),
    ("annotate_snippets", &["model/src/plan/render.rs"]),
    ("tokio", &["src/cluster", "src/run", "src/live", "src/cli"]),
    ("hyper", &["src/live"]),
    ("rdma_sys", &["agent/src/verbs"]),
    ("nvml_wrapper_sys", &["agent/src/gpu"]),
];

/// Where a path becomes text that is no message: words of a command, a line of a configuration, and the one place that makes
/// it printable.
const PATHS_AS_DATA: &[&str] = &["model/src/border/text.rs", "src/cluster"];

/// Folders of the agent that talk to C.
const EDGES: &[&str] = &["agent/src/verbs", "agent/src/memory", "agent/src/gpu", "agent/src/nccl", "agent/src/system"];

pub fn sources(below: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    walk(&root.join(below), &mut found);
    found.sort();
    let name = |path: &Path| path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
    found.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect()
}

/// Lines of code: comments may name anything.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.trim_start().starts_with("//"))
}

/// What stands before the tests of a file: tests may import what they need.
fn before_tests(text: &str) -> &str {
    text.split("\n#[cfg(test)]").next().unwrap_or(text)
}

#[test]
fn every_heavy_dependency_has_one_place() {
    for (file, text) in ROOTS.into_iter().flat_map(sources) {
        for (dependency, places) in PLACES {
            let named = code(&text).any(|line| line.contains(&format!("{dependency}::")));
            let allowed = places.iter().any(|place| file.starts_with(place));
            assert!(!named || allowed, "{file} names {dependency}, whose place is {places:?}");
        }
    }
}

#[test]
fn paths_in_messages_are_made_printable() {
    for (file, text) in ["src", "crates", "model/src"].into_iter().flat_map(sources) {
        let named = code(before_tests(&text)).find(|line| line.contains(".display()"));
        let allowed = PATHS_AS_DATA.iter().any(|place| file.starts_with(place));
        assert!(named.is_none() || allowed, "{file}: {named:?}: `border::text::path_text` makes the text of a path");
    }
}

#[test]
fn files_can_be_read_in_one_sitting() {
    for folder in ROOTS.into_iter().chain(["crates/frame/tests", "agent/tests", "wire/tests", "stats/tests", "tests"]) {
        for (file, text) in sources(folder) {
            assert!(text.lines().count() <= LONGEST, "{file} has {} lines", text.lines().count());
        }
    }
}

/// Each of them links polars: with 62 programs CI ran out of disk.
#[test]
fn programs_of_tests_are_few() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = |path: &Path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists();
    let programs = fs::read_dir(tests).unwrap().filter(|entry| program(&entry.as_ref().unwrap().path())).count();
    assert!(programs <= 12, "{programs} programs below tests/: make a new file a module of one that is there");
}

/// People and tools take a folder of that name for tests of something.
#[test]
fn no_room_of_product_code_is_called_test() {
    for (file, _) in ROOTS.into_iter().flat_map(sources) {
        assert!(!file.contains("/test/"), "{file}");
    }
}

#[test]
fn unsafe_code_stays_at_the_edges() {
    for (file, text) in ROOTS.into_iter().flat_map(sources) {
        let used = code(&text).any(|line| line.contains("unsafe {") || line.contains("unsafe fn"));
        let allowed = EDGES.iter().any(|place| file.starts_with(place));
        assert!(!used || allowed, "{file} has unsafe code; its places are {EDGES:?}");
    }
}

/// The page says of every folder why its unsafe code is sound, and how much there is of it.
#[test]
fn unsafe_code_is_accounted_for() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev/unsafe.md");
    let page = fs::read_to_string(page).unwrap();
    for folder in EDGES {
        let blocks = |text: &str| code(before_tests(text)).map(|line| line.matches("unsafe {").count()).sum::<usize>();
        let count: usize = sources(folder).iter().map(|(_, text)| blocks(text)).sum();
        let row = format!("| `{folder}` | {count} | ");
        assert!(page.contains(&row), "docs/dev/unsafe.md has no row {row}: read its paragraph again");
    }
}

/// Pages that say by which test each of their promises is shown.
const PROMISING: &[&str] = &["docs/dev/faults.md", "docs/security.md"];

/// Tests in those pages are written as `FILE::FUNCTION`.
#[test]
fn tests_that_pages_name_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in PROMISING {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let named: Vec<(&str, &str)> = quoted.filter_map(|words| words.split_once(".rs::")).collect();
        assert!(named.len() > 20, "{page} names {} tests", named.len());
        for (file, function) in named {
            let code = fs::read_to_string(root.join(format!("{file}.rs")))
                .unwrap_or_else(|error| panic!("{page} names {file}.rs: {error}"));
            assert!(tests(&code).any(|name| name == function), "{file}.rs has no test {function}, which {page} names");
        }
    }
}

/// The names of a file's tests: what follows the attribute, behind other attributes.
fn tests(code: &str) -> impl Iterator<Item = &str> {
    let mut lines = code.lines().map(str::trim);
    std::iter::from_fn(move || {
        lines.by_ref().find(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))?;
        let line = lines.by_ref().find(|line| !line.starts_with("#["))?;
        let name = line.trim_start_matches("async ").trim_start_matches("fn ");
        name.split('(').next()
    })
}

/// No page runs anything but our one script, which the policy names by its hash, or fetches anything, whatever its data says.
#[test]
fn templates_hold_one_script_and_forbid_all_others() {
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let page = fs::read_to_string(templates.join("page.html")).unwrap();
    let policy = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"").unwrap().1;
    let policy = policy.split_once('"').unwrap().0;
    for directive in ["default-src 'none'", "base-uri 'none'", "form-action 'none'"] {
        assert!(policy.split(';').any(|one| one.trim() == directive), "{directive}: {policy}");
    }
    assert_eq!(policy.matches("script-src").count(), 1, "{policy}");
    assert!(policy.contains("script-src 'sha256-{{ script_hash|safe }}';"), "{policy}");
    assert_eq!(page.matches("<script>{{ script|safe }}</script>").count(), 1);
    let script = fs::read_to_string(templates.join("page.js")).unwrap();
    for word in ["fetch(", "XMLHttpRequest", "import(", "eval(", "innerHTML", "document.write", "localStorage", "://"] {
        assert!(!script.contains(word), "page.js: {word}");
    }
    // The report of a run that has not ended asks how far that is and for nothing else.
    let live = fs::read_to_string(templates.join("live.js")).unwrap();
    for word in ["XMLHttpRequest", "import(", "eval(", "innerHTML", "document.write", "localStorage", "://"] {
        assert!(!live.contains(word), "live.js: {word}");
    }
    assert_eq!(live.matches("fetch(").count(), 1);
    assert!(live.contains("fetch(\"course\","));
    for entry in fs::read_dir(templates).unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap().replace("<script>{{ script|safe }}</script>", "");
        for word in ["<script", "javascript:", "<iframe", "<object", "onclick", "onload"] {
            assert!(!text.contains(word), "{}: {word}", entry.path().display());
        }
    }
}

//! Nothing is decided by words for people: they may be reworded at any time.

use super::{before_tests, code, sources};

/// Methods by which a text is looked into.
const LOOKS: &[&str] = &[
    "contains",
    "starts_with",
    "ends_with",
    "strip_prefix",
    "strip_suffix",
    "split_once",
    "rsplit_once",
    "trim_start_matches",
    "trim_end_matches",
    "find",
    "rfind",
    "replace",
    "replacen",
    "matches",
    "match_indices",
];

/// Fields that hold words for people.
const WORDS: &[&str] = &["cause", "meaning", "remedy", "reason", "error", "demand"];

/// Files that look for words which are not ours, or not for people, and whose they are.
const FOREIGN: &[(&str, &str)] = &[
    ("agent/src/counters/mod.rs", "names of the kernel's counters"),
    ("agent/src/facts", "files of the kernel and the distribution"),
    ("agent/src/gpu/present.rs", "names in sysfs"),
    ("agent/src/memory/place.rs", "/proc/meminfo"),
    ("agent/src/nccl/log.rs", "NCCL's log"),
    ("agent/src/nccl/ras.rs", "reports of NCCL's RAS"),
    ("agent/src/system/library.rs", "names of libraries"),
    ("crates/analysis/src/ceiling/case.rs", "a GID"),
    ("model/src/topology/ibnetdiscover", "output of ibnetdiscover and dump_fts"),
    ("model/src/border/text.rs", "sequences of terminals"),
    ("src/cli/common.rs", "whether a file is a page of railgauge, by its head"),
    ("src/cli/run.rs", "/proc/self/status"),
    ("agent/src/memory/host.rs", "/proc/self/smaps"),
    ("src/cli/submit/job.rs", "names of sbatch's variables"),
    ("src/cluster/launcher/slurm", "states of jobs and nodes, and srun's messages"),
    ("src/cluster/launcher/ssh/explain.rs", "ssh's messages"),
    ("model/src/plan", "plan files"),
    ("src/draft", "names of GPUs, modules and makers, paths of libraries"),
    ("crates/preflight/src/check", "the kernel's words for GIDs and modules"),
    ("crates/preflight/src/comparable.rs", "names of libraries"),
    ("src/import", "outputs of other tools"),
    ("crates/report/src/chart/layers.rs", "SVG"),
    ("agent/src/raw", "paths below the root"),
    ("src/kit", "paths of sysfs, and names of the kit's own files and tests"),
    ("wire/src/watch.rs", "names of counters"),
    ("wire/src/facts/rdma.rs", "the kernel's state of a port"),
];

/// The literals that a line looks for in some text.
fn looked_for(line: &str) -> Vec<&str> {
    let behind = |look: &&str| {
        let call = format!(".{look}(\"");
        let found: Vec<usize> = line.match_indices(&call).map(|(at, _)| at + call.len()).collect();
        found.into_iter().filter_map(|at| line[at..].split('"').next()).collect::<Vec<_>>()
    };
    LOOKS.iter().flat_map(behind).filter(|literal| literal.chars().filter(|c| c.is_alphabetic()).count() > 1).collect()
}

/// Whether a line compares something with words: a literal of several.
fn compares_words(line: &str) -> bool {
    let behind = |operator: &str| {
        line.match_indices(operator).any(|(at, _)| {
            let rest = line[at + operator.len()..].trim_start_matches(['&', '*', ' ']);
            let literal = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
            literal.is_some_and(|literal| literal.trim().split(' ').filter(|word| word.len() > 1).count() > 1)
        })
    };
    behind("== ") || behind("!= ")
}

#[test]
fn nothing_is_decided_by_words_for_people() {
    let mut unused: Vec<&str> = FOREIGN.iter().map(|(place, _)| *place).collect();
    for (file, text) in super::ROOTS.into_iter().flat_map(sources) {
        if file.ends_with("tests.rs") || file.contains("/tests/") {
            continue;
        }
        let foreign = FOREIGN.iter().find(|(place, _)| file.starts_with(place)).map(|(place, _)| *place);
        for line in code(before_tests(&text)) {
            let found = looked_for(line);
            if let (Some(place), false) = (foreign, found.is_empty()) {
                unused.retain(|known| known != &place);
            }
            assert!(found.is_empty() || foreign.is_some(), "{file}: looks for {found:?}: `{}`", line.trim());
            assert!(foreign.is_some() || !compares_words(line), "{file}: compares with words: `{}`", line.trim());
            let fields = WORDS.iter().flat_map(|field| LOOKS.iter().map(move |look| format!(".{field}.{look}(")));
            let read = fields.into_iter().find(|read| line.contains(read.as_str()));
            assert_eq!(read, None, "{file}: reads words for people: `{}`", line.trim());
        }
    }
    assert!(unused.is_empty(), "look for nothing: {unused:?}");
}

#[test]
fn the_rule_sees_what_it_forbids() {
    assert_eq!(looked_for("if failure.cause.contains(\"gone\") {"), ["gone"]);
    assert_eq!(looked_for("words.strip_prefix(\"all \")"), ["all "]);
    assert!(looked_for("path.contains(\"/\")").is_empty());
    assert!(compares_words("let which = if which == \"all pairs\" { 1 }"));
    assert!(!compares_words("if completion == \"poll\" {"));
}

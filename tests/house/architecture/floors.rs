//! Who may import whom: in every crate the modules stand one above the other, and a module imports only those below it. So there is
//! no arrow back, and no circle.

use super::{before_tests, code, sources};

/// A crate's sources, or a room of it with the same rule, and the modules, the lowest first.
const FLOORS: &[(&str, &[&str])] = &[
    (
        "wire/src",
        &[
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
    (
        "agent/src/verbs",
        &[
            "gid",
            "library",
            "words",
            "happened",
            "file",
            "device",
            "cm",
            "completion",
            "port",
            "region",
            "flag",
            "queue_pair",
            "events",
            "send",
            "receive",
        ],
    ),
    (
        "agent/src/gpu",
        &[
            "present", "vendor", "cards", "driver", "amd", "blas", "device", "nvml", "buffer", "state", "facts",
            "monitor", "stream", "copies", "table", "kernels", "matrices", "reached", "product",
        ],
    ),
    ("agent/src/gpu/amd", &["layout", "smi", "state"]),
    ("agent/src/fabric", &["link", "tcp", "threads", "verbs"]),
    (
        "agent/src/fabric/verbs",
        &[
            "mailbox",
            "manager",
            "memory",
            "order",
            "waiter",
            "pingpong",
            "stream",
            "turns",
            "end",
            "bandwidth",
            "open",
            "serve",
            "verify",
            "latency",
        ],
    ),
    ("agent/src/fabric/tcp", &["memory", "shared", "stream", "conduct", "link"]),
    (
        "agent/src/collective",
        &["cut", "script", "table", "engine", "layout", "memory", "tcp", "verbs", "bench", "rank"],
    ),
    ("agent/src/node", &["mover", "copier", "loopback", "processors", "chase", "multiplier"]),
    ("agent/src/watch", &["counters", "gpus", "module", "pace", "state", "mailbox", "watcher"]),
    ("agent/src/facts", &["idle", "interfaces", "kernel_log", "libraries", "machine", "pci", "vpd", "rdma", "parts"]),
    ("agent/src/bench", &["control", "window", "clock", "latency"]),
    ("agent/src/memory", &["backing", "pattern", "place", "host", "shared"]),
    ("agent/src/nccl", &["library", "log", "bench", "worker"]),
    ("agent/src/conversation", &["pipes", "register", "link", "requests"]),
    ("agent/src/endpoint/verbs", &["settings", "choice", "join"]),
    ("agent/src/endpoint/tcp", &["place", "socket", "handshake"]),
    ("src", &["draft", "cluster", "run", "import", "live", "query", "night", "kit", "cli"]),
    (
        "crates/analysis/src",
        &[
            "words",
            "compact",
            "parallel",
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
    (
        "src/run",
        &[
            "progress",
            "failures",
            "clocks",
            "spine",
            "aside",
            "raw",
            "gpus",
            "fabric",
            "links",
            "hosts",
            "tools",
            "configure",
            "work",
            "order",
            "measure",
            "watch",
            "gather",
            "rounds",
            "confirm",
            "soak",
            "contact",
            "execute",
        ],
    ),
    (
        "src/run/measure",
        &[
            "counters",
            "traffic",
            "steps",
            "case",
            "sweep",
            "known",
            "command",
            "neighbour",
            "concurrent",
            "collective",
            "node",
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

/// Modules of the crate that a file imports: the first name behind `crate::`, or behind as many `super::` as lead there.
fn imports(file: &str, root: &str, text: &str) -> Vec<String> {
    let inside: Vec<&str> = file[root.len() + 1..].trim_end_matches(".rs").split('/').collect();
    let depth = inside.len() - usize::from(inside.last() == Some(&"mod"));
    let text: String = code(before_tests(text)).collect::<Vec<_>>().join("\n");
    let dense: String = text.split_whitespace().collect();
    assert!(!dense.contains("usesuper::{super::"), "{file}: one `use` for each floor, so that this rule sees them");
    let up = "super::".repeat(depth);
    // The modules of a room are named by `super` inside of it: behind `crate::` are those of the crate.
    let starts = ["crate::", up.as_str()];
    let starts = if root.ends_with("src") { &starts[..] } else { &starts[1..] };
    let mut found = Vec::new();
    for start in starts.iter().copied() {
        for (at, _) in text.match_indices(start) {
            // `super::super::x` of a deeper file holds `super::x` too.
            if start != "crate::" && text[..at].ends_with("super::") {
                continue;
            }
            found.extend(heads(&text[at + start.len()..]));
        }
    }
    found
}

/// The first names of a path, or of every path of a group in braces.
fn heads(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut found, mut begins) = (0, Vec::new(), true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                found.push(name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn imports_run_one_way() {
    for (root, floors) in FLOORS {
        let floor = |module: &str| floors.iter().position(|name| *name == module);
        let mut arrows = 0;
        for (file, text) in sources(root) {
            let own = file[root.len() + 1..].split('/').next().unwrap().trim_end_matches(".rs").to_owned();
            if own == "lib" || own == "main" || own == "mod" || file.contains("/tests/") || file.ends_with("tests.rs") {
                continue;
            }
            // Inside a room its own modules are named by `super`, which is what the rule sees.
            let room = root.split_once("src/").map(|(_, room)| format!("crate::{}::", room.replace('/', "::")));
            let around = room.filter(|room| code(before_tests(&text)).any(|line| line.contains(room.as_str())));
            assert!(around.is_none(), "{file} names {around:?} of its own room by the crate");
            let here = floor(&own).unwrap_or_else(|| panic!("{file}: {own} has no floor"));
            for target in imports(&file, root, &text) {
                let Some(there) = floor(&target) else {
                    let is_item = root.starts_with("agent/src/") && target != "super";
                    assert!(!is_item, "{file} imports {target} of the module around it, which imports {own}");
                    continue;
                };
                assert!(there <= here, "{file}: {own} imports {target}, which stands above it");
                let apart = APART.contains(&(root, &own, &target));
                assert!(!apart, "{file}: {own} may not import {target}");
                arrows += usize::from(there < here);
            }
        }
        // A rule that sees nothing holds nothing.
        assert!(arrows >= floors.len() / 2, "{root}: {arrows} imports seen");
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

#[test]
fn the_rule_sees_every_way_of_importing() {
    let text =
        "use crate::{\n    a::b,\n    c::{d, e},\n};\nuse super::f;\nlet x = crate::g::h();\nuse super::super::i;\n";
    assert_eq!(imports("src/one/two.rs", "src", text), ["a", "c", "g", "i"]);
    assert_eq!(imports("src/one/mod.rs", "src", "use super::f;\nuse crate::{g, h::{i, j}};\n"), ["g", "h", "f"]);
}

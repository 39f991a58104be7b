//! `like`: a command line of perftest in place of the keys that say the same. Names, defaults and dependencies of its options:
//! `src/perftest_parameters.c` of perftest 4.5 to 25.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::plan::{Table, Wrong};

/// Short and long name; words of the programs that have the option (all if empty); the key and its value, where `{}` is the argument that the
/// option takes. Options without a key change what perftest prints.
const OPTIONS: &[(&str, &str, &str, &str, &str)] = &[
    ("a", "all", "write send read", "sizes", "\"2..8MiB x2\""),
    ("A", "atomic_type", "atomic", "op", "\"{}\""),
    ("b", "bidirectional", "_bw", "bidirectional", "true"),
    ("c", "connection", "", "service", "\"{}\""),
    ("D", "duration", "", "measure", "\"{}s\""),
    ("e", "events", "send read atomic", "knobs.completion", "\"events\""),
    ("F", "CPU-freq", "", "", ""),
    ("H", "report-histogram", "", "", ""),
    ("I", "inline_size", "write send", "knobs.inline", "{}"),
    ("l", "post_list", "_bw", "knobs.post_list", "{}"),
    ("m", "mtu", "", "knobs.mtu", "{}"),
    ("n", "iters", "", "measure", "\"{} iterations\""),
    ("N", "noPeak", "_bw", "", ""),
    ("o", "outs", "read atomic", "knobs.outstanding_reads", "{}"),
    ("q", "qp", "_bw", "qps", "{}"),
    ("Q", "cq-mod", "_bw", "knobs.signal_every", "{}"),
    ("R", "rdma_cm", "", "knobs.joining", "\"rdma-cm\""),
    ("s", "size", "write send read", "sizes", "{}"),
    ("S", "sl", "", "knobs.service_level", "{}"),
    ("t", "tx-depth", "_bw", "knobs.depth", "{}"),
    ("u", "qp-timeout", "", "knobs.timeout", "{}"),
    ("U", "report-unsorted", "", "", ""),
    ("x", "gid-index", "", "knobs.gid_index", "{}"),
    ("", "disable_pcie_relaxed", "", "knobs.relaxed_ordering", "false"),
    ("", "flow_label", "", "knobs.flow_label", "{}"),
    ("", "report_gbits", "", "", ""),
    ("", "retry_count", "", "knobs.retry_count", "{}"),
    ("", "tclass", "", "knobs.traffic_class", "{}"),
    ("", "use_cuda", "", "gpus", "{}"),
    ("", "use_data_direct", "", "knobs.data_direct", "true"),
    ("", "use_cuda_dmabuf", "", "gpu_path", "\"gdr-dmabuf\""),
    ("", "use_hugepages", "", "knobs.huge_pages", "true"),
    ("", "write_with_imm", "write", "op", "\"write_imm\""),
];

/// Options whose equivalent is not a key of a test.
const ELSEWHERE: &[(&str, &str)] = &[
    ("-d --ib-dev", "name the devices as `devices` in [hosts]"),
    ("-i --ib-port", "name the port in `devices` of [hosts]: mlx5_0:2"),
    ("--pkey_index", "set the knob `pkey` to the value of the partition, not its index"),
    ("--rate_limit", "set `rate` of the test, such as \"10 Gb/s\": that of all queue pairs of a flow together"),
];

/// Operation and largest inline payload.
const PROGRAMS: [(&str, &str, Option<u32>); 8] = [
    ("ib_write_bw", "write", Some(0)),
    ("ib_write_lat", "write", Some(220)),
    ("ib_read_bw", "read", None),
    ("ib_read_lat", "read", None),
    ("ib_send_bw", "send", Some(0)),
    ("ib_send_lat", "send", Some(236)),
    ("ib_atomic_bw", "atomic_fadd", None),
    ("ib_atomic_lat", "atomic_fadd", None),
];

const KNOB: &str = "knobs.";

/// Keys whose option takes no zero.
const COUNTS: [&str; 6] = ["sizes", "measure", "qps", "knobs.depth", "knobs.post_list", "knobs.signal_every"];

/// Keys that `like` sets, so that a test must not.
const FIXED: [&str; 3] = ["op", "metric", "transport"];

/// Keys by their names, with values as TOML.
type Keys = BTreeMap<&'static str, String>;

/// What `like` sets, all at its place.
pub struct Like {
    keys: Keys,
    span: Range<usize>,
}

impl Like {
    pub fn of(test: &Table<'_>) -> Option<Self> {
        test.written("like")?;
        test.refuse(FIXED, "is part of `like`");
        let keys = test.parsed("like", keys)?;
        Some(Self { keys: keys.value, span: keys.span })
    }

    /// Those that are knobs, or those that are not.
    pub fn entries(&self, knobs: bool) -> DeTable<'_> {
        let at = |name| Spanned::new(self.span.clone(), Cow::Borrowed(name));
        let of_kind = self.keys.iter().filter(|(key, _)| key.starts_with(KNOB) == knobs);
        let entries = of_kind.filter_map(|(key, value)| {
            // All are TOML: see `argument_of`.
            let value = Spanned::new(self.span.clone(), DeValue::parse(value).ok()?.into_inner());
            Some((at(key.trim_start_matches(KNOB)), value))
        });
        entries.collect()
    }
}

fn keys(text: &str) -> Result<Keys, Wrong> {
    let mut words = text.split_whitespace().map(|word| {
        let start = word.as_ptr() as usize - text.as_ptr() as usize;
        (word, start..start + word.len())
    });
    let programs = || format!("expected {}", PROGRAMS.map(|(name, ..)| name).join(", "));
    let Some((program, at)) = words.next() else {
        return Err(Wrong::new(0..text.len(), "`like` is empty", programs()));
    };
    let known = PROGRAMS.iter().find(|(name, ..)| *name == program);
    let Some((_, op, inline)) = known else {
        return Err(Wrong::new(at, format!("{program} is not a program of perftest for pairs"), programs()));
    };
    let (mut given, mut settled) = (BTreeMap::new(), BTreeSet::new());
    while let Some((word, at)) = words.next() {
        let Some(mut rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            let help = "leave it out: the pattern of the test says which hosts take part";
            return Err(Wrong::new(at, format!("`{word}` is not an option"), help));
        };
        // A long option is a word, short ones may share one; an argument is behind its option or the next word.
        while !rest.is_empty() {
            let (name, behind) = match rest.strip_prefix('-') {
                Some(long) => long.split_once('=').unwrap_or((long, "")),
                None => rest.split_at(rest.chars().next().map_or(0, char::len_utf8)),
            };
            let (key, value) = option(program, name, rest.starts_with('-'), &at)?;
            let long = rest.starts_with('-');
            rest = if long || value.contains("{}") { "" } else { behind };
            let value = if value.contains("{}") {
                let next = if behind.is_empty() { words.next() } else { Some((behind, at.clone())) };
                let (argument, at) =
                    next.ok_or_else(|| Wrong::new(at.clone(), format!("`{word}` takes a value"), "add it"))?;
                value.replace("{}", &argument_of(key, argument, &at)?)
            } else if long && !behind.is_empty() {
                return Err(Wrong::new(at, format!("--{name} takes no value"), "leave the value out"));
            } else {
                value.to_owned()
            };
            // perftest's -a overrules -s, and -D -n, in any order.
            let overrules = matches!(name, "a" | "all" | "D" | "duration");
            if overrules || !settled.contains(key) {
                given.insert(key, value);
            }
            settled.extend(overrules.then_some(key));
        }
    }
    if given.contains_key("gpu_path") && !given.contains_key("gpus") {
        let help = "add --use_cuda and the number of the GPU, as perftest requires";
        return Err(Wrong::new(0..text.len(), "--use_cuda_dmabuf without --use_cuda", help));
    }
    Ok(completed(program, op, *inline, given))
}

/// Key and value of an option that this program has.
fn option(program: &str, name: &str, long: bool, at: &Range<usize>) -> Result<(&'static str, &'static str), Wrong> {
    let dashed = if long { format!("--{name}") } else { format!("-{name}") };
    let same = |row: &&(&str, &str, &str, &str, &str)| name == if long { row.1 } else { row.0 };
    let wrong = |message: String, help: &str| Err(Wrong::new(at.clone(), message, help));
    match OPTIONS.iter().find(same) {
        Some((_, _, of, key, value)) if of.is_empty() || of.split(' ').any(|word| program.contains(word)) => {
            Ok((key, value))
        }
        Some(_) => wrong(format!("{program} has no option {dashed}"), "leave it out"),
        None => {
            let elsewhere = ELSEWHERE.iter().find(|(names, _)| names.split(' ').any(|one| one == dashed));
            let help = elsewhere.map_or("leave it out: nothing in a plan does the same", |(_, help)| help);
            wrong(format!("the option {dashed} of perftest has no equivalent in a test"), help)
        }
    }
}

/// The argument of an option as the value of a key has it.
fn argument_of(key: &str, argument: &str, at: &Range<usize>) -> Result<String, Wrong> {
    // A leading zero is octal in perftest.
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && DeValue::parse(text).is_ok();
    let wrong = |help: &str| Err(Wrong::new(at.clone(), format!("`{argument}` is not a value of this option"), help));
    match (key, argument) {
        ("service", "RC" | "UC" | "UD") => Ok(argument.to_lowercase()),
        ("service", _) => wrong("expected RC, UC or UD"),
        ("op", "FETCH_AND_ADD") => Ok("atomic_fadd".to_owned()),
        ("op", "CMP_AND_SWAP") => Ok("atomic_cas".to_owned()),
        ("op", _) => wrong("expected FETCH_AND_ADD or CMP_AND_SWAP"),
        // perftest's K and M are powers of two.
        ("sizes", size) if size.ends_with(['K', 'M']) => {
            let (number, factor) = size.split_at(size.len() - 1);
            let factor = if factor == "K" { 1 << 10 } else { 1 << 20 };
            let number = Some(number).filter(|number| is_number(number)).and_then(|number| number.parse::<u64>().ok());
            let bytes = number.and_then(|number| number.checked_mul(factor)).filter(|bytes| *bytes > 0);
            bytes.map_or_else(|| wrong("expected a size such as 65536 or 64K"), |bytes| Ok(bytes.to_string()))
        }
        (_, "0") if COUNTS.contains(&key) => wrong("expected a number of at least 1"),
        _ if is_number(argument) => Ok(argument.to_owned()),
        _ => wrong("expected a whole number without leading zeros"),
    }
}

/// Everything that a run of this program depends on: what is given, and perftest's defaults.
fn completed(program: &str, op: &str, inline: Option<u32>, mut keys: Keys) -> Keys {
    keys.remove("");
    let bandwidth = program.ends_with("_bw");
    if keys.contains_key("gpus") {
        keys.insert("memory", "\"cuda\"".to_owned());
    }
    let mut default = |key: &'static str, value: &str| keys.entry(key).or_insert_with(|| value.to_owned()).clone();
    default("op", &format!("\"{op}\""));
    default("metric", if bandwidth { "\"bandwidth\"" } else { "\"latency\"" });
    default("transport", "\"verbs\"");
    default("memory", "\"host\"");
    default("warm_up", "\"0s\"");
    let datagrams = default("service", "\"rc\"") == "\"ud\"";
    let measure =
        default("measure", if program == "ib_write_bw" { "\"5000 iterations\"" } else { "\"1000 iterations\"" });
    let sizes = default(
        "sizes",
        if op == "atomic_fadd" {
            "8"
        } else if bandwidth {
            "65536"
        } else {
            "2"
        },
    );
    if let Some(inline) = inline {
        default("knobs.inline", &if datagrams { inline.min(188) } else { inline }.to_string());
    }
    if !bandwidth {
        default("knobs.signal_every", "1");
        return keys;
    }
    for key in ["qps", "threads"] {
        default(key, "1");
    }
    default("bidirectional", "false");
    let number = |text: &str| text.trim_matches('"').split(' ').next().and_then(|number| number.parse::<u64>().ok());
    let list = number(&default("knobs.post_list", "1"));
    let depth = number(&default("knobs.depth", "128"));
    // perftest is never deeper than its iterations, and waits for each large message where it knows that all are large.
    let iterations = measure.contains("iterations").then(|| number(&measure)).flatten();
    let depth = depth.min(iterations.or(depth));
    let events = keys.contains_key("knobs.completion");
    let large = number(&sizes).is_some_and(|size| size > 8192) && !datagrams && !events;
    let every = if list > Some(1) { list } else { Some(if large { 1 } else { 100 }) };
    keys.extend(depth.map(|depth| ("knobs.depth", depth.to_string())));
    let named = keys.get("knobs.signal_every").and_then(|every| number(every));
    keys.extend(named.or(every).min(depth).map(|every| ("knobs.signal_every", every.to_string())));
    if datagrams && sizes.contains("..") {
        let most = keys.get("knobs.mtu").map_or("4096", String::as_str);
        keys.insert("sizes", format!("\"2..{most} x2\""));
    }
    keys
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;

    use railgauge_wire::Window;

    use crate::plan::{model::Test, parse};

    fn read(test: &str) -> Result<Test, String> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = \"a[1-2]\" }\n";
        let text = format!("{head}[defaults]\nmeasure = \"2s\"\nqps = 4\nknobs = {{ depth = 7 }}\n[[test]]\n{test}\n");
        let parsed = parse("p.toml", &text, Path::new(""));
        parsed.map(|(plan, _)| plan.tests[0].clone()).map_err(|mistakes| mistakes.to_string())
    }

    /// What is set, as perftest prints it: operation, service, sizes, iterations, queue pairs, depth, list, moderation, inline.
    fn settings(like: &str) -> String {
        let test = read(&format!("like = \"{like}\"")).unwrap();
        let knobs = &test.knobs;
        let size = |at: Option<&railgauge_wire::unit::Bytes>| at.map_or(0, |bytes| bytes.0);
        let number = |knob: Option<u32>| knob.map_or_else(|| "-".to_owned(), |knob| knob.to_string());
        let knobs = [knobs.depth, knobs.post_list, knobs.signal_every, knobs.inline].map(number).join(" ");
        let sizes = format!("{}..{}", size(test.sizes.first()), size(test.sizes.last()));
        assert!(test.warm_up.is_zero(), "{like}");
        let window = match test.window {
            Window::Iterations(count) => count.to_string(),
            Window::Duration(time) => format!("{}s", std::time::Duration::from(time).as_secs()),
            Window::Adaptive { .. } => "adaptive".to_owned(),
        };
        format!("{} {} {} {sizes} {window} {:?} {knobs}", test.op, test.metric, test.service, test.qps)
    }

    #[test]
    fn programs_measure_as_perftest_does_by_default() {
        for (like, expected) in [
            ("ib_write_bw", "write bandwidth rc 65536..65536 5000 [1] 128 1 1 0"),
            ("ib_write_bw -a", "write bandwidth rc 2..8388608 5000 [1] 128 1 100 0"),
            ("ib_read_bw -s 8192", "read bandwidth rc 8192..8192 1000 [1] 128 1 100 -"),
            ("ib_send_bw -e", "send bandwidth rc 65536..65536 1000 [1] 128 1 100 0"),
            ("ib_send_bw -c UD -a -m 1024", "send bandwidth ud 2..1024 1000 [1] 128 1 100 0"),
            ("ib_atomic_bw", "atomic_fadd bandwidth rc 8..8 1000 [1] 128 1 100 -"),
            ("ib_write_lat", "write latency rc 2..2 1000 [1] 7 - 1 220"),
            ("ib_send_lat -c UD", "send latency ud 2..2 1000 [1] 7 - 1 188"),
            ("ib_read_lat -a", "read latency rc 2..8388608 1000 [1] 7 - 1 -"),
            ("ib_atomic_lat -A CMP_AND_SWAP", "atomic_cas latency rc 8..8 1000 [1] 7 - 1 -"),
        ] {
            assert_eq!(settings(like), expected, "{like}");
        }
    }

    #[test]
    fn options_may_be_written_as_getopt_takes_them() {
        let expected = "write bandwidth uc 65536..65536 64 [8] 16 4 4 32";
        for like in [
            "ib_write_bw -F -c UC -n 64 -q 8 -t 16 -l 4 -I 32 --report_gbits",
            "ib_write_bw -FcUC -n64 -q8 -t16 -l4 -I32 -s 64K",
            "ib_write_bw --connection=UC --iters=64 --qp 8 --tx-depth=16 --post_list 4 --inline_size=32",
        ] {
            assert_eq!(settings(like), expected, "{like}");
        }
        for like in ["ib_write_bw -n 5 -D 3", "ib_write_bw --duration=3 --iters=5"] {
            assert_eq!(settings(like), "write bandwidth rc 65536..65536 3s [1] 128 1 1 0", "{like}");
        }
        for like in ["ib_write_bw -a -s 64", "ib_write_bw -s 64 -a"] {
            assert_eq!(settings(like), "write bandwidth rc 2..8388608 5000 [1] 128 1 100 0", "{like}");
        }
        // perftest moderates no more than it has in flight.
        assert_eq!(settings("ib_write_bw -Q 500"), "write bandwidth rc 65536..65536 5000 [1] 128 1 128 0");
        assert_eq!(settings("ib_read_bw -n 20 -s 8"), "read bandwidth rc 8..8 20 [1] 20 1 20 -");
    }

    #[test]
    fn other_keys_of_the_test_come_first() {
        let test = read("like = \"ib_write_bw -q 2\"\nqps = 3\nmeasure = \"1s\"\nknobs = { depth = 64 }").unwrap();
        assert_eq!((test.qps, test.knobs.depth, test.knobs.post_list), (vec![3], Some(64), Some(1)));
    }

    #[test]
    fn what_has_no_equivalent_is_named() {
        for (test, words) in [
            ("like = \"ib_write_bw --use-srq\"", "--use-srq"),
            ("like = \"ib_write_bw -r 512\"", "-r"),
            ("like = \"ib_write_bw -e\"", "-e"),
            ("like = \"ib_write_lat -q 2\"", "-q"),
            ("like = \"ib_write_bw -d mlx5_0\"", "[hosts]"),
            ("like = \"ib_write_bw -c XRC\"", "XRC"),
            ("like = \"ib_write_bw -s\"", "-s"),
            ("like = \"ib_write_bw -s big\"", "big"),
            ("like = \"ib_write_bw -s 0\"", "`0`"),
            ("like = \"ib_write_bw -s 0K\"", "`0K`"),
            ("like = \"ib_write_bw -n 0\"", "`0`"),
            ("like = \"ib_write_bw -t 0 -q 0\"", "`0`"),
            ("like = \"ib_write_bw -q 02\"", "`02`"),
            ("like = \"ib_write_bw -D 010\"", "`010`"),
            ("like = \"ib_write_bw -s 99999999999999999999\"", "is too large"),
            ("like = \"ib_write_bw --all=foo\"", "--all"),
            ("like = \"ib_write_bw --use_cuda_dmabuf\"", "--use_cuda"),
            ("like = \"ib_write_bw --rate_limit=10\"", "`rate`"),
            ("like = \"ib_write_bw server\"", "server"),
            ("like = \"raw_ethernet_bw\"", "raw_ethernet_bw"),
            ("like = \"ib_write_bw\"\nop = \"read\"", "`op`"),
        ] {
            let refused = read(test).expect_err(test);
            assert!(refused.contains(words) && refused.contains("1 error"), "{test}: {refused}");
        }
    }
}

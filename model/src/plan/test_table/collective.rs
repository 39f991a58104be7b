use std::collections::BTreeMap;

use railgauge_wire::{Algorithm, Bytes, Carrier, Datatype, Memory, Op, Reduction, Transport};

use super::{environments::environments, kind::Kind, members::Members, pattern, traffic, training};
use crate::plan::{Collective, Grouping, PerEnd, Table, count::count};

pub const GROUPINGS: &[&str] = &["all", "each", "pairs", "halves", "every"];

const OWN: &[&str] = &["groups", "group_size", "ranks_per_host", "datatype", "reduction", "algorithm", "in_place"];
/// Keys only for pairs, in addition to those of their patterns.
const OF_PAIRS: &[&str] = &["service", "gpu_path", "qps", "threads", "bidirectional", "pattern", "rails"];

const OF_NCCL: &[&str] = &["graph", "env", "library", "carried_by"];

/// The word that leaves the algorithm to the agents.
const AUTO: &str = "auto";

pub fn carriers() -> Vec<&'static str> {
    Carrier::ALL.iter().filter(|one| one.transport() == Transport::Nccl).map(|one| one.word()).collect()
}

pub fn algorithms() -> Vec<&'static str> {
    std::iter::once(AUTO).chain(Algorithm::ALL.iter().map(|word| word.word())).collect()
}

pub fn read(
    test: &Table<'_>,
    kind: &Kind,
    members: Option<&Members<'_>>,
    sizes: Option<&[Bytes]>,
    gpus: &[u32],
) -> Option<Collective> {
    let op = kind.op.filter(|op| op.is_collective());
    let (names, why) = match (op, kind.op) {
        (Some(_), _) => (OF_PAIRS, "belongs to pairs and does not apply to a collective"),
        (None, Some(_)) => {
            let others = OF_NCCL.iter().chain(training::OWN).chain(&["traffic"]);
            test.refuse(others.copied(), "applies only to collectives");
            (OWN, "applies only to collectives")
        }
        (None, None) => return None,
    };
    let of_patterns = pattern::own_names().filter(|_| op.is_some());
    test.refuse(names.iter().copied().chain(of_patterns), why);
    let op = op?;
    let host = kind.memory == Some(PerEnd::same(Memory::Host));
    let datatypes = test.terms("datatype", Datatype::from_word);
    let reductions = if op.reduces() { test.terms("reduction", Reduction::from_word) } else { Vec::new() };
    if !op.reduces() {
        test.refuse(["reduction"], "does not apply to an operation that reduces nothing");
    }
    if host {
        test.refuse(OF_NCCL.iter().copied(), "applies only with transport = \"nccl\"");
        plain(test, &datatypes, &reductions);
    }
    let ranks_per_host = ranks_per_host(test, gpus);
    let grouping = grouping(test, members, ranks_per_host);
    let ranks = members.filter(|_| grouping.is_some()).map(|members| traffic::ranks(members, ranks_per_host));
    let collective = Collective {
        grouping: grouping.unwrap_or(Grouping::All),
        ranks_per_host,
        datatypes,
        reductions,
        algorithms: chosen(test, op, host),
        in_place: in_place(test, op),
        graph: test.flag("graph").is_some_and(|at| at.value && !host),
        env: if host { vec![BTreeMap::new()] } else { environments(test) },
        library: test.text("library").map(|at| at.value).filter(|_| !host),
        training: training::read(test, kind),
        traffic: traffic::read(test, kind, ranks),
        alone: traffic::alone(test, host),
        carried_by: test.word("carried_by").and_then(|at| Carrier::from_word(at.value)).filter(|_| !host),
    };
    // Without a grouping (already reported) the divisor is unknown.
    if grouping.is_some() {
        divides(test, op, &collective, members, sizes);
        verifiable(test, &collective, members);
    }
    Some(collective)
}

fn plain(test: &Table<'_>, datatypes: &[Datatype], reductions: &[Reduction]) {
    let mut all = reductions.iter().flat_map(|reduction| datatypes.iter().map(move |datatype| (reduction, datatype)));
    if let Some((reduction, datatype)) = all.find(|(reduction, datatype)| !reduction.is_plain(**datatype))
        && let Some(span) = test.written("reduction").or(test.written("datatype"))
    {
        let help = "use sum, prod, min or max of a type other than 8-bit floating point, or transport = \"nccl\"";
        test.wrong(span, format!("{reduction} of {datatype} is not supported in host memory"), help);
    }
}

pub fn gpus(test: &Table<'_>, kind: &Kind) -> PerEnd<Vec<u32>> {
    if kind.memory.is_some_and(|memory| !memory.has_gpu()) {
        test.refuse(["gpus"], "does not apply to host memory");
        return PerEnd::default();
    }
    let read = |table: &Table<'_>, name: &str| table.wholes::<u32>(name).map(|given| table.unique(name, given.value));
    let Some(gpus) = test.per_end("gpus", read) else { return PerEnd::default() };
    let is_pair = kind.op.is_none_or(|op| !op.is_collective() && op.within_host().is_none());
    let on_gpus = kind.memory.is_none_or(|memory| memory == PerEnd::same(Memory::Cuda));
    if gpus.value.from != gpus.value.to && !(is_pair && on_gpus) {
        let help = "give one list: that of the end with GPU memory, or of every host";
        test.wrong(gpus.span, "`gpus` of each end apply to pairs with GPU memory at both ends", help);
    }
    gpus.value
}

fn ranks_per_host(test: &Table<'_>, gpus: &[u32]) -> u32 {
    let listed = u32::try_from(gpus.len()).unwrap_or(u32::MAX);
    let Some(given) = test.whole::<u32>("ranks_per_host") else { return listed.max(1) };
    if listed > 0 && given.value != listed {
        let message = format!("{} per host on {}", count(given.value as usize, "rank"), count(gpus.len(), "GPU"));
        test.wrong(given.span, message, "every rank needs its own GPU: list as many `gpus` as ranks");
    }
    given.value
}

/// The algorithms of a collective over host memory; each must support the operation.
fn chosen(test: &Table<'_>, op: Op, host: bool) -> Vec<Option<Algorithm>> {
    if !host {
        test.refuse(["algorithm"], "does not apply to NCCL, which uses its own: set env = { NCCL_ALGO = \"Ring\" }");
        return vec![None];
    }
    // The word for any algorithm is none of them.
    let list = test.terms("algorithm", |word| Some(Algorithm::from_word(word)));
    if let Some(wrong) = list.iter().flatten().find(|algorithm| !algorithm.does(op))
        && let Some(span) = test.written("algorithm").or(test.written("op"))
    {
        let fitting: Vec<_> = Algorithm::ALL.iter().filter(|other| other.does(op)).map(|word| word.word()).collect();
        let message = format!("{wrong} is not an algorithm for {op}");
        test.wrong(span, message, format!("use {}, or \"{AUTO}\"", fitting.join(", ")));
    }
    list
}

fn in_place(test: &Table<'_>, op: Op) -> bool {
    let Some(flag) = test.flag("in_place").filter(|flag| flag.value) else { return false };
    // nccl-tests runs these in place by passing the same buffer twice, which NCCL does not promise to support.
    if matches!(op, Op::AllToAll | Op::AllToAllV | Op::SendRecv) {
        if flag.own {
            let message = format!("{op} cannot be done in place");
            test.wrong(flag.span, message, "leave `in_place` out: it needs separate send and receive buffers");
        }
        return false;
    }
    true
}

fn grouping(test: &Table<'_>, members: Option<&Members<'_>>, ranks_per_host: u32) -> Option<Grouping> {
    let word = test.word("groups")?;
    let size = test.whole::<u32>("group_size");
    if let (Some(size), true) = (&size, word.value != "every") {
        test.wrong(size.span.clone(), "`group_size` applies only with groups = \"every\"", "leave it out");
    }
    let wrong = |message: String, help: &str| test.reject(word.span.clone(), message, help);
    let members = members?;
    let hosts = count(members.list.len(), "host");
    let count = members.list.len();
    match word.value {
        "each" if members.hosts.groups.is_empty() => {
            wrong("groups = \"each\", but the plan has no groups".into(), "define them in [hosts.groups]")
        }
        "each" => Some(Grouping::Each),
        "pairs" if count < 2 => wrong(format!("{count} host is not enough for a pair"), "add hosts"),
        "pairs" => Some(Grouping::Pairs),
        "halves" if count < 2 || count % 2 == 1 => {
            wrong(format!("{hosts} cannot be split into two equal halves"), "use an even number of hosts")
        }
        "halves" => Some(Grouping::Halves),
        "every" => {
            let Some(size) = size else {
                return wrong("groups = \"every\" needs `group_size`".into(), "for example group_size = 4");
            };
            if !count.is_multiple_of(size.value as usize) {
                return wrong(
                    format!("{hosts} cannot be divided into groups of {}", size.value),
                    "use a group_size that divides the number of hosts",
                );
            }
            Some(Grouping::Every(size.value))
        }
        _ if count < 2 && ranks_per_host < 2 && count > 0 => {
            wrong("a group needs at least two ranks".into(), "add hosts, or ranks_per_host or gpus")
        }
        _ => Some(Grouping::All),
    }
}

/// Of each group; those of several groups may differ.
pub fn rank_counts(collective: &Collective, members: Option<&Members<'_>>) -> Vec<u64> {
    let groups: Vec<u64> = if let Some(members) = members {
        let all = members.list.len() as u64;
        let inside = |names: &Vec<String>| names.iter().filter(|name| members.has(name)).count() as u64;
        match collective.grouping {
            Grouping::All => vec![all],
            Grouping::Each => members.hosts.groups.values().map(inside).filter(|count| *count > 0).collect(),
            Grouping::Pairs => vec![2],
            Grouping::Halves => vec![all / 2],
            Grouping::Every(size) => vec![u64::from(size)],
        }
    } else {
        vec![1]
    };
    groups.into_iter().map(|hosts| hosts * u64::from(collective.ranks_per_host)).collect()
}

fn verifiable(test: &Table<'_>, collective: &Collective, members: Option<&Members<'_>>) {
    if !test.flag("verify").is_none_or(|verify| verify.value) {
        return;
    }
    for (reduction, datatype) in collective
        .reductions
        .iter()
        .flat_map(|reduction| collective.datatypes.iter().map(move |word| (reduction, word)))
    {
        let rounded = |ranks: &u64| !reduction.is_exact(*datatype, u32::try_from(*ranks).unwrap_or(u32::MAX));
        let counts = rank_counts(collective, members);
        let (Some(ranks), Some(span)) = (counts.iter().find(|ranks| rounded(ranks)), test.written("reduction")) else {
            continue;
        };
        let message = format!("{reduction} of {datatype} over {ranks} ranks is rounded and cannot be verified");
        let help = "use a power-of-two number of ranks, an integer datatype, or verify = false";
        test.wrong(span, message, help);
        return;
    }
}

/// Reports a size that does not divide among the ranks.
pub fn divides(
    test: &Table<'_>,
    op: Op,
    collective: &Collective,
    members: Option<&Members<'_>>,
    sizes: Option<&[Bytes]>,
) {
    let (Some(sizes), Some(span)) = (sizes, test.written("sizes").or(Some(test.span.clone()))) else { return };
    for datatype in &collective.datatypes {
        for ranks in rank_counts(collective, members) {
            let parts = if op.is_divided() { ranks } else { 1 };
            let unit = datatype.bytes() * parts;
            if let Some(size) = sizes.iter().find(|size| !size.is_multiple_of(unit)) {
                let bytes = count(usize::try_from(size.0).unwrap_or(usize::MAX), "byte");
                let message = match op.is_divided() {
                    true => {
                        format!("a message of {bytes} cannot be divided into {datatype} elements for {ranks} ranks")
                    }
                    false => format!("a message of {bytes} is not a whole number of {datatype} elements"),
                };
                let help = format!("use multiples of {unit} bytes");
                test.wrong(span, message, help);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_wire::{Algorithm, Datatype, Memory, Reduction};

    use crate::plan::{Mistakes, Plan, model::Grouping, parse};

    const HEAD: &str = "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a[1-4]\"]\n\
                        [[test]]\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\n";

    fn read(rest: &str) -> Result<Plan, Mistakes> {
        parse("p.toml", &format!("{HEAD}{rest}"), Path::new("")).map(|(plan, _)| plan)
    }

    #[test]
    fn a_matrix_is_every_combination() {
        let plan = read(
            "gpus = [0, 2]\ngroups = \"halves\"\ndatatype = [\"f32\", \"bf16\"]\nreduction = \"max\"\n\
             env = { NCCL_ALGO = [\"Ring\", \"Tree\"], NCCL_PROTO = [\"LL\", \"Simple\"], X = \"1\" }\n",
        )
        .unwrap();
        let collective = plan.tests[0].collective.as_ref().unwrap();
        assert_eq!((collective.grouping, collective.ranks_per_host), (Grouping::Halves, 2));
        assert_eq!(collective.datatypes, [Datatype::F32, Datatype::Bf16]);
        assert_eq!(collective.reductions, [Reduction::Max]);
        assert_eq!(collective.env.len(), 4);
        assert!(collective.env.iter().all(|cell| cell["X"] == "1"));
        assert_eq!(plan.tests[0].gpus.from, [0, 2]);
    }

    #[test]
    fn what_cannot_be_is_said_before_any_host_is_touched() {
        for (rest, words) in [
            ("gpus = [1, 1]", "1 is listed twice in `gpus`"),
            ("ranks_per_host = 3\ngpus = [0, 1]", "3 ranks per host on 2 GPUs"),
            ("sizes = 6", "not a whole number of f32 elements"),
            ("groups = \"every\"", "needs `group_size`"),
            ("groups = \"every\"\ngroup_size = 3", "cannot be divided into groups of 3"),
            ("groups = \"each\"", "the plan has no groups"),
            ("group_size = 2", "only with groups"),
            ("env = { NCCL_DEBUG = \"WARN\" }", "set by railgauge itself"),
            ("env = { \"A B\" = \"1\" }", "not a valid name of an environment variable"),
            ("pattern = \"ring\"", "belongs to pairs"),
            ("qps = 2", "belongs to pairs"),
            ("memory = \"host\"", "NCCL works on GPU memory"),
            ("measure = { confidence = 2 }", "not measured adaptively"),
            ("datatype = \"fp8\"", "`datatype` cannot be"),
            ("gpus = [0, 1, 2]\nreduction = \"avg\"\ndatatype = [\"i32\", \"f8e4m3\"]", "over 12 ranks is rounded"),
            ("carried_by = \"verbs-rc\"", "cannot be"),
            ("algorithm = \"ring\"", "`algorithm` does not apply to NCCL"),
        ] {
            let mistakes = format!("{:?}", read(rest).expect_err(rest));
            assert!(mistakes.contains(words), "{rest}: {mistakes}");
        }
    }

    #[test]
    fn divided_operations_need_sizes_that_divide() {
        let text = HEAD.replace("all_reduce", "all_gather");
        let refused = parse("p.toml", &format!("{text}sizes = 8\n"), Path::new("")).expect_err("8 bytes for 4 ranks");
        assert!(format!("{refused:?}").contains("for 4 ranks"), "{refused:?}");
        assert!(parse("p.toml", &format!("{text}sizes = 64\n"), Path::new("")).is_ok());
    }

    #[test]
    fn host_memory_has_algorithms_and_no_library() {
        let host = HEAD.replace("nccl", "tcp");
        let read = |rest: &str| parse("p.toml", &format!("{host}{rest}\n"), Path::new("")).map(|(plan, _)| plan);
        let plan = read("algorithm = [\"ring\", \"auto\"]\nranks_per_host = 2").unwrap();
        let collective = plan.tests[0].collective.as_ref().unwrap();
        assert_eq!(collective.algorithms, [Some(Algorithm::Ring), None]);
        assert_eq!((plan.tests[0].memory.from, collective.env.len()), (Memory::Host, 1));
        assert_eq!(read("").unwrap().tests[0].collective.as_ref().unwrap().algorithms, [None]);
        for (rest, words) in [
            ("algorithm = \"butterfly\"", "`algorithm` cannot be"),
            ("algorithm = \"chain\"", "chain is not an algorithm for all_reduce"),
            ("algorithm = [\"ring\", \"ring\"]", "listed twice"),
            ("memory = \"cuda\"", "work on host memory"),
            ("gpus = [0, 1]", "not apply to host memory"),
            ("graph = true", "only with transport = \\\"nccl\\\""),
            ("env = { A = \"1\" }", "only with transport"),
            ("rails = \"aligned\"", "belongs to pairs"),
            ("datatype = \"fp8\"", "`datatype` cannot be"),
            ("reduction = \"avg\"", "avg of f32 is not supported"),
            ("datatype = \"f8e4m3\"", "sum of f8e4m3 is not supported"),
            ("sizes = 6", "not a whole number of f32 elements"),
            ("knobs = { depth = 4 }", "not apply to TCP"),
        ] {
            let refused = format!("{:?}", read(rest).expect_err(rest));
            assert!(refused.contains(words), "{rest}: {refused}");
        }
    }

    #[test]
    fn keys_of_collectives_and_carriers_belong_to_collectives() {
        let pair = HEAD.replace("all_reduce", "write").replace("nccl", "tcp");
        for (rest, words) in [
            ("ranks_per_host = 2", "only to collectives"),
            ("env = { A = \"1\" }", "only to collectives"),
            ("gpus = 0", "not apply to host memory"),
        ] {
            let refused = parse("p.toml", &format!("{pair}{rest}\n"), Path::new("")).expect_err(rest);
            assert!(format!("{refused:?}").contains(words), "{rest}: {refused:?}");
        }
        let wrong =
            [HEAD.replace("all_reduce", "write"), HEAD.replace("nccl", "verbs").replace("all_reduce", "reduce")];
        for (text, words) in wrong.iter().zip(["NCCL does not support write", "reduce is not supported over verbs"]) {
            let refused = parse("p.toml", text, Path::new("")).expect_err(words);
            assert!(format!("{refused:?}").contains(words), "{refused:?}");
        }
    }
}

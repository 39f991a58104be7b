use railgauge_wire::{Bytes, Op};

use super::{kind::Kind, members::Members};
use crate::{
    border::text::path_text,
    plan::{
        At, Collective, Section, Table, Traffic,
        count::count,
        format::keys,
        grammar::quantity,
        traffic::{Moe, parse},
    },
};

/// Most ranks: a matrix of them has 16 million values.
const MOST: u32 = 4096;
/// A matrix of 1,024 ranks with ten digits for each value.
const LARGEST: Bytes = Bytes::from_mib(16);

pub static TRAFFIC: Section = Section {
    header: "[test.traffic]",
    about: "What each rank of an `all_to_all_v` sends to each other rank: exactly one of these keys. Ranks are counted in the order of \
            the test's hosts, all of them in one group.",
    keys: keys! {
        "file": Path, Means("one of the other keys"),
            "A matrix in a file: a line for each rank with its bytes to each rank, separated by commas or blanks, such as `0 1.5M 5K` \
             (powers of 1024). What a rank sends to itself is not used. A relative path is relative to the plan's directory.",
            "`matrix_file` of kvbench's `ct-perftest`";
        "moe": Table(&MOE), Means("one of the other keys"),
            "Tokens to the experts of a mixture of experts, or back.", "DeepEP dispatch and combine";
        "kv": Table(&KV), Means("one of the other keys"),
            "Key-value caches from ranks that prefill to those that decode.";
        "weights": Table(&WEIGHTS), Means("one of the other keys"),
            "Weights from ranks that train to those that use the model.";
        "pipeline": Table(&PIPELINE), Means("one of the other keys"),
            "Activations from each stage of a pipeline to the next.";
    },
};

static MOE: Section = Section {
    header: "[test.traffic.moe]",
    about: "The expected bytes of a round. Experts are on the ranks in equal numbers, in order. Each token has `top_k` different experts \
            (with `skew` approximately) and is sent once to a rank with several of them.",
    keys: keys! {
        "experts": Whole(1, 65_536), Required, "Experts on all ranks together.";
        "top_k": Whole(1, 256), Required, "Experts of each token.";
        "tokens": Whole(1, 1 << 24), Required, "Tokens of each rank in a round.";
        "hidden": Whole(1, 1 << 20), Required, "Values of a token.";
        "value_bytes": Whole(1, 8), Is("2"), "Bytes of a value: 1 for 8-bit floating point, 2 for bf16.";
        "skew": Percent(0.0, 300.0), Is("0"),
            "100 times the exponent of Zipf's law, by which experts are chosen, the first one most often; 0 chooses all equally.";
        "combine": Flag, Is("false"), "Whether the results return from the experts instead.";
    },
};

static KV: Section = Section {
    header: "[test.traffic.kv]",
    about: "Each of the first ranks sends to all others, in equal parts.",
    keys: keys! {
        "prefill": Whole(1, 65_536), Required, "How many ranks send.";
        "bytes": Size, Required, "What each of them sends in a round.";
    },
};

static WEIGHTS: Section = Section {
    header: "[test.traffic.weights]",
    about: "Each rank but the first ones receives from all of those, in equal parts.",
    keys: keys! {
        "trainers": Whole(1, 65_536), Required, "How many ranks send.";
        "bytes": Size, Required, "What each other rank receives in a round.";
    },
};

static PIPELINE: Section = Section {
    header: "[test.traffic.pipeline]",
    about: "Stages are equal numbers of adjacent ranks. Each rank sends to the rank at the same place of the next stage.",
    keys: keys! {
        "stages": Whole(2, 65_536), Required, "How many stages.";
        "bytes": Size, Required, "What each rank sends in a round.";
    },
};

/// `None` for other operations.
pub(super) fn read(test: &Table<'_>, kind: &Kind, ranks: Option<u32>) -> Option<Traffic> {
    if kind.op != Some(Op::AllToAllV) {
        test.refuse(["traffic"], "applies only to all_to_all_v");
        return None;
    }
    let Some(span) = test.written("traffic") else {
        let help = "for example [test.traffic] with file = \"bytes.csv\"";
        return test.reject(test.span.clone(), "an all_to_all_v needs [test.traffic]", help);
    };
    let table = test.table("traffic");
    let given: Vec<_> = TRAFFIC.keys.iter().filter(|key| table.has(key.name)).map(|key| key.name).collect();
    let [name] = given[..] else {
        let names: Vec<_> = TRAFFIC.keys.iter().map(|key| format!("`{}`", key.name)).collect();
        let message = format!("[test.traffic] has {} of {}", given.len(), names.join(", "));
        return test.reject(span, message, "exactly one says what is sent");
    };
    let inner = table.table(name);
    let bytes = || Some(inner.parsed("bytes", quantity::size)?.value);
    let traffic = match name {
        "file" => Traffic::Matrix(from_file(&table)?),
        "moe" => Traffic::Moe(moe(&inner)?),
        "kv" => {
            let (prefill, bytes) = (inner.whole("prefill"), bytes());
            Traffic::Kv { prefill: prefill?.value, bytes: bytes? }
        }
        "weights" => {
            let (trainers, bytes) = (inner.whole("trainers"), bytes());
            Traffic::Weights { trainers: trainers?.value, bytes: bytes? }
        }
        _ => {
            let (stages, bytes) = (inner.whole("stages"), bytes());
            Traffic::Pipeline { stages: stages?.value, bytes: bytes? }
        }
    };
    if let Some(groups) = test.word("groups").filter(|groups| groups.value != "all") {
        let message = format!("[test.traffic] with groups = \"{}\"", groups.value);
        return test.reject(groups.span, message, "leave `groups` out: the traffic is that of all ranks");
    }
    let Some(ranks) = ranks else { return Some(traffic) };
    if ranks > MOST {
        let message = format!("traffic between {}", count(ranks as usize, "rank"));
        return test.reject(span, message, format!("at most {MOST} ranks: use fewer hosts"));
    }
    if let Some(why) = traffic.misfit(ranks) {
        return test.reject(span, why, "change the traffic, `hosts` or `ranks_per_host`");
    }
    Some(traffic)
}

fn moe(table: &Table<'_>) -> Option<Moe> {
    let whole = |name| table.whole::<u64>(name).map(|at: At<u64>| at.value);
    let small = |name| table.whole::<u32>(name).map(|at| at.value);
    let (experts, top_k, tokens, hidden) = (small("experts"), small("top_k"), whole("tokens"), whole("hidden"));
    let moe = Moe {
        experts: experts?,
        top_k: top_k?,
        tokens: tokens?,
        hidden: hidden?,
        value_bytes: whole("value_bytes")?,
        skew: table.percent("skew")?.value / 100.0,
        combine: table.flag("combine").is_some_and(|at| at.value),
    };
    if moe.top_k > moe.experts {
        let span = table.written("top_k").unwrap_or(table.span.clone());
        let message = format!("{} experts for each token, of {}", moe.top_k, moe.experts);
        return table.reject(span, message, "`top_k` is at most `experts`");
    }
    Some(moe)
}

fn from_file(table: &Table<'_>) -> Option<Vec<Vec<u64>>> {
    let path = table.path("file")?;
    let text = table.book.file(&path, "the file of `file`", LARGEST)?;
    match parse(&text) {
        Ok(matrix) => Some(matrix),
        Err((line, why)) => table.reject(
            path.span,
            format!("{}:{line}: {why}", path_text(&path.value)),
            "a line for each rank, with its bytes to each rank: `0 1.5M 5K` (powers of 1024)",
        ),
    }
}

/// The bytes of the busiest rank, unless the test has its own `sizes`.
pub(super) fn sizes(
    test: &Table<'_>,
    collective: Option<&Collective>,
    members: Option<&Members<'_>>,
    sizes: Option<Vec<Bytes>>,
) -> Option<Vec<Bytes>> {
    let Some((collective, traffic)) = collective.and_then(|all| Some((all, all.traffic.as_ref()?))) else {
        return sizes;
    };
    let Some(ranks) = members.map(|members| ranks(members, collective.ranks_per_host)).filter(|ranks| *ranks <= MOST)
    else {
        return sizes;
    };
    let width = collective.datatypes.iter().map(|datatype| datatype.bytes()).max().unwrap_or(Bytes(1));
    let own = test.raw("sizes").filter(|raw| raw.own).map(|raw| raw.span);
    let sizes = if own.is_some() { sizes? } else { vec![traffic.size(ranks, width)] };
    let least = *sizes.first()?;
    if traffic.blocks(ranks, least, width).iter().flatten().all(|count| *count == 0) {
        let span = own.or(test.written("traffic")).unwrap_or(test.span.clone());
        let message = format!("with {least} bytes at the busiest rank no rank sends a whole element of {width} bytes");
        return test.reject(span, message, "use larger `sizes`, or datatype = \"u8\"");
    }
    Some(sizes)
}

pub(super) fn ranks(members: &Members<'_>, ranks_per_host: u32) -> u32 {
    u32::try_from(members.list.len()).unwrap_or(u32::MAX).saturating_mul(ranks_per_host)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_wire::Bytes;

    use crate::plan::{parse, traffic::Traffic};

    const HEAD: &str = "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a[1-4]\"]\n\
                        [[test]]\nop = \"all_to_all_v\"\nmetric = \"latency\"\ntransport = \"tcp\"\n";

    fn read(rest: &str, directory: &Path) -> Result<crate::plan::Plan, String> {
        parse("p.toml", &format!("{HEAD}{rest}\n"), directory).map(|(plan, _)| plan).map_err(|all| all.to_string())
    }

    #[test]
    fn the_size_is_that_of_the_busiest_rank_unless_given() {
        let kv = "[test.traffic]\nkv = { prefill = 1, bytes = \"3MiB\" }";
        let plan = read(kv, Path::new("")).unwrap();
        assert_eq!(plan.tests[0].sizes, [Bytes::from_mib(3)]);
        let traffic = plan.tests[0].collective.as_ref().unwrap().traffic.clone();
        assert_eq!(traffic, Some(Traffic::Kv { prefill: 1, bytes: Bytes::from_mib(3) }));
        let plan = read(&format!("sizes = [64, \"1KiB\"]\n{kv}"), Path::new("")).unwrap();
        assert_eq!(plan.tests[0].sizes, [Bytes(64), Bytes(1024)]);
    }

    #[test]
    fn a_file_is_read_from_the_directory_of_the_plan() {
        let directory = tempfile::tempdir().unwrap();
        let write = |text: &str| std::fs::write(directory.path().join("m.csv"), text).unwrap();
        write("0,8,8,8\n8,0,8,8\n8,8,0,8\n800,8,8,0\n");
        let plan = read("traffic = { file = \"m.csv\" }", directory.path()).unwrap();
        assert_eq!(plan.tests[0].sizes, [Bytes(816)]);
        write("0,8\n8,0\n");
        assert!(read("traffic = { file = \"m.csv\" }", directory.path()).unwrap_err().contains("for 2 ranks"));
        write("0,8\n8\n");
        assert!(read("traffic = { file = \"m.csv\" }", directory.path()).unwrap_err().contains("m.csv:2"));
    }

    #[test]
    fn mistakes_are_found_before_any_host_is_contacted() {
        for (rest, words) in [
            ("", "needs [test.traffic]"),
            ("sizes = 4\ntraffic = { kv = { prefill = 2, bytes = \"1MiB\" } }", "no rank sends a whole element"),
            ("groups = \"pairs\"\ntraffic = { kv = { prefill = 1, bytes = \"1MiB\" } }", "groups"),
            ("traffic = {}", "has 0 of"),
            ("traffic = { file = \"none.csv\" }", "cannot be read"),
            ("traffic = { kv = { prefill = 4, bytes = 8 } }", "bytes"),
            ("traffic = { kv = { prefill = 4, bytes = \"8KiB\" } }", "none receives"),
            ("traffic = { pipeline = { stages = 3, bytes = \"8KiB\" } }", "cannot be divided into 3 stages"),
            ("traffic = { moe = { experts = 8, top_k = 9, tokens = 1, hidden = 8 } }", "9 experts for each token"),
            ("traffic = { moe = { experts = 8, top_k = 2, tokens = 1 } }", "`hidden` is missing"),
        ] {
            let refused = read(rest, Path::new("")).expect_err(rest);
            assert!(refused.contains(words), "{rest}: {refused}");
        }
    }
}

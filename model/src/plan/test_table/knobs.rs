use railgauge_wire::{
    link::{Completion, DEPTH, Footprint, Joining, Knobs, WriteLatency},
    terms::{GpuPath, Memory, Op, Precision, TestMetric, Transport},
};

use super::kind::Kind;
use crate::plan::{
    format::{Section, Unset, keys},
    mistakes::Mistake,
    read::{At, Table},
};

const AGENT: Unset = Unset::Means("the agent's; the report says what was used");

pub static KNOBS: Section = Section {
    header: "[test.knobs]",
    about: "Tuning settings of a test. For a knob that is not set the agent chooses a value, and the records of \
            the run say what it used.",
    keys: keys! {
        "depth": Whole(1, 65_536), AGENT, "Work requests in flight per queue pair.", "perftest `--tx-depth`";
        "post_list": Whole(1, 65_536), AGENT, "Work requests posted at once.", "perftest `--post_list`";
        "signal_every": Whole(1, 65_536), AGENT, "One completion per this many work requests.", "perftest `--cq-mod`";
        "inline": Whole(0, 4096), AGENT,
            "Largest payload in bytes that travels inside the work request; not for `read` and atomics.",
            "perftest `--inline_size`";
        "outstanding_reads": Whole(1, 255), AGENT,
            "Reads or atomics in flight per queue pair; only for them.", "perftest `--outs`";
        "mtu": Whole(256, 4096), AGENT, "Path MTU in bytes: 256, 512, 1024, 2048 or 4096.", "perftest `--mtu`";
        "gid_index": Whole(0, 255), AGENT,
            "Index into the port's GID table.", "perftest `--gid-index`; `NCCL_IB_GID_INDEX`";
        "pkey": Whole(1, 65_535), AGENT,
            "Partition key of InfiniBand, by its value (`0x8001`); the agent finds its index. By default the first \
             partition in the port's table of which the port is a full member.",
            "`UCX_IB_PKEY`; perftest `--pkey_index` and `NCCL_IB_PKEY` take the index";
        "traffic_class": Whole(0, 255), AGENT,
            "Traffic class byte; DSCP is its upper six bits.", "perftest `--tclass`; `NCCL_IB_TC`";
        "service_level": Whole(0, 15), AGENT, "Service level.", "perftest `--sl`; `NCCL_IB_SL`";
        "flow_label": Whole(0, 1_048_575), AGENT,
            "Flow label of the first queue pair, counting up from there; spreads the UDP source ports of RoCE v2.",
            "perftest `--flow_label`";
        "retry_count": Whole(0, 7), AGENT,
            "Transport retries. Soft-RoCE retries forever with 7: a dead link then hangs until the deadline.",
            "perftest `--retry_count` (with rdma_cm only); `NCCL_IB_RETRY_CNT`";
        "timeout": Whole(0, 31), AGENT,
            "Local ACK timeout: 4.096 µs × 2^n; 0 waits forever.", "perftest `--qp-timeout`; `NCCL_IB_TIMEOUT`";
        "relaxed_ordering": Flag, AGENT,
            "PCIe relaxed ordering.", "perftest `--disable_pcie_relaxed`; `NCCL_IB_PCI_RELAXED_ORDERING`";
        "huge_pages": Flag, AGENT, "Buffers on huge pages.", "perftest `--use_hugepages`";
        "core": Whole(0, 65_535), AGENT,
            "Core of the measuring thread, or of the first of several `threads`; by default any core of the NIC's \
             NUMA node.", "`taskset`";
        "completion": Word(|| vec!["poll", "events"]), AGENT,
            "Busy polling, or sleeping until the device signals; `events` not for the latency of `write` that polls \
             memory.", "perftest `--events`";
        "footprint": Word(|| vec!["cache", "dram"]), AGENT,
            "Whether a bandwidth loop stays in the last-level cache or walks through four times its size.",
            "perftest stays in the cache";
        "write_latency": Word(|| vec!["poll", "immediate"]),
            Means("`poll`; `immediate` for GPU memory that the NIC reaches, and with `relaxed_ordering = true`"),
            "How a `write` is noticed at its target in a latency test: its last byte is polled in memory, or it \
             carries immediate data and completes a receive. The two are never compared with each other.",
            "perftest polls; `--write_with_imm`";
        "joining": Word(|| vec!["auto", "exchange", "rdma-cm"]), AGENT,
            "How queue pairs are joined: their endpoints travel through the controller, or librdmacm connects them. \
             `auto` takes rdma-cm for iWARP and exchange for the rest.", "perftest `--rdma_cm`";
        "precision": Word(Precision::words), Means("`bf16`; only for `matmul`"),
            "Type of the elements of the matrices that are multiplied; sums are kept in FP32. `fp8` is E4M3. The \
             result is of the same type, of `tf32` FP32, and of `fp8` BF16.";
        "congestion_control": Text, AGENT,
            "Congestion control of TCP connections, such as `cubic`; every host must offer it. By default each host's \
             own.", "iperf3 `-C`";
    },
};

const TCP: &[&str] = &["traffic_class", "huge_pages", "core", "completion", "footprint", "congestion_control"];

/// Longest name of a congestion control (the kernel's `TCP_CA_NAME_MAX`, less its final zero).
const LONGEST_NAME: usize = 15;

/// Knobs that do not apply to collectives, which have their own messages and windows.
const OF_PAIRS: &[&str] =
    &["depth", "post_list", "signal_every", "inline", "outstanding_reads", "relaxed_ordering", "joining"];

/// Knobs of verbs that do not apply to writes where both ends are in one process.
const NOT_OF_LOOPS: &[&str] = &["inline", "outstanding_reads", "write_latency", "joining", "congestion_control"];

/// `table` inherits from `[defaults.knobs]`.
pub fn read(table: &Table<'_>, kind: &Kind) -> Knobs {
    let (transport, op, metric) = (kind.transport, kind.op, kind.metric);
    // Memory that the NIC can access but the CPU cannot.
    let direct = kind.memory == Some(Memory::Cuda) && kind.gpu_path != Some(GpuPath::Staged);
    let book = table.book;
    // A knob that does not apply is a mistake in a test, and dropped in a default.
    let meaningless = |name: &str| match (transport, op) {
        (_, Some(Op::Matmul)) if name == "precision" => None,
        (_, Some(Op::Matmul)) => Some("does not apply to matrix products"),
        (Some(_), Some(_)) if name == "precision" => Some("applies only to matrix products"),
        (Some(Transport::Tcp), _) if !TCP.contains(&name) => Some("does not apply to TCP"),
        (Some(Transport::Cpu), _) if name != "footprint" => Some("does not apply to memory of a host"),
        (Some(Transport::Gpu), _) => Some("does not apply to copies of a GPU"),
        (Some(Transport::Nic), _) if NOT_OF_LOOPS.contains(&name) => {
            Some("does not apply to a NIC that writes to itself")
        }
        (Some(Transport::Nccl), _) => Some("does not apply to NCCL, which is configured with `env`"),
        (_, Some(op)) if op.is_collective() && OF_PAIRS.contains(&name) => Some("does not apply to a collective"),
        (Some(Transport::Verbs), _) if name == "congestion_control" => Some("applies only to TCP"),
        (Some(Transport::Verbs), _) if direct && name == "inline" => {
            Some("cannot be used: the CPU cannot access a payload in GPU memory")
        }
        (Some(Transport::Verbs | Transport::Nic), _) if direct && name == "huge_pages" => {
            Some("does not apply to GPU memory")
        }
        (_, Some(op)) if name == "inline" && (op.pulls() || op.is_atomic()) => {
            Some("cannot be used: reads and atomics carry no payload inside the work request")
        }
        (Some(_), Some(_)) if name == "write_latency" && (transport, op, metric) != WRITE_LATENCY => {
            Some("applies only to the latency of `write`")
        }
        (_, Some(op)) if name == "outstanding_reads" && !(op.pulls() || op.is_atomic()) => {
            Some("applies only to reads and atomics")
        }
        _ => None,
    };
    let left_out = |name: &str| {
        let why = meaningless(name);
        if let (Some(why), Some(span)) = (why, table.name_span(name)) {
            book.wrong(span, format!("the knob `{name}` {why}"), "leave it out");
        }
        why.is_some()
    };
    let whole = |name: &str| if left_out(name) { None } else { table.whole::<u32>(name) };
    let byte = |name: &str| if left_out(name) { None } else { table.whole::<u8>(name).map(|at| at.value) };
    let flag = |name: &str| if left_out(name) { None } else { table.flag(name).map(|at| at.value) };
    let word = |name: &str| if left_out(name) { None } else { table.word(name).map(|at| at.value) };

    let relaxed_ordering = flag("relaxed_ordering");
    let measured = (transport, op, metric);
    let write_latency = if left_out("write_latency") || measured != WRITE_LATENCY {
        None
    } else {
        Some(write_latency(table, direct, relaxed_ordering == Some(true)))
    };
    let polls = write_latency == Some(WriteLatency::Poll);
    let completion = if left_out("completion") { None } else { completion(table, polls) };
    let depth = whole("depth");
    let (post_list, signal_every) = (whole("post_list"), whole("signal_every"));
    for (name, knob) in [("post_list", &post_list), ("signal_every", &signal_every)] {
        let most = depth.as_ref().map_or(DEPTH, |depth| depth.value);
        if let Some(knob) = knob.as_ref().filter(|knob| knob.value > most) {
            let message = format!("`{name}` of {} is more than the depth of {most}", knob.value);
            let mistake = Mistake::at(knob.span.clone(), message);
            let mistake = match &depth {
                Some(depth) => mistake.also(depth.span.clone(), "the depth"),
                None => mistake.label("`depth` is not given"),
            };
            book.add(mistake.help(
                "no more than `depth` work requests are in flight at a time: raise `depth`, or lower this value",
            ));
        }
    }
    let mtu = whole("mtu");
    if let Some(mtu) = mtu.as_ref().filter(|mtu| ![256, 512, 1024, 2048, 4096].contains(&mtu.value)) {
        let help = "expected 256, 512, 1024, 2048 or 4096: the RDMA payload, not the Ethernet MTU";
        book.wrong(mtu.span.clone(), format!("{} bytes is not a valid path MTU", mtu.value), help);
    }
    let retry_count = byte("retry_count");
    if let Some(span) = table.written("retry_count").filter(|_| retry_count == Some(7)) {
        let note = Mistake::at(span, "Soft-RoCE retries forever with retry_count = 7");
        book.note(
            note.help(
                "a dead link is then noticed only at the deadline of the case; with 6 it is reported as an error",
            ),
        );
    }
    let congestion = if left_out("congestion_control") { None } else { table.text("congestion_control") };
    let named = |name: &str| name.len() <= LONGEST_NAME && !name.contains(|c: char| !c.is_ascii_graphic());
    if let Some(name) = congestion.as_ref().filter(|name| !named(&name.value)) {
        let help = "`sysctl net.ipv4.tcp_available_congestion_control` on a host lists those available";
        book.wrong(name.span.clone(), "this cannot be the name of a congestion control", help);
    }
    let given = word("precision").and_then(Precision::from_word);
    let precision = (op == Some(Op::Matmul)).then(|| given.unwrap_or(Precision::Bf16));
    let plain = |knob: Option<At<u32>>| knob.map(|at| at.value);
    Knobs {
        depth: plain(depth),
        post_list: plain(post_list),
        signal_every: plain(signal_every),
        inline: plain(whole("inline")),
        outstanding_reads: byte("outstanding_reads"),
        mtu: plain(mtu),
        gid_index: byte("gid_index"),
        pkey: if left_out("pkey") { None } else { table.whole::<u16>("pkey").map(|at| at.value) },
        traffic_class: byte("traffic_class"),
        service_level: byte("service_level"),
        flow_label: plain(whole("flow_label")),
        retry_count,
        timeout: byte("timeout"),
        relaxed_ordering,
        huge_pages: flag("huge_pages"),
        core: plain(whole("core")),
        completion,
        footprint: word("footprint").map(|word| if word == "dram" { Footprint::Dram } else { Footprint::Cache }),
        precision,
        write_latency,
        joining: word("joining").map(|word| match word {
            "exchange" => Joining::Exchange,
            "rdma-cm" => Joining::RdmaCm,
            _ => Joining::Auto,
        }),
        congestion_control: congestion.map(|name| name.value),
    }
}

/// What [`Knobs::write_latency`] applies to.
const WRITE_LATENCY: (Option<Transport>, Option<Op>, Option<TestMetric>) =
    (Some(Transport::Verbs), Some(Op::Write), Some(TestMetric::Latency));

/// How to measure the latency of `write`: as the plan says, else by polling wherever the memory can be polled. Decided here rather than by
/// the agent, so that it is the same for all pairs of the test.
fn write_latency(table: &Table<'_>, direct: bool, relaxed: bool) -> WriteLatency {
    let against = if direct {
        Some("the CPU cannot poll GPU memory")
    } else if relaxed {
        Some("with relaxed ordering the last byte may be visible before the others")
    } else {
        None
    };
    match (table.word("write_latency"), against) {
        (Some(word), _) if word.value != "poll" => WriteLatency::Immediate,
        (_, None) => WriteLatency::Poll,
        (Some(word), Some(why)) if word.own => {
            let mistake = Mistake::at(word.span, "the last byte of a write cannot be polled here").label(why);
            table.book.add(mistake.help("use write_latency = \"immediate\""));
            WriteLatency::Immediate
        }
        (_, Some(_)) => WriteLatency::Immediate,
    }
}

/// How to wait for completions; `None` where the knob is unset or impossible. `polls`: the test polls memory.
fn completion(table: &Table<'_>, polls: bool) -> Option<Completion> {
    let word = table.word("completion")?;
    if word.value != "events" {
        return Some(Completion::Poll);
    }
    if !polls {
        return Some(Completion::Events);
    }
    // A default is meant for other tests: this one polls, and its record says so.
    if word.own {
        let message = "the latency of plain writes cannot be measured with `completion` = \"events\"";
        let mistake = Mistake::at(word.span, message).label("an RDMA WRITE causes no completion event at its target");
        let help = "use write_latency = \"immediate\", op = \"write_imm\" or \"send\", or completion = \"poll\"";
        table.book.add(mistake.help(help));
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::plan::parse;

    fn read(test: &str) -> Result<Knobs, String> {
        let head = "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a[1-2]\"]\n[[test]]\n";
        let text = format!("{head}transport = \"verbs\"\n{test}\n");
        let parsed = parse("p.toml", &text, Path::new(""));
        parsed.map(|(plan, _)| plan.tests[0].knobs.clone()).map_err(|mistakes| format!("{mistakes:?}"))
    }

    #[test]
    fn the_latency_of_writes_is_polled_wherever_memory_can_be_and_the_plan_says_which() {
        let way = |rest: &str| {
            read(&format!("op = \"write\"\nmetric = \"latency\"\nsizes = 8\n{rest}")).map(|knobs| knobs.write_latency)
        };
        assert_eq!(way(""), Ok(Some(WriteLatency::Poll)));
        assert_eq!(way("memory = \"cuda\""), Ok(Some(WriteLatency::Immediate)));
        assert_eq!(way("knobs = { relaxed_ordering = true }"), Ok(Some(WriteLatency::Immediate)));
        assert_eq!(way("knobs = { relaxed_ordering = false }"), Ok(Some(WriteLatency::Poll)));
        assert_eq!(way("knobs = { write_latency = \"immediate\" }"), Ok(Some(WriteLatency::Immediate)));
        assert_eq!(
            way("knobs = { write_latency = \"immediate\", completion = \"events\" }"),
            Ok(Some(WriteLatency::Immediate)),
            "what completes a receive can be slept for"
        );
        for (rest, why) in [
            ("memory = \"cuda\"\nknobs = { write_latency = \"poll\" }", "cannot poll GPU memory"),
            ("knobs = { write_latency = \"poll\", relaxed_ordering = true }", "visible before the others"),
            ("knobs = { completion = \"events\" }", "causes no completion event"),
        ] {
            let refused = way(rest).expect_err(rest);
            assert!(refused.contains(why), "{rest}: {refused}");
        }
    }

    #[test]
    fn other_tests_have_no_such_setting() {
        for test in ["op = \"write\"\nmetric = \"bandwidth\"", "op = \"send\"\nmetric = \"latency\""] {
            assert_eq!(read(&format!("{test}\nsizes = 8")).map(|knobs| knobs.write_latency), Ok(None));
            let refused = read(&format!("{test}\nsizes = 8\nknobs = {{ write_latency = \"poll\" }}")).expect_err(test);
            assert!(refused.contains("only to the latency of `write`"), "{refused}");
        }
    }

    #[test]
    fn partitions_are_named_by_value() {
        let key = |value: &str| {
            read(&format!("op = \"write\"\nmetric = \"bandwidth\"\nsizes = 8\nknobs = {{ pkey = {value} }}"))
        };
        assert_eq!(key("0x8001").map(|knobs| knobs.pkey), Ok(Some(0x8001)));
        assert!(key("0").is_err() && key("65536").is_err());
    }
}

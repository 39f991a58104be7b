use railgauge_wire::{
    Completion, DEPTH, Footprint, GpuPath, Joining, Knobs, Memory, Op, Precision, TestMetric, Transport, WriteLatency,
};

use super::kind::Kind;
use crate::plan::{Mistake, PerEnd, Section, Table, Unset, format::keys};

const AGENT: Unset = Unset::Means("agent's choice");

pub static KNOBS: Section = Section {
    header: "[test.knobs]",
    about: "Tuning settings of a test. For a knob that is not set the agent chooses a value, and the records of \
            the run say what it used.",
    keys: keys! {
        "depth": Whole(1, 65_536), AGENT, "Work requests in flight per queue pair.", "perftest `--tx-depth`";
        "post_list": Whole(1, 65_536), AGENT, "Work requests posted at once.", "perftest `--post_list`";
        "signal_every": Whole(1, 65_536), AGENT, "One completion per this many work requests; at most 16 for latency.", "perftest `--cq-mod`";
        "inline": Whole(0, 4096), AGENT,
            "Largest payload in bytes that is sent inside the work request; not for `read` and atomics.",
            "perftest `--inline_size`";
        "outstanding_reads": Whole(1, 255), AGENT,
            "Reads or atomics in flight per queue pair.", "perftest `--outs`";
        "mtu": Whole(256, 4096), AGENT, "Path MTU in bytes: 256, 512, 1024, 2048 or 4096.", "perftest `--mtu`";
        "gid_index": Whole(0, 255), AGENT,
            "Index into the port's GID table.", "perftest `--gid-index`; `NCCL_IB_GID_INDEX`";
        "pkey": Whole(1, 65_535), AGENT,
            "InfiniBand partition key by value (`0x8001`); the default is the first with full \
             membership.",
            "`UCX_IB_PKEY`; perftest `--pkey_index` and `NCCL_IB_PKEY` take the index";
        "traffic_class": Whole(0, 255), AGENT,
            "Traffic class byte; DSCP is its upper six bits.", "perftest `--tclass`; `NCCL_IB_TC`";
        "service_level": Whole(0, 15), AGENT, "Service level.", "perftest `--sl`; `NCCL_IB_SL`";
        "flow_label": Whole(0, 1_048_575), AGENT,
            "Flow label of the first queue pair, counting up; spreads the UDP source ports of RoCE v2.",
            "perftest `--flow_label`";
        "retry_count": Whole(0, 7), AGENT,
            "Transport retries. With 7, Soft-RoCE retries forever, until the deadline.",
            "perftest `--retry_count` (with rdma_cm only); `NCCL_IB_RETRY_CNT`";
        "timeout": Whole(0, 31), AGENT,
            "Local ACK timeout: 4.096 µs × 2^n; 0 waits forever.", "perftest `--qp-timeout`; `NCCL_IB_TIMEOUT`";
        "relaxed_ordering": Flag, AGENT,
            "PCIe relaxed ordering.", "perftest `--disable_pcie_relaxed`; `NCCL_IB_PCI_RELAXED_ORDERING`";
        "ece": Flag, Means("`false`, as perftest without rdma_cm; NCCL's default is `true`"),
            "Enhanced connection establishment: queue pairs use vendor extensions such as selective repeat.", "`NCCL_IB_ECE_ENABLE`";
        "data_direct": Flag, Means("`true` if the NIC has it, as in NCCL"),
            "The NIC accesses GPU memory by a separate PCI function (ConnectX-8).",
            "perftest `--use_data_direct`; `NCCL_IB_DATA_DIRECT`";
        "huge_pages": Flag, AGENT, "Buffers on huge pages.", "perftest `--use_hugepages`";
        "core": Whole(0, 65_535), AGENT,
            "Core of the measuring thread, or of the first of several `threads`; by default any on the NIC's NUMA \
             node.", "`taskset`";
        "completion": Word(Completion::all_words), AGENT,
            "Busy polling, or sleeping until the device signals (not for a polled `write` latency).", "perftest `--events`";
        "footprint": Word(Footprint::all_words), AGENT,
            "Buffers of a bandwidth test: in the last-level cache, or four times its size.",
            "perftest stays in the cache";
        "write_latency": Word(WriteLatency::all_words),
            Means("`poll`; `immediate` for GPU memory that the NIC accesses, and with `relaxed_ordering = true`"),
            "How the target of a `write` detects it in a latency test: it polls the last byte, or completes a \
             receive for immediate data. The two are never compared.",
            "perftest polls; `--write_with_imm`";
        "joining": Word(Joining::all_words), AGENT,
            "How queue pairs are connected: through the controller, or by librdmacm. `auto` takes rdma-cm for iWARP, \
             else exchange.", "perftest `--rdma_cm`";
        "precision": Word(Precision::all_words), Means("`bf16`; only for `matmul`"),
            "Element type of the matrices; sums are FP32. `fp8` is E4M3. The result has the same type; of `tf32` \
             FP32, of `fp8` BF16.";
        "congestion_control": Text, AGENT,
            "TCP congestion control, such as `cubic`; every host must offer it. By default the host's own.", "iperf3 `-C`";
    },
};

const TCP: &[&str] = &["traffic_class", "huge_pages", "core", "completion", "footprint", "congestion_control"];

/// Longest name of a congestion control (the kernel's `TCP_CA_NAME_MAX`, less its final zero).
const LONGEST_NAME: usize = 15;

/// Knobs that do not apply to collectives, which have their own messages and windows.
const OF_PAIRS: &[&str] = &[
    "depth",
    "post_list",
    "signal_every",
    "inline",
    "outstanding_reads",
    "relaxed_ordering",
    "joining",
    "ece",
    "data_direct",
];

/// Knobs of verbs that do not apply to writes where both ends are in one process.
const NOT_OF_LOOPS: &[&str] = &["inline", "outstanding_reads", "write_latency", "joining", "congestion_control"];

/// What [`Knobs::write_latency`] applies to.
const WRITE_LATENCY: (Option<Transport>, Option<Op>, Option<TestMetric>) =
    (Some(Transport::Verbs), Some(Op::Write), Some(TestMetric::Latency));

/// `table` inherits from `[defaults.knobs]`. A knob that does not apply is a mistake in a test, and dropped in a default.
pub fn read(table: &Table<'_>, kind: &Kind) -> Knobs {
    // Memory that the NIC can access but the CPU cannot: of either end, of both.
    let is_direct = |memory: &Memory| *memory == Memory::Cuda && kind.gpu_path != Some(GpuPath::Staged);
    let of_ends = |memory: PerEnd<Memory>| (memory.any(is_direct), memory.all(is_direct));
    let direct = kind.memory.map(of_ends).unwrap_or_default();
    let mut knobs: Knobs = table.settings(|name| {
        let why = meaningless(name, kind, direct);
        if let (Some(why), Some(span)) = (why, table.name_span(name)) {
            table.wrong(span, format!("the knob `{name}` {why}"), "leave it out");
        }
        why.is_none()
    });
    let most = knobs.depth.unwrap_or(DEPTH);
    for (name, value) in [("post_list", knobs.post_list), ("signal_every", knobs.signal_every)] {
        let (Some(value), Some(raw)) = (value.filter(|value| *value > most), table.raw(name)) else { continue };
        let mistake = Mistake::at(raw.span, format!("`{name}` of {value} is more than the depth of {most}"));
        let mistake = match table.raw("depth").filter(|_| knobs.depth.is_some()) {
            Some(depth) => mistake.also(depth.span, "the depth"),
            None => mistake.label("`depth` is not given"),
        };
        let help = "no more than `depth` work requests are in flight at a time: raise `depth`, or lower this value";
        table.book.add(mistake.help(help));
    }
    let span = |name: &str| table.raw(name).map_or(table.span.clone(), |raw| raw.span);
    if let Some(mtu) = knobs.mtu.filter(|mtu| ![256, 512, 1024, 2048, 4096].contains(mtu)) {
        let help = "expected 256, 512, 1024, 2048 or 4096: the RDMA payload, not the Ethernet MTU";
        table.wrong(span("mtu"), format!("{mtu} bytes is not a valid path MTU"), help);
    }
    if let Some(span) = table.written("retry_count").filter(|_| knobs.retry_count == Some(7)) {
        let help = "a dead link is then noticed only at the deadline of the case; with 6 it is reported as an error";
        table.book.note(Mistake::at(span, "Soft-RoCE retries forever with retry_count = 7").help(help));
    }
    let named = |name: &String| name.len() <= LONGEST_NAME && !name.contains(|c: char| !c.is_ascii_graphic());
    if knobs.congestion_control.as_ref().is_some_and(|name| !named(name)) {
        let help = "`sysctl net.ipv4.tcp_available_congestion_control` on a host lists those available";
        table.wrong(span("congestion_control"), "this cannot be the name of a congestion control", help);
    }
    if kind.op == Some(Op::Matmul) {
        knobs.precision.get_or_insert(Precision::Bf16);
    }
    let relaxed = knobs.relaxed_ordering == Some(true);
    knobs.write_latency =
        ((kind.transport, kind.op, kind.metric) == WRITE_LATENCY).then(|| write_latency(table, direct.0, relaxed));
    if knobs.write_latency == Some(WriteLatency::Poll) && knobs.completion == Some(Completion::Events) {
        // A default is meant for other tests: this one polls, and its record says so.
        knobs.completion = None;
        if let Some(span) = table.written("completion") {
            let message = "the latency of plain writes cannot be measured with `completion` = \"events\"";
            let mistake = Mistake::at(span, message).label("an RDMA WRITE causes no completion event at its target");
            let help = "use write_latency = \"immediate\", op = \"write_imm\" or \"send\", or completion = \"poll\"";
            table.book.add(mistake.help(help));
        }
    }
    knobs
}

/// Why a knob does not apply to a kind of test.
fn meaningless(name: &str, kind: &Kind, (any, both): (bool, bool)) -> Option<&'static str> {
    let op = kind.op?;
    let reads = op.pulls() || op.is_atomic();
    Some(match kind.transport? {
        _ if op == Op::Matmul && name == "precision" => return None,
        _ if op == Op::Matmul => "does not apply to matrix products",
        _ if name == "precision" => "applies only to matrix products",
        Transport::Tcp if !TCP.contains(&name) => "does not apply to TCP",
        Transport::Cpu if name != "footprint" => "does not apply to memory of a host",
        Transport::Gpu => "does not apply to copies of a GPU",
        Transport::Nic if NOT_OF_LOOPS.contains(&name) => "does not apply to a NIC that writes to itself",
        Transport::Nccl => "does not apply to NCCL, which is configured with `env`",
        _ if op.is_collective() && OF_PAIRS.contains(&name) => "does not apply to a collective",
        Transport::Verbs if name == "congestion_control" => "applies only to TCP",
        Transport::Verbs if both && name == "inline" => "cannot be used: the CPU cannot access a payload in GPU memory",
        Transport::Verbs | Transport::Nic if both && name == "huge_pages" => "does not apply to GPU memory",
        _ if name == "data_direct" && !any => "applies only to GPU memory that the NIC reaches",
        _ if name == "inline" && reads => "cannot be used: reads and atomics carry no payload inside the work request",
        _ if name == "write_latency" && (kind.transport, kind.op, kind.metric) != WRITE_LATENCY => {
            "applies only to the latency of `write`"
        }
        _ if name == "outstanding_reads" && !reads => "applies only to reads and atomics",
        _ => return None,
    })
}

/// How to measure the latency of `write`: as the plan says, else by polling wherever the memory can be polled. Decided here rather than by
/// the agent, so that it is the same for all pairs of the test.
fn write_latency(table: &Table<'_>, direct: bool, relaxed: bool) -> WriteLatency {
    let against = match (direct, relaxed) {
        (true, _) => Some("the CPU cannot poll GPU memory"),
        (false, true) => Some("with relaxed ordering the last byte may be visible before the others"),
        (false, false) => None,
    };
    let word = table.word("write_latency");
    match against {
        _ if word.as_ref().is_some_and(|word| word.value != "poll") => WriteLatency::Immediate,
        None => WriteLatency::Poll,
        Some(why) => {
            if let Some(word) = word.filter(|word| word.own) {
                let mistake = Mistake::at(word.span, "the last byte of a write cannot be polled here").label(why);
                table.book.add(mistake.help("use write_latency = \"immediate\""));
            }
            WriteLatency::Immediate
        }
    }
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
        let each = "memory = { from = \"cuda\", to = \"host\" }";
        assert_eq!(way(each), Ok(Some(WriteLatency::Immediate)), "both ends write");
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

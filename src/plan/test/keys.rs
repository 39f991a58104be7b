//! Keys of `[[test]]` and `[defaults]`.

use railgauge_wire::terms::{Datatype, Fabric, Memory, Reduction, Service};

use super::{expect::EXPECT, knobs::KNOBS};
use crate::plan::keys::{Key, Preset, Section, Shape, aims, operations};

/// Keys of `[[test]]`.
pub static TEST: Section = Section {
    path: "test",
    about: "One thing that is measured. Its cases are every pair of its pattern × every rail × every size × every number of queue pairs, `repeats` times.",
    keys: KEYS,
};

/// Keys of `[defaults]`.
pub static DEFAULTS: Section = Section {
    path: "defaults",
    about: "Keys for all tests: every key of `[[test]]` but `name`, `op` and `expect`. What a test says itself comes first; `knobs` are taken key by key. A default that has no meaning for a test is left out of it (`qps` of a latency test, verbs knobs of a TCP test).",
    keys: shared(KEYS),
};

/// What follows the first two keys and precedes the last.
const fn shared(keys: &'static [Key]) -> &'static [Key] {
    let (_, behind) = keys.split_at(2);
    behind.split_at(behind.len() - 1).0
}

const KEYS: &[Key] = &[
    Key {
        name: "name",
        shape: Shape::Text,
        preset: Preset::Words("op, metric and transport: `write-bandwidth-verbs`"),
        about: "Name of the test, different for every test, at most 100 characters.",
        peers: "",
    },
    Key {
        name: "op",
        shape: Shape::Word(operations),
        preset: Preset::Required,
        about: "What is done to the bytes. `read` and atomics need the service `rc`; TCP carries `write`, `read` and `send`; from `all_reduce` on they are collectives, for the transport `nccl`.",
        peers: "perftest `ib_write_*`, `ib_read_*`, `ib_send_*`, `ib_atomic_*`; nccl-tests `*_perf`",
    },
    Key {
        name: "metric",
        shape: Shape::Word(aims),
        preset: Preset::Required,
        about: "`bandwidth` posts as much as possible and yields bandwidth, message rate and CPU time; `latency` has one operation in flight and yields the latency percentiles. A collective yields bus and algorithm bandwidth of pipelined operations (as nccl-tests does), or the latency percentiles of operations separated by a barrier; the slowest rank counts.",
        peers: "perftest `*_bw`, `*_lat`; nccl-tests `busbw`",
    },
    Key {
        name: "transport",
        shape: Shape::Word(|| Fabric::ALL.iter().map(|word| word.word()).collect()),
        preset: Preset::Value("\"verbs\""),
        about: "`verbs` is RDMA; `tcp` is sockets, the baseline; `nccl` runs collectives between GPUs with the host's own NCCL.",
        peers: "",
    },
    Key {
        name: "service",
        shape: Shape::Word(|| Service::ALL.iter().map(|word| word.word()).collect()),
        preset: Preset::Value("\"rc\""),
        about: "Queue pair service: reliable, unreliable connected, or datagrams. `uc` carries `write`, `write_imm` and `send`; `ud` carries `send` of at most 4096 bytes.",
        peers: "perftest `--connection`",
    },
    Key {
        name: "memory",
        shape: Shape::Word(|| Memory::ALL.iter().map(|word| word.word()).collect()),
        preset: Preset::Value("\"host\""),
        about: "Where the bytes live. Collectives of `nccl` always work on GPU memory.",
        peers: "perftest `--use_cuda`",
    },
    Key {
        name: "gpu_path",
        shape: Shape::Word(|| vec!["gdr-dmabuf", "gdr-peermem", "staged"]),
        preset: Preset::Words("the best there is"),
        about: "Demanded way of GPU memory to the fabric; only with `memory = \"cuda\"`.",
        peers: "perftest `--use_cuda_dmabuf`; `NCCL_DMABUF_ENABLE`, `NCCL_NET_GDR_LEVEL`",
    },
    Key {
        name: "gpus",
        shape: Shape::Wholes(0, 63),
        preset: Preset::Words("rail i and rank i use the GPU nearest to their NIC, else GPU i"),
        about: "CUDA devices by number: for a pair with `memory = \"cuda\"` one for each rail, in rail order (one alone serves all rails); for a collective one for each rank of a host.",
        peers: "perftest `--use_cuda`; `CUDA_VISIBLE_DEVICES`",
    },
    Key {
        name: "groups",
        shape: Shape::Word(|| super::collective::GROUPINGS.to_vec()),
        preset: Preset::Value("\"all\""),
        about: "Which hosts form a group of a collective: `all` of the test; `each` named group; all `pairs`; the two `halves`; `every` `group_size` hosts in their order. Groups without a common host run at the same time.",
        peers: "",
    },
    Key {
        name: "group_size",
        shape: Shape::Whole(1, 65_536),
        preset: Preset::Words("required with `groups = \"every\"`"),
        about: "Hosts of each group; only with `groups = \"every\"`.",
        peers: "",
    },
    Key {
        name: "ranks_per_host",
        shape: Shape::Whole(1, 64),
        preset: Preset::Words("as many as `gpus` lists, else 1"),
        about: "Ranks of a collective on every host, each a process with a GPU of its own.",
        peers: "nccl-tests `-t`, `-g`; `mpirun -N`",
    },
    Key {
        name: "datatype",
        shape: Shape::Words(|| Datatype::ALL.iter().map(|word| word.word()).collect()),
        preset: Preset::Value("\"f32\""),
        about: "Type of a collective's elements; a list is one set of cases for each.",
        peers: "nccl-tests `-d`",
    },
    Key {
        name: "reduction",
        shape: Shape::Words(|| Reduction::ALL.iter().map(|word| word.word()).collect()),
        preset: Preset::Value("\"sum\""),
        about: "What `all_reduce`, `reduce` and `reduce_scatter` make of the elements; a list is one set of cases for each.",
        peers: "nccl-tests `-o`",
    },
    Key {
        name: "in_place",
        shape: Shape::Flag,
        preset: Preset::Value("false"),
        about: "Whether a collective's result takes the place of its input. What timed sums in place leave behind cannot be verified; the operations before and after are.",
        peers: "nccl-tests runs both",
    },
    Key {
        name: "graph",
        shape: Shape::Flag,
        preset: Preset::Value("false"),
        about: "Whether a collective's operations are captured into a CUDA graph, which is launched.",
        peers: "nccl-tests `-G`",
    },
    Key {
        name: "env",
        shape: Shape::Matrix,
        preset: Preset::Words("the agent's environment"),
        about: "Environment of a collective's ranks: every combination of the listed texts is a set of cases of its own, `env = { NCCL_ALGO = [\"Ring\", \"Tree\"] }`.",
        peers: "NCCL's environment variables",
    },
    Key {
        name: "library",
        shape: Shape::Text,
        preset: Preset::Words("`libnccl.so.2` as the host's loader finds it"),
        about: "NCCL to open on the hosts: a name or a path.",
        peers: "`LD_LIBRARY_PATH`",
    },
    Key {
        name: "carried_by",
        shape: Shape::Word(super::collective::carriers),
        preset: Preset::Words("whatever NCCL chooses"),
        about: "What must carry a collective's bytes, judged by NCCL's own log: another carrier fails the case.",
        peers: "`NCCL_DEBUG=INFO`, read by eye",
    },
    Key {
        name: "sizes",
        shape: Shape::Sizes,
        preset: Preset::Words("`\"64KiB\"` for bandwidth, `8` for latency and atomics"),
        about: "Message sizes: `\"64..8MiB x2\"` doubles, `\"4KiB..64KiB +4KiB\"` adds, or a list. Atomics work on 8 bytes. For a collective the larger of what a rank sends and receives.",
        peers: "perftest `--size`, `--all`; nccl-tests `-b -e -f -i`",
    },
    Key {
        name: "qps",
        shape: Shape::Wholes(1, 1024),
        preset: Preset::Value("1"),
        about: "Queue pairs, or TCP streams; a list is one set of cases for each. Latency is measured on one.",
        peers: "perftest `--qp`; `NCCL_IB_QPS_PER_CONNECTION`; iperf3 `-P`",
    },
    Key {
        name: "bidirectional",
        shape: Shape::Flag,
        preset: Preset::Value("false"),
        about: "Whether both directions run at once; the value is then the sum of both. Bandwidth only.",
        peers: "perftest `--bidirectional`",
    },
    Key {
        name: "pattern",
        shape: Shape::Word(|| super::pattern::NAMES.iter().map(|(name, _)| *name).collect()),
        preset: Preset::Value("\"tournament\""),
        about: "Who talks to whom; see the table of patterns.",
        peers: "",
    },
    Key {
        name: "rounds",
        shape: Shape::Whole(1, 65_536),
        preset: Preset::Words("required with `pattern = \"random\"`"),
        about: "How many rounds of the tournament, chosen by the seed; only with `pattern = \"random\"`.",
        peers: "",
    },
    Key {
        name: "from",
        shape: Shape::Text,
        preset: Preset::Words("required with `pattern = \"one-to-many\"`"),
        about: "The one host; only with `pattern = \"one-to-many\"`.",
        peers: "",
    },
    Key {
        name: "to",
        shape: Shape::Text,
        preset: Preset::Words("required with `pattern = \"many-to-one\"`"),
        about: "The one host; only with `pattern = \"many-to-one\"`.",
        peers: "",
    },
    Key {
        name: "between",
        shape: Shape::TwoGroups,
        preset: Preset::Words("required with `pattern = \"between\"`"),
        about: "The two groups, which share no host; only with `pattern = \"between\"`.",
        peers: "",
    },
    Key {
        name: "pairs",
        shape: Shape::Pairs,
        preset: Preset::Words("required with `pattern = \"pairs\"`"),
        about: "The pairs, source first; only with `pattern = \"pairs\"`.",
        peers: "",
    },
    Key {
        name: "rails",
        shape: Shape::Rails,
        preset: Preset::Value("\"aligned\""),
        about: "`aligned`: rail i with rail i, all rails at once. `crossed`: every rail with every rail of the peer. A list: only these rails, aligned, counted from 0.",
        peers: "`NCCL_CROSS_NIC`",
    },
    Key {
        name: "hosts",
        shape: Shape::Hosts,
        preset: Preset::Words("all hosts"),
        about: "Hosts that take part: groups, hostlists, or a list of both.",
        peers: "",
    },
    Key {
        name: "repeats",
        shape: Shape::Whole(1, 1000),
        preset: Preset::Value("1"),
        about: "How often every round is measured. One repeat gives a value, more give its scatter.",
        peers: "",
    },
    Key {
        name: "measure",
        shape: Shape::Window,
        preset: Preset::Value("\"2s\""),
        about: "How long one measurement is: a duration, a number of operations per queue pair, or adaptive: until the 95 % confidence interval of the mean is within `confidence` of it. Collectives know the first two.",
        peers: "perftest `--duration`, `--iters`",
    },
    Key {
        name: "warm_up",
        shape: Shape::Time("0s", "10min"),
        preset: Preset::Value("\"500ms\""),
        about: "Untimed time before each measurement.",
        peers: "perftest `--perform_warm_up`; nccl-tests `-w`",
    },
    Key {
        name: "verify",
        shape: Shape::Flag,
        preset: Preset::Value("true"),
        about: "Whether the bytes are compared before and after the timed pass. A wrong byte fails the case whatever its speed.",
        peers: "nccl-tests `-c`",
    },
    Key {
        name: "deadline",
        shape: Shape::Time("100ms", "1h"),
        preset: Preset::Value("\"30s\""),
        about: "Time beyond the measurement after which a case is given up and the host that did not answer is named.",
        peers: "",
    },
    Key {
        name: "knobs",
        shape: Shape::Table(&KNOBS),
        preset: Preset::Words("the agent's defaults"),
        about: "What may be turned below the operation.",
        peers: "",
    },
    Key {
        name: "expect",
        shape: Shape::Tables(&EXPECT),
        preset: Preset::Words("none: a test passes when every case was measured and its bytes were right"),
        about: "What is demanded of the results.",
        peers: "",
    },
];

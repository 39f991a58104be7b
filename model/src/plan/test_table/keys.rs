use railgauge_wire::terms::{Datatype, Distance, Memory, Reduction, Service, Transport};

use super::{beside::BESIDE, configure::CONFIGURE, expect::EXPECT, knobs::KNOBS};
use crate::plan::{
    format::{Key, Preset, Section, Shape, aims, key, operations},
    limits,
};

pub static TEST: Section = Section {
    header: "[[test]]",
    about: "One thing that is measured. Its cases are every pair of its pattern × every rail × every size × every \
     number of queue pairs, `repeats` times.",
    keys: KEYS,
};

pub static DEFAULTS: Section = Section {
    header: "[defaults]",
    about: "Keys for all tests: every key of `[[test]]` but `name`, `op`, `configure`, `beside` and `expect`. What a test says itself comes \
     first; `knobs` are taken key by key. A default that does not apply to a test is left out of it (`qps` of \
     a latency test, verbs knobs of a TCP test).",
    keys: shared(KEYS),
};

const fn shared(keys: &'static [Key]) -> &'static [Key] {
    let (_, behind) = keys.split_at(2);
    behind.split_at(behind.len() - 3).0
}

const KEYS: &[Key] = &[
    key(
        "name",
        Shape::Text,
        Preset::Words("op, metric and transport: `write-bandwidth-verbs`"),
        "Name of the test, different for every test, at most 100 characters.",
    ),
    key(
        "op",
        Shape::Word(operations),
        Preset::Required,
        "The operation. `read` and atomics need the service `rc`; TCP carries `write`, `read` \
             and `send`; from `all_reduce` on they are collectives: all of them by `nccl` between GPUs, and \
             `all_reduce`, `broadcast`, `all_gather`, `reduce_scatter` and `all_to_all` over `tcp` and `verbs` \
             between host memories. From `memory_read` on they stay within a host: memory of its processors and GPUs, \
             matrix products, and writes through a NIC and back ([tests](tests.md#tests-within-hosts)).",
    )
    .known_as("perftest `ib_write_*`, `ib_read_*`, `ib_send_*`, `ib_atomic_*`; nccl-tests `*_perf`"),
    key(
        "metric",
        Shape::Word(aims),
        Preset::Required,
        "`bandwidth` posts as much as possible and yields bandwidth, message rate and CPU time; `latency` \
             has one operation in flight and yields the latency percentiles (of `memory_read` the median). A collective yields bus and \
             algorithm bandwidth of pipelined operations (as nccl-tests does), or the latency percentiles of \
             operations separated by a barrier; the slowest rank counts. `step` is a training step: gradients \
             are reduced in buckets while a timer stands for the backward pass ([tests](tests.md#training-steps)). \
             `compute` is for `matmul`: floating-point operations per second.",
    )
    .known_as("perftest `*_bw`, `*_lat`; nccl-tests `busbw`"),
    key(
        "transport",
        Shape::Word(|| Transport::ALL.iter().map(|word| word.word()).collect()),
        Preset::Value("\"verbs\""),
        "`verbs` is RDMA; `tcp` is sockets, the baseline; `nccl` runs collectives between GPUs with the \
             host's own NCCL. Operations within a host have `cpu`, `gpu` or `nic` of their own: leave it out.",
    ),
    key(
        "service",
        Shape::Word(|| Service::ALL.iter().map(|word| word.word()).collect()),
        Preset::Value("\"rc\""),
        "Queue pair service: reliable, unreliable connected, or datagrams. `uc` carries `write`, \
             `write_imm` and `send`; `ud` carries `send` of at most 4096 bytes.",
    )
    .known_as("perftest `--connection`"),
    key(
        "memory",
        Shape::Word(|| Memory::ALL.iter().map(|word| word.word()).collect()),
        Preset::Value("\"host\""),
        "Where the data is. Collectives of `nccl` always work on GPU memory, those over `tcp` and `verbs` on \
             host memory.",
    )
    .known_as("perftest `--use_cuda`"),
    key(
        "gpu_path",
        Shape::Word(|| vec!["gdr-dmabuf", "gdr-peermem", "staged"]),
        Preset::Words("over verbs dma-buf, else peermem, as far as the NIC goes; over TCP staged"),
        "Demanded way of GPU memory to the fabric; only with `memory = \"cuda\"`. `gdr-dmabuf` and `gdr-peermem`: \
             the NIC reads and writes it (GPUDirect RDMA). `staged`: every message is copied through page-locked \
             host memory, at both ends; over verbs it must be asked for, and there are `send` and `write_imm`. `nic_loopback` has no `staged`.",
    )
    .known_as("perftest `--use_cuda_dmabuf`; `NCCL_DMABUF_ENABLE`, `NCCL_NET_GDR_LEVEL`"),
    key(
        "gpus",
        Shape::Wholes(0, 63),
        Preset::Words("rail i and rank i use the GPU nearest to their NIC, else GPU i"),
        "CUDA devices by number: for a pair or a `nic_loopback` with `memory = \"cuda\"` one for each rail, in rail order (one \
             alone serves all rails); for a collective one for each rank of a host.",
    )
    .known_as("perftest `--use_cuda`; `CUDA_VISIBLE_DEVICES`"),
    key(
        "gpu_distance",
        Shape::Words(|| Distance::ALL.iter().map(|word| word.word()).collect()),
        Preset::Words("the nearest GPU, whatever its distance"),
        "Distance between the GPU and the NIC of each end, in the words of `nvidia-smi topo -m`; a list is one test for \
             each, called after it, over the rails that have a GPU at that distance at both ends. Only over verbs with \
             `memory = \"cuda\"`.",
    )
    .known_as("`NCCL_NET_GDR_LEVEL`"),
    key(
        "groups",
        Shape::Word(|| super::collective::GROUPINGS.to_vec()),
        Preset::Value("\"all\""),
        "Which hosts form a group of a collective: `all` of the test; `each` named group; all `pairs`; the \
             two `halves`; `every` `group_size` hosts in their order. Groups without a common host run at the \
             same time.",
    ),
    key(
        "group_size",
        Shape::Whole(1, 65_536),
        Preset::Words("required with `groups = \"every\"`"),
        "Hosts of each group; only with `groups = \"every\"`.",
    ),
    key(
        "ranks_per_host",
        Shape::Whole(1, limits::THREADS),
        Preset::Words("as many as `gpus` lists, else 1"),
        "Ranks of a collective on every host. With `nccl` each is a process with a GPU of its own; over `tcp` and \
             `verbs` each is a thread, rank i uses the host's device i (beginning again where there are fewer), \
             and with the knob `core` it runs on that core plus i.",
    )
    .known_as("nccl-tests `-t`, `-g`; `mpirun -N`"),
    key(
        "datatype",
        Shape::Words(|| Datatype::ALL.iter().map(|word| word.word()).collect()),
        Preset::Value("\"f32\""),
        "Type of a collective's elements; a list is one set of cases for each.",
    )
    .known_as("nccl-tests `-d`"),
    key(
        "reduction",
        Shape::Words(|| Reduction::ALL.iter().map(|word| word.word()).collect()),
        Preset::Value("\"sum\""),
        "What `all_reduce`, `reduce` and `reduce_scatter` make of the elements; a list is one set of cases \
             for each.",
    )
    .known_as("nccl-tests `-o`"),
    key(
        "algorithm",
        Shape::Words(super::collective::algorithms),
        Preset::Value("\"auto\""),
        "How the ranks of a collective over `tcp` or `verbs` work together; a list is one set of cases for each. \
             `all_reduce`: `ring`, `recursive-doubling`, `halving-doubling`; `all_gather`, `reduce_scatter`: \
             `ring`; `broadcast`: `chain`, `tree`; `all_to_all`: `pairwise`. `auto` goes by size and number of \
             ranks; the records say what was used.",
    )
    .known_as("`coll_tuned_allreduce_algorithm`; `NCCL_ALGO`"),
    key(
        "in_place",
        Shape::Flag,
        Preset::Value("false"),
        "Whether a collective's result takes the place of its input. What timed sums in place leave behind \
             cannot be verified; the operations before and after are.",
    )
    .known_as("nccl-tests runs both"),
    key(
        "graph",
        Shape::Flag,
        Preset::Value("false"),
        "Whether the operations of a collective of NCCL are captured into a CUDA graph, which is launched.",
    )
    .known_as("nccl-tests `-G`"),
    key(
        "env",
        Shape::Matrix,
        Preset::Words("the agent's environment"),
        "Environment of a collective's ranks: every combination of the listed texts is a set of cases of \
             its own, `env = { NCCL_ALGO = [\"Ring\", \"Tree\"] }`.",
    )
    .known_as("NCCL's environment variables"),
    key(
        "library",
        Shape::Text,
        Preset::Words("`libnccl.so.2` as the host's loader finds it"),
        "NCCL to open on the hosts: a name or a path.",
    )
    .known_as("`LD_LIBRARY_PATH`"),
    key(
        "carried_by",
        Shape::Word(super::collective::carriers),
        Preset::Words("whatever NCCL chooses"),
        "What must carry a collective's bytes, judged by NCCL's own log: another carrier fails the case.",
    )
    .known_as("`NCCL_DEBUG=INFO`, read by eye"),
    key(
        "sizes",
        Shape::Sizes,
        Preset::Words(
            "`\"64KiB\"` for bandwidth, `8` for latency and atomics; within hosts `\"512MiB\"` on GPUs, `\"2GiB\"` of host memory, `\"8MiB\"` through a NIC; 8192 rows for `matmul`",
        ),
        "Message sizes: `\"64..8MiB x2\"` doubles, `\"4KiB..64KiB +4KiB\"` adds, or a list. Atomics work on \
             8 bytes. For a collective the larger of what a rank sends and receives. For `matmul` the bytes of the square result.",
    )
    .known_as("perftest `--size`, `--all`; nccl-tests `-b -e -f -i`"),
    key(
        "model",
        Shape::Word(super::training::models),
        Preset::Words("`sizes` says how many bytes the gradients have"),
        "With `metric = \"step\"`: the model whose gradients are reduced, one element of `datatype` for each of its \
             parameters.",
    ),
    key(
        "bucket",
        Shape::Size,
        Preset::Value("\"25MiB\""),
        "With `metric = \"step\"`: bytes of gradients that are reduced together.",
    )
    .known_as("`bucket_cap_mb` of PyTorch's DistributedDataParallel"),
    key(
        "first_bucket",
        Shape::Size,
        Preset::Value("\"1MiB\""),
        "With `metric = \"step\"`: bytes of the first bucket, a small one, so that the network begins early.",
    )
    .known_as("`kDefaultFirstBucketBytes` of PyTorch"),
    key(
        "compute",
        Shape::Time("0s", "10min"),
        Preset::Words("required with `metric = \"step\"`"),
        "With `metric = \"step\"`: time of the backward pass. A timer stands for it; nothing is computed.",
    ),
    key(
        "qps",
        Shape::Wholes(1, limits::QPS),
        Preset::Value("1"),
        "Queue pairs, or TCP streams; a list is one set of cases for each. Latency is measured on one.",
    )
    .known_as("perftest `--qp`; `NCCL_IB_QPS_PER_CONNECTION`; iperf3 `-P`"),
    key(
        "threads",
        Shape::Whole(1, limits::THREADS),
        Preset::Value("1"),
        "Threads at each end that the queue pairs of a link are divided among, each with a completion queue of its own, \
             near the NIC. For bandwidth over verbs; of TCP every stream has a thread anyway.",
    )
    .known_as("perftest has none: it runs on one thread"),
    key(
        "bidirectional",
        Shape::Flag,
        Preset::Value("false"),
        "Whether both directions run at once; the value is then the sum of both. Bandwidth only.",
    )
    .known_as("perftest `--bidirectional`"),
    key(
        "pattern",
        Shape::Word(|| super::pattern::NAMES.iter().map(|(name, _)| *name).collect()),
        Preset::Value("\"tournament\""),
        "Which hosts send to which; see the table of patterns.",
    ),
    key(
        "rounds",
        Shape::Whole(1, limits::ROUNDS),
        Preset::Words(
            "required with `pattern = \"random\"`; 1 for `permutation`, `bisection` and `victim`; all that are needed for \
             `same-leaf` and `cross-leaf`",
        ),
        "How many rounds of the tournament, of permutations, of halves or of victims, chosen by the seed, or of pairs below \
             one or different leaf switches; only with those patterns.",
    ),
    key(
        "links_loaded",
        Shape::Percent(0.1, 100.0),
        Preset::Words("required with `pattern = \"cover-links\"`"),
        "How much of its rate every link between switches must carry in some round.",
    ),
    key(
        "links_covered",
        Shape::Percent(0.1, 100.0),
        Preset::Words("100 with `pattern = \"cover-links\"`, else nothing is demanded"),
        "How many of the links between switches, each direction by itself, the flows must load: to `links_loaded`, or to 80 % \
             of their rate with other patterns. If they load fewer, the verdict is inconclusive. Needs [topology].",
    ),
    key(
        "from",
        Shape::Text,
        Preset::Words("required with `pattern = \"one-to-many\"`; each host in turn for `outcast`"),
        "The one host; only with `pattern = \"one-to-many\"` or `\"outcast\"`.",
    ),
    key(
        "to",
        Shape::Text,
        Preset::Words("required with `pattern = \"many-to-one\"`; each host in turn for `incast`, drawn by the seed for `victim`"),
        "The one host; only with `pattern = \"many-to-one\"`, `\"incast\"` or `\"victim\"`.",
    ),
    key(
        "victim",
        Shape::TwoHosts,
        Preset::Words("drawn by the seed for each round of `pattern = \"victim\"`"),
        "The flow that is measured alone and then beside an incast, source first; only with `pattern = \"victim\"`.",
    ),
    key(
        "between",
        Shape::TwoGroups,
        Preset::Words("required with `pattern = \"between\"`; halves by the seed for `bisection`"),
        "The two groups, which share no host; only with `pattern = \"between\"` or `\"bisection\"`.",
    ),
    key(
        "pairs",
        Shape::Pairs,
        Preset::Words("required with `pattern = \"pairs\"`"),
        "The pairs, source first; only with `pattern = \"pairs\"`.",
    ),
    key(
        "rails",
        Shape::Rails,
        Preset::Value("\"aligned\""),
        "`aligned`: rail i with rail i, all rails at once. `crossed`: every rail with every rail of the \
             peer. `each`: rail i with rail i, one rail after the other. A list: only these rails, aligned, counted from 0. \
             Within hosts rails are GPUs or NUMA nodes: all of them at once, or each by itself.",
    )
    .known_as("`NCCL_CROSS_NIC`"),
    key(
        "hosts",
        Shape::Hosts,
        Preset::Words("all hosts"),
        "Hosts that take part: groups, hostlists, or a list of both.",
    ),
    key(
        "repeats",
        Shape::Whole(1, limits::REPEATS),
        Preset::Value("1"),
        "How often every round is measured. One repeat gives a value, more give its scatter.",
    ),
    key(
        "measure",
        Shape::Window,
        Preset::Value("\"2s\""),
        "How long one measurement is: a duration, a number of operations per queue pair, or adaptive: until \
             the 95 % confidence interval of the mean is within `confidence` of it. Collectives know the first \
             two.",
    )
    .known_as("perftest `--duration`, `--iters`"),
    key("warm_up", Shape::Time("0s", "10min"), Preset::Value("\"500ms\""), "Untimed time before each measurement.")
        .known_as("perftest `--perform_warm_up`; nccl-tests `-w`"),
    key(
        "verify",
        Shape::Flag,
        Preset::Value("true"),
        "Whether the bytes are compared before and after the timed pass. A wrong byte fails the case \
             whatever its speed.",
    )
    .known_as("nccl-tests `-c`"),
    key(
        "deadline",
        Shape::Time("100ms", "1h"),
        Preset::Value("\"30s\""),
        "Time beyond the measurement after which a case is given up and the host that did not answer is \
             named.",
    ),
    key(
        "knobs",
        Shape::Table(&KNOBS),
        Preset::Words("the agent's defaults"),
        "Tuning settings.",
    ),
    key(
        "configure",
        Shape::Table(&CONFIGURE),
        Preset::Words("the cluster is measured as it is"),
        "Commands that change the cluster for this test, and undo the change.",
    ),
    key(
        "beside",
        Shape::Table(&BESIDE),
        Preset::Words("flows are measured without other traffic"),
        "Traffic of the same two hosts beside which every flow is measured again.",
    ),
    key(
        "expect",
        Shape::Tables(&EXPECT),
        Preset::Words("none: a test passes when every case was measured and its bytes were right"),
        "Limits for the results.",
    ),
];

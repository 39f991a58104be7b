use railgauge_wire::{Datatype, Distance, Memory, Op, Reduction, Service, TestMetric, Transport};

use super::{beside::BESIDE, configure::CONFIGURE, expect::EXPECT, knobs::KNOBS, traffic::TRAFFIC};
use crate::plan::{Key, Section, format::keys, limits};

pub static TEST: Section = Section {
    header: "[[test]]",
    about: "One thing that is measured. Its cases are every pair of its pattern × every rail × every size × every \
     number of queue pairs, `repeats` times.",
    keys: KEYS,
};

pub static DEFAULTS: Section = Section {
    header: "[defaults]",
    about: "Keys for all tests: every key of `[[test]]` but `name`, `like`, `op`, `traffic`, `configure`, `beside` and `expect`. What a test says itself comes \
     first; `knobs` are taken key by key. A default that does not apply to a test is left out of it (`qps` of \
     a latency test, verbs knobs of a TCP test).",
    keys: shared(KEYS),
};

static MEMORY: Section = Section {
    header: "[test.memory]",
    about: "Where the data of a pair is, at each end.",
    keys: keys! {
        "from": Word(Memory::all_words), Required, "At the end that posts the operations.";
        "to": Word(Memory::all_words), Required, "At the other end.";
    },
};

static GPUS: Section = Section {
    header: "[test.gpus]",
    about: "CUDA devices of a pair, at each end.",
    keys: keys! {
        "from": Wholes(0, 63), Required, "At the end that posts the operations.";
        "to": Wholes(0, 63), Required, "At the other end.";
    },
};

const fn shared(keys: &'static [Key]) -> &'static [Key] {
    let (_, behind) = keys.split_at(3);
    behind.split_at(behind.len() - 4).0
}

const KEYS: &[Key] = keys! {
    "name": Text, Means("op, metric and transport: `write-bandwidth-verbs`"),
        "Name of the test, used once, at most 100 characters.";
    "like": Text, Means("the keys of the test say what is measured"),
        "A command line of perftest, such as `\"ib_write_bw -a\"`: sets what it says, defaults included. Other keys \
         of the test override it, and it overrides `[defaults]`. `op`, `metric` and `transport` are part of it \
         ([options](tests.md#differences-from-perftest)).", "`ib_write_bw` and its seven siblings";
    "op": Word(Op::all_words), Required,
        "The operation; see [Operations and metrics](#operations-and-metrics).",
        "perftest `ib_write_*`, `ib_read_*`, `ib_send_*`, `ib_atomic_*`; nccl-tests `*_perf`";
    "metric": Word(TestMetric::all_words), Required,
        "`bandwidth` posts as much as possible; `latency` has one operation in flight. A collective pipelines \
         operations for bandwidth (as nccl-tests does) and separates them by a barrier for latency; the slowest rank \
         counts. `step` is a training step ([tests](tests.md#training-steps)); `compute` is for `matmul`.", "perftest `*_bw`, `*_lat`; nccl-tests `busbw`";
    "transport": Word(Transport::all_words), Is("\"verbs\""),
        "`verbs` is RDMA, `tcp` sockets; `nccl` runs collectives between GPUs with the host's own NCCL. Operations \
         within a host have their own (`cpu`, `gpu`, `nic`): leave it out.";
    "service": Word(Service::all_words), Is("\"rc\""),
        "Queue pair service: reliable, unreliable, or datagrams (at most 4096 bytes).", "perftest `--connection`";
    "memory": PerEnd(&MEMORY), Is("\"host\""),
        "Where the data is; of a pair also at each end (`from` posts the operations). Collectives use GPU memory \
         with `nccl`, else host memory.", "perftest `--use_cuda`";
    "gpu_path": Word(|| vec!["gdr-dmabuf", "gdr-peermem", "staged"]),
        Means("over verbs dma-buf, else peermem; over TCP staged"),
        "Required path of GPU memory to the fabric. `gdr-dmabuf`, `gdr-peermem`: the NIC accesses it (GPUDirect \
         RDMA). `staged`: messages are copied through page-locked host memory; over verbs only for `send` and \
         `write_imm`, never by default, and not for `nic_loopback`.", "perftest `--use_cuda_dmabuf`; `NCCL_DMABUF_ENABLE`, `NCCL_NET_GDR_LEVEL`";
    "gpus": PerEnd(&GPUS), Means("rail i and rank i use the GPU nearest to their NIC, else GPU i"),
        "CUDA devices by number: one for each rail, in rail order, or one for all rails; of a pair also at each end; \
         for a collective one for each rank of a host.",
        "perftest `--use_cuda`; `CUDA_VISIBLE_DEVICES`";
    "gpu_distance": Words(Distance::all_words), Means("the nearest GPU, whatever its distance"),
        "Distance between GPU and NIC at each end with GPU memory, as in `nvidia-smi topo -m`; each listed one is a \
         test of its own, over the rails that have it. Only over verbs.", "`NCCL_NET_GDR_LEVEL`";
    "groups": Word(|| super::collective::GROUPINGS.to_vec()), Is("\"all\""),
        "Which hosts form a group of a collective: `all` of the test; `each` named group; all `pairs`; the two \
         `halves`; `every` `group_size` hosts in order. Groups without a common host run at the same time.";
    "group_size": Whole(1, 65_536), Means("required with `groups = \"every\"`"),
        "Hosts of each group.";
    "ranks_per_host": Whole(1, limits::THREADS), Means("as many as `gpus` lists, else 1"),
        "Ranks of a collective on every host. With `nccl` each is a process with its own GPU. Over `tcp` and `verbs` \
         each is a thread: rank i uses device i (modulo their number), and core `core` + i if the knob is set.", "nccl-tests `-t`, `-g`; `mpirun -N`";
    "datatype": Words(Datatype::all_words), Is("\"f32\""),
        "Type of a collective's elements.", "nccl-tests `-d`";
    "reduction": Words(Reduction::all_words), Is("\"sum\""),
        "How `all_reduce`, `reduce` and `reduce_scatter` combine elements.",
        "nccl-tests `-o`";
    "algorithm": Words(super::collective::algorithms), Is("\"auto\""),
        "Algorithm of a collective over `tcp` or `verbs`. `all_reduce`: `ring`, `recursive-doubling`, \
         `halving-doubling`; `all_gather`, `reduce_scatter`: `ring`; `broadcast`: `chain`, `tree`; `all_to_all`, \
         `all_to_all_v`: `pairwise`. `auto` chooses by size and ranks; the records have its choice.", "`coll_tuned_allreduce_algorithm`; `NCCL_ALGO`";
    "in_place": Flag, Is("false"),
        "Whether a collective's result overwrites its input. Timed sums in place cannot be verified; the operations \
         before and after are.", "nccl-tests runs both";
    "graph": Flag, Is("false"),
        "Whether NCCL operations are launched as a CUDA graph.",
        "nccl-tests `-G`";
    "env": Matrix, Means("the agent's environment"),
        "Environment of a collective's ranks; every combination of listed values is measured: `env = { NCCL_ALGO = \
         [\"Ring\", \"Tree\"] }`.", "NCCL's environment variables";
    "library": Text, Means("`libnccl.so.2` as the host's loader finds it"),
        "NCCL library to open: a name or a path.", "`LD_LIBRARY_PATH`";
    "carried_by": Word(super::collective::carriers), Means("whatever NCCL chooses"),
        "Required transport of a collective, by NCCL's log: another one fails the case.",
        "`NCCL_DEBUG=INFO`, read by eye";
    "sizes": Sizes,
        Means(
            "`\"64KiB\"` for bandwidth, `8` for latency and atomics; within hosts `\"512MiB\"` on GPUs, `\"2GiB\"` \
             of host memory, `\"8MiB\"` through a NIC; 8192 rows for `matmul`"),
        "Message sizes. For a collective the larger of what a rank sends and receives, for `all_to_all_v` that of \
         the busiest rank (default: its traffic), for `matmul` the bytes of the square result; atomics have 8 bytes.",
        "perftest `--size`, `--all`; nccl-tests `-b -e -f -i`";
    "model": Word(super::training::models), Means("`sizes` gives the bytes of the gradients"),
        "With `metric = \"step\"`: model whose gradients are reduced, one element of `datatype` for each parameter.";
    "bucket": Size, Is("\"25MiB\""),
        "With `metric = \"step\"`: bytes reduced together.",
        "`bucket_cap_mb` of PyTorch's DistributedDataParallel";
    "first_bucket": Size, Is("\"1MiB\""),
        "With `metric = \"step\"`: bytes of the first, smaller bucket.",
        "`kDefaultFirstBucketBytes` of PyTorch";
    "compute": Time("0s", "10min"), Means("required with `metric = \"step\"`"),
        "With `metric = \"step\"`: time of the backward pass, which a timer replaces.";
    "qps": Wholes(1, limits::QPS), Is("1"),
        "Queue pairs, or TCP streams. Latency is measured on one.",
        "perftest `--qp`; `NCCL_IB_QPS_PER_CONNECTION`; iperf3 `-P`";
    "threads": Whole(1, limits::THREADS), Is("1"),
        "Threads at each end that share a link's queue pairs, each with its own completion queue, near the NIC. For \
         bandwidth over verbs; every TCP stream has a thread.",
        "perftest has none: it runs on one thread";
    "rate": Quantity, Means("as fast as it goes"),
        "Highest rate of each flow of a bandwidth test of pairs: `\"10 Gb/s\"`. A window must fit at least ten \
         messages of each queue pair.",
        "perftest `--rate_limit`; iperf3 `-b`";
    "share": Percent(0.1, 100.0), Means("as fast as it goes"),
        "The same, in percent of the smaller rate of both ports.";
    "bidirectional": Flag, Is("false"),
        "Whether both directions run at once, and the value is their sum. Bandwidth only.",
        "perftest `--bidirectional`";
    "pattern": Word(|| super::pattern::NAMES.iter().map(|(name, _)| *name).collect()), Is("\"tournament\""),
        "Which hosts send to which ([list](#patterns)).";
    "rounds": Whole(1, limits::ROUNDS),
        Means(
            "required with `random`; 1 for `permutation`, `bisection` and `victim`; as many as needed for \
             `same-leaf` and `cross-leaf`"),
        "Number of rounds of these patterns.";
    "links_loaded": Percent(0.1, 100.0), Means("required with `pattern = \"cover-links\"`"),
        "Share of its rate that every switch link must carry in some round.";
    "links_covered": Percent(0.1, 100.0), Means("100 with `cover-links`, else none"),
        "Share of switch links, counted by direction, that the flows must load: to `links_loaded`, or to 80 % of \
         their rate with other patterns. Fewer make the verdict inconclusive. Needs [topology].";
    "from": Text, Means("required with `one-to-many`; each host in turn for `outcast`"),
        "The one host of these patterns.";
    "to": Text,
        Means("required with `many-to-one`; each host in turn for `incast`, chosen by the seed for `victim`"),
        "The one host of these patterns.";
    "victim": TwoHosts, Means("chosen by the seed for each round of `victim`"),
        "The flow that is measured alone and then during an incast, source first.";
    "between": TwoGroups, Means("required with `between`; halves by the seed for `bisection`"),
        "The two groups, without a common host.";
    "pairs": Pairs, Means("required with `pairs`"),
        "The pairs, source first.";
    "rails": Rails, Is("\"aligned\""),
        "`aligned`: rail i with rail i, all at once; `each`: one after the other; `crossed`: every rail with every \
         rail of the peer; a list: only these, aligned, counted from 0. Within hosts rails are GPUs or NUMA nodes, \
         all at once or `each`.", "`NCCL_CROSS_NIC`";
    "hosts": Hosts, Means("all hosts"), "Hosts that take part: groups or hostlists.";
    "repeats": Whole(1, limits::REPEATS), Is("1"),
        "How often every round is measured. Only several show scatter.";
    "measure": Window, Is("\"2s\""),
        "Length of one measurement: a duration, operations per queue pair, or (not for collectives) \
         [adaptive](#measure).",
        "perftest `--duration`, `--iters`";
    "warm_up": Time("0s", "10min"), Is("\"500ms\""),
        "Untimed time before each measurement.", "perftest `--perform_warm_up`; nccl-tests `-w`";
    "verify": Flag, Is("true"),
        "Whether bytes are compared before and after the timed pass. A wrong byte fails the case.", "nccl-tests `-c`";
    "deadline": Time("100ms", "1h"), Is("\"30s\""),
        "Time beyond the measurement after which a case fails and the silent host is named.";
    "knobs": Table(&KNOBS), Means("the agent's defaults"), "Tuning settings.";
    "traffic": Table(&TRAFFIC), Means("required with `op = \"all_to_all_v\"`"),
        "What each rank of an `all_to_all_v` sends to each other rank.";
    "configure": Table(&CONFIGURE), Means("the cluster is measured as it is"),
        "Commands that change the cluster for this test and undo it.";
    "beside": Table(&BESIDE), Means("flows are measured without other traffic"),
        "Background traffic, with which every flow is measured again.";
    "expect": Tables(&EXPECT), Means("none: passes if every case was measured with correct bytes"),
        "Limits for the results.";
};

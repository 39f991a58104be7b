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
        "Name of the test, different for every test, at most 100 characters.";
    "like": Text, Means("the keys of the test say what is measured"),
        "A command line of perftest, such as `\"ib_write_bw -a\"`: sets what its program, its options and their defaults \
         say. Other keys of the test come before it, `[defaults]` after it. `op`, `metric` and `transport` are part of \
         it ([options](tests.md#differences-from-perftest)).", "`ib_write_bw` and its seven siblings";
    "op": Word(Op::all_words), Required,
        "The operation. `read` and atomics need the service `rc`; TCP carries `write`, `read` and `send`; from \
         `all_reduce` on they are collectives: all of them by `nccl` between GPUs, and `all_reduce`, `broadcast`, \
         `all_gather`, `reduce_scatter`, `all_to_all` and `all_to_all_v` over `tcp` and `verbs` between host memories. From \
         `memory_read` on they stay within a host: memory of its processors and GPUs, matrix products, and writes \
         through a NIC and back ([tests](tests.md#tests-within-hosts)).",
        "perftest `ib_write_*`, `ib_read_*`, `ib_send_*`, `ib_atomic_*`; nccl-tests `*_perf`";
    "metric": Word(TestMetric::all_words), Required,
        "`bandwidth` posts as much as possible and yields bandwidth, message rate and CPU time; `latency` has one \
         operation in flight and yields the latency percentiles (of `memory_read` the median). A collective yields \
         bus and algorithm bandwidth of pipelined operations (as nccl-tests does), or the latency percentiles of \
         operations separated by a barrier; the slowest rank counts. `step` is a training step: gradients are reduced \
         in buckets while a timer replaces the backward pass ([tests](tests.md#training-steps)). `compute` is for \
         `matmul`: floating-point operations per second.", "perftest `*_bw`, `*_lat`; nccl-tests `busbw`";
    "transport": Word(Transport::all_words), Is("\"verbs\""),
        "`verbs` is RDMA; `tcp` is sockets, the baseline; `nccl` runs collectives between GPUs with the host's own \
         NCCL. Operations within a host have `cpu`, `gpu` or `nic` of their own: leave it out.";
    "service": Word(Service::all_words), Is("\"rc\""),
        "Queue pair service: reliable, unreliable connected, or datagrams. `uc` carries `write`, `write_imm` and \
         `send`; `ud` carries `send` of at most 4096 bytes.", "perftest `--connection`";
    "memory": PerEnd(&MEMORY), Is("\"host\""),
        "Where the data is; of a pair also at each end: `from` posts the operations. Collectives of `nccl` always work on GPU memory, those over `tcp` and `verbs` on \
         host memory.", "perftest `--use_cuda`";
    "gpu_path": Word(|| vec!["gdr-dmabuf", "gdr-peermem", "staged"]),
        Means("over verbs dma-buf, else peermem, as far as the NIC goes; over TCP staged"),
        "Demanded way of GPU memory to the fabric, at each end that has it. `gdr-dmabuf` and `gdr-peermem`: the \
         NIC reads and writes it (GPUDirect RDMA). `staged`: every message is copied through page-locked host memory; \
         over verbs it must be asked for, and there are `send` and `write_imm`. `nic_loopback` has no \
         `staged`.", "perftest `--use_cuda_dmabuf`; `NCCL_DMABUF_ENABLE`, `NCCL_NET_GDR_LEVEL`";
    "gpus": PerEnd(&GPUS), Means("rail i and rank i use the GPU nearest to their NIC, else GPU i"),
        "CUDA devices by number: for a pair or a `nic_loopback` with `memory = \"cuda\"` one for each rail, in rail \
         order (one alone serves all rails), of a pair also at each end; for a collective one for each rank of a host.",
        "perftest `--use_cuda`; `CUDA_VISIBLE_DEVICES`";
    "gpu_distance": Words(Distance::all_words), Means("the nearest GPU, whatever its distance"),
        "Distance between the GPU and the NIC of each end, in the words of `nvidia-smi topo -m`; a list is one test \
         for each, called after it, over the rails that have a GPU at that distance at each end with GPU memory. \
         Only over verbs.", "`NCCL_NET_GDR_LEVEL`";
    "groups": Word(|| super::collective::GROUPINGS.to_vec()), Is("\"all\""),
        "Which hosts form a group of a collective: `all` of the test; `each` named group; all `pairs`; the two \
         `halves`; `every` `group_size` hosts in their order. Groups without a common host run at the same time.";
    "group_size": Whole(1, 65_536), Means("required with `groups = \"every\"`"),
        "Hosts of each group; only with `groups = \"every\"`.";
    "ranks_per_host": Whole(1, limits::THREADS), Means("as many as `gpus` lists, else 1"),
        "Ranks of a collective on every host. With `nccl` each is a process with a GPU of its own; over `tcp` and \
         `verbs` each is a thread, rank i uses the host's device i (beginning again where there are fewer), and with \
         the knob `core` it runs on that core plus i.", "nccl-tests `-t`, `-g`; `mpirun -N`";
    "datatype": Words(Datatype::all_words), Is("\"f32\""),
        "Type of a collective's elements; a list is one set of cases for each.", "nccl-tests `-d`";
    "reduction": Words(Reduction::all_words), Is("\"sum\""),
        "What `all_reduce`, `reduce` and `reduce_scatter` make of the elements; a list is one set of cases for each.",
        "nccl-tests `-o`";
    "algorithm": Words(super::collective::algorithms), Is("\"auto\""),
        "How the ranks of a collective over `tcp` or `verbs` work together; a list is one set of cases for each. \
         `all_reduce`: `ring`, `recursive-doubling`, `halving-doubling`; `all_gather`, `reduce_scatter`: `ring`; \
         `broadcast`: `chain`, `tree`; `all_to_all`, `all_to_all_v`: `pairwise`. `auto` goes by size and number of ranks; the records \
         say what was used.", "`coll_tuned_allreduce_algorithm`; `NCCL_ALGO`";
    "in_place": Flag, Is("false"),
        "Whether a collective's result takes the place of its input. What timed sums in place leave behind cannot be \
         verified; the operations before and after are.", "nccl-tests runs both";
    "graph": Flag, Is("false"),
        "Whether the operations of a collective of NCCL are captured into a CUDA graph, which is launched.",
        "nccl-tests `-G`";
    "env": Matrix, Means("the agent's environment"),
        "Environment of a collective's ranks: every combination of the listed texts is a set of cases of its own, \
         `env = { NCCL_ALGO = [\"Ring\", \"Tree\"] }`.", "NCCL's environment variables";
    "library": Text, Means("`libnccl.so.2` as the host's loader finds it"),
        "NCCL to open on the hosts: a name or a path.", "`LD_LIBRARY_PATH`";
    "carried_by": Word(super::collective::carriers), Means("whatever NCCL chooses"),
        "What must carry a collective's bytes, judged by NCCL's own log: another carrier fails the case.",
        "`NCCL_DEBUG=INFO`, read by eye";
    "sizes": Sizes,
        Means("`\"64KiB\"` for bandwidth, `8` for latency and atomics; within hosts `\"512MiB\"` on GPUs, `\"2GiB\"` \
         of host memory, `\"8MiB\"` through a NIC; 8192 rows for `matmul`"),
        "Message sizes: `\"64..8MiB x2\"` doubles, `\"4KiB..64KiB +4KiB\"` adds, or a list. Atomics work on 8 bytes. \
         For a collective the larger of what a rank sends and receives; for `all_to_all_v` that of the busiest rank, by default of its traffic. For `matmul` the bytes of the square result.",
        "perftest `--size`, `--all`; nccl-tests `-b -e -f -i`";
    "model": Word(super::training::models), Means("`sizes` says how many bytes the gradients have"),
        "With `metric = \"step\"`: the model whose gradients are reduced, one element of `datatype` for each of its \
         parameters.";
    "bucket": Size, Is("\"25MiB\""),
        "With `metric = \"step\"`: bytes of gradients that are reduced together.",
        "`bucket_cap_mb` of PyTorch's DistributedDataParallel";
    "first_bucket": Size, Is("\"1MiB\""),
        "With `metric = \"step\"`: bytes of the first bucket, a small one, so that the network begins early.",
        "`kDefaultFirstBucketBytes` of PyTorch";
    "compute": Time("0s", "10min"), Means("required with `metric = \"step\"`"),
        "With `metric = \"step\"`: time of the backward pass. A timer replaces it; nothing is computed.";
    "qps": Wholes(1, limits::QPS), Is("1"),
        "Queue pairs, or TCP streams; a list is one set of cases for each. Latency is measured on one.",
        "perftest `--qp`; `NCCL_IB_QPS_PER_CONNECTION`; iperf3 `-P`";
    "threads": Whole(1, limits::THREADS), Is("1"),
        "Threads at each end that the queue pairs of a link are divided among, each with a completion queue of its \
         own, near the NIC. For bandwidth over verbs; of TCP every stream has a thread anyway.",
        "perftest has none: it runs on one thread";
    "rate": Quantity, Means("as fast as it goes"),
        "How fast each flow of a bandwidth test of pairs sends at most: `\"10 Gb/s\"`. At least ten messages of each queue \
         pair must fit a window.",
        "perftest `--rate_limit`; iperf3 `-b`";
    "share": Percent(0.1, 100.0), Means("as fast as it goes"),
        "The same, in percent of the smaller rate of both ports.";
    "bidirectional": Flag, Is("false"),
        "Whether both directions run at once; the value is then the sum of both. Bandwidth only.",
        "perftest `--bidirectional`";
    "pattern": Word(|| super::pattern::NAMES.iter().map(|(name, _)| *name).collect()), Is("\"tournament\""),
        "Which hosts send to which; see the table of patterns.";
    "rounds": Whole(1, limits::ROUNDS),
        Means("required with `pattern = \"random\"`; 1 for `permutation`, `bisection` and `victim`; all that are \
         needed for `same-leaf` and `cross-leaf`"),
        "How many rounds of the tournament, of permutations, of halves or of victims, chosen by the seed, or of pairs \
         below one or different leaf switches; only with those patterns.";
    "links_loaded": Percent(0.1, 100.0), Means("required with `pattern = \"cover-links\"`"),
        "How much of its rate every link between switches must carry in some round.";
    "links_covered": Percent(0.1, 100.0), Means("100 with `pattern = \"cover-links\"`, else nothing is demanded"),
        "How many of the links between switches, each direction by itself, the flows must load: to `links_loaded`, or \
         to 80 % of their rate with other patterns. If they load fewer, the verdict is inconclusive. Needs \
         [topology].";
    "from": Text, Means("required with `pattern = \"one-to-many\"`; each host in turn for `outcast`"),
        "The one host; only with `pattern = \"one-to-many\"` or `\"outcast\"`.";
    "to": Text,
        Means("required with `pattern = \"many-to-one\"`; each host in turn for `incast`, chosen by the seed for \
         `victim`"),
        "The one host; only with `pattern = \"many-to-one\"`, `\"incast\"` or `\"victim\"`.";
    "victim": TwoHosts, Means("chosen by the seed for each round of `pattern = \"victim\"`"),
        "The flow that is measured alone and then beside an incast, source first; only with `pattern = \"victim\"`.";
    "between": TwoGroups, Means("required with `pattern = \"between\"`; halves by the seed for `bisection`"),
        "The two groups, which share no host; only with `pattern = \"between\"` or `\"bisection\"`.";
    "pairs": Pairs, Means("required with `pattern = \"pairs\"`"),
        "The pairs, source first; only with `pattern = \"pairs\"`.";
    "rails": Rails, Is("\"aligned\""),
        "`aligned`: rail i with rail i, all rails at once. `crossed`: every rail with every rail of the peer. `each`: \
         rail i with rail i, one rail after the other. A list: only these rails, aligned, counted from 0. Within \
         hosts rails are GPUs or NUMA nodes: all of them at once, or each by itself.", "`NCCL_CROSS_NIC`";
    "hosts": Hosts, Means("all hosts"), "Hosts that take part: groups, hostlists, or a list of both.";
    "repeats": Whole(1, limits::REPEATS), Is("1"),
        "How often every round is measured. One repeat gives a value, more give its scatter.";
    "measure": Window, Is("\"2s\""),
        "How long one measurement is: a duration, a number of operations per queue pair, or adaptive: until the 95 % \
         confidence interval of the mean is within `confidence` of it. Collectives know the first two.",
        "perftest `--duration`, `--iters`";
    "warm_up": Time("0s", "10min"), Is("\"500ms\""),
        "Untimed time before each measurement.", "perftest `--perform_warm_up`; nccl-tests `-w`";
    "verify": Flag, Is("true"),
        "Whether the bytes are compared before and after the timed pass. A wrong byte fails the case whatever its \
         speed.", "nccl-tests `-c`";
    "deadline": Time("100ms", "1h"), Is("\"30s\""),
        "Time beyond the measurement after which a case is given up and the host that did not answer is named.";
    "knobs": Table(&KNOBS), Means("the agent's defaults"), "Tuning settings.";
    "traffic": Table(&TRAFFIC), Means("required with `op = \"all_to_all_v\"`"),
        "What each rank of an `all_to_all_v` sends to each other rank.";
    "configure": Table(&CONFIGURE), Means("the cluster is measured as it is"),
        "Commands that change the cluster for this test, and undo the change.";
    "beside": Table(&BESIDE), Means("flows are measured without other traffic"),
        "Traffic of the same two hosts beside which every flow is measured again.";
    "expect": Tables(&EXPECT), Means("none: a test passes when every case was measured and its bytes were right"),
        "Limits for the results.";
};

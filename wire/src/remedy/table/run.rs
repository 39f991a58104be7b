//! What to do about failures of a run: links, groups of ranks, commands of the plan.

remedies! {
    CHECK_AGENT_HANGS = "check log.txt: the connection is up, but the agent or its device hangs";
    CHECK_ANSWERER = "check which program answered there, and for damaged names under /sys: an agent never sends \
         that much";
    CHECK_HOST_LOAD = "check the host's console and load ({0}): the host or its agent has stopped or hangs",
        look "uptime";
    CHECK_RANDOM = "check that getrandom or /dev/urandom works on this machine";
    CHECK_SYSFS = "check {0} on the host, or leave the host out of the plan",
        look "ls /sys/class/infiniband /sys/class/net";
    CONFIGURE_BY_HAND = "run the command from `[test.configure]` by hand";
    DAMAGED_RECORDS = "take an undamaged copy of records.jsonl, or run the plan again: {0}",
        change_here "railgauge run {plan}";
    DEVICES_OF_HOST = "look at {0} and {1} on the host, or name its devices in the plan",
        look "rdma link", look "ibv_devinfo";
    DIVISIBLE_SIZES = "use sizes that are divisible by the number of ranks and the size of an element";
    GPU_DISTANCE = "use a `gpu_distance` that exists on the host; {0} shows them", look "nvidia-smi topo -m";
    GPU_FOR_EVERY_RANK = "give every rank its own GPU: only one of a machine's host names can have ranks on it";
    GPU_ORDER = "set CUDA_DEVICE_ORDER = \"PCI_BUS_ID\" in `env` of `[launch]`: by default CUDA orders GPUs by speed";
    GPU_OF_RANK = "use a smaller `ranks_per_host`, or list other GPUs in `gpus`; GPUs are counted from 0";
    LARGER_SIZES = "measure larger sizes";
    LEAVE_HOST_OUT = "measure again without that host: its agent, the host itself or a driver is broken";
    LOWER_BESIDE = "send less background traffic (`rate`, `flows` in `[test.beside]`), or find what limits it";
    MEASURE_LONGER = "measure longer, or use a smaller size";
    MORE_PEERS = "measure more hosts: a value is compared with three others of its size and rail (between GPUs: the \
         same path on \
         other hosts); or use `at_least` or `at_most` in place of `within_percent_of_peers`";
    NCCL_CHOICE = "set NCCL_DEBUG=INFO: NCCL's log says what it chose and why; check NCCL_IB_HCA and NCCL_NET";
    NCCL_LOG = "use an NCCL with logging, and no NCCL configuration file that disables it";
    SAME_NCCL = "install the same version on all hosts, or set `library`";
    RESUME_RUN = "continue the run: {0} measures what has no trusted value",
        change_here "railgauge run --resume {directory}";
    RUN_BESIDE_BY_HAND = "run the `command` of `[test.beside]` on the host by hand: it must run until it is ended";
    RATE_FOR_SHARE = "set `rate`, such as \"10 Gb/s\", in place of `share`";
    SMALLER_SIZES = "use smaller sizes";
}

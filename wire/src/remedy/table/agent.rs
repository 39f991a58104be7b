//! What to do about failures of requests to an agent: memory, cores, counters, threads, TCP, the conversation itself.

remedies! {
    ALLOW_CONGESTION_CONTROL = "run the agent as root, or add {congestion} to \
         net.ipv4.tcp_allowed_congestion_control ({0} shows it)",
        look "sysctl net.ipv4.tcp_allowed_congestion_control";
    BEYOND_CACHES = "set `sizes` to {bytes} bytes or more, or `knobs.footprint` to \"cache\", which measures the \
         caches";
    CHECK_FIREWALL = "check that no firewall drops TCP connections from {peer} to {host}";
    CHECK_PEER_AND_LINK = "check that the peer's agent still runs and that the link between the hosts is up";
    CHECK_ROUTE = "check that the addresses reach each other ({0}, {1}) and no firewall drops TCP between them",
        look "ip route get {peer}", look "ping -c 3 {peer}";
    FEWER_RANKS = "use smaller sizes or a smaller `ranks_per_host`";
    LOAD_CONGESTION_CONTROL = "load its module ({0}), or use another `congestion_control`",
        change "modprobe tcp_{congestion}";
    LOOK_AT_PEER_ERROR = "look at the peer's own error";
    MEASURE_AGAIN = "measure again while nothing else runs on the hosts ({0})",
        change_here "railgauge run {plan}";
    MEASURE_FIXED_TIME = "measure for a fixed time";
    NAME_DEVICE_OF_FACTS = "name a device or an interface that is in facts.json";
    NAME_INTERFACE = "name one of these addresses or interfaces in the plan";
    NAME_OPEN_CORE = "name one of these as `core` in the plan, or leave `core` out";
    ONE_THREAD = "open the link with one thread";
    PEER_CPU_TIME = "check that the peer's agent is alive and gets CPU time (load, core pinning)";
    QUEUE_PAIR_PER_THREAD = "use at least one queue pair per thread";
    RAISE_OPEN_FILES = "raise the hard limit on open files ({0} shows it)",
        look "ulimit -Hn";
    RAISE_PENDING_SIGNALS = "raise the limit on pending signals ({0} shows it), or use completion = \"poll\"",
        look "ulimit -i";
    RAISE_PROCESSES = "raise the limit on processes ({0} shows it), or use fewer streams or threads",
        look "ulimit -u";
    REMOVE_OLD_AGENT = "remove the agent on the host: controller and agents must come from one build";
    REPORT_DEFECT = "report this as a bug in railgauge, with the host's part of log.txt";
    RESERVE_HUGE_PAGES = "reserve huge pages ({0}, or more: every buffer needs its own)",
        change "sysctl vm.nr_hugepages={pages}";
    SMALLER_BUFFERS = "use smaller sizes or fewer queue pairs";
    STREAMS_IN_RANGE = "use 1 to {most} streams and sizes of at least 1 byte";
    TCP_OPERATION = "use write, read or send over TCP";
}

//! What to do about parts that were shown to be bad, and about limits that values break.

remedies! {
    BROKEN_LIMIT = "check the ends that the worst cases share (listed with the verdict in report.html), and what \
         changed since \
         good runs: {0}",
        change_here "railgauge compare {good_runs} {runs}";
    CONFIRM_SUSPECTS = "set `confirm = true` in `[localise]` and run the plan ({0}): outliers are then measured \
         again with good \
         partners",
        change_here "railgauge run {plan}";
    FAILED_ALIKE = "check what all of them share (switches, settings, drivers, firmware, a job that ended then), \
         then the first \
         that failed";
    HOSTS_OF_ONE_MACHINE = "name each machine once in `hosts`, with all its NICs: hosts of one machine share \
         components and cannot be \
         judged alone. Give separate machines different host names";
    LIMIT_BROKEN_BY_ALL = "check what all of them share: the limit itself, settings, drivers, firmware, other load \
         and switches; and \
         what changed since good runs: {0}",
        change_here "railgauge compare {good_runs} {runs}";
    LIMIT_BROKEN_BY_GROUPS = "check the hosts that are only in groups that break the limit (listed with the verdict \
         in report.html); if \
         there are none, measure pairs or smaller groups; what changed since good runs: {0}",
        change_here "railgauge compare {good_runs} {runs}";
    LIMIT_BROKEN_BY_ONE = "measure again on idle hosts ({0}); if it breaks the limit again, check what report.html \
         names with the \
         verdict, and what changed since good runs: {1}",
        change_here "railgauge run {plan}", change_here "railgauge compare {good_runs} {runs}";
    LIMIT_BROKEN_WITHIN_HOSTS = "check clocks, temperature, PCIe links and other programs of the hosts, GPUs and \
         NUMA nodes that the worst \
         cases share (listed in report.html), and what changed since good runs: {0}",
        change_here "railgauge compare {good_runs} {runs}";
    MORE_PARTNERS = "measure more hosts in one run, with `pattern = \"tournament\"`: there are too few known-good \
         pairs to \
         compare with";
    NIC_BALANCE = "check on the named host NCCL_IB_HCA (also in `env`), that the port is active, and the NIC near \
         each GPU \
         (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH,NET; in virtual machines NCCL_TOPO_FILE). If NCCL should not use \
         the NIC, set `devices` of the host or lower the limit of `nic_balance`";
    OTHER_VIRTUAL_MACHINES = "measure from hosts that are not virtual, or while other virtual machines on theirs are \
         stopped: those may \
         cause an effect of this size";
    SAY_WHAT_IS_MEANT = "add a limit for all groups and rails between the low and the good values (`at_least`; for a \
         latency \
         `at_most`): measuring again does not show which is bad. If the difference is by design, name it in `waive` \
         of `[localise]`";
    SLOW_GPU = "check its clocks, power limit and temperature ({0}, or {1} on AMD), PCIe link and other programs; \
         reset it, \
         and replace it if it stays slow",
        look "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE", look "amd-smi metric";
    SLOW_HOST = "compare load, clocks, PCIe links of NICs ({0}) and port error counters ({1}, {2}) with a good host; \
         replace \
         a cable whose counters rise",
        look "lspci -vv", look "ethtool -S {interface}", look "grep '' /sys/class/infiniband/*/ports/*/counters/*";
    SLOW_PATH = "check what only this path passes: switches and their links (rates, routes, error counters), and how \
         flows \
         are spread over equal links";
    SLOW_PORT = "check error counters, rate and lanes at both ends of the cable ({0}, {1}) and the NIC's PCIe link \
         ({2}). \
         Reseat the cable, then swap it with a good one: if the fault moves, it is the cable; else the NIC, its slot \
         or the switch port",
        look "mlxlink -d {device} -m", look "ethtool -S {interface}", look "lspci -vv";
    SLOW_SHARED_PART = "check the switches and links that all its flows pass: links down or slow, error counters, \
         routes, PFC and \
         ECN settings";
    SLOW_WITHIN_HOST = "compare BIOS settings (power profile, NUMA), clocks, memory modules ({0}), GPU links ({1}), \
         drivers and \
         other programs with a good host",
        look "dmidecode -t memory", look "nvidia-smi topo -m";
    WRONG_BYTES = "take it out of production. Check for errors in the kernel's log ({0}), memory ({1}), PCIe ({2}) \
         and NICs \
         ({3}); then measure the pair over another NIC, and with `memory = \"host\"` if it was GPU memory",
        look "dmesg | grep -iw -e mce -e edac -e aer -e 'hardware error'", look "grep '' /sys/devices/system/edac/mc/mc*/*_count",
        look "grep -Hv ' 0$' /sys/bus/pci/devices/*/aer_dev_*", look "ethtool -S {interface}";
    WRONG_BYTES_WITHIN_HOST = "take the host out of production. Check for errors in the kernel's log ({0}), memory \
         ({1}), PCIe ({2}) and \
         GPUs ({3}); then measure with another GPU or NUMA node",
        look "dmesg | grep -iw -e mce -e edac -e aer -e xid -e 'hardware error'", look "grep '' /sys/devices/system/edac/mc/mc*/*_count",
        look "grep -Hv ' 0$' /sys/bus/pci/devices/*/aer_dev_*", look "nvidia-smi -q -d ECC";
}

//! What to do about parts that were shown to be bad, and about limits that values break.

remedies! {
    BROKEN_LIMIT = "look first at the ends that the worst of them share: report.html lists them with the verdict; {0} \
        says what changed since a run that was good",
        change_here "railgauge compare {good_run} {run}";
    CONFIRM_SUSPECTS = "set `confirm = true` in `[localise]` of the plan and run it ({0}): the run then measures \
        outliers again with good partners; without that they stay suspects, however often the plan is run",
        change_here "railgauge run {plan}";
    FAILED_ALIKE = "look first at what all of them share: switches and the network between the hosts, settings, \
        drivers and firmware, and what met all of them at that time, such as the end of a job; then at the first that \
        failed";
    HOSTS_OF_ONE_MACHINE = "measuring again does not help: hosts of one machine share its parts, so none of them can \
        be judged alone. Name each machine once in `hosts` of the plan, with all its NICs, or measure between separate \
        machines; if these are separate and have the same host name, give each its own";
    LIMIT_BROKEN_BY_ALL = "look at what all of them share before any single part: the limit itself, settings, drivers \
        and firmware, what else the hosts do, and, between hosts, the switches; {0} says what changed since a run that \
        was good",
        change_here "railgauge compare {good_run} {run}";
    LIMIT_BROKEN_BY_GROUPS = "a collective is as slow as its slowest member: look first at the hosts that are in \
        groups that break the limit and in none that keeps it, as report.html lists them with the verdict; where every \
        group has all hosts, measure pairs or smaller groups of them; {0} says what changed since a run that was good",
        change_here "railgauge compare {good_run} {run}";
    LIMIT_BROKEN_BY_ONE = "measure again while nothing else runs on the hosts ({0}); if it breaks the limit again, \
        look at what it was measured on, which report.html names with the verdict; {1} says what changed since a run \
        that was good",
        change_here "railgauge run {plan}", change_here "railgauge compare {good_run} {run}";
    LIMIT_BROKEN_WITHIN_HOSTS = "look first at the hosts, GPUs and NUMA nodes that the worst of them share, as \
        report.html lists them with the verdict: clocks, temperature, PCIe links and other programs; {0} says what \
        changed since a run that was good",
        change_here "railgauge compare {good_run} {run}";
    MORE_PARTNERS = "measure more hosts in one run, with `pattern = \"tournament\"`: retesting the same hosts does not \
        help, because too few known-good pairs are there to compare with";
    NIC_BALANCE = "NCCL does not use all NICs alike: on the host that the verdict names check NCCL_IB_HCA (and `env` \
        of the test), that the NIC's port is active, and that NCCL sees which NIC is near which GPU (NCCL_DEBUG=INFO \
        with NCCL_DEBUG_SUBSYS=GRAPH,NET; in virtual machines NCCL_TOPO_FILE). If these NICs are not meant to carry \
        it, name those that are in `devices` of the host, or set a lower limit for `nic_balance`";
    OTHER_VIRTUAL_MACHINES = "measuring the same virtual machines again does not help: an effect of this size may come \
        from others on their machine. Measure while those are stopped, and from hosts that are not virtual";
    SAY_WHAT_IS_MEANT = "measuring again does not show which is bad: add a limit to the test, for all groups and \
        rails, between the low and the good values (`at_least`; for a latency `at_most`): what breaks it is bad. If \
        the difference is by design, name it in `waive` of `[localise]`";
    SLOW_GPU = "look at its clocks, power limit and temperature ({0}, or {1} for one of AMD), at its PCIe link, and at \
        what else runs on it; reset it, and have it replaced if it stays slow",
        look "nvidia-smi -q -d PERFORMANCE,CLOCK,POWER,TEMPERATURE", look "amd-smi metric";
    SLOW_HOST = "compare it with a good host: load, clocks, PCIe links of the NICs ({0}), error counters of the ports \
        ({1}, {2}); exchange a cable whose counters rise",
        look "lspci -vv", look "ethtool -S {interface}", look "grep '' /sys/class/infiniband/*/ports/*/counters/*";
    SLOW_PATH = "other pairs of both ends are good: look at what only this path passes, switches and the links between \
        them, their rates, routes and error counters, and at how flows are spread over equal links";
    SLOW_PORT = "look at error counters, rate and lanes at both ends of the port's cable ({0}, {1}), and at the PCIe \
        link of the NIC ({2}); reseat the cable, then exchange it with that of a good port: what moves with it is in \
        the cable, what stays is in the NIC, its slot or the switch port",
        look "mlxlink -d {device} -m", look "ethtool -S {interface}", look "lspci -vv";
    SLOW_SHARED_PART = "look at the switches, and the links between them, that all its flows pass: links that are down \
        or at a lower rate, error counters, routes, and settings of PFC and ECN";
    SLOW_WITHIN_HOST = "compare the host with a good one: settings of the BIOS (power profile, NUMA), clocks, memory \
        modules ({0}), links of its GPUs ({1}), drivers, and other programs",
        look "dmidecode -t memory", look "nvidia-smi topo -m";
    WRONG_BYTES = "send no data over it until the cause is known. Look on its hosts for errors of processors, memory \
        and PCIe in the kernel's log ({0}), in the counters of memory ({1}) and in those of PCIe devices ({2}), and at \
        counters of the NICs ({3}). Then measure the same pair over another NIC, and with `memory = \"host\"` if the \
        data was in GPU memory: that separates a NIC from memory",
        look "dmesg | grep -iw -e mce -e edac -e aer -e 'hardware error'",
        look "grep '' /sys/devices/system/edac/mc/mc*/*_count", look "grep -Hv ' 0$' /sys/bus/pci/devices/*/aer_dev_*",
        look "ethtool -S {interface}";
    WRONG_BYTES_WITHIN_HOST = "do not use the host until the cause is known. Look for errors of processors, memory and \
        PCIe in the kernel's log ({0}), in the counters of memory ({1}), in those of PCIe devices ({2}) and of its \
        GPUs ({3}); then measure the same with another GPU or another NUMA node",
        look "dmesg | grep -iw -e mce -e edac -e aer -e xid -e 'hardware error'",
        look "grep '' /sys/devices/system/edac/mc/mc*/*_count", look "grep -Hv ' 0$' /sys/bus/pci/devices/*/aer_dev_*",
        look "nvidia-smi -q -d ECC";
}

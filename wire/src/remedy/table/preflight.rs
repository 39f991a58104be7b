//! What to do about findings of the preflight.

remedies! {
    ACS_OFF = "{0}, or turn it off in the BIOS, or set `pci=disable_acs_redir=` on the kernel's command line",
        change "setpci -s {pci} ECAP_ACS+6.w=0000";
    ALIGN_PARTITIONS = "check the partitions of the subnet manager (partitions.conf)";
    CABLES = "move the cables as the finding says, or read an outdated topology again";
    CLOCK_SOURCE = "{0} shows why the processor's counter is not trusted; `tsc=reliable` on the kernel command line \
         overrides \
         that",
        look "dmesg | grep -i clocksource";
    MORE_TOPOLOGY = "add a source to [topology]: ibnetdiscover, or lldp of all hosts (`railgauge discover` reads both)";
    GPU_DRIVER = "install the same driver on all hosts";
    ECC_OF_AMD_GPU = "{0} shows which parts of the GPU have ECC; the memory of some GPUs has none", look "amd-smi \
         static --ras";
    ECC_ON = "{0}, then reset the GPU", change "nvidia-smi -e 1";
    ECN_ON = "{0}", change "echo 1 > /sys/class/net/{interface}/ecn/{file}/enable/{priority}";
    FABRIC_MANAGER = "{0} (nvidia-imex where NVLinks reach other hosts), {1}",
        look "systemctl status nvidia-fabricmanager", look "nvidia-smi -q";
    FIND_DEVICES = "run {0} and {1} on the host, or name its devices in the plan",
        look "lspci | grep -iE 'infiniband|ethernet'", look "dmesg | grep -iE 'mlx5|infiniband'";
    FIND_GPUS = "run {0}, or {1} for AMD GPUs, {2} and {3} on the host",
        look "nvidia-smi", look "amd-smi list", look "lspci | grep -iE 'nvidia|amd'", look "dmesg | grep -iE 'nvrm|amdgpu'";
    FLASH_FIRMWARE = "{0}, {1}, `devlink dev flash`: bring all cards to the same version",
        look "mstflint -d {device} query", look "mlxfwmanager";
    FLOW_CONTROL = "configure PFC or global pause at both ends of the link, or ECN that keeps queues short";
    LOOK_AT_CABLE = "check the cable, the transceiver and the switch port: {0}, {1}, {2}",
        look "mlxlink -d {device} -m", look "ethtool {interface}", look "iblinkinfo";
    GID_TABLE = "{0}: remove the entries that the others do not have, or leave `gid_index` out",
        look "ip address show dev {interface}";
    GOVERNOR = "{0}", change "cpupower frequency-set -g {governor}";
    GPU_CLOCKS = "{0}, or {1} for an AMD GPU; check fans, air flow and power supplies",
        look "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER", look "amd-smi metric --throttle --temperature --power";
    GPU_LIBRARIES = "install the driver and NCCL, or set their path (`library`, or LD_LIBRARY_PATH in `launch.env`)";
    HUGE_PAGES = "{0} reserves 1 GiB in pages of 2 MiB", change "sysctl vm.nr_hugepages=512";
    IOMMU_PASSTHROUGH = "set `iommu=pt` on the kernel's command line, or turn the IOMMU off in the BIOS";
    IPV4_ADDRESS = "give its interface an IPv4 address";
    IP_ADDRESS = "give its interface an IP address";
    LEAVE_TESTS_OUT = "leave these tests out on such devices";
    CPU_MASK = "start the agent without the limit of a cpuset ({0}), `taskset` or container",
        look "cat /sys/fs/cgroup/cpuset.cpus.effective";
    LOCKED_MEMORY = "set `* - memlock unlimited` in /etc/security/limits.conf, or LimitMEMLOCK=infinity for sshd";
    MAP_DSCP = "{0}, or use another `traffic_class` in the plan",
        change "dcb app add dev {interface} dscp-prio {dscp}:{priority}";
    NONE_IF_MEANT = "nothing to do if this is intended";
    MIG_OFF = "{0}, then reset the GPU", change "nvidia-smi -mig 0";
    LOAD_RDMA_UCM = "{0}", change "modprobe rdma_ucm";
    INTERFACE_MTU = "{0}, and in the network configuration", change "ip link set {interface} mtu {mtu}";
    PARTITION_MTU = "check the MTU of its partition in the subnet manager";
    NEARER_NIC = "use the NIC behind the same switch (`devices` of the plan), if the host has one";
    NVLINK = "{0}, {1}", look "nvidia-smi nvlink -s", look "systemctl status nvidia-fabricmanager";
    PAUSE_LIKE_OTHERS = "{0}", change "ethtool -A {interface} rx {rx} tx {tx}";
    PAUSE_OFF = "{0}: use either PFC or pause frames on a port",
        change "ethtool -A {interface} rx off tx off";
    LOAD_PEERMEM = "{0}", change "modprobe nvidia_peermem";
    PEERMEM_OR_OPEN_MODULES = "{0}, or install the driver's open kernel modules",
        change "modprobe nvidia_peermem";
    GPU_PERSISTENCE = "{0}, or {1}",
        change "systemctl enable --now nvidia-persistenced", change "nvidia-smi -pm 1";
    PFC_LIKE_OTHERS = "{0}",
        change "dcb pfc set dev {interface} prio-pfc {p0} {p1} {p2} {p3} {p4} {p5} {p6} {p7}";
    PORT_UP = "check the cable and the switch port; run {0} if the port was taken down",
        change "ip link set {interface} up";
    PORT_UP_INFINIBAND = "check the cable and the switch port, {0} and the subnet manager's log",
        look "ibstat";
    READ_AS_ROOT = "`unreadable` of the host's facts may say why; root can read more";
    READ_REQUEST = "{0} sets 4096 until the next boot; to keep it, set Max Read Request in the BIOS",
        change "setpci -s {pci} CAP_EXP+8.w=5000:7000";
    REPLACE_GPU = "replace the GPU ({0})", look "nvidia-smi -q -d ROW_REMAPPER";
    RESEAT_CARD = "reseat the card; compare LnkSta with LnkCap in {0}", look "lspci -vv -s {pci}";
    RESEAT_FOR_ERRORS = "reseat the card; {0}", look "dmesg | grep AER";
    RESEAT_GPU = "reseat the GPU or its riser; its link: {0} ({1} on AMD), {2}",
        look "nvidia-smi -q -d PERFORMANCE", look "amd-smi metric --pcie", look "lspci -vv";
    RESET_COUNTERS = "{0} sets the port's counters to zero (root)",
        change "perfquery -C {device} -P {port} -R";
    RESET_AMD_GPU = "drain the host and reset the GPU: {0}", change "amd-smi reset --gpureset --gpu {pci}";
    RESET_GPU = "drain the host and reset the GPU: {0}", change "nvidia-smi -r -i {index}";
    RETRAIN_MTU = "take the port down and up again; {0} shows max_mtu and active_mtu",
        look "ibv_devinfo";
    ROCE_V2 = "enable RoCE v2 for the port: {0}, or the driver's setting",
        change "cma_roce_mode -d {device} -p {port} -m 2";
    SAME_KERNEL = "install and boot the same kernel";
    SAME_MODULE = "{0}, {1}", look "modinfo {module}", look "dkms status";
    SEVERAL_QUEUE_PAIRS = "use several queue pairs, and compare with hosts that have the same bond";
    SUBNET_MANAGER = "{0}; start opensm, or the fabric manager of the switches", look "sminfo";
    SYNC_CLOCK = "{0}, and {1} or {2} to see why",
        change "timedatectl set-ntp true", look "chronyc tracking", look "timedatectl timesync-status";
    TRUST = "{0}", change "mlnx_qos -i {interface} --trust {trust}";
    UPDATE_BIOS = "update the BIOS: its tables lack _PXM";
    VERBS_LIBRARY = "{0}, or install your distribution's package",
        change "apt install libibverbs1 ibverbs-providers librdmacm1";
    WAIT_FOR_GPU = "end other programs on the GPU ({0}, or {1} on AMD), wait for them, or exclude the host",
        look "nvidia-smi", look "amd-smi process";
    WAIT_FOR_LINK = "wait for the job that uses it, or exclude the host";
    WANTED_VALUE = "configure the host as the plan requires, or change `[preflight]` in the plan";
    WHAT_RUNS = "{0} shows what runs", look "top";
    XID = "{0}; NVIDIA's list of Xids says what to do", look "dmesg | grep Xid";
    SLURM_LOCKED_MEMORY = "set LimitMEMLOCK=infinity in slurmd's unit ({0}), restart slurmd, and set \
         `PropagateResourceLimitsExcept=MEMLOCK` in slurm.conf, else the submitting shell's limit counts ({1} shows \
         slurmd's)",
        change "systemctl edit slurmd", look "grep 'Max locked memory' /proc/$(pgrep -o slurmd)/limits";
    SLURM_PROCESSORS = "request whole nodes (`exclusive` of `[launch.slurm]`, `salloc --exclusive`); {0} shows the \
         job's processors",
        look_here "scontrol --details show job $SLURM_JOB_ID";
}

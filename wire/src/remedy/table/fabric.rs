//! What to do about failures of RDMA devices, queue pairs and connections.

remedies! {
    ADDRESS_AND_UP = "give its network interface an address and bring it up";
    ADDRESS_CHANGED = "find what removes addresses from the interface (DHCP, network manager, bond: {0}), then \
         measure again",
        look "ip monitor address";
    ADDRESS_OF_ITS_OWN = "give each device its own address, or name the other device";
    ALLOW_UVERBS = "check who may open /dev/infiniband/uverbs* ({0}): udev rule, group rdma, device list of the \
         container",
        look "ls -l /dev/infiniband";
    CACHE_FOOTPRINT = "use footprint = \"cache\"";
    CHECK_CABLE = "check error counters, rate and lanes at both ends; reseat or clean the cable and its modules, \
         else replace \
         it";
    CHECK_PATH_TO_PEER = "check that the peer is alive and its port up; compare GID, VLAN, MTU and routes of both \
         ends; then check \
         packet loss, PFC and firewalls (RoCE v2: UDP 4791)";
    CHECK_PORT_NUMBER = "check that the device has this port; ports are counted from 1";
    CHECK_WAY_BACK = "check that the peer is alive, its port is up, and no packets are lost on the return path";
    COMPARE_CAPABILITIES = "compare the settings with what the device offers: {0}",
        look "ibv_devinfo -v";
    COMPARE_FIRMWARE = "compare the firmware of both ends ({0}), and check that the fabric does not reorder packets",
        look "ibv_devinfo | grep fw_ver";
    COMPARE_PORTS = "compare GID index and type, MTU and port state of both ends; iWARP, and eRDMA in standard mode, \
         need \
         joining = \"rdma-cm\"";
    COMPARE_ROUTES = "compare subnets, VLANs and routes of both ports";
    COMPARE_SIZES = "compare message size, largest size of the link and MTU of both ends";
    CORRECT_LIBRARY_VARIABLE = "correct or unset the environment variable {variable}";
    DMA_BUF_OF_NIC = "use a driver with dma-buf (mlx5, irdma, bnxt_re, efa, …), kernel 5.12 and rdma-core 34, or \
         newer; otherwise \
         {0}",
        change "modprobe nvidia_peermem";
    EFA_TCP_OR_NCCL = "use transport = \"nccl\" on EFA (with aws-ofi-nccl on the hosts), or transport = \"tcp\" on \
         its network \
         interface";
    FEWER_QUEUE_PAIRS = "use a smaller depth or fewer queue pairs, or raise the locked-memory limit ({0})",
        look "ulimit -l";
    FIRST_ERROR = "look at the first error of this queue pair and at the peer's error";
    FIT_LONGEST_MESSAGE = "use sizes of at most {most} bytes";
    FIT_PATH_MTU = "use sizes of at most {mtu} bytes";
    INSTALL_LIBRARY = "install {packages} on the host";
    INSTALL_PROVIDER = "install the libibverbs provider for {driver}, also in container images: ibverbs-providers \
         (Debian, Ubuntu), \
         libibverbs (RHEL, SUSE) or the vendor's package; ionic needs rdma-core 61 ({0} lists working devices)",
        look "ibv_devices";
    LEAVE_JOINING_OUT = "leave `joining` out of these tests of the plan";
    LINK_WENT_DOWN = "check cable, module and switch port ({0}, {1}); under load an optical module is the usual cause",
        look "dmesg", look "rdma link";
    LOAD_IB_UVERBS = "{0}, and in a container pass /dev/infiniband through",
        change "modprobe ib_uverbs";
    LOOK_AT_DEVICE = "look at {0} and at the firmware of the device", look "dmesg";
    LOOK_AT_PEER_DEVICE = "look at `dmesg` and at firmware messages on the peer";
    LOOK_AT_PORT = "look at {0} and {1}", look "ibv_devinfo", look "dmesg";
    LOOK_AT_RDMA_PORTS = "look at {0} and {1}", look "rdma link", look "ibv_devinfo";
    LOOK_UP_STATUS = "compare with <infiniband/verbs.h> of rdma-core";
    LOWER_DEPTH_OR_INLINE = "use a smaller `depth` or `inline`, or service = \"rc\"";
    LOWER_OUTSTANDING_READS = "use a smaller `outstanding_reads`, and check that the peer's device supports the \
         operation";
    MOUNT_SYSFS = "mount sysfs into the container";
    NAME_DEVICE_AND_PORT = "write the device as name or name:port, such as mlx5_0:1";
    NAME_RDMA_DEVICE = "name a device that the host has; {0} and /sys/class/infiniband list them",
        look "rdma link";
    NEWER_RDMA_CORE = "install a newer rdma-core on the host";
    ONE_QUEUE_PAIR = "use one queue pair (qps = 1)";
    PATH_MTU = "use an `mtu` of 256, 512, 1024, 2048 or 4096";
    PEERMEM_OR_DMA_BUF = "for GPU memory {0}, or use dma-buf if the NIC's driver supports it",
        change "modprobe nvidia_peermem";
    PING_PEER = "check that the hosts reach each other over the RDMA interface ({0}), and the peer's error",
        look "ping -c 3 -I {interface} {peer}";
    POLL_WRITES = "set write_latency = \"poll\" and completion = \"poll\" for such devices, or use op = \"send\"";
    PORT_DOWN_INFINIBAND = "check the cable and the switch port; see {0} and {1}",
        look "ibstat", look "dmesg";
    RAISE_INTERFACE_MTU = "raise the MTU of the network interface ({0}; RoCE needs 4200 for 4096, 2200 for 2048)",
        change "ip link set {interface} mtu {mtu}";
    RAISE_LOCKED_MEMORY = "raise the locked-memory limit ({0}): memlock unlimited in limits.conf or \
         LimitMEMLOCK=infinity in the unit \
         file (sshd and container engines pass on their own); {1} shows whether memory is full",
        look "ulimit -l", look "free -h";
    RC_OR_EXCHANGE = "use service = \"rc\" or joining = \"exchange\"";
    RC_OR_ONE_DIRECTION = "use service = \"rc\" or one direction";
    RC_SERVICE = "use service = \"rc\"";
    RDMA_CM_DEVICE = "{0}, and in a container pass /dev/infiniband/rdma_cm through",
        change "modprobe rdma_ucm";
    RELAXED_ORDERING_OFF = "try relaxed_ordering = false, or a smaller buffer";
    RESET_DEVICE = "look at {0}; the device probably needs a reset", look "dmesg";
    RESET_OR_DEFECT = "check whether the device was reset ({0}); if not, report this as a bug in railgauge",
        look "dmesg";
    ROUTED_INFINIBAND = "use hosts of one subnet, joining = \"rdma-cm\", or GIDs with an FLID (index 1 of routed \
         ports)";
    SAME_AT_BOTH_ENDS = "use the same {setting} at both ends";
    SAME_GID_TYPE = "set `gid_index` on one host so that both have one type (RoCE v2 is routed, v1 is not)";
    SAME_PARTITION = "set `pkey` to a partition of both ports in which one is a full member ({0} lists the keys)",
        look "grep '' /sys/class/infiniband/{device}/ports/{port}/pkeys/*";
    SAME_SUBNET = "give both interfaces addresses of one subnet, or set `gid_index`";
    SCATTER_TO_CQE_OFF = "set MLX5_SCATTER_TO_CQE = \"0\" in `launch.env` of the plan";
    SETTING_IN_RANGE = "use {least} to {most} for `{setting}`";
    SIZE_OF_ATOMICS = "use size 8";
    SMALLER_GROUPS = "use smaller groups";
    STAGED_OPERATION = "use send or write_imm with gpu_path = \"staged\"";
    SUBNET_CHANGED = "see why the subnet manager changed the port (its log; {0}), then measure again",
        look "sminfo";
    TCP_ON_IWARP = "use transport = \"tcp\" for collectives on iWARP";
    TCP_OR_NCCL = "use transport = \"tcp\" or \"nccl\" with this device";
    USE_RDMA_CORE = "use the library from rdma-core, not a substitute";
    USE_SET_GID = "set `gid_index` to one of these, or leave it out";
    USE_SET_PKEY = "set `pkey` to one of these, or leave it out; the subnet manager gives partitions";
    WRITE_IMMEDIATE = "set write_latency = \"immediate\": times taken that way are not comparable with polled ones";
    WRITE_IMM_OR_POLL = "use write_latency = \"immediate\", op = \"write_imm\" or \"send\", or completion = \"poll\"";
}

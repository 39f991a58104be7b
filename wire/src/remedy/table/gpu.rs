//! What to do about failures of GPUs, CUDA and NCCL.

use super::remedies;

remedies! {
    DMA_BUF_OF_GPU = "dma-buf-of-gpu",
        "use CUDA 11.7, NVIDIA's open kernel modules and Linux 5.12, or newer; else {0}",
        change "modprobe nvidia_peermem";
    EXACT_REDUCTION = "exact-reduction", "use a power of two of ranks, integers, or verify = false";
    FREE_GPU_MEMORY = "free-gpu-memory",
        "use smaller sizes, or look who else uses this GPU ({0})",
        look "nvidia-smi";
    INSTALL_CUDA_DRIVER = "install-cuda-driver",
        "install NVIDIA's driver, or leave memory = \"cuda\" and collectives over nccl to hosts with GPUs";
    INSTALL_NCCL = "install-nccl", "{0}, or name its file with `library` in the plan", change "apt install libnccl2";
    LEAVE_GRAPH_OUT = "leave-graph-out", "leave `graph` out";
    LOOK_AT_GPU = "look-at-gpu", "look at {0} and {1}", look "nvidia-smi", look "dmesg";
    LOOK_AT_RANKS = "look-at-ranks",
        "look at log.txt and at the failures of all ranks: another rank may be missing or slow";
    NAME_OTHER_GPUS = "name-other-gpus",
        "name others in `gpus`; CUDA_VISIBLE_DEVICES may hide some from the agent";
    NCCL_INTERFACE = "nccl-interface",
        "name a network interface for NCCL's own connections: NCCL_SOCKET_IFNAME in `launch.env` of the plan";
    NCCL_OF_8_BITS = "nccl-of-8-bits",
        "install NCCL 2.24 or newer; to reduce such numbers, GPUs need compute capability 9.0";
    NEWER_CUDA = "newer-cuda", "install a driver of CUDA 11.0 or newer";
    NEWER_NCCL = "newer-nccl", "install NCCL 2.11 or newer";
    REACH_GPU_MEMORY = "reach-gpu-memory",
        "{0}, or use NVIDIA's open kernel modules with a NIC driver that registers dma-bufs; gpu_path = \"staged\" \
         measures through host memory",
        change "modprobe nvidia_peermem";
    STAGE_OVER_TCP = "stage-over-tcp",
        "use gpu_path = \"staged\" over TCP, which goes through page-locked host memory";
}

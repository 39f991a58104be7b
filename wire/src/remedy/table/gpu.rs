//! What to do about failures of GPUs, CUDA and NCCL.

use super::remedies;

remedies! {
    DMA_BUF_OF_GPU = "dma-buf-of-gpu",
        "use CUDA 11.7, NVIDIA's open kernel modules and Linux 5.12, or newer; otherwise {0}",
        change "modprobe nvidia_peermem";
    EXACT_REDUCTION = "exact-reduction", "use a power-of-two number of ranks, an integer datatype, or verify = false";
    FREE_GPU_MEMORY = "free-gpu-memory",
        "use smaller sizes, or check who else uses this GPU ({0})",
        look "nvidia-smi";
    GPU_MEMORY_ERRORS = "gpu-memory-errors",
        "{0} shows errors and replaced rows; drain the host and reset the GPU, and have it replaced if they go on",
        look "nvidia-smi -q -d ECC,ROW_REMAPPER";
    INSTALL_CUBLASLT = "install-cublaslt",
        "install cuBLAS of CUDA 11.4 or newer, and name its folder in LD_LIBRARY_PATH in `launch.env` if the loader does not know it: \
         CUDA toolkits and PyTorch bring libcublasLt along";
    INSTALL_CUDA_DRIVER = "install-cuda-driver",
        "install NVIDIA's driver, or use memory = \"cuda\" and nccl collectives only on hosts with GPUs";
    INSTALL_NCCL = "install-nccl", "{0}, or set `library` in the plan to its path", change "apt install libnccl2";
    LEAVE_GRAPH_OUT = "leave-graph-out", "leave `graph` out";
    LOOK_AT_GPU = "look-at-gpu", "look at {0} and {1}", look "nvidia-smi", look "dmesg";
    LOOK_AT_RANKS = "look-at-ranks",
        "look at log.txt and at the failures of all ranks: another rank may be missing or slow";
    LOOP_GPU_MEMORY = "loop-gpu-memory",
        "{0}, or use NVIDIA's open kernel modules with a NIC driver that registers dma-bufs; memory = \"host\" loops \
         through host memory",
        change "modprobe nvidia_peermem";
    NAME_OTHER_GPUS = "name-other-gpus",
        "list other GPUs in `gpus`; CUDA_VISIBLE_DEVICES may hide some from the agent";
    NCCL_INTERFACE = "nccl-interface",
        "set NCCL_SOCKET_IFNAME in `launch.env` of the plan to the interface for NCCL's own connections";
    NCCL_OF_8_BITS = "nccl-of-8-bits",
        "install NCCL 2.24 or newer; to reduce this datatype, GPUs need compute capability 9.0";
    NEWER_CUDA = "newer-cuda", "install a driver of CUDA 11.0 or newer";
    NEWER_NCCL = "newer-nccl", "install NCCL 2.11 or newer";
    NVLINK_ERRORS = "nvlink-errors",
        "{0} has the errors of each link; reset the GPU, and look at the board and its NVSwitches if they go on",
        look "nvidia-smi nvlink -e";
    OTHER_PRECISION = "other-precision",
        "set knobs = { precision = \"fp16\" }, or another that this GPU and its cuBLASLt multiply";
    REACH_GPU_MEMORY = "reach-gpu-memory",
        "{0}, or use NVIDIA's open kernel modules with a NIC driver that registers dma-bufs; gpu_path = \"staged\" \
         measures through host memory",
        change "modprobe nvidia_peermem";
    STAGE_OVER_TCP = "stage-over-tcp",
        "over TCP use gpu_path = \"staged\", which copies through page-locked host memory";
}

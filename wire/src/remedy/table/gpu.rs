//! What to do about failures of GPUs, CUDA and NCCL, and of HIP and RCCL.

remedies! {
    AMD_GPU_OVER_RDMA = "use gpu_path = \"staged\": memory of AMD's GPUs is not registered with NICs";
    DMA_BUF_OF_GPU = "use CUDA 11.7, NVIDIA's open kernel modules and Linux 5.12, or newer; otherwise {0}",
        change "modprobe nvidia_peermem";
    EXACT_REDUCTION = "use a power-of-two number of ranks, an integer datatype, or verify = false";
    FREE_AMD_GPU_MEMORY = "use smaller sizes, or check who else uses this GPU ({0})", look "amd-smi process";
    FREE_GPU_MEMORY = "use smaller sizes, or check who else uses this GPU ({0})", look "nvidia-smi";
    GPU_MEMORY_ERRORS = "{0} shows errors and replaced rows, {1} those of AMD's GPUs; drain the host and reset the \
        GPU, and have it replaced if they go on",
        look "nvidia-smi -q -d ECC,ROW_REMAPPER", look "amd-smi metric --ecc";
    INSTALL_AMD_SMI = "install AMD SMI of ROCm 6.2 to 7 (libamd_smi.so), and name its folder in LD_LIBRARY_PATH in \
        `launch.env` if the loader does not know it";
    INSTALL_CUBLASLT = "install cuBLAS of CUDA 11.4 or newer, and name its folder in LD_LIBRARY_PATH in `launch.env` \
        if the loader does not know it: CUDA toolkits and PyTorch bring libcublasLt along";
    INSTALL_CUDA_DRIVER = "install NVIDIA's driver, or use memory = \"cuda\" and nccl collectives only on hosts with \
        GPUs";
    INSTALL_HIP = "install ROCm's HIP runtime 5.5 or newer (libamdhip64.so), and name its folder in LD_LIBRARY_PATH in \
        `launch.env` if the loader does not know it";
    INSTALL_HIPBLASLT = "install hipBLASLt of the same ROCm as HIP (libhipblaslt.so), and name its folder in \
        LD_LIBRARY_PATH in `launch.env` if the loader does not know it";
    INSTALL_HIPRTC = "install HIPRTC of the same ROCm as HIP (libhiprtc.so), which compiles the kernels that make and \
        compare data on AMD's GPUs";
    INSTALL_NCCL = "{0}, or set `library` in the plan to its path", change "apt install libnccl2";
    INSTALL_RCCL = "{0}, or set `library` in the plan to its path", change "apt install rccl";
    LEAVE_GRAPH_OUT = "leave `graph` out";
    LOOK_AT_AMD_GPU = "look at {0} and {1}", look "amd-smi list", look "dmesg";
    LOOK_AT_GPU = "look at {0} and {1}", look "nvidia-smi", look "dmesg";
    LOOK_AT_RANKS = "look at log.txt and at the failures of all ranks: another rank may be missing or slow";
    LOOP_AMD_GPU_MEMORY = "use memory = \"host\", which loops through host memory: memory of AMD's GPUs is not \
        registered with NICs";
    LOOP_GPU_MEMORY = "{0}, or use NVIDIA's open kernel modules with a NIC driver that registers dma-bufs; memory = \
        \"host\" loops through host memory",
        change "modprobe nvidia_peermem";
    NAME_OTHER_GPUS = "list other GPUs in `gpus`; CUDA_VISIBLE_DEVICES may hide some from the agent, and \
        ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES some of AMD's";
    NCCL_INTERFACE = "set NCCL_SOCKET_IFNAME in `launch.env` of the plan to the interface for NCCL's own connections";
    NCCL_OF_8_BITS = "install NCCL 2.24 or newer; to reduce this datatype, GPUs need compute capability 9.0";
    NEWER_CUDA = "install a driver of CUDA 11.0 or newer";
    NEWER_HIP = "install HIP of ROCm 5.5 or newer";
    NEWER_NCCL = "install NCCL 2.11 or newer";
    NEWER_RCCL = "install RCCL 2.11 or newer";
    NVLINK_ERRORS = "{0} shows the errors of each link; reset the GPU, and check the board and its NVSwitches if they \
        continue",
        look "nvidia-smi nvlink -e";
    OTHER_PRECISION = "set knobs = { precision = \"fp16\" }, or another that this GPU and its library multiply";
    RCCL_OF_8_BITS = "use f16, bf16 or f32: what RCCL's numbers of 8 bits are depends on the GPU";
    REACH_GPU_MEMORY = "{0}, or use NVIDIA's open kernel modules with a NIC driver that registers dma-bufs; gpu_path = \
        \"staged\" measures through host memory",
        change "modprobe nvidia_peermem";
    STAGE_OVER_TCP = "over TCP use gpu_path = \"staged\", which copies through page-locked host memory";
    XGMI_ERRORS = "{0} shows the errors of the links between GPUs; reset the GPUs, and check the board if they \
        continue",
        look "amd-smi xgmi --metric";
}

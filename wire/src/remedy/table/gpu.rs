//! What to do about failures of GPUs, CUDA and NCCL, and of HIP and RCCL.

remedies! {
    AMD_GPU_OVER_RDMA = "use gpu_path = \"staged\": NICs cannot register AMD GPU memory";
    DMA_BUF_OF_GPU = "use CUDA 11.7, NVIDIA's open kernel modules and Linux 5.12, or newer; otherwise {0}",
        change "modprobe nvidia_peermem";
    EXACT_REDUCTION = "use a power-of-two number of ranks, an integer datatype, or verify = false";
    FREE_AMD_GPU_MEMORY = "use smaller sizes, or check who else uses this GPU ({0})",
        look "amd-smi process";
    FREE_GPU_MEMORY = "use smaller sizes, or check who else uses this GPU ({0})",
        look "nvidia-smi";
    GPU_MEMORY_ERRORS = "drain the host and reset the GPU, and replace it if errors continue: {0}, or {1} for AMD GPUs",
        look "nvidia-smi -q -d ECC,ROW_REMAPPER", look "amd-smi metric --ecc";
    INSTALL_AMD_SMI = "install AMD SMI of ROCm 6.2 to 7 (libamd_smi.so); if it is not found, add its directory to \
         LD_LIBRARY_PATH \
         in `launch.env`";
    INSTALL_CUBLASLT = "install cuBLAS of CUDA 11.4 or newer (CUDA toolkits and PyTorch contain libcublasLt); if it \
         is not found, \
         add its directory to LD_LIBRARY_PATH in `launch.env`";
    INSTALL_CUDA_DRIVER = "install NVIDIA's driver, or use memory = \"cuda\" and nccl collectives only on hosts with \
         GPUs";
    INSTALL_HIP = "install ROCm's HIP runtime 5.5 or newer (libamdhip64.so); if it is not found, add its directory to \
         LD_LIBRARY_PATH in `launch.env`";
    INSTALL_HIPBLASLT = "install hipBLASLt of the same ROCm as HIP (libhipblaslt.so); if it is not found, add its \
         directory to \
         LD_LIBRARY_PATH in `launch.env`";
    INSTALL_HIPRTC = "install HIPRTC of the same ROCm as HIP (libhiprtc.so): it compiles the data kernels for AMD GPUs";
    INSTALL_NCCL = "{0}, or set `library` in the plan to its path", change "apt install libnccl2";
    INSTALL_RCCL = "{0}, or set `library` in the plan to its path", change "apt install rccl";
    LEAVE_GRAPH_OUT = "leave `graph` out";
    LOOK_AT_AMD_GPU = "look at {0} and {1}", look "amd-smi list", look "dmesg";
    LOOK_AT_GPU = "look at {0} and {1}", look "nvidia-smi", look "dmesg";
    LOOK_AT_RANKS = "check log.txt and the failures of all ranks: another rank may be missing or slow";
    LOOP_AMD_GPU_MEMORY = "use memory = \"host\": NICs cannot register AMD GPU memory";
    LOOP_GPU_MEMORY = "{0}, or use NVIDIA's open kernel modules and a NIC driver with dma-buf, or memory = \"host\"",
        change "modprobe nvidia_peermem";
    NAME_OTHER_GPUS = "list other GPUs in `gpus`; CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES \
         may hide some";
    NCCL_INTERFACE = "set NCCL_SOCKET_IFNAME in `launch.env` of the plan to the interface for NCCL's own connections";
    NCCL_OF_8_BITS = "install NCCL 2.24 or newer; to reduce this datatype, GPUs need compute capability 9.0";
    NEWER_CUDA = "install a driver of CUDA 11.0 or newer";
    NEWER_HIP = "install HIP of ROCm 5.5 or newer";
    NEWER_NCCL = "install NCCL 2.11 or newer";
    NEWER_RCCL = "install RCCL 2.11 or newer";
    NVLINK_ERRORS = "reset the GPU, and check the board and its NVSwitches if errors continue: {0}",
        look "nvidia-smi nvlink -e";
    OTHER_PRECISION = "set another `precision` in `knobs` that this GPU and its library multiply, such as \"fp16\"";
    RCCL_OF_8_BITS = "use f16, bf16 or f32: what RCCL's numbers of 8 bits are depends on the GPU";
    REACH_GPU_MEMORY = "{0}, or use NVIDIA's open kernel modules and a NIC driver with dma-buf, or gpu_path = \
         \"staged\"",
        change "modprobe nvidia_peermem";
    STAGE_OVER_TCP = "over TCP use gpu_path = \"staged\", which copies through page-locked host memory";
    XGMI_ERRORS = "reset the GPUs, and check the board if errors continue: {0}",
        look "amd-smi xgmi --metric";
}

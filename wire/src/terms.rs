//! Operations, metrics, transports and memories. Each value has one spelling in plans, on the wire, in the journal and in the frame.

use crate::unit::Bytes;

mod metric;
mod precision;

pub use metric::{Better, Collective, Family, Metric, Reads, Side};
pub use precision::{MOST as MOST_ROWS, Precision, STEP as ROW_STEP, flops};

crate::words! {
    Op {
        /// RDMA WRITE (`ib_write_*`).
        Write = "write",
        WriteImm = "write_imm",
        /// RDMA READ (`ib_read_*`).
        Read = "read",
        /// SEND and RECV (`ib_send_*`); over TCP a plain stream.
        Send = "send",
        /// 8-byte atomic fetch-and-add (`ib_atomic_* -A FETCH_AND_ADD`).
        AtomicFadd = "atomic_fadd",
        /// 8-byte atomic compare-and-swap (`ib_atomic_* -A CMP_AND_SWAP`).
        AtomicCas = "atomic_cas",
        AllReduce = "all_reduce",
        Broadcast = "broadcast",
        Reduce = "reduce",
        AllGather = "all_gather",
        ReduceScatter = "reduce_scatter",
        AllToAll = "all_to_all",
        /// Each pair of ranks exchanges its own number of bytes.
        AllToAllV = "all_to_all_v",
        SendRecv = "send_recv",
        /// By the processors of the same NUMA node.
        MemoryRead = "memory_read",
        MemoryWrite = "memory_write",
        MemoryCopy = "memory_copy",
        HostToGpu = "host_to_gpu",
        GpuToHost = "gpu_to_host",
        GpuCopy = "gpu_copy",
        GpuToGpu = "gpu_to_gpu",
        /// The GPU writes patterns to its memory and compares them.
        GpuMemoryTest = "gpu_memory_test",
        Matmul = "matmul",
        /// RDMA from a host's memory to other memory of the same host, through one of its RDMA ports.
        NicLoopback = "nic_loopback",
    }
}

impl Op {
    pub const fn is_collective(self) -> bool {
        matches!(
            self,
            Self::AllReduce
                | Self::Broadcast
                | Self::Reduce
                | Self::AllGather
                | Self::ReduceScatter
                | Self::AllToAll
                | Self::AllToAllV
                | Self::SendRecv
        )
    }

    /// The transport of an operation within a host; `None` for operations between ends or ranks.
    pub const fn within_host(self) -> Option<Transport> {
        match self {
            Self::MemoryRead | Self::MemoryWrite | Self::MemoryCopy => Some(Transport::Cpu),
            Self::HostToGpu | Self::GpuToHost | Self::GpuCopy | Self::GpuToGpu | Self::GpuMemoryTest | Self::Matmul => {
                Some(Transport::Gpu)
            }
            Self::NicLoopback => Some(Transport::Nic),
            _ => None,
        }
    }

    pub const fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::Reduce | Self::ReduceScatter)
    }

    /// Whether the size is divided among the ranks: each contributes, or receives, one part of it.
    pub const fn is_divided(self) -> bool {
        matches!(self, Self::AllGather | Self::ReduceScatter | Self::AllToAll)
    }

    /// Bus bandwidth divided by algorithm bandwidth (nccl-tests, doc/PERFORMANCE.md); `None` for operations of a pair. The size of an
    /// `all_to_all_v` counts only what passes between ranks.
    pub fn bus_factor(self, ranks: u32) -> Option<f64> {
        let n = f64::from(ranks);
        match self {
            Self::AllReduce => Some(2.0 * (n - 1.0) / n),
            Self::AllGather | Self::ReduceScatter | Self::AllToAll => Some((n - 1.0) / n),
            Self::Broadcast | Self::Reduce | Self::AllToAllV | Self::SendRecv => Some(1.0),
            _ => None,
        }
    }

    /// Whether no rank of a collective ends it before every rank has begun it.
    pub const fn synchronizes(self) -> bool {
        matches!(self, Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::AllToAll)
    }

    pub const fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicFadd | Self::AtomicCas)
    }

    pub const fn pulls(self) -> bool {
        matches!(self, Self::Read)
    }

    /// Whether the responder posts a receive for every message and so learns of it, which staging needs.
    pub const fn takes_receives(self) -> bool {
        matches!(self, Self::Send | Self::WriteImm)
    }
}

crate::words! {
    TestMetric {
        /// As many bytes as possible; also yields the message rate.
        Bandwidth = "bandwidth",
        /// One operation at a time; yields the latency percentiles.
        Latency = "latency",
        /// Gradients of a training step, reduced in buckets; a timer takes the place of the backward pass.
        Step = "step",
        /// As many floating-point operations as possible.
        Compute = "compute",
    }

    /// The fabric a test asks for. The frame's `transport` has what carried the bytes.
    Transport {
        Verbs = "verbs",
        Tcp = "tcp",
        /// Collectives between GPUs by NVIDIA's NCCL or AMD's RCCL, which has the same interface. The library chooses what carries the
        /// bytes.
        Nccl = "nccl",
        /// Operations on host memory by processors. A rail is a NUMA node with processors.
        Cpu = "cpu",
        /// Copies and matrix products by a host's GPUs. A rail is a GPU.
        Gpu = "gpu",
        /// RDMA through a port of a host back into its own memory. A rail is an RDMA port, as over verbs.
        Nic = "nic",
    }
}

impl Transport {
    /// Whether it tests nodes, not the network.
    pub const fn is_within_host(self) -> bool {
        matches!(self, Self::Cpu | Self::Gpu | Self::Nic)
    }

    /// NCCL carries every collective, verbs and TCP those with an [`Algorithm`]. Verbs carries every operation of a pair, TCP those
    /// without immediate data and atomics. Operations within a host have their own transport.
    pub fn carries(self, op: Op) -> bool {
        match self {
            Self::Cpu | Self::Gpu | Self::Nic => op.within_host() == Some(self),
            _ if op.within_host().is_some() => false,
            Self::Nccl => op.is_collective(),
            _ if op.is_collective() => Algorithm::ALL.iter().any(|algorithm| algorithm.does(op)),
            Self::Verbs => true,
            Self::Tcp => matches!(op, Op::Write | Op::Read | Op::Send),
        }
    }
}

crate::words! {
    Datatype {
        /// IEEE 754 binary32.
        F32 = "f32",
        /// IEEE 754 binary64.
        F64 = "f64",
        /// IEEE 754 binary16.
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
        /// 8 bits: 4 of exponent, 3 of mantissa (OCP FP8).
        F8e4m3 = "f8e4m3",
        /// 8 bits: 5 of exponent, 2 of mantissa (OCP FP8).
        F8e5m2 = "f8e5m2",
        I8 = "i8",
        U8 = "u8",
        I32 = "i32",
        U32 = "u32",
        I64 = "i64",
        U64 = "u64",
    }
}

impl Datatype {
    pub const fn bytes(self) -> Bytes {
        Bytes(match self {
            Self::I8 | Self::U8 | Self::F8e4m3 | Self::F8e5m2 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        })
    }

    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::F16 | Self::Bf16 | Self::F8e4m3 | Self::F8e5m2)
    }
}

crate::words! {
    Reduction {
        Sum = "sum",
        Prod = "prod",
        Min = "min",
        Max = "max",
        Avg = "avg",
        /// The sum of each rank's element times a scalar (`ncclRedOpCreatePreMulSum`).
        Mulsum = "mulsum",
    }
}

impl Reduction {
    /// Whether it exists over host memory: means, scaled sums and 8-bit floating point are NCCL's.
    pub const fn is_plain(self, datatype: Datatype) -> bool {
        !matches!(self, Self::Avg | Self::Mulsum) && !matches!(datatype, Datatype::F8e4m3 | Datatype::F8e5m2)
    }

    /// Whether the mean of exactly representable elements is exactly representable too: for floating-point numbers only where the number
    /// of ranks is a power of two.
    pub const fn is_exact(self, datatype: Datatype, ranks: u32) -> bool {
        !matches!(self, Self::Avg) || !datatype.is_float() || ranks.is_power_of_two()
    }
}

crate::words! {
    Algorithm {
        /// Blocks travel round a ring of all ranks: fewest bytes, most steps.
        Ring = "ring",
        /// Exchanges everything with ever farther partners: fewest steps, most bytes.
        RecursiveDoubling = "recursive-doubling",
        /// Exchanges and reduces halves, then gathers the same way back: few steps, fewest bytes.
        HalvingDoubling = "halving-doubling",
        Chain = "chain",
        Tree = "tree",
        Pairwise = "pairwise",
    }
}

impl Algorithm {
    /// Whether the algorithm supports `op`.
    pub const fn does(self, op: Op) -> bool {
        match self {
            Self::Ring => matches!(op, Op::AllReduce | Op::AllGather | Op::ReduceScatter),
            Self::RecursiveDoubling | Self::HalvingDoubling => matches!(op, Op::AllReduce),
            Self::Chain | Self::Tree => matches!(op, Op::Broadcast),
            Self::Pairwise => matches!(op, Op::AllToAll | Op::AllToAllV),
        }
    }
}

crate::words! {
    Service {
        Rc = "rc",
        Uc = "uc",
        Ud = "ud",
    }
}

impl Service {
    /// Source: InfiniBand Architecture Specification, volume 1, 9.2.1.
    pub const fn carries(self, op: Op) -> bool {
        match self {
            Self::Rc => !op.is_collective() && op.within_host().is_none(),
            Self::Uc => matches!(op, Op::Write | Op::WriteImm | Op::Send),
            Self::Ud => matches!(op, Op::Send),
        }
    }
}

crate::words! {
    /// What carried the bytes, verified by the endpoint that opened them.
    Carrier {
        VerbsRc = "verbs-rc",
        VerbsUc = "verbs-uc",
        VerbsUd = "verbs-ud",
        Tcp = "tcp",
        NcclIb = "nccl-ib",
        /// NCCL over another network plugin than NVIDIA's for verbs, as aws-ofi-nccl; the evidence names it.
        NcclPlugin = "nccl-plugin",
        NcclSocket = "nccl-socket",
        NcclP2p = "nccl-p2p",
        NcclShm = "nccl-shm",
        Cpu = "cpu",
        CudaCopy = "cuda-copy",
        CudaKernel = "cuda-kernel",
        Cublaslt = "cublaslt",
        /// Two reliable connected queue pairs of one port, connected to each other.
        VerbsLoopback = "verbs-loopback",
        HipCopy = "hip-copy",
        HipKernel = "hip-kernel",
        Hipblaslt = "hipblaslt",
    }
}

impl Carrier {
    pub const fn transport(self) -> Transport {
        match self {
            Self::VerbsRc | Self::VerbsUc | Self::VerbsUd => Transport::Verbs,
            Self::Tcp => Transport::Tcp,
            Self::NcclIb | Self::NcclPlugin | Self::NcclSocket | Self::NcclP2p | Self::NcclShm => Transport::Nccl,
            Self::Cpu => Transport::Cpu,
            Self::CudaCopy | Self::CudaKernel | Self::Cublaslt | Self::HipCopy | Self::HipKernel | Self::Hipblaslt => {
                Transport::Gpu
            }
            Self::VerbsLoopback => Transport::Nic,
        }
    }
}

crate::words! {
    LinkLayer {
        Infiniband = "infiniband",
        /// RDMA over Ethernet, version 1 (GRH on Ethernet).
        RoceV1 = "roce-v1",
        RoceV2 = "roce-v2",
        Iwarp = "iwarp",
        Ethernet = "ethernet",
        Loopback = "loopback",
        Nvlink = "nvlink",
        Xgmi = "xgmi",
        /// Between the GPUs of one host, a GPU and host memory, or a NIC and the memory next to it.
        Pcie = "pcie",
        Memory = "memory",
        /// NCCL's plugin does not report it, or processor and GPU are not connected by PCIe.
        Unknown = "unknown",
    }

    Memory {
        Host = "host",
        /// Memory of a GPU: of CUDA, or of HIP where the GPUs are AMD's.
        Cuda = "cuda",
    }

    GpuPath {
        GdrDmabuf = "gdr-dmabuf",
        GdrPeermem = "gdr-peermem",
        /// GPUDirect RDMA by a plugin of NCCL that does not report the kind.
        Gdr = "gdr",
        Staged = "staged",
        None = "none",
    }

    /// Distance between two PCIe devices, nearest first (the words of `nvidia-smi topo`).
    Distance {
        Pix = "PIX",
        Pxb = "PXB",
        Phb = "PHB",
        Node = "NODE",
        Sys = "SYS",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for op in Op::ALL {
            assert_eq!(Op::from_word(op.word()), Some(*op));
        }
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).unwrap(), metric.word());
        }
    }
}

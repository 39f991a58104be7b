//! Whose GPUs a library drives: what differs between CUDA's driver API and HIP beyond the names of functions.
//!
//! HIP's numbers are those of its `hip_runtime_api.h` and `driver_types.h` (ROCm 5.5, 5.7, 6.3 and 7.12): error codes, flags of streams, events
//! and captures, and attributes of pointers are CUDA's; attributes of devices are not.

use std::ffi::c_int;

use railgauge_wire::{
    remedy::{self, Entry},
    terms::Carrier,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    Nvidia,
    Amd,
}

impl Maker {
    pub(crate) const fn runtime(self) -> &'static str {
        match self {
            Self::Nvidia => "CUDA",
            Self::Amd => "HIP",
        }
    }

    pub(crate) const fn copies(self) -> Carrier {
        match self {
            Self::Nvidia => Carrier::CudaCopy,
            Self::Amd => Carrier::HipCopy,
        }
    }

    pub(crate) const fn kernels(self) -> Carrier {
        match self {
            Self::Nvidia => Carrier::CudaKernel,
            Self::Amd => Carrier::HipKernel,
        }
    }

    pub(crate) const fn products(self) -> Carrier {
        match self {
            Self::Nvidia => Carrier::Cublaslt,
            Self::Amd => Carrier::Hipblaslt,
        }
    }

    /// The attributes that tell the generation of a GPU, major and minor: the compute capability
    /// (`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`); of AMD's GPUs the first digits of their gfx number, such as 9 and 4
    /// of gfx942 (`hipDeviceAttributeComputeCapabilityMajor` and `Minor`).
    pub(super) const fn generation(self) -> [c_int; 2] {
        match self {
            Self::Nvidia => [75, 76],
            Self::Amd => [23, 61],
        }
    }

    /// What to do where memory of a GPU is short.
    pub(crate) const fn free_memory(self) -> Entry {
        match self {
            Self::Nvidia => remedy::FREE_GPU_MEMORY,
            Self::Amd => remedy::FREE_AMD_GPU_MEMORY,
        }
    }

    /// Where to look when a GPU does not work.
    pub(crate) const fn look(self) -> Entry {
        match self {
            Self::Nvidia => remedy::LOOK_AT_GPU,
            Self::Amd => remedy::LOOK_AT_AMD_GPU,
        }
    }
}

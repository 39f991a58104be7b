//! Differences between CUDA's driver API and HIP beyond function names. HIP's numbers are those of its `hip_runtime_api.h` and
//! `driver_types.h` (ROCm 5.5, 5.7, 6.3 and 7.12): error codes, flags of streams, events and captures, and attributes of pointers equal
//! CUDA's; attributes of devices do not.

use std::ffi::c_int;

use railgauge_wire::{
    Carrier,
    remedy::{self, Entry},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    Nvidia,
    Amd,
}

impl Vendor {
    pub(crate) const fn either<T: Copy>(self, nvidia: T, amd: T) -> T {
        match self {
            Self::Nvidia => nvidia,
            Self::Amd => amd,
        }
    }

    pub(crate) const fn runtime(self) -> &'static str {
        self.either("CUDA", "HIP")
    }

    pub(crate) const fn monitor(self) -> &'static str {
        self.either("NVML", "AMD SMI")
    }

    pub(crate) const fn copies(self) -> Carrier {
        self.either(Carrier::CudaCopy, Carrier::HipCopy)
    }

    pub(crate) const fn kernels(self) -> Carrier {
        self.either(Carrier::CudaKernel, Carrier::HipKernel)
    }

    pub(crate) const fn products(self) -> Carrier {
        self.either(Carrier::Cublaslt, Carrier::Hipblaslt)
    }

    /// Attributes of a GPU's generation, major and minor: the compute capability (`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and
    /// `_MINOR`); for AMD's GPUs the first digits of their gfx number, such as 9 and 4 of gfx942
    /// (`hipDeviceAttributeComputeCapabilityMajor` and `Minor`).
    pub(super) const fn generation(self) -> [c_int; 2] {
        self.either([75, 76], [23, 61])
    }

    pub(crate) const fn free_memory(self) -> Entry {
        self.either(remedy::FREE_GPU_MEMORY, remedy::FREE_AMD_GPU_MEMORY)
    }

    /// Remedy for a GPU that does not work.
    pub(crate) const fn look(self) -> Entry {
        self.either(remedy::LOOK_AT_GPU, remedy::LOOK_AT_AMD_GPU)
    }
}

//! What befell a GPU while a case used it, in the words of the failure that ended the case.

use std::fmt;

use railgauge_wire::{
    failure::Failure,
    gpu_state::{counter, is_of_program},
    remedy::{self, Entry},
};

use super::OfGpu;
use crate::gpu::cards::Unread;

/// Something that ends the work on a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// `GPU 3 (0000:1b:00.0)`.
    gpu: String,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    /// The driver told an Xid that no program's own mistake brings about.
    Xid(u32),
    /// So many errors of its memory could not be corrected.
    Memory(u64),
    /// It does not answer any more.
    Lost,
}

impl Fault {
    const fn remedy(&self) -> Entry {
        match self.what {
            What::Xid(_) => remedy::XID,
            What::Memory(_) => remedy::GPU_MEMORY_ERRORS,
            What::Lost => remedy::LOOK_AT_GPU,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { gpu, what } = self;
        match what {
            What::Xid(xid) => write!(f, "the driver told Xid {xid} of {gpu}"),
            What::Memory(1) => write!(f, "an error of the memory of {gpu} could not be corrected"),
            What::Memory(errors) => write!(f, "{errors} errors of the memory of {gpu} could not be corrected"),
            What::Lost => write!(f, "NVML lost {gpu}"),
        }
    }
}

/// What befell a GPU, what tells most first.
pub(super) fn faults(pci: &str, seen: &OfGpu) -> Vec<Fault> {
    let gpu = match seen.lasting.index {
        Some(index) => format!("GPU {index} ({pci})"),
        None => format!("the GPU at {pci}"),
    };
    let mut xids: Vec<u32> = seen.xids.iter().flatten().copied().filter(|xid| !is_of_program(*xid)).collect();
    xids.dedup();
    let errors = seen.counted.get(counter::ECC_UNCORRECTED).copied().filter(|errors| *errors > 0);
    let lost = matches!(seen.failure, Some(Unread::Lost(_))).then_some(What::Lost);
    let all = xids.into_iter().map(What::Xid).chain(errors.map(What::Memory)).chain(lost);
    all.map(|what| Fault { gpu: gpu.clone(), what }).collect()
}

/// A failure with what befell the GPUs of its case, and the remedy for the first of it.
pub(super) fn explained(mut failure: Failure, faults: impl Iterator<Item = Fault>) -> Failure {
    let faults: Vec<Fault> = faults.collect();
    let Some(first) = faults.first() else { return failure };
    let words: Vec<String> = faults.iter().map(Fault::to_string).collect();
    failure.cause = format!("{}; meanwhile {}", failure.cause, words.join(", "));
    failure.remedy(first.remedy())
}

#[cfg(test)]
mod tests {
    use railgauge_wire::failure::{Kind, Stage};

    use super::*;
    use crate::gpu::cards::{Informant, Lasting};

    const PCI: &str = "0000:1b:00.0";

    fn told(seen: &OfGpu) -> Failure {
        explained(Failure::new(Stage::Measure, Kind::Internal, "the copy failed"), faults(PCI, seen).into_iter())
    }

    #[test]
    fn what_ends_the_work_on_a_gpu_is_in_the_words_of_the_failure() {
        let lasting = Lasting { index: Some(3), ..Lasting::default() };
        let counted = [(counter::ECC_UNCORRECTED.to_owned(), 2), (counter::PCIE_REPLAYS.to_owned(), 9)].into();
        let lost = Some(Unread::Lost(PCI.to_owned()));
        let seen = OfGpu { lasting, xids: Some(vec![45, 79, 79]), counted, failure: lost, ..OfGpu::default() };
        let failure = told(&seen);
        assert_eq!(
            failure.cause,
            "the copy failed; meanwhile the driver told Xid 79 of GPU 3 (0000:1b:00.0), 2 errors of the memory of GPU 3 \
             (0000:1b:00.0) could not be corrected, NVML lost GPU 3 (0000:1b:00.0)"
        );
        assert_eq!(failure.remedy.unwrap().id, remedy::XID.id);
        let failure = told(&OfGpu { xids: None, ..seen });
        assert_eq!(failure.remedy.unwrap().id, remedy::GPU_MEMORY_ERRORS.id);
    }

    #[test]
    fn a_failure_of_a_healthy_gpu_stays_as_it_is() {
        let own = OfGpu { xids: Some(vec![13, 31, 43, 45]), ..OfGpu::default() };
        let unread = OfGpu { failure: Some(Unread::NoLibrary(Informant::Nvml, "none".to_owned())), ..OfGpu::default() };
        for seen in [OfGpu::default(), own, unread] {
            let failure = told(&seen);
            assert_eq!((failure.cause.as_str(), failure.remedy), ("the copy failed", None), "{seen:?}");
        }
    }
}

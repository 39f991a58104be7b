//! One product of two square matrices on a GPU by cuBLASLt or hipBLASLt. The matrices are row-major. The libraries are column-major, so
//! that X, Y and Z of [`super::matrices`] are their A transposed, B and D: the only layout for FP8, and the usual one of linear layers.

use std::{
    ffi::{c_int, c_void},
    sync::Arc,
};

use railgauge_wire::{Failure, Kind, Precision, Stage, remedy};

use super::{
    Buffer, Device, Matrices, Stream, Vendor,
    blas::{Algorithm, Blas, Numbers, Proposal, SUCCESS},
    matrices::Eight,
    stream::Event,
};
use crate::system::library::Owned;

/// Bytes of workspace for algorithms: NVIDIA recommends 32 MiB for compute capability 9.0 (cuBLAS documentation, `cublasSetWorkspace`);
/// PyTorch uses no more.
const WORKSPACE: u64 = 32 << 20;
const ASKED: usize = 8;
const DESCRIBING: &str = "describing a matrix product";
const TRIALS: u32 = 3;

/// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`, `HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`.
const MOST_WORKSPACE: c_int = 1;
/// `CUBLASLT_ALGO_CONFIG_ID`, `…_TILE_ID`, `…_SPLITK_NUM`, `…_STAGES_ID`.
const CONFIGURATION: [(&str, c_int); 4] = [("id", 0), ("tile", 1), ("split-k", 2), ("stages", 6)];

/// `CUDA_R_32F`, `HIP_R_32F`: the type of the factors alpha and beta, too.
const R_32F: c_int = 0;
/// `CUDA_R_16F`, `HIP_R_16F`.
const R_16F: c_int = 2;
/// `CUDA_R_16BF`, `HIP_R_16BF`.
const R_16BF: c_int = 14;
/// `CUDA_R_8F_E4M3`, `HIP_R_8F_E4M3`.
const R_8F_E4M3: c_int = 28;
/// `HIP_R_8F_E4M3_FNUZ`.
const R_8F_E4M3_FNUZ: c_int = 1000;

const fn types(precision: Precision, eight: Eight, numbers: Numbers) -> (c_int, c_int, c_int) {
    match precision {
        Precision::Bf16 => (R_16BF, R_16BF, numbers.compute_32f),
        Precision::Fp16 => (R_16F, R_16F, numbers.compute_32f),
        Precision::Tf32 => (R_32F, R_32F, numbers.compute_tf32),
        Precision::Fp32 => (R_32F, R_32F, numbers.compute_32f),
        Precision::Fp8 => match eight {
            Eight::Ocp => (R_8F_E4M3, R_16BF, numbers.compute_32f),
            Eight::Fnuz => (R_8F_E4M3_FNUZ, R_16BF, numbers.compute_32f),
        },
    }
}

pub(crate) struct Product {
    blas: Blas,
    device: Arc<Device>,
    description: Owned<c_void>,
    operand: Owned<c_void>,
    result: Owned<c_void>,
    workspace: Buffer,
    algorithm: Algorithm,
    /// Dropped last: the others belong to it.
    library: Owned<c_void>,
}

impl Product {
    pub(crate) fn new(device: &Arc<Device>, precision: Precision, rows: u32) -> Result<Self, Failure> {
        able(device, precision)?;
        device.enter()?;
        let (blas, library) = Blas::open(device.vendor())?;
        let numbers = blas.numbers();
        let (operand, result, arithmetic) = types(precision, Eight::of(device), numbers);
        let rows = u64::from(rows);
        let layout = |of: c_int| {
            blas.made(DESCRIBING, blas.layout_destroy, |to| {
                // SAFETY: `to` is valid for writes. Square, and without gaps between its columns.
                unsafe { (blas.layout_create)(to, of, rows, rows, rows.cast_signed()) }
            })
        };
        let description = blas.made(DESCRIBING, blas.product_destroy, |to| {
            // SAFETY: `to` is valid for writes.
            unsafe { (blas.product_create)(to, arithmetic, R_32F) }
        })?;
        let transposed = numbers.transposed;
        // SAFETY: the attribute is an int that outlives the call.
        let status = unsafe {
            let value = (&raw const transposed).cast::<c_void>();
            (blas.product_set)(description.as_ptr(), numbers.transpose_a, value, size_of::<c_int>())
        };
        blas.check(status, DESCRIBING)?;
        let (operand, result) = (layout(operand)?, layout(result)?);
        let (workspace, algorithm) = (Buffer::new(device, WORKSPACE)?, Algorithm::default());
        Ok(Self { blas, device: Arc::clone(device), description, operand, result, workspace, algorithm, library })
    }

    /// Selects the fastest proposed algorithm by a few products of each, and returns its description.
    pub(crate) fn choose(&mut self, stream: &Stream, matrices: &Matrices) -> Result<String, Failure> {
        let mut best: Option<(u64, Algorithm)> = None;
        let mut refused = None;
        for proposal in self.proposals()? {
            self.algorithm = proposal.algorithm;
            match self.trial(stream, matrices) {
                Ok(time) if best.is_none_or(|(least, _)| time < least) => best = Some((time, proposal.algorithm)),
                Ok(_) => {}
                Err(failure) => refused = Some(failure),
            }
        }
        let nothing = || Failure::new(Stage::Open, Kind::Internal, "no algorithm was tried");
        let (_, algorithm) = best.ok_or_else(|| refused.unwrap_or_else(nothing))?;
        self.algorithm = algorithm;
        Ok(self.words())
    }

    /// The best by the library's own estimate first.
    fn proposals(&self) -> Result<Vec<Proposal>, Failure> {
        let blas = &self.blas;
        let preference = blas.made(DESCRIBING, blas.preference_destroy, |to| {
            // SAFETY: `to` is valid for writes.
            unsafe { (blas.preference_create)(to) }
        })?;
        let most = WORKSPACE;
        // SAFETY: the attribute is a u64 that outlives the call.
        let status = unsafe {
            let value = (&raw const most).cast::<c_void>();
            (blas.preference_set)(preference.as_ptr(), MOST_WORKSPACE, value, size_of::<u64>())
        };
        blas.check(status, "limiting the workspace")?;
        let refused = |failure: Failure| {
            let gpu = self.device.index();
            failure.about(format_args!("GPU {gpu}: {}", self.library())).remedy(remedy::OTHER_PRECISION)
        };
        let (operand, result) = (self.operand.as_ptr(), self.result.as_ptr());
        let handles =
            [self.library.as_ptr(), self.description.as_ptr(), operand, operand, result, result, preference.as_ptr()];
        let proposals = blas.proposals::<ASKED>(handles).map_err(refused)?;
        let usable = |one: &Proposal| one.state == SUCCESS && one.workspace as u64 <= WORKSPACE;
        let proposals: Vec<Proposal> = proposals.into_iter().filter(usable).collect();
        if proposals.is_empty() {
            let cause = "it has no algorithm for this product";
            return Err(refused(Failure::new(Stage::Open, Kind::Unsupported, cause)));
        }
        Ok(proposals)
    }

    fn trial(&self, stream: &Stream, matrices: &Matrices) -> Result<u64, Failure> {
        self.multiply(stream, matrices)?;
        let (begin, end) = (Event::new(&self.device)?, Event::new(&self.device)?);
        begin.record(stream)?;
        (0..TRIALS).try_for_each(|_| self.multiply(stream, matrices))?;
        end.record(stream)?;
        end.wait()?;
        Ok(end.since(&begin)?.0)
    }

    fn words(&self) -> String {
        if self.device.vendor() == Vendor::Amd {
            // hipBLASLt does not report its algorithms.
            return "not reported by hipBLASLt".to_owned();
        }
        let number = |attribute| {
            let told = self.blas.configuration(&self.algorithm, attribute);
            told.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
        };
        CONFIGURATION.map(|(name, attribute)| format!("{name} {}", number(attribute))).join(", ")
    }

    pub(crate) fn library(&self) -> String {
        self.blas.record(self.library.as_ptr())
    }

    pub(crate) fn multiply(&self, stream: &Stream, matrices: &Matrices) -> Result<(), Failure> {
        let (alpha, beta) = (1.0_f32, 0.0_f32);
        let (x, y, z) = matrices.addresses();
        let (operand, result) = (self.operand.as_ptr(), self.result.as_ptr());
        // SAFETY: all handles live, the buffers are as large as the layouts say and live as long as the stream works on them, and both
        // factors are read during the call.
        let status = unsafe {
            (self.blas.multiply)(
                self.library.as_ptr(),
                self.description.as_ptr(),
                (&raw const alpha).cast(),
                x,
                operand,
                y,
                operand,
                (&raw const beta).cast(),
                z,
                result,
                z,
                result,
                &raw const self.algorithm,
                self.workspace.address(),
                self.workspace.len() as usize,
                stream.handle(),
            )
        };
        self.blas
            .check(status, &format!("GPU {}: multiplying", self.device.index()))
            .map_err(|failure| Failure { stage: Stage::Measure, ..failure })
    }
}

fn able(device: &Device, precision: Precision) -> Result<(), Failure> {
    let gpu = device.index();
    let refused = |cause: String| Failure::new(Stage::Open, Kind::Unsupported, cause);
    let Some(has) = device.generation() else {
        return Err(refused(match device.vendor() {
            Vendor::Nvidia => format!("GPU {gpu}: its compute capability is not known"),
            Vendor::Amd => format!("GPU {gpu}: its gfx number is not known"),
        }));
    };
    let name = precision.word().to_uppercase();
    let cause = match device.vendor() {
        Vendor::Nvidia if has >= precision.capability() => return Ok(()),
        Vendor::Nvidia => {
            let (needed, own) = (precision.capability(), device.name());
            format!(
                "{name} needs compute capability {}.{}; GPU {gpu} ({own}) has {}.{}",
                needed.0, needed.1, has.0, has.1
            )
        }
        Vendor::Amd => match multiplied_elsewhere(precision, has) {
            None => return Ok(()),
            Some(on) => {
                format!("{name} is multiplied on {on}; GPU {gpu} ({}) is gfx{}{}x", device.name(), has.0, has.1)
            }
        },
    };
    Err(refused(cause).remedy(remedy::OTHER_PRECISION))
}

/// GPUs of AMD to which hipBLASLt limits a precision, by their gfx numbers, if this generation is not among them (documentation "Data
/// type support" and "API reference", ROCm 6.3 and 7); `None` if it is. It may refuse others itself.
const fn multiplied_elsewhere(precision: Precision, generation: (u32, u32)) -> Option<&'static str> {
    match (precision, generation) {
        (Precision::Fp8, (9, 4 | 5) | (12, 0)) | (Precision::Tf32, (9, 4)) => None,
        (Precision::Fp8, _) => Some("gfx942, gfx950 and gfx12 alone"),
        // Later GPUs emulate it by different products of BF16.
        (Precision::Tf32, _) => Some("gfx942 alone"),
        (Precision::Bf16 | Precision::Fp16 | Precision::Fp32, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_amd_multiply_what_their_generation_does() {
        for (precision, generations) in [
            (Precision::Fp8, &[(9, 4), (9, 5), (12, 0)][..]),
            (Precision::Tf32, &[(9, 4)]),
            (Precision::Bf16, &[(9, 0), (9, 4), (9, 5), (11, 0), (12, 0)]),
        ] {
            for generation in [(9, 0), (9, 4), (9, 5), (11, 0), (12, 0)] {
                let is_able = multiplied_elsewhere(precision, generation).is_none();
                assert_eq!(is_able, generations.contains(&generation), "{precision} on {generation:?}");
            }
        }
    }
}

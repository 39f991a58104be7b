//! Reads many runs at the same time and returns them in order, without copies: values that count twice make intervals too narrow.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use railgauge_wire::Metric;

use super::{Run, RunError, read};
use crate::{frames::FrameFile, parallel::map_few};

/// Runs in memory at once.
const AT_ONCE: usize = 32;
/// More threads would wait for the disk and for memory.
const THREADS: usize = 8;
/// Equal bits beyond chance that make two runs one: with forty, chance is one in a million million.
const ENOUGH: u32 = 40;
/// Bits of a rate that differ between runs, at least: it is bytes over a window in nanoseconds.
const OF_RATE: u32 = 20;
/// The same for a percentile: whole nanoseconds, in buckets of a thousandth, of a few in use on a steady link.
const OF_TIME: u32 = 3;

/// Reads all directories on several threads and calls `take` in their order; copies of earlier runs and imported ones are errors.
pub fn read_all(
    directories: &[PathBuf],
    metrics: &[Metric],
    frames: &dyn FrameFile,
    mut take: impl FnMut(&Path, Result<Run, RunError>),
) {
    let mut originals = Originals::default();
    for some in directories.chunks(AT_ONCE) {
        let runs = map_few(some, THREADS, |directory| read(directory, metrics, frames));
        for (directory, run) in some.iter().zip(runs) {
            let run = match run {
                Ok(run) => originals.check(run),
                // Even a caller that accepts imported runs must not count one twice.
                Err(RunError::Imported { path, tools, run }) => {
                    originals.check(*run).and_then(|run| Err(RunError::Imported { path, tools, run: Box::new(run) }))
                }
                Err(error) => Err(error),
            };
            take(directory, run);
        }
    }
}

#[derive(Debug, Default)]
struct Originals {
    named: HashMap<(String, Timestamp), PathBuf>,
    measured: HashMap<u64, PathBuf>,
}

impl Originals {
    /// Lets a run pass once.
    ///
    /// # Errors
    /// The same run came before from another directory, perhaps under another name or date.
    fn check(&mut self, run: Run) -> Result<Run, RunError> {
        let name = (run.run_id.clone(), run.started);
        let values = fingerprint(&run);
        let same = values.and_then(|values| self.measured.get(&values));
        let copy = self.named.get(&name).map(|original| (original, ""));
        let copy =
            copy.or(same.map(|original| (original, " under another name or date, with the same values to the bit")));
        if let Some((original, sign)) = copy {
            return Err(RunError::Copy { path: run.path, original: original.clone(), sign });
        }
        self.measured.extend(values.map(|values| (values, run.path.clone())));
        self.named.insert(name, run.path.clone());
        Ok(run)
    }
}

/// Equal for two runs only if they are one: every value of every case, to the bit. `None` if so little was measured
/// that chance may make runs equal.
fn fingerprint(run: &Run) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let mut bits = 0;
    for reading in &run.readings {
        let case = run.cases.get(usize::try_from(reading.case).ok()?)?;
        (&case.test, &case.flow, &case.cell, reading.metric).hash(&mut hasher);
        let value = reading.value.as_ref().ok().map(|value| value.to_bits());
        value.hash(&mut hasher);
        if value.is_some() {
            let is_rate = matches!(
                reading.metric,
                Metric::Bandwidth | Metric::MemoryBandwidth | Metric::MemoryLatency | Metric::Compute | Metric::Busbw
            );
            bits += if is_rate { OF_RATE } else { OF_TIME };
        }
    }
    (bits >= ENOUGH).then(|| hasher.finish())
}

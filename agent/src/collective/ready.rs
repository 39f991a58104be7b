//! One collective of one rank, ready to be repeated: where its data stands, and what is played on it.

use std::ops::Range;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    group::CollectiveSpec,
    terms::{Algorithm, Reduction},
    unit::Nanoseconds,
};

use super::{
    job::Job,
    layout::Layout,
    reduce::{Kernel, kernel},
    script::Script,
    table::Source,
    training::{Bucket, buckets},
};

pub(crate) struct Ready<'e> {
    pub collective: &'e CollectiveSpec,
    /// Where its data stands.
    pub layout: Layout,
    /// What is played, in order: one part, or the buckets of a training step.
    pub parts: Vec<Part>,
    pub kernel: Option<Kernel>,
    pub source: Source,
    pub algorithm: Algorithm,
    /// Bytes of scratch memory the scripts use.
    pub scratch: usize,
}

pub(crate) struct Part {
    /// Its bytes, from where the operation's begin.
    pub at: Range<usize>,
    /// When it may begin, from when the operation did.
    pub ready: Nanoseconds,
    pub script: Script,
}

impl<'e> Ready<'e> {
    /// Prepares a collective for rank `rank` of `ranks`, whose data stands as `layout` says.
    pub(crate) fn new(collective: &'e CollectiveSpec, layout: Layout, rank: u32, ranks: u32) -> Result<Self, Failure> {
        let refused = |cause: String| Failure::new(Stage::Measure, Kind::Configuration, cause);
        let options = &collective.options;
        let reduction = options.reduction.filter(|_| collective.op.reduces());
        let kernel = match reduction {
            Some(reduction) => Some(kernel(options.datatype, reduction).ok_or_else(|| {
                refused(format!("{reduction} of {} is not supported in host memory", options.datatype))
            })?),
            None => None,
        };
        let job = |count: u64| Job {
            op: collective.op,
            rank: rank as usize,
            ranks: ranks as usize,
            count: fits(count),
            width: fits(layout.width),
            in_place: options.in_place,
        };
        let scripted = |job: &Job| {
            let algorithm = options.algorithm.or_else(|| job.suited());
            let script = algorithm.and_then(|algorithm| Some((algorithm, job.script(algorithm)?)));
            script.ok_or_else(|| {
                let how = algorithm.map_or(String::new(), |algorithm| format!(" by {algorithm}"));
                refused(format!("there is no {}{how} over host memory", collective.op))
            })
        };
        let cut = |training| buckets(layout.count, layout.width, training);
        let buckets = options.training.as_ref().map(cut).unwrap_or_default();
        let largest = buckets.iter().map(|bucket| bucket.at.end - bucket.at.start).max().unwrap_or(layout.count);
        let whole = job(largest);
        let (algorithm, script) = scripted(&whole)?;
        let mut parts = Vec::new();
        for Bucket { at, ready } in &buckets {
            let (_, script) = scripted(&job(at.end - at.start))?;
            parts.push(Part { at: fits(at.start * layout.width)..fits(at.end * layout.width), ready: *ready, script });
        }
        if parts.is_empty() {
            parts.push(Part { at: 0..collective.size.as_usize(), ready: Nanoseconds::ZERO, script });
        }
        let source = Source { datatype: options.datatype, reduction, ranks, key: collective.seed };
        Ok(Self { collective, layout, parts, kernel, source, algorithm, scratch: whole.scratch() })
    }

    /// What is reduced by; `None` where data is only moved.
    pub(crate) fn reduction(&self) -> Option<Reduction> {
        self.source.reduction
    }

    /// Time of the backward pass of a training step.
    pub(crate) fn compute(&self) -> Option<Nanoseconds> {
        self.collective.options.training.as_ref().map(|training| training.compute)
    }
}

/// Sizes have been checked against the buffers, which are in memory.
fn fits(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

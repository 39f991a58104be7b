//! What a sample says that cannot be true, as fields. Times are nanoseconds, amounts are bytes, rates are Gb/s.

use std::fmt;

use railgauge_wire::unit::{Bytes, GigabitsPerSecond, Nanoseconds, NanosecondsF64};
use serde::Serialize;

use crate::analysis::words::count;

/// Something that cannot be true.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "contradiction", rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the fields are the numbers of the sentence that Display makes")]
pub enum Contradiction {
    /// A rate that no link has.
    LinkRate { rate: GigabitsPerSecond, most: f64 },
    /// An MTU that no link of the kind has.
    Mtu { mtu: u32, most: u32 },
    /// An operation that took no time.
    NoTime,
    /// A smaller quantile above a larger one.
    Order { lower: &'static str, low: Nanoseconds, upper: &'static str, high: Nanoseconds },
    /// A mean outside of the range.
    MeanOutside { mean: NanosecondsF64, min: Nanoseconds, max: Nanoseconds },
    /// No deviation of values that differ.
    NoDeviation { min: Nanoseconds, max: Nanoseconds },
    /// A deviation that values of the range cannot have.
    Deviation { stdev: NanosecondsF64, min: Nanoseconds, max: Nanoseconds },
    /// Another number of samples than the histogram has.
    Samples { samples: u64, in_histogram: u128 },
    /// A histogram whose edges do not rise.
    Edges,
    /// A minimum that is not in the first bucket.
    FirstBucket { min: Nanoseconds, high: Nanoseconds },
    /// A maximum that is not in the last bucket.
    LastBucket { max: Nanoseconds, low: Nanoseconds, high: Nanoseconds },
    /// A quantile that is elsewhere in the histogram.
    Quantile { name: &'static str, value: Nanoseconds, low: Nanoseconds, high: Nanoseconds },
    /// A mean that samples in these buckets cannot have.
    Mean { mean: f64, low: f64, high: f64 },
    /// A deviation that samples in these buckets cannot have.
    DeviationOfBuckets { stdev: f64, low: f64, high: f64 },
    /// A window longer than the pass.
    LongerThanPass { window: Nanoseconds, pass: NanosecondsF64 },
    /// More CPU time than the host has.
    CpuTime { cpu: Nanoseconds, threads: u32, within: NanosecondsF64 },
    /// A window far shorter than the plan wants.
    TooShort { window: Nanoseconds, wanted: Nanoseconds },
    /// A window that would not have been waited for.
    TooLong { window: Nanoseconds, most: NanosecondsF64 },
    /// Another number of queue pairs or streams than the case has.
    Lanes { lanes: usize, wanted: usize },
    /// Queue pairs or streams that do not come to the whole.
    BytesOfLanes { bytes: Bytes, lanes: usize, sum: u128 },
    /// Slices of more than the whole.
    BytesOfSlices { bytes: Bytes, sum: u128 },
    /// More slices than the window has room for.
    Slices { slices: usize, window: Nanoseconds },
    /// Less in the whole step than in its window.
    Moved { bytes: Bytes, moved: Bytes },
    /// More than any link carries in the time.
    MovedTooMuch { moved: Bytes, time: NanosecondsF64, most: f64 },
    /// Another number of operations than of times.
    Operations { operations: u64, times: u64 },
    /// Operations whose times are not the window.
    SumOfTimes { window: NanosecondsF64, sum: NanosecondsF64 },
    /// A clock that takes longer to read than an operation with its reading.
    Timer { timer: NanosecondsF64, operation: NanosecondsF64 },
    /// No CPU time of a thread that polled.
    NoCpuTime { window: Nanoseconds },
    /// CPU time in which so many operations cannot be done.
    LittleCpuTime { cpu: Nanoseconds, operations: u64 },
    /// Bytes that are not so many messages.
    Size { bytes: Bytes, operations: u64, size: Bytes },
    /// Floating-point operations that are not those of so many products.
    Flops { flops: u64, operations: u64, wanted: u128 },
    /// More floating-point operations in the time than any GPU does.
    FasterThanGpus { rate: f64, most: f64 },
    /// Reads that follow one another faster than any cache answers, in nanoseconds each.
    FasterThanCaches { each: f64, least: f64 },
    /// A median that does not go with the window, in nanoseconds of a read.
    MedianOfReads { each: f64, mean: f64 },
    /// More verified than there is.
    Verified { verified: Bytes, most: u128 },
    /// Other bytes received than sent.
    Received { sent: Bytes, host: String, received: Bytes },
    /// More than the link, or any link where its rate is not known, carries.
    TooFast { rate: f64, most: f64, of_any_link: bool },
    /// More at each rank than memory takes.
    FasterThanMemory { rate: f64, most: f64 },
    /// Ranks that do not come to the whole of what was verified.
    VerifiedByRanks { verified: Bytes, wrong: Bytes, by_ranks: (Bytes, Bytes) },
    /// A mean that does not go with the window.
    MeanOfBatches { operations: u64, window: Nanoseconds, mean: NanosecondsF64, batches: u64 },
    /// Ranks that are missing.
    Ranks { present: usize, wanted: usize },
    /// A rank that is planned on another host.
    Elsewhere { rank: u32, host: String },
    /// A rank that took longer at most than the slowest of all.
    SlowerAtMost { rank: u32, max: Nanoseconds, slowest: Nanoseconds },
    /// A rank whose median cannot be beside that of the slowest.
    MedianOfRank { rank: u32, median: Nanoseconds, slowest: Nanoseconds },
    /// A start that is no moment.
    Start { started_at: String },
    /// Something that took longer than was waited.
    Waited { took: Nanoseconds, waited: Nanoseconds },
}

fn operations(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), "operation")
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkRate { rate, most } => write!(f, "a link of {rate} Gb/s, and links have up to {most} Gb/s"),
            Self::Mtu { mtu, most } => write!(f, "an MTU of {mtu} B, and links like this have up to {most} B"),
            Self::NoTime => f.write_str("an operation took 0 ns"),
            Self::Order { lower, low, upper, high } => write!(f, "a {lower} of {low} ns above a {upper} of {high} ns"),
            Self::MeanOutside { mean, min, max } => write!(f, "a mean of {mean} ns outside of {min} to {max} ns"),
            Self::NoDeviation { min, max } => {
                write!(f, "a standard deviation of 0 of values from {min} to {max} ns")
            }
            Self::Deviation { stdev, min, max } => {
                write!(f, "a standard deviation of {stdev} ns of values from {min} to {max} ns")
            }
            Self::Samples { samples, in_histogram } => {
                write!(f, "{samples} samples, and {in_histogram} in the histogram")
            }
            Self::Edges => f.write_str("a histogram whose edges do not rise"),
            Self::FirstBucket { min, high } => write!(f, "a minimum of {min} ns in a bucket up to {high} ns"),
            Self::LastBucket { max, low, high } => {
                write!(f, "a maximum of {max} ns in a bucket from {low} to {high} ns")
            }
            Self::Quantile { name, value, low, high } => {
                write!(f, "a {name} of {value} ns, which the histogram has from {low} to {high} ns")
            }
            Self::Mean { mean, low, high } => {
                write!(f, "a mean of {mean} ns, which the histogram has from {low:.1} to {high:.1} ns")
            }
            Self::DeviationOfBuckets { stdev, low, high } => {
                write!(f, "a standard deviation of {stdev} ns, which the histogram has from {low:.1} to {high:.1} ns")
            }
            Self::LongerThanPass { window, pass } => {
                write!(f, "a window of {:.3} s in a pass of {:.3} s", window.seconds(), pass.seconds())
            }
            Self::CpuTime { cpu, threads, within } => {
                write!(f, "{:.3} s of CPU time of {threads} threads in {:.3} s", cpu.seconds(), within.seconds())
            }
            Self::TooShort { window, wanted } => {
                write!(f, "a window of {:.6} s, and the plan wants {:.6} s", window.seconds(), wanted.seconds())
            }
            Self::TooLong { window, most } => {
                write!(
                    f,
                    "a window of {:.6} s, and the plan has it end within {:.6} s",
                    window.seconds(),
                    most.seconds()
                )
            }
            Self::Lanes { lanes, wanted } => write!(f, "{} of {wanted}", count(*lanes, "lane")),
            Self::BytesOfLanes { bytes, lanes, sum } => {
                write!(f, "{bytes} B, of which its {} moved {sum} B", count(*lanes, "lane"))
            }
            Self::BytesOfSlices { bytes, sum } => write!(f, "{bytes} B, and {sum} B in its slices of 100 ms"),
            Self::Slices { slices, window } => {
                write!(f, "{} of 100 ms in {:.3} s", count(*slices, "slice"), window.seconds())
            }
            Self::Moved { bytes, moved } => write!(f, "{bytes} B in the window, and {moved} B with warm-up and all"),
            Self::MovedTooMuch { moved, time, most } => {
                write!(f, "{moved} B moved in {:.3} s, and no link moves {most:.0} B in it", time.seconds())
            }
            Self::Operations { operations: n, times } => write!(f, "{}, and times of {times}", operations(*n)),
            Self::SumOfTimes { window, sum } => write!(
                f,
                "a window of {:.6} s, and its operations took {:.6} s one after the other",
                window.seconds(),
                sum.seconds()
            ),
            Self::Timer { timer, operation } => write!(
                f,
                "{timer} ns for one reading of the clock, and {operation} ns for an operation with its reading"
            ),
            Self::NoCpuTime { window } => write!(f, "no CPU time in {:.6} s in which it polled", window.seconds()),
            Self::LittleCpuTime { cpu, operations: n } => {
                write!(f, "{cpu} ns of CPU time for {}", operations(*n))
            }
            Self::Size { bytes, operations: n, size } => write!(f, "{bytes} B in {} of {size} B", operations(*n)),
            Self::Flops { flops, operations: n, wanted } => {
                write!(f, "{flops} floating-point operations in {}, which have {wanted}", operations(*n))
            }
            Self::FasterThanGpus { rate, most } => {
                write!(f, "{rate:.0} TFLOP/s, and the fastest GPU has {most:.0} TFLOP/s")
            }
            Self::FasterThanCaches { each, least } => {
                write!(
                    f,
                    "{each:.2} ns for a read that waits for the one before it, and no cache answers within {least} ns"
                )
            }
            Self::MedianOfReads { each, mean } => {
                write!(f, "a median of {each:.1} ns for reads that took {mean:.1} ns on average")
            }
            Self::Verified { verified, most } => write!(f, "{verified} B verified, of {most} B at most"),
            Self::Received { sent, host, received } => {
                write!(f, "{sent} B were sent, and {host} received {received} B")
            }
            Self::TooFast { rate, most, of_any_link } => {
                let what = if *of_any_link { "any link, which has less than" } else { "a link of" };
                write!(f, "{rate:.1} Gb/s over {what} {most} Gb/s")
            }
            Self::FasterThanMemory { rate, most } => {
                write!(f, "{rate:.0} Gb/s at each rank, and the fastest memory has {most:.0} Gb/s")
            }
            Self::VerifiedByRanks { verified, wrong, by_ranks: (ranks, of_them) } => write!(
                f,
                "{verified} B verified and {wrong} of them wrong, and {ranks} and {of_them} by what each rank says"
            ),
            Self::MeanOfBatches { operations, window, mean, batches } => {
                let batches = count(usize::try_from(*batches).unwrap_or(usize::MAX), "batch");
                let window = window.seconds();
                write!(f, "{operations} operations in {window:.6} s, and a mean of {mean:.1} ns in {batches} of them")
            }
            Self::Ranks { present, wanted } => write!(f, "{present} of {wanted} ranks gave one account each"),
            Self::Elsewhere { rank, host } => write!(f, "rank {rank} speaks for {host}, and is planned elsewhere"),
            Self::SlowerAtMost { rank, max, slowest } => {
                write!(f, "rank {rank} took {max} ns at most, and the slowest of all {slowest} ns")
            }
            Self::MedianOfRank { rank, median, slowest } => {
                write!(f, "rank {rank} has a median of {median} ns, and the slowest of all one of {slowest} ns")
            }
            Self::Start { started_at } => write!(f, "it began at `{started_at}`, which is not a time"),
            Self::Waited { took, waited } => {
                write!(
                    f,
                    "something took {:.3} s, of which the controller waited {:.3} s",
                    took.seconds(),
                    waited.seconds()
                )
            }
        }
    }
}

//! Metrics. A metric is one row of the table below: its word, unit, better direction, the tests that have it, and what it reads of the
//! ends' accounts. The controller joins accounts of several ends.

use super::Op;
use crate::{
    measure::{Latency, Measurement},
    unit::{Bytes, GigabytesPerSecond, Nanoseconds},
};

crate::words! {
    Better {
        Higher = "higher",
        Lower = "lower",
    }
}

macro_rules! metrics {
    ($($(#[$doc:meta])* $variant:ident = $word:literal: $about:expr,)+) => {
        crate::words! {
            #[derive(Default)]
            Metric {
                $($(#[$doc])* $variant = $word,)+
            }
        }

        impl Metric {
            const fn about(self) -> About {
                match self {
                    $(Self::$variant => const { $about },)+
                }
            }
        }
    };
}

metrics! {
    /// Payload bits per second of one flow.
    #[default]
    Bandwidth = "bandwidth": About {
        title: "Bandwidth", has_ceiling: true, ..rate("Gb/s", |end| end.bytes.bits())
    },
    MessageRate = "message_rate": About {
        title: "Message rate", ..rate("Mmsg/s", |end| end.operations as f64 * Nanoseconds::PER_MICROSECOND)
    },
    /// Payload bits per second that all flows of a round bring to one NIC.
    IngressBandwidth = "ingress_bandwidth": SUM,
    /// Payload bits per second that all flows of a round take from one NIC.
    EgressBandwidth = "egress_bandwidth": SUM,
    /// Payload bits per second of all flows of a round.
    TotalBandwidth = "total_bandwidth": About { title: "Bandwidth of all flows", ..SUM },
    /// Loss of a flow alongside an incast that shares no NIC port with it, in percent of its bandwidth alone. Negative for a gain.
    VictimLoss = "victim_loss": About {
        unit: "%", family: Family::Victim, reads: Reads::Round, may_be_zero: true, title: "Loss of a flow next to an incast",
        ..LATENCY
    },
    /// Loss of a flow alongside other traffic of its own two hosts, in percent of its bandwidth alone. Negative for a gain.
    BesideLoss = "beside_loss": About {
        unit: "%", family: Family::Beside, reads: Reads::Round, may_be_zero: true,
        title: "Loss of a flow to background traffic of its hosts", ..LATENCY
    },
    /// Payload bits per second of that other traffic in the flow's window, all directions together.
    BesideBandwidth = "beside_bandwidth": About {
        unit: "Gb/s", better: Better::Higher, family: Family::Beside, reads: Reads::Round,
        title: "Bandwidth of the background traffic", ..LATENCY
    },
    LatencyMin = "latency_min": latency(|all| all.min.microseconds()),
    LatencyP50 = "latency_p50": About {
        title: "Latency, median (p50)", name: "median latency", ..percentile(500, |all| all.p50.microseconds())
    },
    LatencyP90 = "latency_p90": percentile(900, |all| all.p90.microseconds()),
    LatencyP99 = "latency_p99": About {
        title: "Latency, 99th percentile (p99)", ..percentile(990, |all| all.p99.microseconds())
    },
    LatencyP999 = "latency_p999": percentile(999, |all| all.p999.microseconds()),
    LatencyMax = "latency_max": latency(|all| all.max.microseconds()),
    LatencyStdev = "latency_stdev": About {
        // One operation has no deviation.
        fewest: 2, is_optional: true, ..latency(|all| all.stdev.microseconds())
    },
    /// Mean latency, or mean time of a collective: only in imported runs, whose tools report nothing else.
    LatencyMean = "latency_mean": About {
        family: Family::Imported, title: "Latency, mean", name: "mean latency", ..latency(|all| all.mean.microseconds())
    },
    Busbw = "busbw": About {
        title: "Bus bandwidth",
        name: "bus bandwidth",
        has_ceiling: true,
        ..collective("GB/s", Better::Higher, Family::Group, |group| Some(group.busbw()?.0))
    },
    Algbw = "algbw": collective("GB/s", Better::Higher, Family::Collective, |group| Some(group.algbw()?.0)),
    /// Bytes of the NIC of a host that carried least, in percent of the one that carried most; of all hosts of a collective the lowest.
    NicBalance = "nic_balance": About {
        is_optional: true, may_be_zero: true, title: "Balance of the NICs", name: "balance of the NICs",
        ..collective("%", Better::Higher, Family::Collective, |group| group.nic_balance)
    },
    /// Median time of a training step: its backward pass, which is a timer, and the communication left after it.
    StepTime = "step_time": step(|group| Some(group.time?.microseconds())),
    /// The part of [`Metric::StepTime`] that is communication which the backward pass did not hide.
    StepExposed = "step_exposed": About {
        may_be_zero: true, ..step(|group| Some(group.time?.saturating_sub(group.compute?).microseconds()))
    },
    /// Median time of the same buckets in sequence, without a backward pass.
    StepAlone = "step_alone": step(|group| Some(group.alone?.microseconds())),
    /// Time of a flow of an `all_to_all_v` in a round of all flows, in percent of its time alone: the highest of the flows measured alone.
    TogetherOverAlone = "together_over_alone": About {
        title: "Time of a flow together, compared with alone", ..exchange(|group| group.over_alone)
    },
    /// The same in percent of what equal shares of the ports would make of the time alone.
    TogetherOverShare = "together_over_share": About {
        title: "Time of a flow together, compared with equal shares of the ports", ..exchange(|group| group.over_share)
    },
    /// Loss of a collective alongside the operation of a second communicator, or a command of its hosts, in percent of its bandwidth alone.
    /// Negative for a gain.
    OverlapLoss = "overlap_loss": overlap("Loss of a collective to other traffic", |group| group.overlap_loss),
    /// The same loss of the second communicator's operation.
    OverlapLossOther = "overlap_loss_other":
        overlap("Loss of a second communicator's operation", |group| group.overlap_loss_other),
    /// Bytes per second of a test within a host: read, written, or copied. A copied byte counts once.
    MemoryBandwidth = "memory_bandwidth": About {
        family: Family::Node, title: "Memory bandwidth", name: "memory bandwidth",
        ..rate("GB/s", |end| end.bytes.as_f64())
    },
    /// Time of one read of host memory whose address is the result of the read before it.
    MemoryLatency = "memory_latency": About {
        unit: "ns", family: Family::NodeLatency, reads: Reads::Each, title: "Memory latency", name: "memory latency", ..LATENCY
    },
    /// Floating-point operations per second of matrix products: 2·m·n·k of each.
    Compute = "compute": About {
        family: Family::Compute, title: "Matrix products", name: "rate of matrix products",
        ..rate("TFLOP/s", |end| end.flops as f64 / Nanoseconds::PER_MICROSECOND)
    },
    CpuTimePerGib = "cpu_time_per_gib": spent("s/GiB", Side::Initiator, cpu_per_gib),
    CpuTimePerGibRemote = "cpu_time_per_gib_remote": spent("s/GiB", Side::Responder, cpu_per_gib),
}

#[derive(Debug, Clone, Copy)]
struct About {
    unit: &'static str,
    better: Better,
    family: Family,
    reads: Reads,
    /// Percentile of single operations, in thousandths.
    permille: Option<u64>,
    /// Fewest operations of a window that have it.
    fewest: u64,
    /// Whether a case is complete without it.
    is_optional: bool,
    may_be_zero: bool,
    has_ceiling: bool,
    /// Head of a chart; its word if empty.
    title: &'static str,
    /// Inside a sentence; its word without underscores if empty.
    name: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Flow,
    Round,
    /// The same flow alone and alongside an incast.
    Victim,
    /// Traffic of the same two hosts alongside its flows.
    Beside,
    Node,
    NodeLatency,
    Compute,
    Latency,
    Group,
    Step,
    Collective,
    /// Flows of an exchange together and alone.
    Exchange,
    /// A collective alone and alongside other traffic.
    Overlap,
    Imported,
}

#[derive(Debug, Clone, Copy)]
pub enum Reads {
    /// An amount that both ends of a flow counted: its value is this per nanosecond.
    Rate(fn(&Measurement) -> f64),
    /// Typical nanoseconds of an operation, by the end that did them.
    Each,
    /// A number of the distribution of single operations, in microseconds.
    Latency(fn(&Latency) -> f64),
    /// Cost at one end for so many payload bytes of the initiator; `None` where that end does not count it.
    Spent(Side, fn(&Measurement, Bytes) -> Option<f64>),
    /// `None` where the sample does not hold it.
    Collective(fn(&Collective) -> Option<f64>),
    /// Spans several flows or rounds: a single sample does not hold it.
    Round,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Initiator,
    Responder,
}

#[derive(Debug, Clone, Copy)]
pub struct Collective {
    pub op: Op,
    pub ranks: u32,
    pub size: Bytes,
    pub time: Option<Nanoseconds>,
    pub compute: Option<Nanoseconds>,
    pub alone: Option<Nanoseconds>,
    /// In percent; `None` where the NICs were not read.
    pub nic_balance: Option<f64>,
    /// In percent; `None` where no flow was measured alone.
    pub over_alone: Option<f64>,
    pub over_share: Option<f64>,
    /// In percent; `None` where nothing ran alongside.
    pub overlap_loss: Option<f64>,
    pub overlap_loss_other: Option<f64>,
}

impl Collective {
    fn algbw(&self) -> Option<GigabytesPerSecond> {
        Some(GigabytesPerSecond::of(self.size, self.time?))
    }

    fn busbw(&self) -> Option<GigabytesPerSecond> {
        Some(GigabytesPerSecond(self.algbw()?.0 * self.op.bus_factor(self.ranks)?))
    }
}

const LATENCY: About = About {
    unit: "µs",
    better: Better::Lower,
    family: Family::Latency,
    reads: Reads::Latency(|all| all.p50.microseconds()),
    permille: None,
    fewest: 1,
    is_optional: false,
    may_be_zero: false,
    has_ceiling: false,
    title: "",
    name: "",
};

const SUM: About = About {
    unit: "Gb/s",
    better: Better::Higher,
    family: Family::Round,
    reads: Reads::Round,
    has_ceiling: true,
    ..LATENCY
};

const fn rate(unit: &'static str, amount: fn(&Measurement) -> f64) -> About {
    About { unit, better: Better::Higher, family: Family::Flow, reads: Reads::Rate(amount), ..LATENCY }
}

const fn latency(read: fn(&Latency) -> f64) -> About {
    About { reads: Reads::Latency(read), may_be_zero: true, ..LATENCY }
}

const fn percentile(permille: u64, read: fn(&Latency) -> f64) -> About {
    About { permille: Some(permille), ..latency(read) }
}

const fn collective(unit: &'static str, better: Better, family: Family, read: fn(&Collective) -> Option<f64>) -> About {
    About { unit, better, family, reads: Reads::Collective(read), ..LATENCY }
}

const fn step(read: fn(&Collective) -> Option<f64>) -> About {
    collective("µs", Better::Lower, Family::Step, read)
}

const fn exchange(read: fn(&Collective) -> Option<f64>) -> About {
    About { is_optional: true, ..collective("%", Better::Lower, Family::Exchange, read) }
}

const fn overlap(title: &'static str, read: fn(&Collective) -> Option<f64>) -> About {
    About { may_be_zero: true, title, ..collective("%", Better::Lower, Family::Overlap, read) }
}

const fn spent(unit: &'static str, side: Side, read: fn(&Measurement, Bytes) -> Option<f64>) -> About {
    About { unit, family: Family::Flow, reads: Reads::Spent(side, read), is_optional: true, ..LATENCY }
}

fn cpu_per_gib(end: &Measurement, bytes: Bytes) -> Option<f64> {
    // Clocks of threads count nanoseconds: zero means no reading.
    (!bytes.is_zero() && !end.cpu.is_zero()).then(|| end.cpu.seconds() / bytes.gib())
}

impl Metric {
    pub const fn unit(self) -> &'static str {
        self.about().unit
    }

    pub const fn better(self) -> Better {
        self.about().better
    }

    pub const fn family(self) -> Family {
        self.about().family
    }

    pub const fn reads(self) -> Reads {
        self.about().reads
    }

    pub const fn permille(self) -> Option<u64> {
        self.about().permille
    }

    pub const fn fewest(self) -> u64 {
        self.about().fewest
    }

    /// Whether a case is complete without it: reported where an end counts it.
    pub const fn is_optional(self) -> bool {
        self.about().is_optional
    }

    pub const fn may_be_zero(self) -> bool {
        self.about().may_be_zero
    }

    pub const fn is_sum(self) -> bool {
        matches!(self.about().family, Family::Round)
    }

    pub const fn has_ceiling(self) -> bool {
        self.about().has_ceiling
    }

    pub const fn title(self) -> &'static str {
        let title = self.about().title;
        if title.is_empty() { self.word() } else { title }
    }

    pub fn name(self) -> String {
        let name = self.about().name;
        if name.is_empty() { self.word().replace('_', " ") } else { name.to_owned() }
    }
}

use railgauge_wire::remedy::Remedy;
use serde::Serialize;

use super::{Bad, Scattered};

/// Amounts are bytes, rates bits per second; `way` is `sent` or `received`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(tag = "doubt", rename_all = "kebab-case")]
pub enum Doubt {
    #[error("{cause}")]
    Noted { cause: String },
    #[error("{host}: {meaning} ({counter} +{times})")]
    Event { host: String, counter: String, times: u64, meaning: &'static str },
    #[error("{host}: {meaning}: {counter} +{times}, {:.2} % of about {packets:.0} packets", 100.0 * *.times as f64 / .packets)]
    Loss { host: String, counter: String, times: u64, packets: f64, meaning: &'static str },
    #[error(
        "{host}: {lost} of the {sent} packets that left it ({:.2} %) did not arrive at {peer}: lost on the way, or sent to \
         somebody else ({} against {})",
        100.0 * *.lost as f64 / *.sent as f64, .counters[0], .counters[1]
    )]
    NotArrived { host: String, peer: String, sent: u64, lost: u64, counters: [&'static str; 2] },
    #[error(
        "{host}: its NIC {way} {:.1} MiB for {:.1} MiB of payload, {:.1} MiB with headers: foreign traffic, or packets sent \
         again ({counter})",
        mib(*.seen), mib(*.payload), mib(*.with_headers)
    )]
    ForeignBytes { host: String, way: &'static str, seen: f64, payload: f64, with_headers: f64, counter: String },
    #[error(
        "{host}: its NIC {way} only {:.1} MiB of {:.1} MiB of payload: the bytes took another way ({counter})",
        mib(*.seen), mib(*.payload)
    )]
    OtherWay { host: String, way: &'static str, seen: f64, payload: f64, counter: String },
    #[error(
        "{host}: {device} was busy before the run sent anything: {:.0} Mb/s sent, {:.0} Mb/s received",
        .sent / 1e6, .received / 1e6
    )]
    Busy { host: String, device: String, sent: f64, received: f64 },
    #[error(
        "{host}: the path MTU of {device} is {mtu}, that of {peer} {possible}: the packets are smaller than they could be (a \
         plan that means it says so with the knob `mtu`)"
    )]
    MtuDiffers { host: String, device: String, mtu: u32, peer: String, possible: u32 },
    #[error("{host}: {gpu}: {bad}")]
    Gpu {
        host: String,
        gpu: String,
        #[serde(flatten)]
        bad: Bad,
    },
    #[error("{0}")]
    Round(Scattered),
}

impl Doubt {
    pub fn lost(&self) -> Option<f64> {
        match self {
            Self::Loss { times, packets, .. } => Some(*times as f64 / packets),
            Self::NotArrived { sent, lost, .. } => Some(*lost as f64 / (*sent).max(1) as f64),
            _ => None,
        }
    }

    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Gpu { bad, .. } => Some(bad.remedy().into()),
            _ => None,
        }
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

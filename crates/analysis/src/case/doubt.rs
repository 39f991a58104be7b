use std::fmt;

use railgauge_wire::remedy::Remedy;
use serde::Serialize;

use super::{Bad, Scattered};

/// Amounts are bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "doubt", rename_all = "kebab-case")]
pub enum Doubt {
    Noted {
        cause: String,
    },
    Event {
        host: String,
        counter: String,
        times: u64,
        meaning: &'static str,
    },
    Loss {
        host: String,
        counter: String,
        times: u64,
        packets: f64,
        meaning: &'static str,
    },
    NotArrived {
        host: String,
        peer: String,
        sent: u64,
        lost: u64,
        counters: [&'static str; 2],
    },
    ForeignBytes {
        host: String,
        /// `sent` or `received`.
        way: &'static str,
        seen: f64,
        payload: f64,
        with_headers: f64,
        counter: String,
    },
    OtherWay {
        host: String,
        /// `sent` or `received`.
        way: &'static str,
        seen: f64,
        payload: f64,
        counter: String,
    },
    Busy {
        host: String,
        device: String,
        /// Bits per second.
        sent: f64,
        /// Bits per second.
        received: f64,
    },
    MtuDiffers {
        host: String,
        device: String,
        mtu: u32,
        peer: String,
        possible: u32,
    },
    Gpu {
        host: String,
        gpu: String,
        #[serde(flatten)]
        bad: Bad,
    },
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

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noted { cause } => f.write_str(cause),
            Self::Event { host, counter, times, meaning } => write!(f, "{host}: {meaning} ({counter} +{times})"),
            Self::Loss { host, counter, times, packets, meaning } => {
                let share = 100.0 * *times as f64 / packets;
                write!(f, "{host}: {meaning}: {counter} +{times}, {share:.2} % of about {packets:.0} packets")
            }
            Self::NotArrived { host, peer, sent, lost, counters: [left, came] } => {
                let share = 100.0 * *lost as f64 / *sent as f64;
                write!(
                    f,
                    "{host}: {lost} of the {sent} packets that left it ({share:.2} %) did not arrive at {peer}: lost on the \
                     way, or sent to somebody else ({left} against {came})"
                )
            }
            Self::ForeignBytes { host, way, seen, payload, with_headers, counter } => {
                let [seen, payload, whole] = [seen, payload, with_headers].map(|bytes| mib(*bytes));
                write!(
                    f,
                    "{host}: its NIC {way} {seen:.1} MiB for {payload:.1} MiB of payload, {whole:.1} MiB with headers: foreign \
                     traffic, or packets sent again ({counter})"
                )
            }
            Self::OtherWay { host, way, seen, payload, counter } => {
                let [seen, payload] = [seen, payload].map(|bytes| mib(*bytes));
                write!(
                    f,
                    "{host}: its NIC {way} only {seen:.1} MiB of {payload:.1} MiB of payload: the bytes took another way \
                     ({counter})"
                )
            }
            Self::Busy { host, device, sent, received } => {
                let [sent, received] = [sent, received].map(|rate| rate / 1e6);
                write!(
                    f,
                    "{host}: {device} was busy before the run sent anything: {sent:.0} Mb/s sent, {received:.0} Mb/s received"
                )
            }
            Self::MtuDiffers { host, device, mtu, peer, possible } => write!(
                f,
                "{host}: the path MTU of {device} is {mtu}, that of {peer} {possible}: the packets are smaller than they could \
                 be (a plan that means it says so with the knob `mtu`)"
            ),
            Self::Gpu { host, gpu, bad } => write!(f, "{host}: {gpu}: {bad}"),
            Self::Round(scattered) => scattered.fmt(f),
        }
    }
}

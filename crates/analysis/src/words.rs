mod limit;
mod number;
mod time;

use railgauge_model::schedule::Flow;
use railgauge_wire::{Bytes, Training, Transport};

pub use limit::{held_against, limit};
pub use number::{
    between, brief, change, in_unit, number, percent, percent_of, scatter, share, share_of, shares_of, short, signed,
    spread, with_unit, worse,
};
pub use railgauge_model::plan::count::{are, be, count, have, size, was, were};
pub use time::{lasting, lasting_about, moment};

/// Enums with a text for people next to each value; in JSON their names in kebab case.
macro_rules! texts {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident: $text:expr,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            pub const fn words(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
pub(crate) use texts;

/// `a, b and 3 more` of all names.
pub fn some(names: &[impl AsRef<str>], most: usize) -> String {
    let named = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// A flow has one or several: `queue pair`, or `stream` over TCP.
pub const fn lane(transport: Transport) -> &'static str {
    match transport {
        Transport::Tcp => "stream",
        _ => "queue pair",
    }
}

/// A rail within a host; `None` for tests of networks.
pub const fn part_words(transport: Transport) -> Option<&'static str> {
    match transport {
        Transport::Gpu => Some("GPU"),
        Transport::Cpu => Some("NUMA node"),
        // The same port as in tests of the network, and so the same word.
        Transport::Nic => Some("rail"),
        Transport::Verbs | Transport::Tcp | Transport::Nccl => None,
    }
}

/// `rail`, or within a host `GPU` or `NUMA node`; for its NICs also `rail`.
pub fn end_word(by: Transport) -> &'static str {
    part_words(by).unwrap_or("rail")
}

/// `gpu01:0 → gpu02:0`; `16 ranks on gpu01, gpu02` for a group; `gpu01 GPU 0 → GPU 1` within a host.
pub fn link_name(flow: &Flow, by: Transport) -> String {
    match (part_words(by), flow.from == flow.to) {
        (None, _) => flow.name(),
        (Some(part), true) => format!("{} {part} {}", flow.from.host, flow.from.rail),
        (Some(part), false) => format!("{} {part} {} → {part} {}", flow.from.host, flow.from.rail, flow.to.rail),
    }
}

/// Traffic next to a flow: `beside 4 TCP connections`, `beside a command` for zero; `alone` without any.
pub fn neighbour_words(flows: Option<u32>) -> String {
    match flows {
        None => "alone".to_owned(),
        Some(0) => "beside a command".to_owned(),
        Some(flows) => format!("beside {}", count(flows as usize, "TCP connection")),
    }
}

/// The test's varied value of a case: `at 0.1%`.
pub fn value_words(value: &str) -> String {
    format!("at {value}")
}

/// Both ends included: `64 KiB to 8 MiB`, `64 KiB and up`, `up to 4 KiB`.
pub fn sizes((from, to): (Bytes, Bytes)) -> String {
    match (from, to) {
        (Bytes(0 | 1), Bytes::MAX) => "all sizes".to_owned(),
        (Bytes(0 | 1), to) => format!("up to {}", size(to)),
        (from, Bytes::MAX) => format!("{} and up", size(from)),
        (from, to) if from == to => size(from),
        (from, to) => format!("{} to {}", size(from), size(to)),
    }
}

/// A large amount of bytes, rounded: `1.5 GiB`.
pub fn amount(bytes: Bytes) -> String {
    const UNITS: [(&str, Bytes); 5] = [
        ("PiB", Bytes(1 << 50)),
        ("TiB", Bytes(1 << 40)),
        ("GiB", Bytes::from_gib(1)),
        ("MiB", Bytes::from_mib(1)),
        ("KiB", Bytes::from_kib(1)),
    ];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes.as_f64() / unit.as_f64()),
        None => format!("{bytes} B"),
    }
}

/// As pairs of a plan's key and its value.
pub fn step(training: &Training) -> String {
    let model = training.model.as_ref().map_or_else(String::new, |model| format!("model={model} "));
    let (bucket, first, compute) = (training.bucket, training.first_bucket, number(training.compute.milliseconds()));
    format!("{model}bucket={bucket} first_bucket={first} compute={compute}ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_units_that_divide_them() {
        assert_eq!(size(Bytes(8)), "8 B");
        assert_eq!(size(Bytes(1500)), "1500 B");
        assert_eq!(size(Bytes(65536)), "64 KiB");
        assert_eq!(size(Bytes::from_mib(8)), "8 MiB");
        assert_eq!(amount(Bytes(1_610_612_736)), "1.5 GiB");
    }

    #[test]
    fn open_ends_of_a_range_are_not_printed() {
        assert_eq!(sizes((Bytes(65536), Bytes::MAX)), "64 KiB and up");
        assert_eq!(sizes((Bytes::ZERO, Bytes(4096))), "up to 4 KiB");
        assert_eq!(sizes((Bytes(8), Bytes(8))), "8 B");
        assert_eq!(sizes((Bytes(8), Bytes(64))), "8 B to 64 B");
    }
}

//! Settings of a link: the plan's, else a default that fits the device. The result is used and recorded.

use std::collections::BTreeMap;

use railgauge_wire::{
    Completion, DEPTH, Failure, Footprint, Joining, Kind, Knobs, LinkLayer, LinkSpec, Memory, Stage, WriteLatency,
    gather::named,
    remedy::{self, Remedy},
};

use crate::verbs::Limits;

/// Most requests per post by default. More gains nothing, fewer cost a doorbell (in software a system call) per message.
const LIST: u32 = 16;

/// Default limit of bytes in flight per queue pair: 168 µs of a 400 Gb/s link, which is several round trips, and few enough for a slow
/// link to drain in time.
const IN_FLIGHT: u64 = 8 << 20;

/// Default minimum of messages in flight, however long they are.
const FEWEST: u32 = 4;

/// One completion per this many requests of a latency loop, by default and at most: the answers confirm the rest.
pub const SIGNAL_EVERY: u32 = 16;

/// Send requests of a queue pair beyond its depth: for silent ones of a latency loop, and one that completes everything before it.
pub(crate) const SPARE: u32 = 2 * SIGNAL_EVERY;

/// Fewest receives posted ahead: perftest's default.
const RECEIVES: u32 = 512;

/// Largest inline payload of latency loops by default, in bytes: perftest's value for RDMA WRITE.
const INLINE: u32 = 220;

/// 7 would be the most, but Soft-RoCE takes it as endless and never reports a dead peer.
const RETRIES: u8 = 6;

/// Local ACK timeout exponent by default: 67 ms per try, perftest's value.
const TIMEOUT: u8 = 14;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Requests in flight per queue pair, and whether the plan named the number.
    pub depth: u32,
    named_depth: bool,
    named_list: Option<u32>,
    named_signal_every: Option<u32>,
    /// Requests per completion of a latency loop.
    pub signal_latency: u32,
    pub inline_bandwidth: u32,
    pub inline_latency: u32,
    pub receives: u32,
    pub reads: u8,
    /// Path MTU of this side, in bytes.
    pub mtu: u32,
    pub traffic_class: u8,
    pub service_level: u8,
    pub flow_label: u32,
    pub retries: u8,
    pub timeout: u8,
    /// PCIe relaxed ordering: required, refused, or as the device likes.
    pub relaxed_ordering: Option<bool>,
    pub ece: bool,
    pub data_direct: bool,
    /// `None` where not measured.
    pub write_latency: Option<WriteLatency>,
    pub huge_pages: bool,
    pub core: Option<u32>,
    pub completion: Completion,
    pub footprint: Footprint,
    pub joining: Joining,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub depth: u32,
    pub list: u32,
    pub signal_every: u32,
}

fn wrong(cause: String, remedy: impl Into<Remedy>) -> Failure {
    Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy)
}

fn range(setting: &str, least: u32, most: u32) -> Remedy {
    let values = [("setting", setting.to_owned()), ("least", least.to_string()), ("most", most.to_string())];
    remedy::SETTING_IN_RANGE.with(values)
}

impl Settings {
    /// `port_mtu` is in bytes.
    pub(crate) fn new(spec: &LinkSpec, device: &Limits, port_mtu: u32, link_layer: LinkLayer) -> Result<Self, Failure> {
        let knobs = &spec.knobs;
        let most = device.work_requests.saturating_sub(SPARE).max(1);
        let depth = match knobs.depth {
            Some(0) => return Err(wrong("depth 0 posts nothing".to_owned(), range("depth", 1, most))),
            Some(depth) if depth > most => {
                let cause = format!("depth {depth} is over the device's {most} work requests");
                return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(range("depth", 1, most)));
            }
            Some(depth) => depth,
            None => DEPTH.min(most),
        };
        for (name, value) in [("post_list", knobs.post_list), ("signal_every", knobs.signal_every)] {
            if let Some(value) = value
                && !(1..=depth).contains(&value)
            {
                return Err(wrong(format!("{name} {value} does not fit a depth of {depth}"), range(name, 1, depth)));
            }
        }
        let mtu = match knobs.mtu {
            Some(mtu) if mtu > port_mtu => {
                let cause = format!("mtu {mtu} is over the port's active MTU of {port_mtu} bytes");
                return Err(wrong(cause, remedy::RAISE_INTERFACE_MTU));
            }
            Some(mtu) if !(256..=4096).contains(&mtu) || !mtu.is_power_of_two() => {
                return Err(wrong(format!("{mtu} is not an RDMA path MTU"), remedy::PATH_MTU));
            }
            mtu => mtu.unwrap_or(port_mtu),
        };
        if knobs.flow_label.is_some_and(|label| label >= 1 << 20) {
            return Err(wrong("flow_label does not fit 20 bits".to_owned(), range("flow_label", 0, 1_048_575)));
        }
        let joining = match (knobs.joining.unwrap_or_default(), link_layer) {
            (Joining::Auto, LinkLayer::Iwarp) => Joining::RdmaCm,
            (Joining::Auto, _) => Joining::Exchange,
            (wanted, _) => wanted,
        };
        let polls = knobs.write_latency == Some(WriteLatency::Poll);
        if polls && knobs.relaxed_ordering == Some(true) {
            let cause = "the last byte of a write cannot be polled with relaxed ordering: it may be visible first";
            return Err(wrong(cause.to_owned(), remedy::WRITE_IMMEDIATE));
        }
        if polls && spec.memory != Memory::Host {
            let cause = "the last byte of a write cannot be polled in GPU memory: the CPU does not reach it";
            return Err(wrong(cause.to_owned(), remedy::WRITE_IMMEDIATE));
        }
        let refused = match knobs {
            Knobs { pkey: Some(_), .. } => Some("takes the partition of the network interface, not `pkey`"),
            Knobs { ece: Some(_), .. } => Some("negotiates by itself what `ece` is about"),
            _ => None,
        };
        if let (Joining::RdmaCm, Some(why)) = (joining, refused) {
            return Err(wrong(format!("rdma_cm {why}"), remedy::RC_OR_EXCHANGE));
        }
        Ok(Self {
            depth,
            named_depth: knobs.depth.is_some(),
            named_list: knobs.post_list,
            named_signal_every: knobs.signal_every,
            signal_latency: knobs.signal_every.unwrap_or(SIGNAL_EVERY).min(SIGNAL_EVERY),
            inline_bandwidth: knobs.inline.unwrap_or(0),
            inline_latency: knobs.inline.unwrap_or(INLINE),
            receives: receives(device, depth, spec.qps, most),
            reads: reads(knobs, device),
            mtu,
            traffic_class: small(knobs.traffic_class, u8::MAX, "traffic_class")?,
            service_level: small(knobs.service_level, 15, "service_level")?,
            flow_label: knobs.flow_label.unwrap_or(0),
            retries: small(knobs.retry_count.or(Some(RETRIES)), 7, "retry_count")?,
            timeout: small(knobs.timeout.or(Some(TIMEOUT)), 31, "timeout")?,
            // What is polled must become visible in order.
            relaxed_ordering: if polls { Some(false) } else { knobs.relaxed_ordering },
            ece: knobs.ece.unwrap_or(false),
            data_direct: knobs.data_direct.unwrap_or(true),
            write_latency: knobs.write_latency,
            huge_pages: knobs.huge_pages.unwrap_or(false),
            core: knobs.core,
            completion: knobs.completion.unwrap_or_default(),
            footprint: knobs.footprint.unwrap_or_default(),
            joining,
        })
    }

    /// For messages of `size` bytes: depth, requests per post, and requests per completion. One of the latter two divides the other, and
    /// neither exceeds the depth.
    pub(crate) fn pace(&self, size: u64) -> Pace {
        let fit = u32::try_from(IN_FLIGHT / size.max(1)).unwrap_or(u32::MAX).max(FEWEST);
        let depth = if self.named_depth { self.depth } else { self.depth.min(fit) };
        // At least two signalled requests are in flight, so that the queue never runs dry while we wait for one.
        let every = self.named_signal_every.unwrap_or((depth / 4).clamp(1, 64)).min(depth);
        let list = self.named_list.unwrap_or(LIST.min(every).min((depth / 2).max(1))).min(depth);
        let (list, signal_every) =
            if every >= list { (list, every - every % list) } else { (list - list % every, every) };
        Pace { depth, list, signal_every }
    }

    pub(crate) fn record(&self) -> BTreeMap<String, String> {
        let pace = self.pace(1);
        let bound = if self.named_depth { "" } else { " (at most 8 MiB in flight)" };
        named(vec![
            ("depth", format!("{}{bound}", pace.depth)),
            ("post_list", pace.list.to_string()),
            ("signal_every", format!("{} (latency), {} (bandwidth)", self.signal_latency, pace.signal_every)),
            ("inline", format!("{} (latency), {} (bandwidth)", self.inline_latency, self.inline_bandwidth)),
            ("receives", self.receives.to_string()),
            ("outstanding_reads", self.reads.to_string()),
            ("mtu", self.mtu.to_string()),
            ("traffic_class", self.traffic_class.to_string()),
            ("service_level", self.service_level.to_string()),
            ("flow_label", self.flow_label.to_string()),
            ("retry_count", self.retries.to_string()),
            ("timeout", self.timeout.to_string()),
            ("completion", self.completion.to_string()),
            ("footprint", self.footprint.to_string()),
            ("joining", self.joining.to_string()),
            ("huge_pages", self.huge_pages.to_string()),
        ])
    }

    /// Each queue pair has its own flow label, so that they spread over equal paths; 0 leaves it to the driver.
    pub(crate) fn label(&self, i: usize) -> u32 {
        if self.flow_label == 0 { 0 } else { (self.flow_label + i as u32) & 0xf_ffff }
    }
}

/// Enough for two windows of a sender, within the device's queues.
fn receives(device: &Limits, depth: u32, qps: u32, most: u32) -> u32 {
    let entries = device.completions / qps.max(1);
    let fit = entries.saturating_sub(depth).max(1);
    RECEIVES.max(depth.saturating_mul(2)).min(most).min(fit)
}

/// The device's limit, or less if the plan says so.
fn reads(knobs: &Knobs, device: &Limits) -> u8 {
    knobs.outstanding_reads.unwrap_or(device.reads).min(device.reads)
}

fn small(value: Option<u8>, most: u8, name: &str) -> Result<u8, Failure> {
    match value.unwrap_or(0) {
        value if value > most => Err(wrong(format!("{name} {value} is over {most}"), range(name, 0, most.into()))),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(knobs: Knobs) -> Settings {
        resolved(knobs, Memory::Host).unwrap()
    }

    fn resolved(knobs: Knobs, memory: Memory) -> Result<Settings, Failure> {
        let spec = LinkSpec {
            role: railgauge_wire::link::Role::Initiator,
            transport: railgauge_wire::terms::Transport::Verbs,
            service: railgauge_wire::terms::Service::Rc,
            device: None,
            port: 1,
            address: None,
            memory,
            gpu: None,
            gpu_path: None,
            qps: 1,
            threads: 1,
            max_size: railgauge_wire::unit::Bytes::from_mib(1),
            token: String::new(),
            rides_out: false,
            knobs,
        };
        let device = Limits { work_requests: 8192, completions: 32767, reads: 16, ports: 1, atomics: true };
        Settings::new(&spec, &device, 4096, LinkLayer::RoceV2)
    }

    proptest! {
        #[test]
        fn batches_fit_each_other_and_the_depth(
            depth in prop::option::of(1..5000u32),
            list in prop::option::of(1..300u32),
            every in prop::option::of(1..300u32),
            size in 1..(1u64 << 30),
        ) {
            let most = depth.unwrap_or(DEPTH);
            let (post_list, signal_every) = (list.map(|n| n.min(most)), every.map(|n| n.min(most)));
            let Pace { depth, list, signal_every } =
                settings(Knobs { depth, post_list, signal_every, ..Knobs::default() }).pace(size);
            prop_assert!(list >= 1 && signal_every >= 1 && list <= depth && signal_every <= depth && depth <= most);
            prop_assert!(signal_every.is_multiple_of(list) || list.is_multiple_of(signal_every));
        }
    }

    #[test]
    fn polled_memory_is_host_memory_in_order() {
        let knobs = |write_latency, relaxed_ordering| Knobs { write_latency, relaxed_ordering, ..Knobs::default() };
        let poll = Some(WriteLatency::Poll);
        assert_eq!(settings(knobs(poll, None)).relaxed_ordering, Some(false), "nobody asked, and it must not be");
        assert_eq!(settings(knobs(Some(WriteLatency::Immediate), None)).relaxed_ordering, None);
        assert_eq!(settings(knobs(None, None)).relaxed_ordering, None);
        assert!(resolved(knobs(poll, Some(true)), Memory::Host).unwrap_err().cause.contains("relaxed"));
        assert!(resolved(knobs(poll, None), Memory::Cuda).unwrap_err().cause.contains("GPU"));
    }

    #[test]
    fn defaults_keep_two_signals_in_flight() {
        let pace = |depth, size| {
            let pace = settings(Knobs { depth, ..Knobs::default() }).pace(size);
            (pace.depth, pace.list, pace.signal_every)
        };
        assert_eq!(pace(None, 8), (128, 16, 32));
        assert_eq!(pace(None, 65536), (128, 16, 32));
        assert_eq!(pace(None, 1 << 20), (8, 2, 2));
        assert_eq!(pace(None, 1 << 30), (4, 1, 1));
        assert_eq!(pace(Some(128), 1 << 20), (128, 16, 32), "a named depth is kept");
        assert_eq!(pace(Some(1), 8), (1, 1, 1));
        assert_eq!(pace(Some(1024), 8), (1024, 16, 64));
    }
}

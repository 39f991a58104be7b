//! What each queue pair has moved, and the UDP source port by which switches choose its path.

use railgauge_wire::{
    link::Joining,
    measure::{Lane, SourcePort},
    terms::{LinkLayer, Service},
    unit::Bytes,
};

use super::end::VerbsEnd;

/// Lowest UDP source port of RoCE v2; the ports are those of 14 bits above it.
const FIRST: u16 = 0xc000;
/// Bits of a flow label.
const LABEL: u64 = 0xf_ffff;

impl VerbsEnd {
    /// Messages by queue pair as lanes, each message of `size` bytes.
    pub(crate) fn lanes(&self, messages: &[u64], size: u64) -> Vec<Lane> {
        let lane =
            |(i, messages): (usize, &u64)| Lane { bytes: Bytes(messages * size), source_port: self.source_port(i) };
        messages.iter().enumerate().map(lane).collect()
    }

    /// The port of queue pair `i`, where the kernel's rule tells it: connected queue pairs of RoCE v2, of a driver that
    /// follows it, and joined without rdma_cm, which has a rule of its own.
    fn source_port(&self, i: usize) -> Option<SourcePort> {
        let ruled = self.resources.choice.link_layer == LinkLayer::RoceV2
            && self.resources.choice.driver.follows_kernel_port_rule()
            && self.resources.service != Service::Ud
            && self.resources.settings.joining != Joining::RdmaCm;
        let (own, peer) =
            (self.connection.pairs.get(i)?.number(), *self.connection.peer.as_ref()?.endpoint.qp_numbers.get(i)?);
        ruled.then(|| SourcePort::PredictedUdp(predicted(self.resources.settings.label(i), own, peer)))
    }
}

/// `rdma_get_udp_sport` of the Linux kernel (`include/rdma/ib_verbs.h`), where the driver follows it
/// ([`Driver::follows_kernel_port_rule`](crate::endpoint::verbs::driver::Driver::follows_kernel_port_rule)): from the flow label, or without one from both queue pair numbers. Both ends come to the same, so it
/// holds whichever of them sends.
fn predicted(label: u32, own: u32, peer: u32) -> u16 {
    let label = if label == 0 {
        let product = u64::from(own) * u64::from(peer);
        let folded = product ^ (product >> 20);
        (folded ^ (folded >> 40)) & LABEL
    } else {
        u64::from(label) & LABEL
    };
    // The upper six bits of a label are folded onto the lower fourteen.
    FIRST | ((label ^ (label >> 14)) & 0x3fff) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_ports_as_the_kernel_makes_them() {
        assert_eq!(predicted(1, 17, 18), 49153);
        // 0xfc000 >> 14 is 0x3f.
        assert_eq!(predicted(0xf_c000, 17, 18), 0xc03f);
        assert_eq!(predicted(0xf_ffff, 17, 18), 0xc000 | (0x3fff ^ 0x3f));
        // 17 × 18 = 306; and what is over 20 bits is folded in: 2^21 → 2^21 ^ 2.
        assert_eq!(predicted(0, 17, 18), 49152 + 306);
        assert_eq!(predicted(0, 1 << 20, 2), 49154);
        assert_eq!(predicted(0, 0x1234, 0xabcd), predicted(0, 0xabcd, 0x1234));
    }
}

//! Where in the registered buffer the messages lie. Both ends compute the same layout (see
//! [`railgauge_wire::link::VerbsEndpoint`]): queue pair `i` owns share `i`, the first half of a share is sent from and
//! read by the peer, the second half is received into and written by the peer.

use railgauge_wire::link::Footprint;

use crate::verbs::send::Walk;

const LINE: u64 = 64;

/// What a `cache` footprint walks through: one page, as perftest does.
const PAGE: u64 = 4096;

/// A datagram is received behind the 40 bytes of a global route header.
pub(crate) const HEADER: u64 = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub qps: u32,
    /// Bytes of half a share.
    pub area: u64,
    pub max_size: u64,
    pub footprint: Footprint,
    pub datagrams: bool,
}

impl Layout {
    /// A layout for messages up to `max_size` bytes; `last_level_cache` in bytes matters for DRAM footprints only.
    pub(crate) fn new(qps: u32, max_size: u64, footprint: Footprint, last_level_cache: u64, datagrams: bool) -> Self {
        let qps = qps.max(1);
        let room = max_size + PAGE + LINE;
        let area = match footprint {
            Footprint::Cache => room,
            // Four times the cache, shared out to the queue pairs, on the sending and on the receiving side each.
            Footprint::Dram => room.max((4 * last_level_cache).div_ceil(u64::from(qps)) + max_size),
        };
        Self { qps, area: area.next_multiple_of(PAGE), max_size, footprint, datagrams }
    }

    /// Bytes of the whole buffer.
    pub(crate) fn length(&self) -> u64 {
        u64::from(self.qps) * 2 * self.area
    }

    /// Offset of the first byte queue pair `i` sends from.
    pub(crate) fn outgoing(&self, i: usize) -> u64 {
        i as u64 * 2 * self.area
    }

    /// Offset of the first byte queue pair `i` receives into.
    pub(crate) fn incoming(&self, i: usize) -> u64 {
        self.outgoing(i) + self.area + if self.datagrams { LINE } else { 0 }
    }

    /// Half a share of a peer with a buffer of so many bytes.
    pub(crate) fn area_of(length: u64, qps: usize) -> u64 {
        length / 2 / (qps as u64).max(1)
    }

    /// How messages of `size` bytes walk through areas of `area` bytes: inside one page like perftest, or through all
    /// of it.
    pub(crate) fn walk(&self, size: u64, area: u64) -> Walk {
        let step = size.max(1).next_multiple_of(LINE);
        let span = match self.footprint {
            Footprint::Cache => PAGE,
            Footprint::Dram => area.saturating_sub(LINE),
        };
        let places = span / step;
        if places < 2 { Walk::default() } else { Walk { step, span: places * step } }
    }

    /// How atomics walk: through one page, whatever the footprint. It is read before and after a pass, to add its words up.
    pub(crate) const fn words() -> Walk {
        Walk { step: LINE, span: PAGE }
    }

    /// How receives walk: they are posted ahead, before the size of what will come is known.
    pub(crate) fn landing(&self) -> Walk {
        match self.footprint {
            Footprint::Cache => Walk { step: LINE, span: PAGE },
            Footprint::Dram => self.walk(self.max_size + LINE, self.area),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn footprint() -> impl Strategy<Value = Footprint> {
        prop_oneof![Just(Footprint::Cache), Just(Footprint::Dram)]
    }

    proptest! {
        #[test]
        fn no_message_leaves_its_half_of_a_share(
            qps in 1..40u32,
            max in 1..4_000_000u64,
            part in 1..1000u64,
            cache in 0..64_000_000u64,
            footprint in footprint(),
            datagrams: bool,
        ) {
            let layout = Layout::new(qps, max, footprint, cache, datagrams);
            let size = (max * part / 1000).max(1);
            let line = if datagrams { LINE } else { 0 };
            for (walk, size) in [(layout.walk(size, layout.area), size), (layout.landing(), max), (Layout::words(), 8)] {
                prop_assert!(walk.fits(line, size, layout.area), "{walk:?} {layout:?}");
                prop_assert!(walk.step == 0 || walk.span.is_multiple_of(walk.step));
            }
            prop_assert_eq!(Layout::area_of(layout.length(), qps as usize), layout.area);
            let end = layout.incoming(qps as usize - 1) + max;
            prop_assert!(end <= layout.length());
        }
    }

    #[test]
    fn cache_walks_one_page_and_dram_four_caches() {
        let cache = Layout::new(1, 1 << 20, Footprint::Cache, 32 << 20, false);
        assert_eq!(cache.walk(64, cache.area), Walk { step: 64, span: 4096 });
        assert_eq!(cache.walk(2048, cache.area), Walk { step: 2048, span: 4096 });
        assert_eq!(cache.walk(4096, cache.area), Walk::default(), "the same place every time");
        let dram = Layout::new(2, 1 << 20, Footprint::Dram, 32 << 20, false);
        assert!(dram.walk(65536, dram.area).span * 2 >= 4 * (32 << 20));
    }
}

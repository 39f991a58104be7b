//! RDMA drivers, from their sources: whether port rates are true, and which counters count bytes of RDMA and losses. We compared none
//! with a NIC; an unlisted driver gets no assumption in its favour.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateOrigin {
    Device,
    /// The interface's speed by the kernel's `ib_get_eth_speed` (drivers/infiniband/core/verbs.c), which has steps only: older kernels
    /// map everything above 40 Gb/s to 100 and an unknown speed to 2.5, and later ones end at 400 where the driver does not report its
    /// lanes.
    InterfaceInSteps,
    Constant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteCounter {
    /// Sent bytes, by the agent's names; those that a device has are added.
    pub sent: &'static [&'static str],
    pub received: &'static [&'static str],
    pub unit: u64,
}

/// The port's own counters, in words of four bytes (kernel Documentation/ABI/stable/sysfs-class-infiniband).
const PORT: ByteCounter = ByteCounter { unit: 4, ..bytes(&["counters/port_xmit_data"], &["counters/port_rcv_data"]) };
/// All traffic of a physical port of mlx5 (kernel Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst, physical
/// port counters).
pub const PHYSICAL: ByteCounter = bytes(&["ethtool/tx_bytes_phy"], &["ethtool/rx_bytes_phy"]);
pub const INTERFACE: ByteCounter = bytes(&["netdev/tx_bytes"], &["netdev/rx_bytes"]);
const TX_BYTES: ByteCounter = bytes(&["hw_counters/tx_bytes"], &["hw_counters/rx_bytes"]);

const fn bytes(sent: &'static [&'static str], received: &'static [&'static str]) -> ByteCounter {
    ByteCounter { sent, received, unit: 1 }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Driver {
    /// Names of the RDMA driver, and of the driver of the PCI function, which is what sysfs shows.
    pub names: &'static [&'static str],
    pub rate: RateOrigin,
    /// The best first.
    pub bytes: &'static [ByteCounter],
}

pub const DRIVERS: &[Driver] = &[
    // mlx5/main.c and mlx5/mad.c; the interface omits RDMA (counters.rst: `rx_vport_rdma_unicast_bytes` is separate).
    device(&["mlx5_core", "mlx5_ib"], RateOrigin::Device, &[PORT, PHYSICAL]),
    device(&["mlx4_core", "mlx4_ib"], RateOrigin::Device, &[PORT]),
    device(&["hfi1", "qib", "ib_qib"], RateOrigin::Device, &[PORT]),
    // bnxt_re/main.c, `bnxt_re_net_stats_ctx_alloc`: byte counters are updated once a second (`update_period_ms`), too late to compare
    // them with one case.
    device(&["bnxt_en", "bnxt_re"], RateOrigin::InterfaceInSteps, &[]),
    // irdma/verbs.c, `irdma_hw_stat_names`: octets of IP packets, of either version.
    device(
        &["irdma", "ice", "i40e", "idpf", "i40iw"],
        RateOrigin::InterfaceInSteps,
        &[bytes(
            &["hw_counters/ip4OutOctets", "hw_counters/ip6OutOctets"],
            &["hw_counters/ip4InOctets", "hw_counters/ip6InOctets"],
        )],
    ),
    // ionic/ionic_ibdev.c and ionic/ionic_hw_stats.c; the names are the firmware's.
    device(
        &["ionic", "ionic_rdma"],
        RateOrigin::InterfaceInSteps,
        &[bytes(&["hw_counters/tx_rdma_ucast_bytes"], &["hw_counters/rx_rdma_ucast_bytes"])],
    ),
    // efa/efa_verbs.c: 4X EDR for all devices in older kernels.
    device(&["efa"], RateOrigin::Constant, &[TX_BYTES]),
    // erdma/erdma_verbs.c; the driver outside the kernel has the prefix `hw_`.
    device(
        &["erdma"],
        RateOrigin::InterfaceInSteps,
        &[
            bytes(&["hw_counters/tx_bytes_cnt"], &["hw_counters/rx_bytes_cnt"]),
            bytes(&["hw_counters/hw_tx_bytes_cnt"], &["hw_counters/hw_rx_bytes_cnt"]),
        ],
    ),
    // qedr/verbs.c, hns/hns_roce_main.c, cxgb4/provider.c: none of them counts bytes.
    device(&["qede", "qedr"], RateOrigin::InterfaceInSteps, &[]),
    device(&["hns3", "hns_roce_hw_v2"], RateOrigin::InterfaceInSteps, &[]),
    device(&["cxgb4", "iw_cxgb4"], RateOrigin::InterfaceInSteps, &[]),
    // mana/main.c: 4X EDR for all devices.
    device(&["mana", "mana_ib"], RateOrigin::Constant, &[]),
    // rxe/rxe_net.c and siw/siw_qp_tx.c: packets and sockets of the interface.
    device(&["rdma_rxe"], RateOrigin::InterfaceInSteps, &[INTERFACE]),
    device(&["siw"], RateOrigin::InterfaceInSteps, &[INTERFACE]),
];

const fn device(names: &'static [&'static str], rate: RateOrigin, bytes: &'static [ByteCounter]) -> Driver {
    Driver { names, rate, bytes }
}

impl Driver {
    /// Whether the network interface counts RDMA bytes too: only where the driver sends them through it.
    pub fn interface_counts(&self) -> bool {
        self.bytes.contains(&INTERFACE)
    }
}

pub fn known(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.names.contains(&name))
}

/// The best first; the port's own counters for an unknown driver.
pub fn byte_counters(driver: Option<&str>) -> &'static [ByteCounter] {
    driver.and_then(known).map_or(&[PORT], |driver| driver.bytes)
}

/// Whether a counter counts bytes of some driver's ports: that it does not rise is a finding, too.
pub fn counts_bytes(name: &str) -> bool {
    let all = DRIVERS.iter().flat_map(|driver| driver.bytes).chain([&INTERFACE]);
    all.flat_map(|counter| counter.sent.iter().chain(counter.received)).any(|known| *known == name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Pause frames, of the link or of a priority (IEEE 802.3x, 802.1Qbb).
    Pause,
    Ecn,
    Cnp,
    Discard,
}

impl Congestion {
    pub const ALL: [Self; 4] = [Self::Pause, Self::Ecn, Self::Cnp, Self::Discard];

    pub const fn words(self) -> &'static str {
        match self {
            Self::Pause => "pauses",
            Self::Ecn => "ECN marks",
            Self::Cnp => "CNPs",
            Self::Discard => "discards",
        }
    }
}

/// `None` for counters unrelated to congestion. By parts of drivers' names: mlx5 (`rx_prio3_pause`, `np_cnp_sent`,
/// `np_ecn_marked_roce_packets`, `rx_discards_phy`), bnxt_en and bnxt_re (`rx_pfc_ena_frames_pri3`, `rx_cnp_pkts`, `rx_ecn_marked_pkts`),
/// ice and irdma (`rx_priority_3_xoff.nic`, `cnpSent`, `RxECNMrkd`), InfiniBand (`port_xmit_discards`).
pub fn congestion(name: &str) -> Option<Congestion> {
    let plain = of_member(name).map_or(name, |(_, plain)| plain).to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| plain.contains(part));
    // Durations, beginnings and cut-off storms of pauses are not frames.
    if has(&["pause", "xoff", "pfc"]) && !has(&["duration", "transition", "storm", "xon", "watchdog"]) {
        Some(Congestion::Pause)
    } else if has(&["cnp"]) {
        Some(Congestion::Cnp)
    } else if has(&["ecn", "_marked"]) {
        Some(Congestion::Ecn)
    } else if has(&["discard", "dropped", "_drops"]) {
        Some(Congestion::Discard)
    } else {
        None
    }
}

/// Prefix of counters of a bond's member: `members/eth0/ethtool/tx_bytes_phy`.
pub const MEMBERS: &str = "members/";

/// Splits a counter's name into the member of a bond and the rest.
pub fn of_member(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(MEMBERS)?.split_once('/')
}

/// Widths in bits of the port's error counters (InfiniBand Architecture Specification, volume 1, 16.1.3.5, PortCounters;
/// kernel drivers/infiniband/core/sysfs.c). They stop at their largest value.
pub const WIDTHS: &[(&str, u32)] = &[
    ("symbol_error", 16),
    ("link_error_recovery", 8),
    ("link_downed", 8),
    ("port_rcv_errors", 16),
    ("port_rcv_remote_physical_errors", 16),
    ("port_rcv_switch_relay_errors", 16),
    ("port_xmit_discards", 16),
    ("port_xmit_constraint_errors", 8),
    ("port_rcv_constraint_errors", 8),
    ("local_link_integrity_errors", 4),
    ("excessive_buffer_overrun_errors", 4),
    ("VL15_dropped", 16),
];

/// Counters of packets that arrived out of order at a receiver that accepts them: mlx5 (drivers/infiniband/hw/mlx5/counters.c), Soft-RoCE and
/// Linux TCP.
pub const REORDERED: [&str; 3] = ["hw_counters/out_of_sequence", "hw_counters/out_of_seq_request", "tcp/TCPOFOQueue"];

/// Counters of lost or repeated packets, and what they count. `out_of_sequence` is missing: with adaptive routing it grows on a healthy
/// fabric.
pub const LOSSES: &[(&str, &str)] = &[
    // Kernel drivers/infiniband/hw/mlx5/counters.c; newer ones of bnxt_re take some of these names.
    ("hw_counters/packet_seq_err", "packets arrived out of order and were asked for again"),
    ("hw_counters/implied_nak_seq_err", "answers were lost"),
    ("hw_counters/local_ack_timeout_err", "acknowledgements did not come in time"),
    ("hw_counters/roce_adp_retrans", "packets were sent again"),
    ("hw_counters/roce_adp_retrans_to", "acknowledgements did not come in time"),
    ("hw_counters/rx_icrc_encapsulated", "packets arrived damaged"),
    ("hw_counters/duplicate_request", "requests arrived twice"),
    ("hw_counters/rnr_nak_retry_err", "the receiver was not ready"),
    // Kernel drivers/infiniband/sw/rxe/rxe_hw_counters.c.
    ("hw_counters/completer_retry_err", "packets were sent again"),
    ("hw_counters/rcvd_seq_err", "the peer reported a gap in the packets"),
    ("hw_counters/out_of_seq_request", "requests arrived out of order"),
    ("hw_counters/rcvd_rnr_err", "the receiver was not ready"),
    ("hw_counters/send_rnr_err", "the receiver was not ready"),
    // Kernel drivers/infiniband/hw/bnxt_re/hw_counters.c; `missin_resp` and `rx_roce_drops` in older ones.
    ("hw_counters/to_retransmits", "acknowledgements did not come in time"),
    ("hw_counters/seq_err_naks_rcvd", "the peer reported a gap in the packets"),
    ("hw_counters/rnr_naks_rcvd", "the receiver was not ready"),
    ("hw_counters/missing_resp", "answers were lost"),
    ("hw_counters/missin_resp", "answers were lost"),
    ("hw_counters/dup_req", "requests arrived twice"),
    ("hw_counters/oos_drop_count", "packets arrived out of order and were dropped"),
    ("hw_counters/rx_roce_errors", "packets arrived damaged"),
    ("hw_counters/rx_roce_drops", "the port dropped arriving packets"),
    ("hw_counters/rx_roce_discards", "the port dropped arriving packets"),
    ("hw_counters/tx_roce_discards", "the port dropped leaving packets"),
    // Kernel drivers/infiniband/hw/irdma/verbs.c, `irdma_hw_stat_names`; the prefix `tcp` in some kernels only.
    ("hw_counters/RetransSegs", "segments were sent again"),
    ("hw_counters/tcpRetransSegs", "segments were sent again"),
    ("hw_counters/ip4InDiscards", "the port dropped arriving packets"),
    ("hw_counters/ip6InDiscards", "the port dropped arriving packets"),
    // Firmware of Pensando, shown by drivers/infiniband/hw/ionic/ionic_hw_stats.c.
    ("hw_counters/tx_rdma_retx_pkts", "packets were sent again"),
    ("hw_counters/tx_rdma_ack_timeout", "acknowledgements did not come in time"),
    ("hw_counters/req_rx_pkt_seq_err", "the peer reported a gap in the packets"),
    // Kernel drivers/infiniband/hw/efa/efa_verbs.c, `EFA_DEFINE_PORT_STATS`.
    ("hw_counters/retrans_pkts", "packets were sent again"),
    ("hw_counters/retrans_timeout_events", "acknowledgements did not come in time"),
    ("hw_counters/rx_drops", "the port dropped arriving packets"),
    // Kernel drivers/infiniband/hw/erdma/erdma_verbs.c.
    ("hw_counters/rx_disable_drop_cnt", "the port dropped arriving packets"),
    ("hw_counters/hw_rx_disable_drop_cnt", "the port dropped arriving packets"),
    // The port and its interface: kernel Documentation/ABI/stable/sysfs-class-infiniband; mlx5/counters.rst.
    ("counters/port_xmit_discards", "the port dropped packets"),
    ("counters/port_rcv_errors", "packets arrived damaged"),
    ("ethtool/rx_discards_phy", "the port dropped arriving packets"),
    ("ethtool/tx_discards_phy", "the port dropped leaving packets"),
    ("ethtool/rx_crc_errors_phy", "packets arrived damaged"),
    ("ethtool/rx_symbol_err_phy", "packets arrived damaged"),
    ("netdev/rx_crc_errors", "packets arrived damaged"),
    ("tcp/RetransSegs", "segments were sent again"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_of_one_driver_and_counters_in_one_row() {
        let names: Vec<&str> = DRIVERS.iter().flat_map(|driver| driver.names).copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let losses: BTreeSet<&str> = LOSSES.iter().map(|(name, _)| *name).collect();
        assert_eq!(losses.len(), LOSSES.len());
    }

    #[test]
    fn congestion_is_known_by_the_names_that_drivers_give() {
        use Congestion::{Cnp, Discard, Ecn, Pause};
        for (name, wanted) in [
            ("ethtool/rx_prio3_pause", Some(Pause)),
            ("ethtool/tx_pause_ctrl_phy", Some(Pause)),
            ("members/eth1/ethtool/rx_pfc_ena_frames_pri3", Some(Pause)),
            ("ethtool/rx_priority_3_xoff.nic", Some(Pause)),
            ("ethtool/rx_prio3_pause_duration", None),
            ("ethtool/tx_pause_storm_error_events", None),
            ("hw_counters/np_cnp_sent", Some(Cnp)),
            ("hw_counters/cnpHandled", Some(Cnp)),
            ("hw_counters/np_ecn_marked_roce_packets", Some(Ecn)),
            ("hw_counters/RxECNMrkd", Some(Ecn)),
            ("ethtool/rx_prio3_marked", Some(Ecn)),
            ("counters/port_xmit_discards", Some(Discard)),
            ("netdev/rx_dropped", Some(Discard)),
            ("counters/port_xmit_data", None),
            ("hw_counters/out_of_sequence", None),
        ] {
            assert_eq!(congestion(name), wanted, "{name}");
        }
    }

    #[test]
    fn members_have_their_own_counters() {
        assert_eq!(of_member("members/eth0/ethtool/tx_bytes_phy"), Some(("eth0", "ethtool/tx_bytes_phy")));
        assert_eq!(of_member("ethtool/tx_bytes_phy"), None);
        assert!(counts_bytes("hw_counters/ip6OutOctets") && counts_bytes("netdev/rx_bytes"));
        assert!(!counts_bytes("hw_counters/to_retransmits"));
    }
}

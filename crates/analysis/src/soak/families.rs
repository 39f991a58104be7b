//! What drivers' counters count, in words of a technician.
//!
//! Sources of the names:
//! - the kernel's Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst (`*_phy`, `rx_prioN_*`,
//!   `module_*`) and drivers/infiniband/hw/mlx5/counters.c (`np_*`, `rp_*`, `out_of_sequence`, …);
//! - Documentation/ABI/stable/sysfs-class-infiniband, which has the PortCounters of the InfiniBand Architecture
//!   Specification, volume 1, 16.1.3.5 (`symbol_error`, `link_downed`, …);
//! - drivers/infiniband/hw/bnxt_re/hw_counters.c and drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c;
//! - drivers/infiniband/hw/irdma/verbs.c, `irdma_hw_stat_names`, and drivers/net/ethernet/intel/ice/ice_ethtool.c (`*.nic`);
//! - Documentation/ABI/testing/sysfs-class-net-statistics and, for `carrier_down_count`, sysfs-class-net;
//! - drivers/infiniband/sw/rxe/rxe_hw_counters.c, drivers/infiniband/hw/efa/efa_verbs.c, and TCP's in /proc/net/snmp.

use crate::words::texts;
use railgauge_wire::drivers::of_member;

texts! {
    /// In display order, gravest first.
    Family {
        LinkBreaks: "link went down",
        Retraining: "link trained again",
        Uncorrected: "errors that FEC did not correct",
        SymbolErrors: "symbol errors",
        /// Errors within the port: too many at once, buffer overruns.
        LocalIntegrity: "errors within the port (local integrity, overrun)",
        Damaged: "packets arrived damaged",
        RemoteErrors: "packets that another link had damaged",
        Module: "events of the optical module",
        /// Packets sent again, missing, or out of order.
        Retransmissions: "retransmissions, out of sequence",
        NotReady: "receiver not ready",
        DiscardsIn: "discards of arriving packets",
        DiscardsOut: "discards of leaving packets",
        PauseStorms: "pause storms",
        PausesReceived: "pauses received",
        PausesSent: "pauses sent",
        /// Microseconds in which either side had to stop sending.
        PausedTime: "µs paused",
        WaitedToSend: "waited to send (ticks without credits)",
        EcnMarks: "ECN marks seen",
        CnpSent: "CNPs sent",
        CnpReceived: "CNPs received",
        /// Errors known only by name.
        Other: "other errors",
        /// Errors corrected, or counted before correction.
        Corrected: "errors before FEC (normal on PAM4 links)",
    }
}

impl Family {
    pub const fn is_of_cable(self) -> bool {
        use Family::{Damaged, LinkBreaks, LocalIntegrity, Module, Retraining, SymbolErrors, Uncorrected};
        matches!(self, LinkBreaks | Retraining | Uncorrected | SymbolErrors | LocalIntegrity | Damaged | Module)
    }

    /// Whether rises are normal: PAM4 links always have corrected errors (IEEE 802.3, clause 119 ff.).
    pub const fn is_normal(self) -> bool {
        matches!(self, Self::Corrected)
    }
}

/// The last part of counter names (after `/`), with `N` for every number.
const NAMES: &[(Family, &str)] = &[
    (Family::LinkBreaks, "link_downed, link_down_events_phy, link_down_events, carrier_down_count"),
    (Family::Retraining, "link_error_recovery"),
    (Family::Uncorrected, "rx_pcs_symbol_err_phy, rx_pcs_symbol_err, rx_fec_uncorrectable_blocks"),
    (Family::SymbolErrors, "symbol_error, rx_symbol_err_phy, illegal_bytes.nic"),
    (Family::LocalIntegrity, "local_link_integrity_errors, excessive_buffer_overrun_errors"),
    (
        Family::Damaged,
        "port_rcv_errors, rx_crc_errors_phy, rx_crc_errors, rx_crc_errors.nic, rx_frame_errors, rx_length_errors, \
         rx_length_errors.nic, rx_in_range_len_errors_phy, rx_out_of_range_len_phy, rx_oversize_pkts_phy, \
         rx_undersize_pkts_phy, rx_fragments_phy, rx_jabbers_phy, rx_icrc_encapsulated, rx_fcs_err_frames, \
         rx_align_err_frames, rx_roce_errors, mac_local_faults.nic, mac_remote_faults.nic",
    ),
    (Family::RemoteErrors, "port_rcv_remote_physical_errors, port_rcv_switch_relay_errors"),
    (Family::Module, "module_bus_stuck, module_high_temp, module_bad_shorted, module_unplug"),
    (
        Family::Retransmissions,
        "packet_seq_err, implied_nak_seq_err, local_ack_timeout_err, out_of_sequence, duplicate_request, \
         roce_adp_retrans, roce_adp_retrans_to, roce_slow_restart, roce_slow_restart_trans, \
         req_transport_retries_exceeded, completer_retry_err, rcvd_seq_err, out_of_seq_request, to_retransmits, \
         seq_err_naks_rcvd, missing_resp, missin_resp, dup_req, oos_drop_count, max_retry_exceeded, RetransSegs, \
         tcpRetransSegs, tx_rdma_retx_pkts, tx_rdma_ack_timeout, req_rx_pkt_seq_err, retrans_pkts, \
         retrans_timeout_events, TCPTimeouts, TCPLostRetransmit, TCPOFOQueue",
    ),
    (
        Family::NotReady,
        "rnr_nak_retry_err, req_rnr_retries_exceeded, rcvd_rnr_err, send_rnr_err, rnr_naks_rcvd, out_of_buffer, \
         rx_out_of_buffer, RNR sent, RNR received",
    ),
    (
        Family::DiscardsIn,
        "rx_discards_phy, rx_prioN_discards, rx_prioN_buf_discard, rx_prioN_cong_discard, rx_dropped, \
         rx_dropped.nic, rx_missed_errors, rx_over_errors, rx_fifo_errors, rx_total_discard_pkts, rx_stat_discard, \
         rx_discard_packets_cosN, rx_roce_drops, rx_roce_discards, rx_drops, ipNInDiscards, VLN_dropped, \
         port_rcv_constraint_errors, rx_steer_missed_packets",
    ),
    (
        Family::DiscardsOut,
        "port_xmit_discards, port_xmit_constraint_errors, tx_discards_phy, tx_errors_phy, tx_dropped, \
         tx_dropped_link_down.nic, tx_carrier_errors, tx_fifo_errors, tx_total_discard_pkts, tx_stat_discard, \
         tx_roce_discards",
    ),
    (Family::PauseStorms, "tx_pause_storm_warning_events, tx_pause_storm_error_events, pfc_wd_storms_detected_pN"),
    (
        Family::PausesReceived,
        "rx_pause_ctrl_phy, rx_global_pause, rx_prioN_pause, rx_pause_frames, rx_pfc_frames, \
         rx_pfc_ena_frames_priN, link_xoff_rx.nic, rx_priority_N_xoff.nic",
    ),
    (
        Family::PausesSent,
        "tx_pause_ctrl_phy, tx_global_pause, tx_prioN_pause, tx_pause_frames, tx_pfc_frames, \
         tx_pfc_ena_frames_priN, link_xoff_tx.nic, tx_priority_N_xoff.nic",
    ),
    (
        Family::PausedTime,
        "rx_global_pause_duration, tx_global_pause_duration, rx_prioN_pause_duration, tx_prioN_pause_duration",
    ),
    (Family::WaitedToSend, "port_xmit_wait"),
    (Family::EcnMarks, "np_ecn_marked_roce_packets, rx_prioN_marked, rx_ecn_marked_pkts, RxECNMrkd"),
    (Family::CnpSent, "np_cnp_sent, tx_cnp_pkts, cnpSent"),
    (
        Family::CnpReceived,
        "rp_cnp_handled, rp_cnp_ignored, roce_slow_restart_cnps, rx_cnp_pkts, cnpHandled, cnpIgnored",
    ),
    (Family::Corrected, "rx_corrected_bits_phy, rx_corrected_bits, rx_err_lane_N_phy, rx_fec_corrected_blocks"),
];

const LOOKS: &[&str] =
    &["err", "drop", "discard", "fail", "timeout", "retrans", "retry", "lost", "overrun", "violation", "corrupt"];

const QUEUES: &[&str] = &["rxN", "txN", "chN", "rx-N", "tx-N", "rx_queue_N", "tx_queue_N", "queue_N", "ptp_cqN"];

/// By the agent's name of the counter: `ethtool/rx_prio3_pause`, `members/eth0/netdev/carrier_down_count`. `None` if it
/// is unknown and does not look like an error.
pub fn family(name: &str) -> Option<Family> {
    let plain = of_member(name).map_or(name, |(_, plain)| plain);
    let general = general(last_part(plain));
    let known = NAMES.iter().find(|(_, names)| names.split(", ").any(|name| name == general));
    known.map(|(family, _)| *family).or_else(|| {
        let is_queue = QUEUES.iter().any(|start| general.starts_with(start));
        let lower = general.to_ascii_lowercase();
        (!is_queue && LOOKS.iter().any(|part| lower.contains(part))).then_some(Family::Other)
    })
}

pub fn last_part(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

fn general(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut in_number = false;
    for letter in name.chars() {
        if !letter.is_ascii_digit() {
            out.push(letter);
        } else if !in_number {
            out.push('N');
        }
        in_number = letter.is_ascii_digit();
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use railgauge_wire::drivers::{LOSSES, WIDTHS};

    use super::*;

    #[test]
    fn a_name_is_of_one_family() {
        let names: Vec<&str> = NAMES.iter().flat_map(|(_, names)| names.split(", ")).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn every_loss_and_every_error_of_a_port_that_is_known_elsewhere_has_a_family() {
        for name in LOSSES.iter().map(|(name, _)| *name).chain(WIDTHS.iter().map(|(name, _)| *name)) {
            assert!(family(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_counter_of_congestion_is_one_wherever_it_is_asked_for() {
        use railgauge_wire::{Congestion, drivers::congestion};
        for (of, names) in NAMES {
            let wanted = match of {
                Family::PausesReceived | Family::PausesSent => Congestion::Pause,
                Family::EcnMarks => Congestion::Ecn,
                Family::CnpSent | Family::CnpReceived => Congestion::Cnp,
                _ => continue,
            };
            for name in names.split(", ") {
                assert_eq!(congestion(name), Some(wanted), "{name}");
            }
        }
    }

    #[test]
    fn drivers_spell_the_same_in_many_ways() {
        for (name, wanted) in [
            ("ethtool/rx_prio3_pause", Family::PausesReceived),
            ("ethtool/rx_pfc_ena_frames_pri3", Family::PausesReceived),
            ("ethtool/tx_priority_3_xoff.nic", Family::PausesSent),
            ("ethtool/rx_err_lane_2_phy", Family::Corrected),
            ("ethtool/rx_pcs_symbol_err_phy", Family::Uncorrected),
            ("counters/symbol_error", Family::SymbolErrors),
            ("counters/link_downed", Family::LinkBreaks),
            ("members/eth1/netdev/carrier_down_count", Family::LinkBreaks),
            ("hw_counters/ip6InDiscards", Family::DiscardsIn),
            ("hw_counters/np_cnp_sent", Family::CnpSent),
            ("hw_counters/RxECNMrkd", Family::EcnMarks),
            ("hw_counters/strange_firmware_errors", Family::Other),
        ] {
            assert_eq!(family(name), Some(wanted), "{name}");
        }
        for quiet in ["netdev/rx_bytes", "ethtool/rx12_xdp_drop", "ethtool/rx_queue_3_drops", "counters/port_xmit_data"]
        {
            assert_eq!(family(quiet), None, "{quiet}");
        }
    }
}

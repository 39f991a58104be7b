//! What recorded names of drivers' counters are called on the page: PFC, CNP and ECN, bit errors, optics.

use std::fs;

use crate::kept::write;
use crate::soak::made::{Made, lines};

/// Names as the drivers have them: mlx5_core and mlx5_ib, bnxt_en and bnxt_re, ice and irdma, and an InfiniBand port.
const PFC: [(&str, &str); 6] = [
    ("ethtool/rx_prio3_pause", "pauses received"),
    ("ethtool/rx_pfc_ena_frames_pri3", "pauses received"),
    ("ethtool/rx_priority_3_xoff.nic", "pauses received"),
    ("ethtool/tx_prio3_pause", "pauses sent"),
    ("ethtool/rx_prio3_pause_duration", "µs paused"),
    ("ethtool/tx_pause_storm_warning_events", "pause storms"),
];
const CNP: [(&str, &str); 8] = [
    ("hw_counters/np_cnp_sent", "CNPs sent"),
    ("hw_counters/tx_cnp_pkts", "CNPs sent"),
    ("hw_counters/cnpSent", "CNPs sent"),
    ("hw_counters/rp_cnp_handled", "CNPs received"),
    ("hw_counters/cnpHandled", "CNPs received"),
    ("hw_counters/np_ecn_marked_roce_packets", "ECN marks seen"),
    ("hw_counters/rx_ecn_marked_pkts", "ECN marks seen"),
    ("hw_counters/RxECNMrkd", "ECN marks seen"),
];
const BIT_ERRORS: [(&str, &str); 5] = [
    ("counters/symbol_error", "symbol errors"),
    ("ethtool/rx_pcs_symbol_err_phy", "errors that FEC did not correct"),
    ("ethtool/rx_fec_uncorrectable_blocks", "errors that FEC did not correct"),
    ("ethtool/rx_corrected_bits_phy", "errors before FEC (normal on PAM4 links)"),
    ("ethtool/rx_err_lane_2_phy", "errors before FEC (normal on PAM4 links)"),
];

/// The page of a soak whose ports counted so.
fn told(counters: &[(&'static str, &str)]) -> (railgauge_report::view::SoakView, String) {
    let rises = counters.iter().zip(1..).map(|((name, _), n)| (0, 0, 1_000 * n, *name, 100 + n)).collect();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("records.jsonl"), lines(&Made { rises, ..Made::healthy() })).unwrap();
    let written = write(dir.path()).unwrap();
    (written.view.soak.unwrap(), fs::read_to_string(written.page).unwrap())
}

#[test]
fn counters_of_pfc_cnp_and_bit_errors_are_called_what_they_are() {
    for counters in [&PFC[..], &CNP, &BIT_ERRORS] {
        let (soak, page) = told(counters);
        for (name, words) in counters {
            let row = soak.counters.table.rows.iter().find(|row| row[1] == *name);
            let row = row.unwrap_or_else(|| panic!("{name}: {:#?}", soak.counters.table.rows));
            assert_eq!(row[2], *words, "{name}: {row:?}");
            assert!(soak.families.table.rows.iter().any(|row| row[0] == *words), "{words}");
            assert!(page.contains(words), "{words}");
        }
    }
}

#[test]
fn optics_are_called_what_they_are() {
    let (soak, page) = told(&[]);
    let rows = &soak.gauges.table.rows;
    let row = rows.iter().find(|row| row[0] == "module/temperature_c").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!((row[1].as_str(), row[3].as_str(), row[5].as_str()), ("8", "gpu001 mlx5_0", "gpu004 mlx5_0"), "{row:?}");
    assert!(page.contains("temperature_c"));
}

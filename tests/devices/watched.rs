//! What a host's drivers count and its optics read while traffic runs, from files to words: a soak of two agents in the trees of hosts whose
//! counters move. Names are those of mlx5; the readings of the module are laid out as SFF-8636 has them.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde_json::Value;

use super::{devices::named, library, railgauge::Scene};

/// Counters in files below the port, what each gains in a step, and what it is called.
const FILES: [(&str, u64, &str); 6] = [
    ("hw_counters/np_cnp_sent", 3, "CNPs sent"),
    ("hw_counters/rp_cnp_handled", 2, "CNPs received"),
    ("hw_counters/np_ecn_marked_roce_packets", 5, "ECN marks seen"),
    ("hw_counters/out_of_sequence", 1, "retransmissions, out of sequence"),
    ("counters/symbol_error", 7, "symbol errors"),
    ("counters/link_error_recovery", 1, "link trained again"),
];

/// The same of the driver's statistics.
const STATISTICS: [(&str, u64, &str); 4] = [
    ("rx_prio3_pause", 11, "pauses received"),
    ("tx_prio3_pause", 13, "pauses sent"),
    ("rx_pcs_symbol_err_phy", 1, "errors that FEC did not correct"),
    ("rx_corrected_bits_phy", 1000, "errors before FEC (normal on PAM4 links)"),
];

/// Memory of a QSFP28 with four lanes: 52.5 °C, 3.3 V, 0.5 mW received on three lanes and none on the fourth, 7 mA, 1 mW sent.
fn module() -> String {
    let mut memory = [0_u8; 256];
    memory[0] = 0x11;
    let mut word = |at: usize, value: u16| memory[at..at + 2].copy_from_slice(&value.to_be_bytes());
    word(22, 0x3480);
    word(26, 33_000);
    for lane in 0..4 {
        word(34 + 2 * lane, if lane == 3 { 0 } else { 5_000 });
        word(42 + 2 * lane, 3_500);
        word(50 + 2 * lane, 10_000);
    }
    memory[220] = 1 << 2;
    memory.map(|byte| format!("{byte:02x}")).join(" ")
}

/// Writes a file that a reader never sees half.
fn put(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

/// Brings the counters of host 1 to what they are after so many steps.
fn step(root: &Path, steps: u64) {
    for (name, gain, _) in FILES {
        let port = root.join("sys/class/infiniband/mlx5_0/ports/1");
        put(&port.join(name), &format!("{}\n", gain * steps));
    }
    let lines = STATISTICS.map(|(name, gain, _)| format!("     {name}: {}\n", gain * steps)).concat();
    put(&root.join("ethtool/rail0/statistics"), &format!("NIC statistics:\n{lines}"));
}

/// The plan of a soak long enough for two readings of the drivers' statistics, ten seconds apart.
fn plan(scene: &Scene, library: &Path, fabric: &Path) -> PathBuf {
    let text = format!(
        "name = \"watched\"\nhosts = {{ names = [\"1\", \"2\"] }}\n\
         [launch]\nvia = \"command\"\n\
         command = [\"env\", \"VERBS_DOUBLE_HOST={{host}}\", \"RAILGAUGE_ROOT={root}{{host}}\"]\n\
         env = {{ RAILGAUGE_IBVERBS = \"{library}\", RAILGAUGE_RDMACM = \"{library}\", VERBS_DOUBLE_DIR = \"{fabric}\", \
         VERBS_DOUBLE_PROFILE = \"mlx5-roce\" }}\n\
         [localise]\nwaive = [\"all\"]\n\
         [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nsizes = \"64KiB\"\nmeasure = \"64 iterations\"\n\
         [soak]\nfor = \"14s\"\nwindow = \"4s\"\nlimits = {{ rx_pcs_symbol_err_phy = \"1000/s\", symbol_error = \"1/s\" }}\n",
        root = scene.path("root").display(),
        library = library.display(),
        fabric = fabric.display(),
    );
    scene.write("plan.toml", &text)
}

#[test]
fn counters_and_optics_of_a_host_are_told_in_words() {
    let device = named("mlx5-roce");
    let scene = Scene::new();
    let [fabric, first, second] = ["fabric", "root1", "root2"].map(|name| scene.path(name));
    fs::create_dir(&fabric).unwrap();
    device.unpack("1", &first);
    device.unpack("2", &second);
    put(&first.join("ethtool/rail0/module/50.00"), &module());
    step(&first, 0);
    let over = AtomicBool::new(false);
    let (ended, found) = thread::scope(|scope| {
        scope.spawn(|| {
            let mut steps = 0;
            while !over.load(Ordering::Relaxed) {
                steps += 1;
                step(&first, steps);
                thread::sleep(Duration::from_millis(200));
            }
        });
        let ended = scene.start(&plan(&scene, &library(), &fabric)).end();
        over.store(true, Ordering::Relaxed);
        let found = scene.results().verdicts()["soak"].clone();
        (ended, found)
    });
    let rows = found["counters"].as_array().unwrap_or_else(|| panic!("{found:#}\n{}", ended.said));
    let of =
        |name: &str| rows.iter().find(|row| row["counter"].as_str().is_some_and(|counter| counter.ends_with(name)));
    for (name, gain, words) in FILES.iter().chain(&STATISTICS) {
        let row = of(name).unwrap_or_else(|| panic!("{name}: {found:#}\n{}", ended.said));
        let total = row["total"].as_u64().unwrap();
        assert!(total > 0 && total.is_multiple_of(*gain), "{name}: {row:#}");
        assert!(row.to_string().contains("\"host\":\"1\""), "{name}: {row:#}");
        let families = found["families"].as_array().unwrap();
        assert!(families.iter().any(|family| family["words"] == *words), "{words}: {families:#?}");
    }
    assert!(
        rows.iter().all(|row| !row.to_string().contains("\"host\":\"2\"")),
        "the other host counted nothing: {rows:#?}"
    );

    let gauge = |name: &str| {
        let gauges = found["port_gauges"].as_array().unwrap();
        let of: Vec<&Value> = gauges.iter().filter(|gauge| gauge["name"] == format!("module/{name}")).collect();
        let [one] = of.as_slice() else { panic!("{name}: {gauges:#?}") };
        assert_eq!(one["low"], one["high"], "{one:#}");
        one["low"].as_f64().unwrap()
    };
    for (name, wanted) in [
        ("temperature_c", 52.5),
        ("rx_power_dbm_lane1", 10.0 * 0.5_f64.log10()),
        ("rx_power_dbm_lane4", -40.0),
        ("tx_power_dbm_lane4", 0.0),
        ("bias_ma_lane2", 7.0),
    ] {
        assert!((gauge(name) - wanted).abs() < 1e-6, "{name}: {}", gauge(name));
    }

    // Seven symbol errors every 200 ms are over one a second, and fail the run; the statistic is below its limit.
    ended.expect(1);
    let limits = found["limits"].as_array().unwrap();
    let over: Vec<_> =
        limits.iter().map(|limit| (limit["counter"].as_str().unwrap(), limit["over"].as_u64())).collect();
    assert!(
        over.contains(&("symbol_error", Some(1))) && over.contains(&("rx_pcs_symbol_err_phy", Some(0))),
        "{limits:#?}"
    );
}

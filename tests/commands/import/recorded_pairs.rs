//! Outputs that perftest and iperf3 wrote on machines of ours, beside a reader of tables that knows nothing of these tools.

use std::{collections::BTreeSet, fs};

use railgauge_wire::terms::Metric::{
    self, Bandwidth, LatencyMax, LatencyMean, LatencyMin, LatencyP50, LatencyP99, LatencyP999, MessageRate,
};

use super::{PAIR, imported, outputs, text};

/// `MB/sec` and `MiB/sec` of perftest in Gb/s.
const MIB: f64 = 8_388_608.0 / 1e9;
/// What a column holds: its place in a row of the table, its metric, and the factor to our unit.
type Column = (usize, Metric, f64);

const BANDWIDTH_MIB: [Column; 2] = [(3, Bandwidth, MIB), (4, MessageRate, 1.0)];
const BANDWIDTH_GIGABITS: [Column; 2] = [(3, Bandwidth, 1.0), (4, MessageRate, 1.0)];
const LATENCIES: [Column; 6] = [
    (2, LatencyMin, 1.0),
    (3, LatencyMax, 1.0),
    (4, LatencyP50, 1.0),
    (5, LatencyMean, 1.0),
    (7, LatencyP99, 1.0),
    (8, LatencyP999, 1.0),
];
const LATENCY_OF_DURATION: [Column; 1] = [(2, LatencyMean, 1.0)];

/// A file without what all names begin with, its columns, and by what its sizes are multiplied.
type Table = (&'static str, &'static [Column], u64);

const PERFTEST: [Table; 9] = [
    ("5.98-write-bw-all.txt", &BANDWIDTH_MIB, 1),
    ("5.98-read-lat.txt", &LATENCIES, 1),
    ("6.06-send-bw-both-ways.txt", &BANDWIDTH_GIGABITS, 1),
    ("6.06-write-lat.txt", &LATENCIES, 1),
    ("6.21-write-bw-duration.txt", &BANDWIDTH_MIB, 1),
    ("6.21-send-lat-ud.txt", &LATENCIES, 1),
    ("6.25-read-bw-gbits.txt", &BANDWIDTH_GIGABITS, 1),
    ("6.29-send-bw-ud-duration.txt", &BANDWIDTH_MIB, 1),
    ("6.29-atomic-bw.txt", &BANDWIDTH_MIB, 1),
];

/// The rest of perftest, whose columns differ.
const OTHERS: [(Table, &str); 1] = [(("perftest-6.29-read-lat-duration.txt", &LATENCY_OF_DURATION, 1), "perftest")];

/// Files that are no tables of sizes: the tool that they name, what has to be said, and every value by size.
type Values = (&'static str, &'static str, &'static [&'static str], &'static [(u64, Metric, f64)]);

const VALUES: [Values; 2] = [
    ("iperf3-3.7-rev.json", "iperf3 3.7", &[], &[(131_072, Bandwidth, 4.282_210_550_446_115)]),
    ("iperf3-3.21-p2.json", "iperf3 3.21+", &[], &[(131_072, Bandwidth, 35.311_897_526_077_94)]),
];

/// Sizes and values of a table, as any reader of columns finds them: rows begin with a number.
fn table(text: &str, columns: &[Column], times: u64) -> Vec<(u64, Metric, f64)> {
    let rows = text.lines().filter_map(|line| {
        let line = line.split_once("<stdout>:").map_or(line, |(_, text)| text);
        let words: Vec<&str> = line.split_whitespace().collect();
        let size: u64 = words.first()?.parse().ok()?;
        Some(
            columns
                .iter()
                .map(move |(at, metric, scale)| (size * times, *metric, words[*at].parse::<f64>().unwrap() * scale))
                .collect::<Vec<_>>(),
        )
    });
    rows.flatten().collect()
}

/// Imports a file that was recorded and holds all of its rows against these.
fn same(file: &str, tool: &str, options: &[&str], mut wanted: Vec<(u64, Metric, f64)>) {
    let place = tempfile::tempdir().unwrap();
    let run = imported(place.path(), &format!("recorded-{file}"), options);
    assert_eq!(run.tools(), tool, "{file}");
    let mut found: Vec<_> = run.rows().iter().map(|row| (row.size_bytes.0, row.metric, row.value.unwrap())).collect();
    let order = |one: &(u64, Metric, f64)| (one.0, one.1.word());
    found.sort_by_key(order);
    wanted.sort_by_key(order);
    assert!(!wanted.is_empty() && found.len() == wanted.len(), "{file}: {found:?} for {wanted:?}");
    for (found, wanted) in found.iter().zip(&wanted) {
        let is_near = (found.2 - wanted.2).abs() <= wanted.2 * 1e-12;
        assert!((found.0, found.1) == (wanted.0, wanted.1) && is_near, "{file}: {found:?} for {wanted:?}");
    }
}

#[test]
fn every_value_of_a_recorded_table_is_taken_and_no_other() {
    for (name, columns, times) in PERFTEST {
        let file = format!("perftest-{name}");
        same(&file, "perftest", &PAIR, table(&text(&format!("recorded-{file}")), columns, times));
    }
    for ((file, columns, times), tool) in OTHERS {
        same(file, tool, &PAIR, table(&text(&format!("recorded-{file}")), columns, times));
    }
}

#[test]
fn every_value_of_other_recorded_outputs_is_taken_and_no_other() {
    for (file, tool, options, values) in VALUES {
        same(file, tool, options, values.to_vec());
    }
}

#[test]
fn what_a_recorded_output_says_of_its_test_is_in_its_rows() {
    let place = tempfile::tempdir().unwrap();
    let rows = |file: &str, options: &[&str]| imported(place.path(), &format!("recorded-{file}"), options).rows();
    let datagrams = rows("perftest-6.29-send-bw-ud-duration.txt", &PAIR);
    assert!(datagrams.iter().all(|row| &*row.transport == "verbs-ud" && &*row.link_layer == "ethernet"));
    let both_ways = imported(place.path(), "recorded-perftest-6.06-send-bw-both-ways.txt", &PAIR);
    assert!(both_ways.said.plan.tests[0].bidirectional && both_ways.rows().iter().all(|row| row.qps == 2));
    assert!(rows("perftest-6.25-read-bw-gbits.txt", &PAIR).iter().all(|row| row.qps == 4));
    assert!(rows("iperf3-3.21-p2.json", &[]).iter().all(|row| row.qps == 2));
}

#[test]
fn every_file_that_was_recorded_is_read_by_a_test() {
    let named = PERFTEST.iter().map(|(name, ..)| format!("perftest-{name}"));
    let named = named.chain(OTHERS.iter().map(|((name, ..), ..)| (*name).to_owned()));
    let named = named.chain(VALUES.iter().map(|(name, ..)| (*name).to_owned()));
    let named = named.chain(super::recorded::names()).map(|name| format!("recorded-{name}"));
    let names = fs::read_dir(outputs()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> = names.filter(|name| name.starts_with("recorded-")).collect();
    assert_eq!(named.collect::<BTreeSet<_>>(), there);
}

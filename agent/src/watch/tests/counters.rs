use super::*;

fn values(of: &[(&str, u64)]) -> Values {
    of.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn at(seconds: u64) -> Nanoseconds {
    Nanoseconds::from_secs(seconds)
}

/// The first row, between two readings.
fn between(before: &[(&str, u64)], after: &[(&str, u64)]) -> CounterRow {
    let mut series = Series::default();
    assert_eq!(series.read(at(1), values(before)), None);
    series.read(at(2), values(after)).unwrap()
}

#[test]
fn a_row_has_what_rose_in_its_span() {
    let row =
        between(&[("netdev/rx_bytes", 5), ("netdev/tx_bytes", 7)], &[("netdev/rx_bytes", 9), ("netdev/tx_bytes", 7)]);
    assert_eq!((row.from, row.until), (at(1), at(2)));
    // The first row has every counter that is there.
    assert_eq!(row.counted, values(&[("netdev/rx_bytes", 4), ("netdev/tx_bytes", 0)]));
    assert!(row.peaks.is_empty() && row.gauges.is_empty() && !row.is_of_statistics());
}

#[test]
fn a_reset_invents_no_rise() {
    let before = [("counters/symbol_error", 700), ("hw_counters/resets", 700), ("hw_counters/wraps", (1 << 32) - 10)];
    let after = [("counters/symbol_error", 2), ("hw_counters/resets", 2), ("hw_counters/wraps", 4)];
    assert_eq!(between(&before, &after).counted, values(&[("hw_counters/wraps", 14)]));
    // 32 bits of the port's own counters stop at their largest value: a smaller one is a reset.
    let row = between(&[("counters/port_xmit_data", (1 << 32) - 10)], &[("counters/port_xmit_data", 4)]);
    assert!(row.counted.is_empty(), "{row:?}");
    // The next row begins at what the reset left.
    let mut series = Series::default();
    for (second, value) in [(1, 700), (2, 2)] {
        series.read(at(second), values(&[("hw_counters/resets", value)]));
    }
    let row = series.read(at(3), values(&[("hw_counters/resets", 5)])).unwrap();
    assert_eq!((row.from, row.counted), (at(2), values(&[("hw_counters/resets", 3)])));
}

#[test]
fn counters_that_appear_or_are_of_one_queue_are_left_out() {
    let row = between(&[("ethtool/rx3_packets", 1)], &[("ethtool/rx3_packets", 5), ("netdev/new", 8)]);
    assert!(row.counted.is_empty(), "{row:?}");
}

#[test]
fn a_counter_at_its_largest_value_is_told_once() {
    let mut series = Series::default();
    let mut read = |second, value| series.read(at(second), values(&[("counters/link_downed", value)]));
    read(1, 254);
    let row = read(2, 255).unwrap();
    assert_eq!(row.counted["counters/link_downed"], 1);
    assert_eq!(row.gauges["saturated/counters/link_downed"], 255.0);
    let row = read(3, 255).unwrap();
    assert!(row.counted.is_empty() && row.gauges.is_empty(), "{row:?}");
    // Somebody reset it, and it is full again.
    assert!(read(4, 3).unwrap().counted.is_empty());
    assert_eq!(read(5, 255).unwrap().gauges.len(), 1);
}

#[test]
fn joined_rows_have_sums_and_peaks() {
    let row = |from, until, rise| CounterRow {
        from: at(from),
        until: at(until),
        counted: values(&[("netdev/rx_bytes", rise)]),
        ..CounterRow::default()
    };
    let mut first = row(0, 1, 10);
    first.gauges.insert("module/temperature_c".into(), 40.0);
    let mut second = row(1, 3, 100);
    second.gauges.insert("module/temperature_c".into(), 41.0);
    let both = first.joined(second);
    assert_eq!((both.from, both.until, both.counted["netdev/rx_bytes"]), (at(0), at(3), 110));
    assert_eq!(both.peaks["netdev/rx_bytes"], 50.0);
    assert_eq!(both.gauges["module/temperature_c"], 41.0);
    // A row that was joined keeps its peak, though its mean is smaller.
    let more = both.joined(row(3, 4, 20));
    assert_eq!((more.counted["netdev/rx_bytes"], more.peaks["netdev/rx_bytes"]), (130, 50.0));
}

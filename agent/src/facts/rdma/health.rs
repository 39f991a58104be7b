//! Counters of a port that say nothing any more.

use std::{collections::BTreeMap, io::Read};

use railgauge_wire::{
    drivers::{WIDTHS, byte_counters},
    gather::Gather,
};

use crate::system::tree::Tree;

/// Error counters that have reached their largest value.
pub(super) fn saturated(tree: &Tree, port: &str) -> Vec<String> {
    let full = |(name, bits): &&(&str, u32)| {
        let value = tree.text(format!("{port}/counters/{name}")).and_then(|text| text.parse::<u64>().ok());
        value.is_some_and(|value| value >= (1 << bits) - 1)
    };
    WIDTHS.iter().filter(full).map(|(name, _)| format!("counters/{name}")).collect()
}

/// Byte counters of the driver that are there and hold no number, and why: drivers without port counters have the files and
/// answer with an error, or with words on older kernels (drivers/infiniband/core/sysfs.c, `show_pma_counter`).
pub(super) fn unreadable(tree: &Tree, device: &str, port: &str, driver: Option<&str>) -> BTreeMap<String, String> {
    let names = byte_counters(driver).iter().flat_map(|counter| counter.sent.iter().chain(counter.received));
    let one = |name: &&'static str| {
        let places = [format!("{port}/{name}"), format!("{device}/{name}")];
        let place = places.into_iter().find(|place| tree.has(place))?;
        let mut text = String::new();
        let why = match tree.open(place).and_then(|file| file.take(64).read_to_string(&mut text)) {
            Ok(_) if text.trim().parse::<u64>().is_ok() => return None,
            Ok(_) => format!("holds {:?}", text.trim()),
            Err(error) => error.to_string(),
        };
        Some(((*name).to_owned(), why))
    };
    names.filter_map(one).gathered()
}

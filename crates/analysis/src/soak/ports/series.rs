//! Families of counters over time, for a few selected ports.

use std::collections::{BTreeMap, HashMap};

use super::{PortName, in_order};
use crate::{
    journal::Journal,
    soak::{
        families::{Family, family},
        span::Span,
    },
};

/// Increases per second of the selected ports' families in equal parts of a time, in order. An unread part is `None`, not zero.
pub type Series = BTreeMap<(PortName, Family), Vec<Option<f64>>>;

/// What these ports counted in a time, divided into parts. The increases of a row are spread evenly over its time.
pub fn series(journal: &Journal, time: &Span, parts: usize, chosen: &[&PortName]) -> Series {
    let chosen: HashMap<(&str, &str, u8), &PortName> =
        chosen.iter().map(|name| ((name.host.as_str(), name.device.as_str(), name.port), *name)).collect();
    let step = time.length().as_f64() / parts.max(1) as f64;
    if parts == 0 || step <= 0.0 {
        return Series::new();
    }
    let mut families: HashMap<&str, Option<Family>> = HashMap::new();
    // Increases by family, and the time read in each part.
    let mut rises: BTreeMap<(&PortName, Family), Vec<f64>> = BTreeMap::new();
    let mut read: BTreeMap<&PortName, Vec<f64>> = BTreeMap::new();
    for (_, seen) in in_order(journal) {
        for port in &seen.seen.ports {
            let Some(name) = chosen.get(&(seen.host.as_str(), port.device.as_str(), port.port)) else { continue };
            for row in &port.rows {
                let of_row = Span::new(row.from, row.until);
                let (length, common) = (of_row.length().as_f64(), of_row.common(time));
                if length <= 0.0 || common.length().is_zero() {
                    continue;
                }
                let place = |at: u64| (at.saturating_sub(time.from.0) as f64 / step).min(parts as f64);
                let (first, last) = (place(common.from.0), place(common.until.0));
                let shares = (first as usize..parts)
                    .take_while(|part| (*part as f64) < last)
                    .map(|part| (part, (last.min(part as f64 + 1.0) - first.max(part as f64)) * step / length));
                let shares: Vec<(usize, f64)> = shares.collect();
                let of_port = read.entry(name).or_insert_with(|| vec![0.0; parts]);
                shares.iter().for_each(|(part, share)| of_port[*part] += share * length);
                for (counter, rise) in &row.counted {
                    let Some(of) = *families.entry(counter).or_insert_with(|| family(counter)) else { continue };
                    let sums = rises.entry((name, of)).or_insert_with(|| vec![0.0; parts]);
                    shares.iter().for_each(|(part, share)| sums[*part] += share * *rise as f64);
                }
            }
        }
    }
    let rate = |(name, family): (&PortName, Family), sums: Vec<f64>| {
        let times = read.get(name);
        let of = |(part, sum): (usize, f64)| {
            let time = times.map_or(0.0, |times| times[part]);
            (time > 0.0).then(|| sum * 1e9 / time)
        };
        ((name.clone(), family), sums.into_iter().enumerate().map(of).collect())
    };
    rises.into_iter().map(|(key, sums)| rate(key, sums)).collect()
}

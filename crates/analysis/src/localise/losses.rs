//! Finds the part of the cluster that loses packets. The sender counts retransmissions wherever a packet was lost, so
//! the share lost by each pair is another view of the test, which is searched for parts like its values.

use railgauge_stats::localise::{self, Pair, Setting};

use super::{Names, One, PartName, View};
use crate::truth::NOTED;

/// Standard deviation of a link's share of losses, as a difference of logarithms: losses occur in bursts.
const NOISE: f64 = 0.5;

/// Factor of losses against other parts from which on a part stands out.
const TIMES: f64 = 3.0;

/// The parts that lose far more than others; none where no packet was lost.
pub(super) fn lossy(view: &View<'_>, names: &Names, setting: &Setting<'_>) -> Vec<PartName> {
    let lost = |one: &One<'_>| one.result.loss().map_or(0.0, |(share, _)| share);
    if view.cases.iter().all(|one| lost(one) <= NOTED) {
        return Vec::new();
    }
    let pair = |one: &One<'_>| {
        let log = (!one.result.samples.is_empty()).then(|| -lost(one).max(NOTED).ln());
        One { log, ..*one }.pair(names)
    };
    let pairs: Vec<Pair> = view.cases.iter().filter_map(pair).collect();
    let setting = Setting { least: TIMES.ln(), noise: NOISE, two_levels: false, ..*setting };
    let Ok(found) = localise::localise(&pairs, &setting) else { return Vec::new() };
    let shown = found.suspects.iter().enumerate().filter(|(at, _)| found.shows(*at, &[]));
    shown.map(|(_, suspect)| names.part(&suspect.part)).collect()
}

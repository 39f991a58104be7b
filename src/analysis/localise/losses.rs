//! At which part of the cluster packets are lost. Retransmissions are counted at the sender, wherever on its way a packet was lost, so the
//! share that each pair loses is one more view of the test, which is searched for parts as its values are.

use railgauge_stats::localise::{self, Pair, Setting};

use super::{
    PartName,
    names::Names,
    pick::{One, View},
};
use crate::analysis::truth::NOTED;

/// Standard deviation of the share that a link loses, as a difference of logarithms: losses come in bursts.
const NOISE: f64 = 0.5;

/// How many times as much is lost at a part as elsewhere, if that sets it apart.
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
    shown.map(|(_, suspect)| names.named(&suspect.part)).collect()
}

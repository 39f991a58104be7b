//! Packets lost or sent again, and whether they can explain a low value.

use railgauge_stats::robust::median;

use super::{CaseResult, Doubt};

/// Share of packets lost or sent again above which a sample is doubted.
pub(crate) const LOSS_TOLERANCE: f64 = 1e-3;
/// The longest round trip of a stream within a cluster, in nanoseconds, with queues.
const ROUND_TRIP: f64 = 1e6;
/// Linux congestion controls that do not slow down for losses.
const BBR: [&str; 3] = ["bbr", "bbr2", "bbr3"];

impl CaseResult<'_> {
    pub(crate) fn loss(&self) -> Option<(f64, &Doubt)> {
        let all = self.doubts.iter().chain(&self.excused).filter_map(|doubt| Some((doubt.lost()?, doubt)));
        all.max_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// Whether more was lost than on a healthy link, and not by the plan's intent: then it is not a reference for others.
    pub(crate) fn loses(&self) -> bool {
        self.case.cell.is_reference(self.test) && self.loss().is_some_and(|(share, _)| share > LOSS_TOLERANCE)
    }

    /// Whether a stream with this share of lost packets may be as slow as this one: at the longest round trip its rate
    /// is at most `MSS / RTT * sqrt(3/2) / sqrt(p)` (Mathis et al. 1997). With the short round trips of a cluster CUBIC
    /// is not slower and hardly faster (RFC 9438, 4.3); BBR does not slow down for losses.
    fn is_held_by(&self, share: f64) -> bool {
        let Some((link, (_, sample))) = self.link.zip(self.samples.first()) else { return false };
        let rate =
            sample.initiator.bytes.bits() / sample.initiator.elapsed.as_f64() / f64::from(self.case.cell.qps.max(1));
        let least = f64::from(link.mtu) * 8.0 / ROUND_TRIP * (1.5 / share).sqrt();
        let ignores = link.settings.get("congestion_control").is_some_and(|name| BBR.contains(&name.as_str()));
        rate >= least && !ignores
    }
}

/// Losses of the cases behind a lossy part, in words, if they can explain its slowness: they limit most of these cases.
pub(crate) fn lost_at(cases: &[&CaseResult<'_>]) -> Option<String> {
    let lost = |result: &&CaseResult<'_>| result.loss().map_or(0.0, |(share, _)| share);
    let share = median(&cases.iter().map(lost).collect::<Vec<_>>()).ok().filter(|share| *share > 0.0)?;
    let held = cases.iter().filter(|result| result.is_held_by(share)).count();
    (2 * held > cases.len()).then(|| format!("{:.2} % of the packets were lost or sent again", 100.0 * share))
}

//! What the ranks of a collective can say of one window.

use railgauge_model::{journal::event::Sample, schedule::Flow};
use railgauge_wire::{measure::Latency, step::Checked, terms::Op, unit::Bytes};

use super::{Contradiction, link::ANY_MEMORY};
use crate::analysis::results::CaseResult;

/// What the mean time of an operation may differ from the window over its operations: times are rounded to
/// whole ones.
const ROUNDING: f64 = 1.0;

/// Bytes that all ranks of a group compare: what the operation leaves behind on each, before the window and after it. A
/// reduction to one rank leaves it there alone, and one that is scattered leaves a part on each; everything else leaves
/// the whole on every rank (nccl-tests, `doc/PERFORMANCE.md`).
pub(crate) fn verified(op: Op, size: Bytes, ranks: u32) -> Bytes {
    let holders = if matches!(op, Op::Reduce | Op::ReduceScatter) { 1 } else { u64::from(ranks) };
    size.saturating_mul(holders).saturating_mul(2)
}

/// Everything that contradicts the group that was planned, the size, or the slowest rank.
pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample) -> Vec<Contradiction> {
    let (cell, flow, measured) = (&result.case.cell, &result.case.flow, &sample.initiator);
    let mut found = ranks(flow, sample);
    if measured.bytes != cell.size.saturating_mul(measured.operations) {
        let (bytes, operations) = (measured.bytes, measured.operations);
        found.push(Contradiction::Size { bytes, operations, size: cell.size });
    }
    let gbps = measured.bytes.bits() / measured.elapsed.as_f64();
    if gbps > ANY_MEMORY {
        found.push(Contradiction::FasterThanMemory { rate: gbps, most: ANY_MEMORY });
    }
    let most = verified(cell.op, cell.size, flow.ranks());
    if sample.checked.verified > most {
        found.push(Contradiction::Verified { verified: sample.checked.verified, most: most.0.into() });
    }
    let own: Option<Vec<Checked>> = sample.ranks.iter().map(|account| account.checked).collect();
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        let sum = |of: fn(&Checked) -> Bytes| own.iter().map(of).fold(Bytes::ZERO, Bytes::saturating_add);
        let ranks = (sum(|checked| checked.verified), sum(|checked| checked.wrong));
        if ranks != (sample.checked.verified, sample.checked.wrong) {
            let Checked { verified, wrong, .. } = sample.checked;
            found.push(Contradiction::VerifiedByRanks { verified, wrong, by_ranks: ranks });
        }
    }
    if let Some(latency) = &measured.latency {
        let each = measured.elapsed.as_f64() / measured.operations as f64;
        if (each - latency.mean.0).abs() > ROUNDING || !measured.operations.is_multiple_of(latency.samples) {
            found.push(Contradiction::MeanOfBatches {
                operations: measured.operations,
                window: measured.elapsed,
                mean: latency.mean,
                batches: latency.samples,
            });
        }
        found.extend(slower_than_the_slowest(latency, sample));
    }
    found
}

/// Ranks that are missing, or are not where the plan has them.
fn ranks(flow: &Flow, sample: &Sample) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let once = |rank: u32| sample.ranks.iter().filter(|account| account.rank == rank).count() == 1;
    let present = (0..flow.ranks()).filter(|rank| once(*rank)).count();
    if present != flow.members.len() || sample.ranks.len() != flow.members.len() {
        found.push(Contradiction::Ranks { present, wanted: flow.members.len() });
    }
    for account in &sample.ranks {
        let planned = flow.members.get(account.rank as usize);
        if planned.is_some_and(|port| *port.host != *account.host) {
            found.push(Contradiction::Elsewhere { rank: account.rank, host: account.host.clone() });
        }
    }
    found
}

/// Ranks that took longer than the slowest of all did: the times of the group are those of the slowest rank of each batch.
fn slower_than_the_slowest(latency: &Latency, sample: &Sample) -> Vec<Contradiction> {
    let mut found = Vec::new();
    for account in &sample.ranks {
        let (rank, p50, max) = (account.rank, account.p50, account.max);
        if max > latency.max {
            found.push(Contradiction::SlowerAtMost { rank, max, slowest: latency.max });
        }
        if p50 > max || p50 > latency.p50 || p50.is_zero() {
            found.push(Contradiction::MedianOfRank { rank, median: p50, slowest: latency.p50 });
        }
    }
    found
}

//! What the ranks of a collective can say of one window.

use railgauge_model::{journal::event::Sample, schedule::Flow};
use railgauge_wire::{measure::Latency, step::Checked, terms::Op};

use super::link::ANY_MEMORY;
use crate::analysis::{results::CaseResult, words::count};

/// What the mean time of an operation may differ from the window over its operations: times are rounded to
/// whole ones.
const ROUNDING: f64 = 1.0;

/// Bytes that all ranks of a group compare: what the operation leaves behind on each, before the window and after it. A
/// reduction to one rank leaves it there alone, and one that is scattered leaves a part on each; everything else leaves
/// the whole on every rank (nccl-tests, `doc/PERFORMANCE.md`).
pub fn verified(op: Op, size: u64, ranks: u32) -> u64 {
    let holders = if matches!(op, Op::Reduce | Op::ReduceScatter) { 1 } else { u64::from(ranks) };
    size.saturating_mul(holders).saturating_mul(2)
}

/// Everything that contradicts the group that was planned, the size, or the slowest rank.
pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample) -> Vec<String> {
    let (cell, flow, measured) = (&result.case.cell, &result.case.flow, &sample.initiator);
    let mut found = ranks(flow, sample);
    if measured.bytes != measured.operations.saturating_mul(cell.size) {
        let operations = count(measured.operations as usize, "operation");
        found.push(format!("{} B in {operations} of {} B", measured.bytes, cell.size));
    }
    let gbps = measured.bytes as f64 * 8.0 / measured.elapsed.as_f64();
    if gbps > ANY_MEMORY {
        found.push(format!("{gbps:.0} Gb/s at each rank, and the fastest memory has {ANY_MEMORY:.0} Gb/s"));
    }
    let most = verified(cell.op, cell.size, flow.ranks());
    if sample.checked.verified > most {
        found.push(format!("{} B verified, of {most} B at most", sample.checked.verified));
    }
    let own: Option<Vec<Checked>> = sample.ranks.iter().map(|account| account.checked).collect();
    if let Some(own) = own.filter(|own| !own.is_empty()) {
        let sum = |of: fn(&Checked) -> u64| own.iter().map(of).fold(0, u64::saturating_add);
        let ranks = (sum(|checked| checked.verified), sum(|checked| checked.wrong));
        if ranks != (sample.checked.verified, sample.checked.wrong) {
            let Checked { verified, wrong, .. } = sample.checked;
            found.push(format!(
                "{verified} B verified and {wrong} of them wrong, and {} and {} by what each rank says",
                ranks.0, ranks.1
            ));
        }
    }
    if let Some(latency) = &measured.latency {
        let each = measured.elapsed.as_f64() / measured.operations as f64;
        if (each - latency.mean.0).abs() > ROUNDING || !measured.operations.is_multiple_of(latency.samples) {
            let (operations, seconds) = (measured.operations, measured.elapsed.seconds());
            let batches = count(latency.samples as usize, "batch");
            found.push(format!(
                "{operations} operations in {seconds:.6} s, and a mean of {:.1} ns in {batches} of them",
                latency.mean
            ));
        }
        found.extend(slower_than_the_slowest(latency, sample));
    }
    found
}

/// Ranks that are missing, or are not where the plan has them.
fn ranks(flow: &Flow, sample: &Sample) -> Vec<String> {
    let mut found = Vec::new();
    let once = |rank: u32| sample.ranks.iter().filter(|account| account.rank == rank).count() == 1;
    let present = (0..flow.ranks()).filter(|rank| once(*rank)).count();
    if present != flow.members.len() || sample.ranks.len() != flow.members.len() {
        found.push(format!("{present} of {} ranks gave one account each", flow.members.len()));
    }
    for account in &sample.ranks {
        let planned = flow.members.get(account.rank as usize);
        if planned.is_some_and(|port| *port.host != *account.host) {
            found.push(format!("rank {} speaks for {}, and is planned elsewhere", account.rank, account.host));
        }
    }
    found
}

/// Ranks that took longer than the slowest of all did: the times of the group are those of the slowest rank of each batch.
fn slower_than_the_slowest(latency: &Latency, sample: &Sample) -> Vec<String> {
    let mut found = Vec::new();
    for account in &sample.ranks {
        let (rank, p50, max) = (account.rank, account.p50, account.max);
        if max > latency.max {
            found.push(format!("rank {rank} took {max} ns at most, and the slowest of all {} ns", latency.max));
        }
        if p50 > max || p50 > latency.p50 || p50.is_zero() {
            let all = latency.p50;
            found.push(format!("rank {rank} has a median of {p50} ns, and the slowest of all one of {all} ns"));
        }
    }
    found
}

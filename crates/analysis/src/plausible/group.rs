use railgauge_model::journal::event::Sample;

use super::{link::ANY_MEMORY, outside::outside};
use crate::case::{CaseResult, Contradiction};

/// Tolerance between the mean time of an operation and the window over its operations, in nanoseconds of rounding.
const ROUNDING: f64 = 1.0;

pub(super) fn contradictions(result: &CaseResult<'_>, sample: &Sample) -> Vec<Contradiction> {
    let (flow, measured) = (&result.case.flow, &sample.initiator);
    let mut found = Vec::new();
    for account in &sample.ranks {
        if flow.members.get(account.rank as usize).is_some_and(|port| *port.host != *account.host) {
            found.push(Contradiction::Elsewhere { rank: account.rank, host: account.host.clone() });
        }
    }
    let gbps = measured.bytes.bits() / measured.elapsed.as_f64();
    found.extend(outside("rate at each rank", (gbps, "Gb/s"), "memory has", (0.0, ANY_MEMORY)));
    let Some(latency) = &measured.latency else { return found };
    let each = measured.elapsed.as_f64() / measured.operations as f64;
    let range = (each - ROUNDING, each + ROUNDING);
    found.extend(outside("mean", (latency.mean.0, "ns"), "its window has", range));
    let over = measured.operations.checked_rem(latency.samples).unwrap_or(1) as f64;
    found.extend(outside("operations", (over, ""), "whole batches leave", (0.0, 0.0)));
    // The times of the group are those of the slowest rank of each batch.
    for account in &sample.ranks {
        let (max, median) = (account.max.as_f64(), account.p50.as_f64());
        let by = "the slowest of all has";
        found.extend(outside("largest time of a rank", (max, "ns"), by, (0.0, latency.max.as_f64())));
        found.extend(outside("median of a rank", (median, "ns"), by, (1.0, max.min(latency.p50.as_f64()))));
    }
    found
}

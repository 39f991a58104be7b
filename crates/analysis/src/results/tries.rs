//! The tries of every case, and which of them count.

use std::collections::BTreeMap;

use railgauge_model::journal::event::Case;
use railgauge_stats::lists::Lists;
use railgauge_wire::Kind;

use crate::{
    case::Few,
    journal::{Journal, Try},
};

/// The tries of each of these consecutively numbered cases, in the order of the journal.
pub(super) fn by_case<'a>(journal: &'a Journal, cases: &[Case]) -> Vec<Few<&'a Try>> {
    let first = cases.first().map_or(0, |case| case.id);
    let place = |attempt: &Try| {
        let place = attempt.case.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        place.filter(|place| *place < cases.len())
    };
    let places = (0..).zip(&journal.tries).filter_map(|(at, attempt)| Some((place(attempt)?, at)));
    let of_cases: Lists<usize> = Lists::new(cases.len(), places);
    let of_case = |case| of_cases.of(case).iter().map(|at| &journal.tries[*at]).collect();
    (0..cases.len()).map(of_case).collect()
}

fn weight(attempt: &Try) -> u8 {
    match &attempt.result {
        Ok(sample) if !sample.checked.wrong.is_zero() => 2,
        Err(failure) if failure.kind == Kind::Corruption => 2,
        Ok(_) => 1,
        Err(_) => 0,
    }
}

/// The try of each repeat that counts, in the order of the repeats: the one with wrong bytes, since no later try corrects them; otherwise
/// the last measured one; otherwise the last failure. A resumed run repeats failures, and a later failure does not discard a measurement.
pub(super) fn that_count<'a>(tries: &[&'a Try]) -> Few<&'a Try> {
    if let [only] = tries {
        return [*only].into_iter().collect();
    }
    let mut counted: BTreeMap<u32, &Try> = BTreeMap::new();
    for attempt in tries {
        let slot = counted.entry(attempt.repeat).or_insert(attempt);
        if weight(attempt) >= weight(slot) {
            *slot = attempt;
        }
    }
    counted.into_values().collect()
}

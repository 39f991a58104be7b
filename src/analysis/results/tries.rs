//! The tries of every case, and which of them count.

use std::collections::BTreeMap;

use railgauge_model::journal::event::Case;
use railgauge_wire::failure::Kind;

use super::Few;
use crate::analysis::journal::{Journal, Try};

/// The tries of each of these cases, whose numbers follow one another, in the order of the journal.
pub(super) fn by_case<'a>(journal: &'a Journal, cases: &[Case]) -> Vec<Few<&'a Try>> {
    let first = cases.first().map_or(0, |case| case.id);
    let place = |attempt: &Try| {
        let place = attempt.case.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        place.filter(|place| *place < cases.len())
    };
    // Where the tries of each case begin among all; once they are put there, where they end.
    let mut ends = vec![0_usize; cases.len()];
    journal.tries.iter().filter_map(place).for_each(|place| ends[place] += 1);
    let mut sum = 0;
    ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
    let mut tries: Vec<Option<&Try>> = vec![None; sum];
    for (place, attempt) in journal.tries.iter().filter_map(|attempt| Some((place(attempt)?, attempt))) {
        tries[ends[place]] = Some(attempt);
        ends[place] += 1;
    }
    let mut begin = 0;
    let of_case = |end| tries[std::mem::replace(&mut begin, end)..end].iter().copied().flatten().collect();
    ends.into_iter().map(of_case).collect()
}

/// How much a try of a repeat counts beside others.
fn weight(attempt: &Try) -> u8 {
    match &attempt.result {
        Ok(sample) if !sample.checked.wrong.is_zero() => 2,
        Err(failure) if failure.kind == Kind::Corruption => 2,
        Ok(_) => 1,
        Err(_) => 0,
    }
}

/// The try of each repeat that counts, in the order of the repeats. Of several tries of a repeat one with wrong bytes counts, since no
/// later try makes them right. Else the last measured one does, else the last failure: a resumed run tries again what failed, and a
/// measurement once made is not lost to a later failure.
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

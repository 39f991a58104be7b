//! The tries of every case.

use railgauge_model::journal::event::Case;

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

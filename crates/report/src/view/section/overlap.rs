//! Collectives alone and alongside other traffic.

use railgauge_analysis::{
    together::Loss,
    words::{count, number, short},
};
use railgauge_wire::{Metric, Overlap};

use super::block::{Block, Data, Table, interval, told};
use crate::chart::ChartError;

/// `None` unless a collective was measured so.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(beside) = data.test.beside.as_ref().filter(|_| data.test.collective.is_some()) else { return Ok(None) };
    let (mut rows, mut lost) = (Vec::new(), 0);
    for result in data.results.iter().filter(|result| result.state.is_trusted()) {
        let of = |metric| Loss::of(result, metric);
        let (first, other) = (of(Metric::OverlapLoss), of(Metric::OverlapLossOther));
        lost += usize::from(first.is_some_and(|loss| loss.interval.0 > 0.0));
        for (repeat, sample) in &result.samples {
            let Some(one) = sample.overlap.as_deref() else { continue };
            let other_time = |of: fn(&Overlap) -> Option<f64>| of(one).map_or_else(String::new, number);
            rows.push(vec![
                data.cell_words((data.variant(result), result.case.cell.size)),
                (repeat + 1).to_string(),
                number(one.alone.microseconds()),
                number(one.together.microseconds()),
                told(one.loss()),
                interval(first.map(|loss| loss.interval)),
                other_time(|one| Some(one.other?.alone.microseconds())),
                other_time(|one| Some(one.other?.together.microseconds())),
                told(one.loss_of_other()),
                interval(other.map(|loss| loss.interval)),
                one.other.map_or_else(String::new, |other| other.operations.to_string()),
            ]);
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let with = beside.op.map_or_else(|| "the command".to_owned(), |op| format!("{op} of a second communicator"));
    let heads = "at | #repeat | #alone [µs] | #with it [µs] | #loss [%] | interval, % | #it alone [µs] | \
                 #it together [µs] | #its loss [%] | interval, % | #its operations";
    Ok(Some(Block {
        heading: "Alone and alongside other traffic",
        sentence: format!(
            "{} of {} lost bandwidth to {with}, beyond the noise of its repeats.",
            short(lost as f64),
            count(data.results.len(), "case")
        ),
        table: Some(Table::new(heads, rows)),
        method: "Times are those of one operation at the slowest rank. Alongside a second communicator they are medians of passes, by the \
                 GPU's clock, in which each is measured alone and then both: the other one began before the first and ended after it, or \
                 the case has no value, and what counts of it began and ended meanwhile. The interval is Student's over the repeats, 95 % \
                 for all cases of the test together."
            .to_owned(),
        ..Block::default()
    }))
}

//! The settings of a test compared with the first one: values of `[test.configure]`, or environments of a collective.

use railgauge_analysis::{
    costs::{Answer, ValueCost},
    words::{count, size},
};
use railgauge_model::plan::count::capital;

use super::block::{Block, Data, Table, headline, interval, told};
use crate::chart::ChartError;

const TOLD: usize = 6;

/// `None` where the test has none.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let Some(first) = data.costs.first() else { return Ok(None) };
    let head = headline(data.test);
    let is_judged = |one: &&&ValueCost| one.metric == head && one.compared.answer != Answer::Reference;
    let judged: Vec<&ValueCost> = data.costs.iter().filter(is_judged).copied().collect();
    let of = |answer| judged.iter().filter(|one| one.compared.answer == answer).count();
    let sum = format!(
        "Of {} with {}, {} cost {}, {} gain, {} make no difference beyond the noise, and of {} it is not known.",
        count(judged.len(), "comparison"),
        first.reference,
        of(Answer::Costs),
        head.word().replace('_', " "),
        of(Answer::Gains),
        of(Answer::NoDifference),
        of(Answer::Unknown)
    );
    let sentences = judged.iter().take(TOLD).map(|one| format!("{}.", capital(&one.words())));
    Ok(Some(Block {
        heading: "Settings compared",
        sentence: std::iter::once(sum).chain(sentences).collect::<Vec<_>>().join(" "),
        table: Some(table(&data.costs)),
        method: "A cost is that of each repeat compared with the first setting in the same repeat, the mean of all links; the interval is \
                 Student's over the repeats, 95 % for all settings, sizes and variants of the test together. Least and most are those of \
                 the links, of a single link those of its repeats. Values of `[test.configure]` change their order from repeat to repeat, \
                 environments do not."
            .to_owned(),
        ..Block::default()
    }))
}

fn table(all: &[&ValueCost]) -> Table {
    let row = |one: &&ValueCost| {
        let is_reference = one.compared.answer == Answer::Reference;
        let costing = one.flows.iter().filter(|flow| flow.compared.answer == Answer::Costs).count();
        vec![
            one.metric.word().replace('_', " "),
            size(one.size_bytes),
            one.variant.clone(),
            one.value.clone(),
            if one.links == one.of || is_reference {
                one.of.to_string()
            } else {
                format!("{} of {}", one.links, one.of)
            },
            told(one.median),
            one.unit.clone(),
            interval(one.range),
            told(one.compared.cost_percent),
            interval(one.compared.interval_percent),
            match one.compared.answer {
                Answer::Reference => "the first".to_owned(),
                Answer::Costs => "a cost".to_owned(),
                Answer::Gains => "a gain".to_owned(),
                Answer::NoDifference => "within the noise".to_owned(),
                Answer::Unknown => format!("not known: {}", one.compared.why_unknown),
            },
            if is_reference { "–".to_owned() } else { costing.to_string() },
            one.carried_by.clone(),
        ]
    };
    let heads = "metric | #size | with | setting | #links | #median | unit | least to most | #cost [%] | \
                 interval, % | answer | #links with a cost | carried by";
    Table::new(heads, all.iter().map(row))
}

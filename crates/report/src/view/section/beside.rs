//! Flows alongside an incast, or other traffic of their hosts: their losses, and the ports' congestion counters.

use railgauge_analysis::{
    together::{Answer, Beside},
    words::{count, size},
};
use railgauge_wire::Congestion;

use super::block::{Block, Data, Table, interval, told};
use crate::chart::ChartError;

const TOLD: usize = 4;

const LISTED: usize = 64;

/// `None` without such flows.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    let mut all = data.beside.clone();
    if all.is_empty() {
        return Ok(None);
    }
    // The largest loss first, and unknown ones before those without a loss.
    let loss = |one: &Beside| one.loss_percent.unwrap_or_default();
    all.sort_by(|a, b| a.answer.cmp(&b.answer).then(loss(b).total_cmp(&loss(a))));
    let of = |answer| all.iter().filter(|one| one.answer == answer).count();
    let sum = format!(
        "Of {} alongside other traffic {} lost something, {} nothing beyond the noise, and of {} it is not known.",
        count(all.len(), "case"),
        of(Answer::Lost),
        of(Answer::NoLoss),
        of(Answer::Unknown)
    );
    let worst = all.iter().take(TOLD).map(|one| format!("{}; {}.", one.words(), one.counted.words()));
    Ok(Some(Block {
        heading: "Flows alongside other traffic",
        sentence: std::iter::once(sum).chain(worst).collect::<Vec<_>>().join(" "),
        table: Some(table(&all[..all.len().min(LISTED)])),
        method: "The loss is that of each repeat compared with the same flow alone shortly before, and the interval Student's of their \
                 mean, 95 % for all such cases of the test together. An incast shares no port with the flow. Other traffic started before \
                 the flow's window and ended after it, or the case has no value."
            .to_owned(),
        ..Block::default()
    }))
}

fn table(all: &[&Beside]) -> Table {
    let rose = |one: &Beside, kind| match one.counted.kinds.get(&kind) {
        Some(of) if of.counting > 0 => of.rose.len().to_string(),
        _ => "not counted".to_owned(),
    };
    let row = |one: &Beside| {
        vec![
            one.flow.clone(),
            one.other.words(),
            size(one.size_bytes),
            one.qps.to_string(),
            told(one.alone_gbps),
            told(one.beside_gbps),
            told(one.neighbours_gbps),
            told(one.loss_percent),
            interval(one.interval_percent),
            rose(one, Congestion::Pause),
            rose(one, Congestion::Cnp),
        ]
    };
    let heads = "flow | alongside | #size | #queue pairs | #alone [Gb/s] | #with it [Gb/s] | #it moved [Gb/s] | \
                 #loss [%] | interval, % | #ports with pauses | #ports with CNPs";
    Table::new(heads, all.iter().map(|one| row(one)))
}

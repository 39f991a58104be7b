//! Flows beside an incast: what they lost, and what the ports counted of congestion meanwhile.

use super::{
    Block, Data,
    table::{Table, interval, number_column, text_column, told},
};
use crate::{
    analysis::{
        together::{Answer, VictimOfIncast, victims_of},
        words::{count, size},
    },
    report::chart::ChartError,
};

/// Flows told in sentences.
const TOLD: usize = 4;

/// Flows listed.
const LISTED: usize = 32;

/// The flows beside incasts of a test; `None` where it has none.
pub(super) fn block(data: &Data<'_>) -> Result<Option<Block>, ChartError> {
    if !data.test.has_victim() {
        return Ok(None);
    }
    let mut all = victims_of(&data.results);
    if all.is_empty() {
        return Ok(None);
    }
    all.sort_by(|a, b| Answer::order((a.answer, a.loss_percent), (b.answer, b.loss_percent)));
    let of = |answer| all.iter().filter(|victim| victim.answer == answer).count();
    let flows = count(all.len(), "flow");
    let sum = format!(
        "Of {flows} beside an incast {} lost something, of {} a loss does not stand out of the noise, and of {} it is not known.",
        of(Answer::Lost),
        of(Answer::NoLoss),
        of(Answer::Unknown)
    );
    let told = all.iter().take(TOLD).map(|victim| format!("{}; {}.", victim.words(), victim.counted.words()));
    let sentence = std::iter::once(sum).chain(told).collect::<Vec<_>>().join(" ");
    Ok(Some(Block {
        heading: "A flow beside an incast",
        sentence,
        table: Some(table(&all[..all.len().min(LISTED)])),
        method: "The loss is that of each repeat against the same flow alone shortly before, and the interval Student's of \
                 their mean, 95 % for all flows of the test together. Pauses travel back from a full port to ports that have no part \
                 in it; congestion notifications tell senders to slow down, and are not there where that is switched off."
            .to_owned(),
        ..Block::default()
    }))
}

fn table(all: &[VictimOfIncast]) -> Table {
    let rose = |kind: &crate::analysis::together::OfKind| match (kind.counting, kind.rose.len()) {
        (0, _) => "not counted".to_owned(),
        (_, ports) => count(ports, "port"),
    };
    let row = |victim: &VictimOfIncast| {
        vec![
            victim.flow.clone(),
            victim.incast.clone(),
            victim.incast_flows.to_string(),
            size(victim.size_bytes),
            victim.qps.to_string(),
            told(victim.alone_gbps),
            told(victim.beside_gbps),
            told(victim.loss_percent),
            interval(victim.interval_percent),
            rose(&victim.counted.pauses),
            rose(&victim.counted.cnp),
        ]
    };
    let columns = vec![
        text_column("flow"),
        text_column("incast into"),
        number_column("flows", ""),
        number_column("size", ""),
        number_column("queue pairs", ""),
        number_column("alone", "Gb/s"),
        number_column("beside", "Gb/s"),
        number_column("loss", "%"),
        text_column("interval, %"),
        text_column("pauses rose on"),
        text_column("CNP rose on"),
    ];
    Table { rows: all.iter().map(row).collect(), columns }
}

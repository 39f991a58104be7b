//! What a port counted in a time, by family.

use std::collections::BTreeMap;

use railgauge_wire::{unit::Nanoseconds, watch::CounterRow};

use super::{Piece, watch::PortRows};
use crate::analysis::soak::{
    families::{Family, family, last_part},
    span::Span,
};

/// A family of counters of a port over a time in which it rose.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// What was counted.
    pub family: Family,
    /// Whether drivers' statistics tell it, which are read at another pace.
    pub statistics: bool,
    /// How much each counter rose, by the last part of its name: of a reading that reaches beyond the time, as much as its part in it.
    pub counters: BTreeMap<String, f64>,
    /// Rises per second, reading by reading, where several counters rose those of the one that rose most: drivers count the same frames
    /// by port and by priority.
    pub pieces: Vec<Piece>,
    /// Most rises in a second of any reading.
    pub most: f64,
    /// End of that reading.
    pub most_at: Nanoseconds,
}

impl Counted {
    /// What the counter that rose most rose by.
    pub fn sum(&self) -> f64 {
        self.counters.values().copied().fold(0.0, f64::max)
    }
}

/// Whether a family is shown: errors that were corrected always rise on PAM4 links.
fn is_shown(family: Family) -> bool {
    !family.is_normal()
}

/// Families that rose in a time, the gravest first.
pub(super) fn counted(port: &PortRows<'_>, time: &Span) -> Vec<Counted> {
    let mut found: BTreeMap<(Family, bool), Counted> = BTreeMap::new();
    for row in port.within(time) {
        for (name, rise) in row.counted.iter().filter(|(_, rise)| **rise > 0) {
            let Some(of) = family(name).filter(|of| is_shown(*of)) else { continue };
            let statistics = row.is_of_statistics();
            let line = found.entry((of, statistics)).or_insert_with(|| Counted {
                family: of,
                statistics,
                counters: BTreeMap::new(),
                pieces: Vec::new(),
                most: 0.0,
                most_at: Nanoseconds::ZERO,
            });
            line.add(row, time, name, *rise);
        }
    }
    // What stood still in a reading between two rises is zero there, and not unknown.
    for line in found.values_mut() {
        line.fill(port, time);
    }
    found.into_values().collect()
}

impl Counted {
    fn add(&mut self, row: &CounterRow, time: &Span, name: &str, rise: u64) {
        let span = Span::new(row.from, row.until);
        let length = span.length().as_f64().max(1.0);
        let (mean, share) = (rise as f64 * 1e9 / length, span.common(time).length().as_f64() / length);
        // A peak is that of a second at least; a reading that was joined from shorter ones has it.
        let most = row.peaks.get(name).copied().filter(|peak| peak.is_finite()).map_or(mean, |peak| peak.max(mean));
        *self.counters.entry(last_part(name).to_owned()).or_default() += rise as f64 * share;
        if most > self.most {
            (self.most, self.most_at) = (most, row.until);
        }
        match self.pieces.last_mut().filter(|piece| piece.span == span) {
            Some(piece) => (piece.mean, piece.most) = (piece.mean.max(mean), piece.most.max(most)),
            None => self.pieces.push(Piece { span, mean, most }),
        }
    }

    /// Adds zeros for the readings in which nothing of it rose.
    fn fill(&mut self, port: &PortRows<'_>, time: &Span) {
        let rows = port.within(time).filter(|row| row.is_of_statistics() == self.statistics);
        let known: BTreeMap<Span, Piece> = self.pieces.iter().map(|piece| (piece.span, *piece)).collect();
        let piece = |row: &CounterRow| {
            let span = Span::new(row.from, row.until);
            known.get(&span).copied().unwrap_or(Piece { span, mean: 0.0, most: 0.0 })
        };
        self.pieces = rows.map(piece).collect();
    }
}

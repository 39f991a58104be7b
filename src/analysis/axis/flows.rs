//! What flows carried, placed on the controller's clock.

use railgauge_model::{journal::event::Sample, schedule::Flow};
use railgauge_wire::{
    measure::{Measurement, SLICE},
    unit::{Nanoseconds, NanosecondsI64},
};

use super::{Piece, watch::Placed};
use crate::analysis::{results::CaseResult, soak::span::Span};

/// What a flow carried, and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Carried {
    /// Its name: `gpu01:0 → gpu02:0`.
    pub name: String,
    /// Whether it ran beside an incast that shares no port with it.
    pub victim: bool,
    /// Its window.
    pub span: Span,
    /// Gb/s in each 100 ms of the window; empty where its agent tells no rates over time, as of latencies.
    pub pieces: Vec<Piece>,
    /// Gb/s over the window; `None` where nothing was carried.
    pub mean: Option<f64>,
}

/// The flow of a sample, and the one against it where both directions ran at once.
pub(super) fn carried(result: &CaseResult<'_>, sample: &Sample, place: &Placed) -> Vec<Carried> {
    let flow = &result.case.flow;
    let victim = result.part.as_ref().is_some_and(|part| part.alone.is_some()) && result.test.has_victim();
    let back = sample.responder.as_deref().filter(|end| result.test.bidirectional && !end.elapsed.is_zero());
    let back = back.zip(place.there).map(|(end, clock)| one(against(flow), victim, end, clock));
    std::iter::once(one(flow.name(), victim, &sample.initiator, place.here)).chain(back).collect()
}

fn against(flow: &Flow) -> String {
    Flow { from: flow.to.clone(), to: flow.from.clone(), ..flow.clone() }.name()
}

fn one(name: String, victim: bool, end: &Measurement, clock: NanosecondsI64) -> Carried {
    let from = end.started.saturating_add_signed(clock);
    let at = |slice: usize| from.saturating_add(SLICE.saturating_mul(slice as u64));
    let until = from.saturating_add(end.elapsed);
    let rate = |bytes: f64, time: Nanoseconds| bytes * 8.0 / time.as_f64().max(1.0);
    let piece = |(slice, bytes): (usize, &railgauge_wire::unit::Bytes)| {
        let span = Span::new(at(slice).min(until), at(slice + 1).min(until));
        let value = rate(bytes.as_f64(), span.length());
        Piece { span, mean: value, most: value }
    };
    let pieces: Vec<Piece> =
        end.slices.iter().enumerate().map(piece).filter(|piece| !piece.span.length().is_zero()).collect();
    let mean = (!end.bytes.is_zero() && !end.elapsed.is_zero()).then(|| rate(end.bytes.as_f64(), end.elapsed));
    Carried { name, victim, span: Span::new(from, until), pieces, mean }
}

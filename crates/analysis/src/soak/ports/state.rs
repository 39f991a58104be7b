//! Outages and low rates of a port, from looks at its state.

use std::fmt;

use railgauge_wire::{GigabitsPerSecond, Nanoseconds, PortSeen, PortState};
use serde::Serialize;

use crate::{
    soak::span::Span,
    words::{count, number},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Edge {
    /// In nanoseconds since 1970: the middle between the last look before the change and the first after it.
    pub at: Nanoseconds,
    /// In nanoseconds: half the time between these looks, and the error of the clock.
    pub error: Nanoseconds,
    /// Whether a change was seen. Otherwise the port was in this state at the first or last look.
    pub seen: bool,
    /// The clock's part of the error, and its span: within one span all times have the same offset.
    #[serde(skip)]
    clock: (usize, Nanoseconds),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Down {
    pub begin: Edge,
    pub end: Edge,
    pub words: String,
}

impl Down {
    pub fn span(&self) -> Span {
        Span::new(self.begin.at, self.end.at)
    }

    pub fn length(&self) -> Nanoseconds {
        self.span().length()
    }

    pub fn length_error(&self) -> Nanoseconds {
        let error = self.begin.error.saturating_add(self.end.error);
        if self.begin.clock.0 != self.end.clock.0 {
            return error;
        }
        // Both ends have the same offset.
        error.saturating_sub(self.begin.clock.1).saturating_sub(self.end.clock.1)
    }

    pub fn is_whole(&self) -> bool {
        self.begin.seen && self.end.seen
    }
}

/// A time in which a port was up with a lower rate, or fewer lanes, than its best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lower {
    #[serde(flatten)]
    pub span: Span,
    pub rate_gbps: Option<GigabitsPerSecond>,
    pub lanes: Option<u8>,
    pub best_gbps: Option<GigabitsPerSecond>,
    pub best_lanes: Option<u8>,
    /// Whether it may be longer, because its start or end was not seen.
    pub open: bool,
}

impl Lower {
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let rate = |of: &Self| of.rate_gbps.map_or(f64::INFINITY, |rate| rate.0);
        let lanes = |of: &Self| of.lanes.unwrap_or(u8::MAX);
        rate(self).total_cmp(&rate(other)).then(lanes(self).cmp(&lanes(other))).is_lt()
    }
}

impl fmt::Display for Lower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speed = |rate: Option<GigabitsPerSecond>, lanes: Option<u8>| {
            let rate = rate.map(|rate| format!("{} Gb/s", number(rate.0)));
            let lanes = lanes.map(|lanes| count(usize::from(lanes), "lane"));
            rate.into_iter().chain(lanes).collect::<Vec<_>>().join(", ")
        };
        write!(f, "{} in place of {}", speed(self.rate_gbps, self.lanes), speed(self.best_gbps, self.best_lanes))
    }
}

pub(super) struct Look {
    pub number: usize,
    pub error: Nanoseconds,
    pub span: Span,
    pub hole: bool,
    pub last: Option<(Nanoseconds, Nanoseconds)>,
}

impl Look {
    fn unseen(&self, at: Nanoseconds, clock: Nanoseconds) -> Edge {
        Edge { at, error: clock, seen: false, clock: (self.number, clock) }
    }

    fn change(&self, after: Nanoseconds, at: Nanoseconds) -> Edge {
        let half = at.saturating_sub(after) / 2;
        Edge {
            at: at.saturating_sub(half),
            error: half.saturating_add(self.error),
            seen: true,
            clock: (self.number, self.error),
        }
    }
}

type Speed = (Option<GigabitsPerSecond>, Option<u8>);

struct AtSpeed {
    span: Span,
    speed: Speed,
    is_whole: bool,
}

#[derive(Default)]
pub(super) struct Watch {
    /// `None` if unknown.
    up: Option<bool>,
    down: Option<(Edge, String)>,
    outages: Vec<Down>,
    speed: Option<(Nanoseconds, Speed, bool)>,
    speeds: Vec<AtSpeed>,
}

impl Watch {
    pub(super) fn take(&mut self, look: &Look, port: &PortSeen) {
        let is_first = |state: &PortState| state.after == state.at;
        if let Some((until, error)) = look.last.filter(|_| look.hole) {
            let was_down = self.down.as_ref().map(|(_, words)| words.clone());
            self.close(look.unseen(until, error));
            let had = self.speed.as_ref().map(|(_, speed, _)| *speed);
            self.slow_down(until, None, false);
            // A watch that continued while its answers were lost does not repeat the state.
            if port.states.first().is_some_and(is_first) {
                self.up = None;
            } else {
                self.down = was_down.map(|words| (look.unseen(look.span.from, look.error), words));
                self.slow_down(look.span.from, had, false);
            }
        }
        for state in &port.states {
            self.state(look, state, is_first(state));
        }
    }

    fn state(&mut self, look: &Look, state: &PortState, is_first: bool) {
        let edge = match look.last {
            // Another watch started right after the previous one: the change was in between.
            Some((until, _)) if is_first && self.up.is_some() => look.change(until.min(state.at), state.at),
            _ if is_first => look.unseen(state.at, look.error),
            _ => look.change(state.after.min(state.at), state.at),
        };
        let seen = edge.seen;
        match (self.up, state.up) {
            (Some(true) | None, false) if self.down.is_none() => self.down = Some((edge, state.words.clone())),
            (_, true) => self.close(edge),
            _ => {}
        }
        self.up = Some(state.up);
        let speed = (state.rate_gbps, state.lanes);
        self.slow_down(state.at, (state.up && speed != (None, None)).then_some(speed), seen);
    }

    fn close(&mut self, end: Edge) {
        if let Some((begin, words)) = self.down.take() {
            self.outages.push(Down { begin, end, words });
        }
    }

    fn slow_down(&mut self, at: Nanoseconds, speed: Option<Speed>, seen: bool) {
        if let Some((since, had, begin_seen)) = self.speed.take() {
            if speed == Some(had) {
                self.speed = Some((since, had, begin_seen));
                return;
            }
            self.speeds.push(AtSpeed { span: Span::new(since, at), speed: had, is_whole: begin_seen && seen });
        }
        self.speed = speed.map(|speed| (at, speed, seen));
    }

    /// Whether any look had the rate or the lanes.
    pub(super) fn has_speed(&self) -> bool {
        self.speed.is_some() || !self.speeds.is_empty()
    }

    /// Outages, times of lower speed, and the best rate with its lanes; nothing was watched after `last`.
    pub(super) fn finish(
        mut self,
        (until, error): (Nanoseconds, Nanoseconds),
    ) -> (Vec<Down>, Vec<Lower>, Option<(f64, u8)>) {
        self.close(Edge { at: until, error, seen: false, clock: (usize::MAX, error) });
        self.slow_down(until, None, false);
        let rates = self.speeds.iter().filter_map(|one| one.speed.0.map(|rate| rate.0));
        let best = rates.fold(None, |best: Option<f64>, rate| Some(best.map_or(rate, |best| best.max(rate))));
        let best_lanes = self.speeds.iter().filter_map(|one| one.speed.1).max();
        let is_lower = |(rate, lanes): &Speed| {
            rate.zip(best).is_some_and(|(rate, best)| rate.0 < best) || lanes.is_some_and(|of| Some(of) < best_lanes)
        };
        let lower = self.speeds.iter().filter(|one| is_lower(&one.speed)).map(|one| Lower {
            span: one.span,
            rate_gbps: one.speed.0,
            lanes: one.speed.1,
            best_gbps: best.map(GigabitsPerSecond),
            best_lanes,
            open: !one.is_whole,
        });
        let lower = lower.collect();
        (self.outages, lower, best.zip(best_lanes))
    }
}

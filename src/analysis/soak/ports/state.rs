//! When a port was down, or ran at less than its usual rate, from looks at its state.

use std::fmt;

use railgauge_wire::{
    unit::{GigabitsPerSecond, Nanoseconds},
    watch::{PortSeen, PortState},
};
use serde::Serialize;

use crate::analysis::{
    soak::span::Span,
    words::{count, number},
};

/// The begin or end of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Edge {
    /// When, in nanoseconds since 1970: in the middle between the two looks of which one saw the state before and the other the state
    /// after it.
    pub at: Nanoseconds,
    /// How far off that may be, in nanoseconds: half the time between these looks, and the error of the clock.
    pub error: Nanoseconds,
    /// Whether a change was seen. If not, the port was in this state when it was looked at first, or last.
    pub seen: bool,
    /// The part of the error that is the clock's, and the span that it is of: within one span all times are off by the same.
    #[serde(skip)]
    clock: (usize, Nanoseconds),
}

/// A time in which a port was down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Down {
    /// When it went down.
    pub begin: Edge,
    /// When it came back.
    pub end: Edge,
    /// What the kernel's files said.
    pub words: String,
}

impl Down {
    /// From begin to end.
    pub fn span(&self) -> Span {
        Span::new(self.begin.at, self.end.at)
    }

    /// How long it was; at least so long where an end of it was not seen.
    pub fn length(&self) -> Nanoseconds {
        self.span().length()
    }

    /// How far off the length may be.
    pub fn length_error(&self) -> Nanoseconds {
        let error = self.begin.error.saturating_add(self.end.error);
        if self.begin.clock.0 != self.end.clock.0 {
            return error;
        }
        // Both ends are off by the same.
        error.saturating_sub(self.begin.clock.1).saturating_sub(self.end.clock.1)
    }

    /// Whether both its ends were seen.
    pub fn is_whole(&self) -> bool {
        self.begin.seen && self.end.seen
    }
}

/// A time in which a port that was up had a lower rate, or fewer lanes, than it had at best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lower {
    /// When.
    #[serde(flatten)]
    pub span: Span,
    /// Its rate then.
    pub rate_gbps: Option<GigabitsPerSecond>,
    /// Its lanes then.
    pub lanes: Option<u8>,
    /// Its rate at best.
    pub best_gbps: Option<GigabitsPerSecond>,
    /// Its lanes at best.
    pub best_lanes: Option<u8>,
}

impl Lower {
    /// Whether its rate is lower than that of `other`, or, at the same rate, its lanes are fewer.
    pub fn is_worse_than(&self, other: &Self) -> bool {
        let rate = |of: &Self| of.rate_gbps.map_or(f64::INFINITY, |rate| rate.0);
        let lanes = |of: &Self| of.lanes.unwrap_or(u8::MAX);
        rate(self).total_cmp(&rate(other)).then(lanes(self).cmp(&lanes(other))).is_lt()
    }
}

/// `100 Gb/s, 2 lanes in place of 200 Gb/s, 4 lanes`.
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

/// A span in which a port was looked at.
pub(super) struct Look {
    /// Number of the span.
    pub number: usize,
    /// How far off its times may be.
    pub error: Nanoseconds,
    pub span: Span,
    /// Whether nobody looked between the span before it and this one.
    pub hole: bool,
    /// End of the span before it, and how far off that may be.
    pub last: Option<(Nanoseconds, Nanoseconds)>,
}

impl Look {
    /// An end of an outage that nobody saw.
    fn unseen(&self, at: Nanoseconds, clock: Nanoseconds) -> Edge {
        Edge { at, error: clock, seen: false, clock: (self.number, clock) }
    }

    /// A change between two looks.
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

/// A port's rate and lanes.
type Speed = (Option<GigabitsPerSecond>, Option<u8>);

/// What is known of a port's state so far.
#[derive(Default)]
pub(super) struct Watch {
    /// Whether it is up; `None` while that is not known.
    up: Option<bool>,
    /// Since when it is down, and what the kernel said.
    down: Option<(Edge, String)>,
    outages: Vec<Down>,
    /// Since when it has which speed.
    speed: Option<(Nanoseconds, Speed)>,
    speeds: Vec<(Span, Speed)>,
}

impl Watch {
    pub(super) fn take(&mut self, look: &Look, port: &PortSeen) {
        let is_first = |state: &PortState| state.after == state.at;
        if let Some((until, error)) = look.last.filter(|_| look.hole) {
            let was_down = self.down.as_ref().map(|(_, words)| words.clone());
            self.close(look.unseen(until, error));
            self.slow_down(until, None);
            // A watch that went on while its answers were lost does not say the state again.
            match was_down {
                _ if port.states.first().is_some_and(is_first) => self.up = None,
                Some(words) => self.down = Some((look.unseen(look.span.from, look.error), words)),
                None => {}
            }
        }
        for state in &port.states {
            self.state(look, state, is_first(state));
        }
    }

    fn state(&mut self, look: &Look, state: &PortState, is_first: bool) {
        let edge = match look.last {
            // Another watch began right behind the one before it: the change was in between.
            Some((until, _)) if is_first && self.up.is_some() => look.change(until.min(state.at), state.at),
            _ if is_first => look.unseen(state.at, look.error),
            _ => look.change(state.after.min(state.at), state.at),
        };
        match (self.up, state.up) {
            (Some(true) | None, false) if self.down.is_none() => self.down = Some((edge, state.words.clone())),
            (_, true) => self.close(edge),
            _ => {}
        }
        self.up = Some(state.up);
        let speed = (state.rate_gbps, state.lanes);
        self.slow_down(state.at, (state.up && speed != (None, None)).then_some(speed));
    }

    /// Ends the outage that there is.
    fn close(&mut self, end: Edge) {
        if let Some((begin, words)) = self.down.take() {
            self.outages.push(Down { begin, end, words });
        }
    }

    /// Notes which speed the port has from now on.
    fn slow_down(&mut self, at: Nanoseconds, speed: Option<Speed>) {
        if let Some((since, had)) = self.speed.take() {
            match speed {
                Some(now) if now == had => {
                    self.speed = Some((since, had));
                    return;
                }
                _ => self.speeds.push((Span::new(since, at), had)),
            }
        }
        self.speed = speed.map(|speed| (at, speed));
    }

    /// Whether any look told the rate or the lanes.
    pub(super) fn has_speed(&self) -> bool {
        self.speed.is_some() || !self.speeds.is_empty()
    }

    /// Outages, and times of lower speed, where nobody looked any more after `last`.
    pub(super) fn finish(mut self, (until, error): (Nanoseconds, Nanoseconds)) -> (Vec<Down>, Vec<Lower>) {
        self.close(Edge { at: until, error, seen: false, clock: (usize::MAX, error) });
        self.slow_down(until, None);
        let rates = self.speeds.iter().filter_map(|(_, (rate, _))| rate.map(|rate| rate.0));
        let best = rates.fold(None, |best: Option<f64>, rate| Some(best.map_or(rate, |best| best.max(rate))));
        let best_lanes = self.speeds.iter().filter_map(|(_, (_, lanes))| *lanes).max();
        let is_lower = |(rate, lanes): &Speed| {
            rate.zip(best).is_some_and(|(rate, best)| rate.0 < best) || lanes.is_some_and(|of| Some(of) < best_lanes)
        };
        let lower = self.speeds.iter().filter(|(_, speed)| is_lower(speed)).map(|(span, (rate, lanes))| Lower {
            span: *span,
            rate_gbps: *rate,
            lanes: *lanes,
            best_gbps: best.map(GigabitsPerSecond),
            best_lanes,
        });
        let lower = lower.collect();
        (self.outages, lower)
    }
}

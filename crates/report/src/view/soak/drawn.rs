//! Charts of a soak: events over time, and rates of flows.

use std::collections::BTreeMap;

use railgauge_analysis::{
    soak::{
        Soaking,
        rates::PartRate,
        span::Span,
        stalls::{PortsWatched, Unexplained},
    },
    words::{lasting, moment, number},
};
use railgauge_wire::Nanoseconds;

use crate::{
    chart::{
        ChartError, Tip,
        layers::{Layer, Room, layers},
        theme::{MAIN, WORST},
        ticks::{Axis, from_zero},
        timeline::{Band, Line, timeline as draw},
    },
    view::section::Figure,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfStall {
    LostHost,
    PortsUp,
    NotWatched,
}

impl OfStall {
    pub(super) const fn of(stall: &Unexplained) -> Self {
        match (&stall.lost, stall.ports_watched) {
            (Some(_), _) => Self::LostHost,
            (None, PortsWatched::None) => Self::NotWatched,
            (None, _) => Self::PortsUp,
        }
    }

    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::LostHost => "stall behind a lost host",
            Self::PortsUp => "stall with no watched port down",
            Self::NotWatched => "stall of flows whose ports were not watched",
        }
    }

    pub(super) const fn line(self) -> &'static str {
        match self {
            Self::LostHost => "stalls behind lost hosts",
            Self::PortsUp => "stalls with no watched port down",
            Self::NotWatched => "stalls, ports not watched",
        }
    }
}

/// Places in the timeline, worst first.
const LINES: usize = 24;

const LEGEND: &[(&str, &str)] = &[
    ("t-down", "down"),
    ("t-break", "breaks that only a counter saw"),
    ("t-stall", "stall without an outage"),
    ("t-lower", "lower rate"),
    ("t-hole", "no traffic, or not watched"),
];

/// A line for each place with an event, and the number of places left out. `None` without events.
pub(super) fn timeline(found: &Soaking) -> (Option<Figure>, usize) {
    let Some(span) = found.span.filter(|span| !span.length().is_zero()) else { return (None, 0) };
    let share = |at: Nanoseconds| at.saturating_sub(span.from).as_f64() / span.length().as_f64();
    let band = |of: &Span, class: &'static str, what: &str| Band {
        from: share(of.from),
        until: share(of.until),
        class,
        tip: format!("{what} {} from {}", lasting(of.length()), moment(of.from)),
    };
    let mut places: BTreeMap<&str, (Nanoseconds, Vec<Band>)> = BTreeMap::new();
    let mut add = |place, weight: Nanoseconds, band| {
        let (sum, bands) = places.entry(place).or_default();
        *sum = sum.saturating_add(weight);
        bands.push(band);
    };
    for outage in &found.outages {
        add(&*outage.name, outage.length, band(&outage.span(), "t-down", "down for"));
    }
    for one in &found.breaks {
        add(&one.name, one.hidden.shorter_than, band(&one.hidden.span, "t-break", "breaks by the counter within"));
    }
    for stall in &found.stalls {
        add(OfStall::of(stall).line(), stall.longest().0, band(&stall.span, "t-stall", "stall of"));
    }
    for lower in &found.lower {
        add(&lower.name, Nanoseconds::ZERO, band(&lower.lower.span, "t-lower", "lower rate for"));
    }
    let mut places: Vec<(&str, (Nanoseconds, Vec<Band>))> = places.into_iter().collect();
    places.sort_by(|(a, (one, _)), (b, (other, _))| other.cmp(one).then(a.cmp(b)));
    let more = places.len().saturating_sub(LINES);
    places.truncate(LINES);
    let lines = places.into_iter().map(|(name, (_, mut bands))| {
        bands.sort_by(|a, b| a.from.total_cmp(&b.from));
        Line { name: name.to_owned(), bands }
    });
    let lines: Vec<Line> = lines.collect();
    if lines.is_empty() {
        return (None, 0);
    }
    let holes = found.holes.iter().map(|hole| hole.span).chain(found.pauses.iter().copied());
    let mut behind: Vec<Band> = holes.map(|hole| band(&hole, "t-hole", "no traffic, or not watched, for")).collect();
    behind.sort_by(|a, b| a.from.total_cmp(&b.from));
    let is_drawn = |class: &&(&str, &str)| {
        lines.iter().flat_map(|line| &line.bands).chain(&behind).any(|band| band.class == class.0)
    };
    let legend = LEGEND.iter().filter(is_drawn).map(|(class, words)| (format!("k-{class}"), (*words).to_owned()));
    let figure = Figure {
        title: format!("What happened when, from {}", moment(span.from)),
        svg: draw("events over the soak", &lines, &behind, &marks(span.length())),
        legend: legend.collect(),
    };
    (Some(figure), more)
}

const STEPS: &[u64] =
    &[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800];

fn marks(length: Nanoseconds) -> Vec<(f64, String)> {
    let seconds = length.seconds();
    let step = STEPS.iter().copied().find(|step| seconds / (*step as f64) < 9.0);
    let step = step.unwrap_or_else(|| (seconds / 8.0) as u64 + 1);
    let text = |at: u64| match at {
        0 => "0".to_owned(),
        at if step >= 3600 => format!("{} h", at / 3600),
        at if step >= 60 => format!("{} min", at / 60),
        at => format!("{at} s"),
    };
    let marks = (0..).map(|n| n * step).take_while(|at| (*at as f64) <= seconds);
    marks.map(|at| (at as f64 / seconds, text(at))).collect()
}

/// Slowest and median rate over time; `None` where nothing was measured twice.
pub(super) fn rates(found: &Soaking) -> Result<Option<Figure>, ChartError> {
    let Some(span) = found.span.filter(|_| found.rates.len() > 1) else { return Ok(None) };
    let (unit, name) = match span.length().seconds() {
        s if s >= 7200.0 => (3600.0, "h"),
        s if s >= 300.0 => (60.0, "min"),
        _ => (1.0, "s"),
    };
    let time = |at: Nanoseconds| at.saturating_sub(span.from).seconds() / unit;
    let end = time(span.until);
    let x = Axis { range: (0.0, end), ..from_zero(format!("time since the start, {name}"), end / 1.06) };
    let highest = found.rates.iter().map(|part| part.median_gbps.0.max(part.slowest_gbps.0)).fold(0.0, f64::max);
    let y = from_zero("bandwidth, Gb/s".to_owned(), highest);
    let line = |of: fn(&PartRate) -> f64| {
        found.rates.iter().flat_map(|part| [part.span.from, part.span.until].map(|at| (time(at), of(part)))).collect()
    };
    let tip = |part: &PartRate| {
        let (middle, slowest) = (part.median_gbps.0, part.slowest_gbps.0);
        let text = format!(
            "from {:.1} {name}: median {} Gb/s, slowest {}",
            time(part.span.from),
            number(middle),
            number(slowest)
        );
        (time(part.span.from), middle, text)
    };
    let tips: Vec<Tip> = found.rates.iter().map(tip).collect();
    let drawn =
        vec![Layer::Line(MAIN, line(|part| part.median_gbps.0)), Layer::Line(WORST, line(|part| part.slowest_gbps.0))];
    Ok(Some(Figure {
        title: "Rates over time".to_owned(),
        svg: layers(Room::USUAL, "rates over the soak", [&x, &y], &tips, &drawn)?,
        legend: vec![
            ("k-main".to_owned(), "median of the flows".to_owned()),
            ("k-worst".to_owned(), "slowest window of any flow".to_owned()),
        ],
    }))
}

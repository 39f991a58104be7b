//! The result of a soak: outages of ports, stalls of flows, counted errors, and the time watched.
//!
//! Everything is read once and sorted: memory and time grow with the size n of the journal as n log n.

pub mod coverage;
pub mod families;
pub mod hit;
pub mod levels;
pub mod on_gpus;
pub mod outages;
pub mod ports;
pub mod rates;
mod silence;
pub mod span;
pub mod stalls;
pub mod tables;
mod traffic;

use railgauge_wire::{Nanoseconds, NanosecondsF64};
use serde::Serialize;

use super::{journal::Journal, switches::ways::Ways};
use coverage::{Hole, PortCoverage};
pub use hit::LISTED;
use hit::listed;
use levels::OfLevel;
use on_gpus::{GpuFailure, GpuInSoak};
use outages::{Break, Index, Outage};
use ports::{HOLE, Lower, PortName};
use rates::{FlowRate, PartRate};
use span::Span;
use stalls::Unexplained;
use tables::{FamilySum, Gauge, Limit, PortCounter, PortGauge};
use traffic::Traffic;

/// In JSON the lists have at most [`LISTED`] entries; `counts` has their numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Soaking {
    pub test: String,
    /// Planned duration, in nanoseconds.
    pub demanded: Nanoseconds,
    /// Duration without interruptions, in nanoseconds.
    pub lasted: Nanoseconds,
    /// From the first part to the last.
    pub span: Option<Span>,
    /// Longest acceptable outage of a port or stall of a flow, in nanoseconds.
    pub longest_outage: Nanoseconds,
    /// Longest acceptable time of a port below its best rate, in nanoseconds; `None` if not judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_degraded: Option<Nanoseconds>,
    pub counts: Counts,
    /// Times between its parts without traffic, in order.
    #[serde(serialize_with = "listed")]
    pub pauses: Vec<Span>,
    /// Times in which some ports were not watched, in order.
    #[serde(serialize_with = "listed")]
    pub holes: Vec<Hole>,
    /// Worst watched first.
    #[serde(serialize_with = "listed")]
    pub coverage: Vec<PortCoverage>,
    /// Longest first.
    #[serde(serialize_with = "listed")]
    pub outages: Vec<Outage>,
    /// Breaks seen only in counters, the most first.
    #[serde(serialize_with = "listed")]
    pub breaks: Vec<Break>,
    /// Stalls without an outage of a watched port, longest first.
    #[serde(serialize_with = "listed")]
    pub stalls: Vec<Unexplained>,
    /// Ports below their usual rate or width, longest first.
    #[serde(serialize_with = "listed")]
    pub lower: Vec<PortLower>,
    pub families: Vec<FamilySum>,
    /// By port: over their limit first.
    #[serde(serialize_with = "listed")]
    pub counters: Vec<PortCounter>,
    pub limits: Vec<Limit>,
    /// Ports by the levels of a maker, if the plan wants them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<OfLevel>,
    #[serde(serialize_with = "listed")]
    pub gauges: Vec<Gauge>,
    #[serde(serialize_with = "listed")]
    pub port_gauges: Vec<PortGauge>,
    /// Slowest first.
    #[serde(serialize_with = "listed")]
    pub flows: Vec<FlowRate>,
    /// GPUs whose memory the flows used, those with errors first.
    #[serde(serialize_with = "listed", skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuInSoak>,
    /// Flows whose windows failed because of a bad GPU.
    #[serde(serialize_with = "listed", skip_serializing_if = "Vec::is_empty")]
    pub gpu_failures: Vec<GpuFailure>,
    #[serde(serialize_with = "listed", skip_serializing_if = "Vec::is_empty")]
    pub gpus_untold: Vec<String>,
    #[serde(skip)]
    pub rates: Vec<PartRate>,
    #[serde(skip)]
    pub verify: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    pub parts: usize,
    pub planned_flows: usize,
    pub flows: usize,
    pub watched_ports: usize,
    pub ports: usize,
    /// Ends of flows on an unknown device.
    pub unknown_ends: usize,
    pub pauses: usize,
    pub holes: usize,
    pub outages: usize,
    pub breaks: usize,
    pub stalls: usize,
    pub lower: usize,
    pub without_speed: usize,
    pub counters: usize,
    pub port_gauges: usize,
    #[serde(skip_serializing_if = "railgauge_wire::unit::is_zero")]
    pub gpus: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortLower {
    pub name: String,
    pub port: PortName,
    #[serde(flatten)]
    pub lower: Lower,
}

/// `None` where the plan has no soak.
pub fn soaking(journal: &Journal) -> Option<Soaking> {
    let soak = journal.plan.soak.as_ref()?;
    let times = Traffic::times(journal);
    let has_limit = |counter: &str| soak.limits.keys().any(|limit| tables::is_about(limit, counter));
    // If the controller was killed in a part, what agents had reported by then is known.
    let looked = Traffic::looked(journal, &times);
    let mut ports = ports::over_time(journal, &looked, &has_limit);
    let traffic = Traffic::of(journal, soak, &ports);
    let told = traffic.told();
    let asked = told.map_or_else(|| times.clone(), |told| span::before(&times, told));
    if looked != asked {
        // Coverage refers to known traffic and to agents that have reported.
        let of_traffic = ports::over_time(journal, &asked, &has_limit);
        ports.iter_mut().zip(of_traffic).for_each(|(port, same)| port.watched = same.watched);
    }
    let ways = Ways::of(journal);
    let cables = outages::Cables::of(&ports, ways.as_ref());
    let mut outages = outages::outages(&ports, &cables);
    let mut breaks = outages::breaks(&ports, &cables);
    let index = Index::of(&ports, &outages, &breaks);
    let all_stalls = silence::stalls(&traffic);
    let left = stalls::assign(&traffic, &all_stalls, &index, (&mut outages, &mut breaks));
    let stalls = stalls::unexplained(&traffic, &left, &ports);
    let mut flows = rates::flows(&traffic, &all_stalls, &index);
    outages.sort_by_key(|outage| std::cmp::Reverse(outage.length));
    breaks.sort_by_key(|one| std::cmp::Reverse(one.hidden.breaks));
    let lower = ports.iter().zip(0..).flat_map(|(port, place)| {
        let name = cables.name(place);
        port.lower.iter().map(|lower| PortLower {
            name: name.to_owned(),
            port: port.name.clone(),
            lower: lower.clone(),
        })
    });
    let mut lower: Vec<PortLower> = lower.collect();
    lower.sort_by_key(|one| std::cmp::Reverse(one.lower.span.length()));
    let counters = tables::counters(&ports, &soak.limits);
    let (gauges, port_gauges) = tables::gauges(&ports);
    let lasted = span::total(&traffic.times);
    let mut coverage = coverage::of_ports(&traffic, &ports, span::total(&asked));
    if traffic.parts.is_empty() {
        // A soak that never started has no flows to list.
        flows = Vec::new();
    }
    if asked.is_empty() {
        // Nor ports that could not be watched or whose agents have not reported.
        coverage = Vec::new();
    }
    let holes = coverage::holes(&traffic, &ports, told.unwrap_or(Nanoseconds::MAX));
    let on_gpus = traffic::test(journal, soak).is_some_and(|test| test.memory.has_gpu());
    let gpus = on_gpus::gpus(&traffic, on_gpus && traffic::is_busy(journal, soak));
    let pauses = span::between(&traffic.times, HOLE);
    let counts = Counts {
        parts: traffic.parts.len(),
        planned_flows: traffic.planned.len(),
        flows: flows.iter().filter(|flow| flow.windows > 0).count(),
        watched_ports: ports.len(),
        ports: coverage.len(),
        unknown_ends: traffic.ends.values().flatten().filter(|end| end.port.is_none()).count(),
        pauses: pauses.len(),
        holes: holes.len(),
        outages: outages.len(),
        breaks: breaks.len(),
        stalls: stalls.len(),
        lower: lower.len(),
        without_speed: ports.iter().filter(|port| !port.has_speed).count(),
        counters: counters.len(),
        port_gauges: port_gauges.len(),
        gpus: gpus.len(),
    };
    Some(Soaking {
        test: soak.test.clone(),
        demanded: soak.lasts.into(),
        lasted,
        span: span::hull(&traffic.times),
        longest_outage: soak.longest_outage.into(),
        longest_degraded: soak.longest_degraded.map(|degraded| degraded.longest.into()),
        counts,
        pauses,
        holes,
        coverage,
        outages,
        breaks,
        stalls,
        lower,
        families: tables::families(&counters),
        limits: tables::limits(&ports, &counters, &soak.limits),
        levels: soak.levels.map(|levels| levels::of_ports(journal, levels, &ports)).unwrap_or_default(),
        counters,
        gauges,
        port_gauges,
        flows,
        gpus,
        gpu_failures: on_gpus::failures(&traffic),
        gpus_untold: on_gpus::untold(&traffic, on_gpus),
        rates: rates::parts(&traffic),
        verify: traffic::test(journal, soak).is_some_and(|test| test.verify),
    })
}

impl Soaking {
    /// `None` if it lasted long enough: at most its last window and a hundredth are missing.
    pub fn missing(&self, window: Nanoseconds) -> Option<Nanoseconds> {
        let missing = self.demanded.saturating_sub(self.lasted);
        let allowed = NanosecondsF64(self.demanded.as_f64() * span::SHORT).0.min(window.as_f64());
        (missing.as_f64() > allowed).then_some(missing)
    }
}

//! An outage, breaks or a stall of a soak.

use std::fmt;

use railgauge_wire::unit::Nanoseconds;
use serde::Serialize;

use crate::analysis::{
    soak::{
        span::{lasting, lasting_about, moment},
        stalls::{LostHost, PortsWatched},
    },
    words::count,
};

/// An outage, breaks that only a counter saw, or a stall.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SoakEvent {
    /// What it was.
    pub what: What,
    /// Where to look; of a stall the flow that is judged.
    pub place: String,
    /// When it began; of breaks when they were before.
    pub begin: Nanoseconds,
    /// How long it was; of breaks what each can have been at most.
    pub length: Nanoseconds,
    /// How far off that may be.
    pub length_error: Nanoseconds,
    /// Whether it may have been longer, because its begin or end was not seen.
    pub open: bool,
    /// The host that was lost, where a stall comes of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<LostHost>>,
    /// Whether somebody looked at the ports of the flows that stalled; only of stalls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports_watched: Option<PortsWatched>,
    /// Flows that it hit.
    pub flows: usize,
    /// How often these flows stalled.
    pub stalls: usize,
    /// The sum of that.
    pub stalled: Nanoseconds,
    /// The stall of a flow that is judged: the longest that is certain; not of stalls, which are told by themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_stall: Option<Nanoseconds>,
    /// How far off that may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub longest_stall_error: Option<Nanoseconds>,
}

/// What an event was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// A port was down.
    #[default]
    Down,
    /// So many breaks that only a counter saw.
    Breaks(u64),
    /// Flows stalled, or windows failed, and no outage of a watched port explains it.
    Stall,
}

impl SoakEvent {
    /// `s1:0 → s0:0 stalled for 3.00 ± 0.02 s from 2026-11-22 03:04:05.3 UTC with no watched port of theirs down`; where a host was lost
    /// that is said first.
    fn stall(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, length, length_error, flows, stalls, .. } = self;
        let begin = moment(self.begin);
        if let Some(lost) = &self.lost {
            write!(f, "{}: its agent was lost at {}: ", lost.host, moment(lost.at))?;
        }
        match (length.is_zero(), self.open) {
            (true, _) => write!(f, "{place}: a window failed at {begin}")?,
            (false, false) => write!(f, "{place} stalled for {} from {begin}", lasting_about(*length, *length_error))?,
            (false, true) => {
                // A run that was taken up again had traffic behind that, too.
                let (about, end) = (lasting_about(*length, *length_error), moment(self.begin.saturating_add(*length)));
                write!(f, "{place} stalled from {begin} until the traffic stopped at {end}, at least {about}")?;
            }
        }
        if *stalls > 1 && length.is_zero() {
            write!(f, ", one of {stalls}")?;
        } else if *stalls > 1 {
            let (sum, flows) = (sum(*stalls, self.stalled), count(*flows, "flow"));
            write!(f, ", the longest of {sum}, {flows} hit")?;
        }
        // A dead agent says nothing of ports.
        let ports = match self.ports_watched.filter(|_| self.lost.is_none()) {
            Some(PortsWatched::All) => ", with no watched port of theirs down",
            Some(PortsWatched::Some) => ", with no watched port of theirs down and some of them not watched",
            Some(PortsWatched::None) => "; none of their ports was watched",
            None => "",
        };
        f.write_str(ports)
    }
}

/// How often flows stalled, and for how long in all.
fn sum(stalls: usize, stalled: Nanoseconds) -> String {
    format!("{} of {} in all", count(stalls, "stall"), lasting(stalled))
}

/// `leaf12 port 7, cable to gpu031 mlx5_3 was down for 0.30 ± 0.10 s from 2026-11-22 03:04:05.3 UTC, 2 flows hit`.
impl fmt::Display for SoakEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, place, length, length_error, open, flows, stalls, stalled, .. } = self;
        let begin = moment(self.begin);
        match what {
            What::Down => {
                let length = match open {
                    true => format!("at least {}", lasting(*length)),
                    false => lasting_about(*length, *length_error),
                };
                write!(f, "{place} was down for {length} from {begin}")?;
            }
            What::Breaks(breaks) => {
                let breaks = count(usize::try_from(*breaks).unwrap_or(usize::MAX), "break");
                write!(f, "{place}: {breaks} shorter than the time between two looks, by its counter, after {begin}")?;
            }
            What::Stall => return self.stall(f),
        }
        let stall = self.longest_stall.map(|stall| lasting_about(stall, self.longest_stall_error.unwrap_or_default()));
        match (flows, stall) {
            (0, _) => f.write_str(", no flow hit"),
            (flows, None) => write!(f, ", {} hit", count(*flows, "flow")),
            (flows, Some(stall)) if *stalls > 1 => {
                let sum = sum(*stalls, *stalled);
                write!(f, ", {} hit, {sum}, the longest {stall}", count(*flows, "flow"))
            }
            (flows, Some(stall)) => write!(f, ", {} hit, stalled for {stall}", count(*flows, "flow")),
        }
    }
}

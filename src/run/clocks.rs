use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use railgauge_wire::{Answer, Ask, Failure, Kind, Nanoseconds, NanosecondsI64, Stage};

use super::failures::unexpected;
use crate::cluster::{Agent, Asked};

const CLOCK_LIMIT: Duration = Duration::from_secs(5);
/// Clock readings per host; the one with the shortest round trip counts.
const CLOCK_READINGS: usize = 5;

#[derive(Clone, Copy)]
pub(super) struct Clocks {
    pub offset: NanosecondsI64,
    /// Half the round trip: the uncertainty of the offset.
    pub half: Nanoseconds,
    pub wall: NanosecondsI64,
}

pub(super) struct Reading(Vec<(Nanoseconds, Asked)>);

impl Reading {
    fn one(agent: &Agent) -> Self {
        Self(vec![(controller_clock(), agent.send(Ask::Clock))])
    }

    /// The questions for the readings. At the greeting they are sent together: a round trip to a host may take long.
    pub(super) fn questions() -> Vec<Ask> {
        vec![Ask::Clock; CLOCK_READINGS]
    }

    pub(super) fn asked(all: Vec<(Instant, Asked)>) -> Self {
        Self(all.into_iter().map(|(moment, asked)| (controller_clock_at(moment), asked)).collect())
    }

    pub(super) async fn clocks(self, agent: &Agent) -> Result<Clocks, Failure> {
        let mut best: Option<Clocks> = None;
        for (before, asked) in self.0 {
            let answer = asked.within(CLOCK_LIMIT).await?;
            let after = controller_clock();
            let here = wall_clock();
            let Answer::Clock { monotonic, realtime } = answer else {
                return Err(unexpected(agent.host(), Stage::Facts, &answer));
            };
            // Cristian's algorithm (1989): the reading belongs to the middle of the round trip, plus or minus half of it.
            let half = (after - before) / 2;
            // Clocks count nanoseconds since a start or since 1970: what does not fit into an i64 (292 years) is invalid.
            let (Ok(monotonic), Ok(realtime)) =
                (NanosecondsI64::try_from(monotonic), NanosecondsI64::try_from(realtime))
            else {
                let cause = format!("its clock cannot be: {monotonic} ns, and {realtime} ns since 1970");
                return Err(Failure::new(Stage::Facts, Kind::Internal, cause).at(agent.host()));
            };
            let offset = monotonic.earlier(before + half);
            if best.is_none_or(|best| half < best.half) {
                best = Some(Clocks { offset, half, wall: realtime.earlier(here).later(half) });
            }
        }
        best.ok_or_else(|| Failure::new(Stage::Facts, Kind::Internal, "no clock reading").at(agent.host()))
    }
}

/// Compares the clocks of one host with the controller's, reading by reading, so that a delay affects only one.
pub(super) async fn clocks(agent: &Agent) -> Result<Clocks, Failure> {
    let mut best = Reading::one(agent).clocks(agent).await?;
    for _ in 1..CLOCK_READINGS {
        let next = Reading::one(agent).clocks(agent).await?;
        if next.half < best.half {
            best = next;
        }
    }
    Ok(best)
}

pub(super) async fn apart(from: &Agent, to: &Agent) -> Result<NanosecondsI64, Failure> {
    let (from, to) = tokio::try_join!(clocks(from), clocks(to))?;
    Ok(to.offset - from.offset)
}

pub(super) fn controller_clock() -> Nanoseconds {
    controller_clock_at(Instant::now())
}

fn controller_clock_at(moment: Instant) -> Nanoseconds {
    const BEFORE: Nanoseconds = Nanoseconds::from_secs(3_600);
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    // Starts one hour before the first reading, so that differences to it stay positive.
    let start = *START.get_or_init(Instant::now);
    let earlier = Nanoseconds::from(start.saturating_duration_since(moment));
    BEFORE.saturating_add(moment.saturating_duration_since(start).into()).saturating_sub(earlier)
}

/// The time since 1970 by the controller's monotonic clock, anchored to its wall clock at the first call: unlike that one it never steps.
pub(super) fn since_1970() -> Nanoseconds {
    static APART: OnceLock<NanosecondsI64> = OnceLock::new();
    anchored(&APART, wall_clock(), controller_clock())
}

fn anchored(apart: &OnceLock<NanosecondsI64>, wall: Nanoseconds, monotonic: Nanoseconds) -> Nanoseconds {
    monotonic.saturating_add_signed(*apart.get_or_init(|| wall.saturating_since(monotonic)))
}

pub(super) fn wall_clock() -> Nanoseconds {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set a day back, or a year ahead, while a run measures.
    #[test]
    fn a_wall_clock_that_is_set_moves_no_time_of_a_journal() {
        let (apart, day) = (OnceLock::new(), 86_400);
        let begun = anchored(&apart, Nanoseconds::from_secs(20_000 * day), Nanoseconds::from_secs(100));
        assert_eq!(begun, Nanoseconds::from_secs(20_000 * day));
        for wall in [19_999 * day, 20_365 * day] {
            let then = anchored(&apart, Nanoseconds::from_secs(wall), Nanoseconds::from_secs(107));
            assert_eq!(then, begun + Nanoseconds::from_secs(7));
        }
    }
}

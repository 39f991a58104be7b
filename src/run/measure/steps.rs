//! The steps of a case on one link, each asked of both ends: a verify pass, arming, a timed pass. See `wire/src/step.rs`.

use std::time::{Duration, Instant};

use railgauge_wire::{
    Answer, Ask, Checked, Failure, GpuSeen, Kind, Measurement, Nanoseconds, Pattern, Stage, Stepped, Timing, Window,
    gpu_state::ANSWER_WITHIN,
    remedy,
    step::{Step, responder_takes_part},
};

use super::super::{
    failures::{both_named, unexpected},
    links::Link,
};
use super::traffic;
use crate::cluster::Agent;
use railgauge_model::{
    journal::event::GpuDuring,
    plan::model::{RateLimit, Test},
    schedule::Cell,
};

/// How much longer the controller waits than an agent, which gives up first with its own words.
pub(super) const MARGIN: Duration = Duration::from_secs(2);
/// How long the search for a lost host may delay the report of a failed case.
const ATTRIBUTION: Duration = Duration::from_millis(1500);

/// The failure if wrong bytes arrived before it: they have precedence.
pub(super) fn corrupted(before: Checked, failure: Failure) -> Failure {
    if before.wrong.is_zero() {
        return failure;
    }
    let remedy = failure.remedy.clone();
    let then = Failure { remedy: None, ..failure };
    // The end that noticed the later failure need not have corrupted anything.
    let cause = format!("{} of {} bytes were wrong; then: {then}", before.wrong, before.verified);
    Failure { remedy, ..Failure::new(Stage::Verify, Kind::Corruption, cause) }
}

/// Prepares the responder for a timed pass. `Stop` ends serving; its own time limit only matters when the controller is gone.
pub(super) async fn arm(link: &Link, test: &Test, cell: &Cell) -> Result<(), Failure> {
    step(&link.to, link, serve(cell, Some(test.window)), limit(test) + test.deadline).await.map(drop)
}

/// A timed pass: both ends' results, and how long the controller waited for the initiator's answer.
pub(super) struct Timed {
    pub(super) initiator: Measurement,
    pub(super) responder: Option<Box<Measurement>>,
    pub(super) waited: Nanoseconds,
    pub(super) gpus: Vec<GpuDuring>,
}

/// The timed pass on an armed link: both ends' results. `start_at` is when its window starts, on the initiator's clock and relative to now;
/// `None` means after the warm-up.
pub(super) async fn timed(
    link: &Link,
    test: &Test,
    cell: &Cell,
    start_at: Option<(Nanoseconds, Duration)>,
    limit_of_rate: Option<RateLimit>,
) -> Result<Timed, Failure> {
    let timing = Timing {
        op: cell.op,
        metric: cell.metric,
        size: cell.size,
        window: test.window,
        warm_up: test.warm_up.into(),
        start_at: start_at.map(|(moment, _)| moment),
        bidirectional: test.bidirectional,
        only: cell.only,
        pace: traffic::of_each(limit_of_rate, link.record.rate_gbps, cell.qps)?,
    };
    let wait = start_at.map_or(Duration::ZERO, |(_, wait)| wait);
    let asked = Instant::now();
    let timed = told(&link.from, link, Step::Time(timing), limit(test) + wait).await;
    let waited = asked.elapsed().into();
    let served = stop(&link.to, link, test.deadline).await;
    let ((timed, here), (served, there)) = both(timed, served)?;
    let (initiator, responder) = match (timed, served) {
        (Stepped::Measured(initiator), Stepped::Measured(responder)) => (Some(initiator), Some(responder)),
        (Stepped::Measured(initiator), _) => (Some(initiator), None),
        _ => (None, None),
    };
    let initiator = sane(link, initiator)?;
    let gpus = [GpuDuring::of(link.from.host(), here), GpuDuring::of(link.to.host(), there)].concat();
    Ok(Timed { initiator, responder, waited, gpus })
}

pub(super) fn both<T>(initiator: Result<T, Failure>, responder: Result<T, Failure>) -> Result<(T, T), Failure> {
    match (initiator, responder) {
        (Ok(initiator), Ok(responder)) => Ok((initiator, responder)),
        (Err(initiator), Err(responder)) => Err(more_telling(initiator, responder)),
        (Err(failure), _) | (Ok(_), Err(failure)) => Err(failure),
    }
}

/// The failure that is more informative about the cause; the initiator's if equal.
fn more_telling(initiator: Failure, responder: Failure) -> Failure {
    if tells(&responder) > tells(&initiator) { responder } else { initiator }
}

/// How informative a failure is about its cause. An ill GPU ranks highest, then an end's own reason. A broken fabric is what either end
/// sees of the other's end. An end that does not answer the controller ranks above one that only reports that the other let it wait, or
/// ended it.
fn tells(failure: &Failure) -> u8 {
    match (failure.kind, failure.stage) {
        _ if failure.is_of_gpu() => 4,
        (Kind::Deadline, Stage::Converse) => 1,
        (Kind::Aborted | Kind::Deadline, _) => 0,
        (Kind::Fabric, _) => 2,
        _ => 3,
    }
}

pub(super) fn limit(test: &Test) -> Duration {
    test.deadline + test.warm_up + test.window.at_most()
}

pub(super) async fn verify(
    link: &Link,
    test: &Test,
    cell: &Cell,
    seed: u64,
    iteration: u64,
) -> Result<Checked, Failure> {
    match test.verify {
        true => verified(link, test, cell, Pattern { size: cell.size, seed, iteration }).await,
        false => Ok(Checked::default()),
    }
}

/// One verify pass: the pattern is moved once and compared where it arrived.
async fn verified(link: &Link, test: &Test, cell: &Cell, pattern: Pattern) -> Result<Checked, Failure> {
    let limit = test.deadline;
    let (fill, poison) = (Step::Fill(pattern), Step::Poison(pattern));
    // A read brings the responder's bytes to the initiator, everything else the other way.
    let (sink, at_initiator, at_responder) =
        if cell.op.pulls() { (&link.from, poison, fill) } else { (&link.to, fill, poison) };
    let serving = responder_takes_part(cell.transport, cell.op);
    // Requested together: a link performs its steps in the order of the pipe.
    let served = async {
        match serving {
            true => step(&link.to, link, serve(cell, None), limit).await,
            false => Ok(Stepped::Done),
        }
    };
    let (initiator, responder, served) =
        tokio::join!(step(&link.from, link, at_initiator, limit), step(&link.to, link, at_responder, limit), served);
    both(initiator, responder.and(served))?;
    let moved = step(&link.from, link, Step::Transfer { op: cell.op, pattern }, limit).await;
    if serving {
        both(moved, stop(&link.to, link, limit).await.map(|(stepped, _)| stepped))?;
    } else {
        moved?;
    }
    match step(sink, link, Step::Check(pattern), limit).await? {
        Stepped::Checked(checked) => Ok(checked),
        _ => Err(nothing(link, "the check returned no count")),
    }
}

fn serve(cell: &Cell, window: Option<Window>) -> Step {
    Step::Serve { op: cell.op, metric: cell.metric, size: cell.size, window }
}

async fn step(agent: &Agent, link: &Link, step: Step, limit: Duration) -> Result<Stepped, Failure> {
    told(agent, link, step, limit).await.map(|(stepped, _)| stepped)
}

type Told = (Stepped, Vec<GpuSeen>);

async fn told(agent: &Agent, link: &Link, step: Step, limit: Duration) -> Result<Told, Failure> {
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    // The agent gives up first, with its own words; the controller waits a little longer.
    let answer = agent.ask(Ask::Step { link: link.id, step, limit_ms }, limit + ANSWER_WITHIN + MARGIN).await?;
    stepped(agent, answer)
}

async fn stop(agent: &Agent, link: &Link, limit: Duration) -> Result<Told, Failure> {
    stepped(agent, agent.ask(Ask::Stop { link: link.id }, limit.max(ANSWER_WITHIN + MARGIN)).await?)
}

fn stepped(agent: &Agent, answer: Answer) -> Result<Told, Failure> {
    match answer {
        Answer::Stepped(stepped) => Ok((stepped, Vec::new())),
        Answer::SteppedOnGpu { stepped, gpus } => Ok((stepped, gpus)),
        Answer::Done => Ok((Stepped::Done, Vec::new())),
        other => Err(unexpected(agent.host(), Stage::Measure, &other)),
    }
}

/// A window without operations or without length is not a measurement.
pub(super) fn sane(link: &Link, measured: Option<Box<Measurement>>) -> Result<Measurement, Failure> {
    let measured = *measured.ok_or_else(|| nothing(link, "the timed pass returned no measurement"))?;
    if measured.operations == 0 || measured.elapsed.is_zero() {
        return Err(nothing(link, "no operation completed inside the window").remedy(remedy::MEASURE_LONGER));
    }
    Ok(measured)
}

fn nothing(link: &Link, why: &str) -> Failure {
    Failure::new(Stage::Measure, Kind::Internal, why).at(link.from.host()).with(link.to.host())
}

/// Attributes a failure to a lost host of the link: waits shortly for the loss to show.
pub(super) async fn attribute(failure: Failure, link: &Link) -> Failure {
    if !matches!(failure.kind, Kind::Fabric | Kind::Deadline | Kind::Lost) {
        return failure;
    }
    let lost = tokio::select! {
        biased;
        lost = link.from.gone() => lost,
        lost = link.to.gone() => lost,
        () = tokio::time::sleep(ATTRIBUTION) => return both_named(failure, link.from.host(), link.to.host()),
    };
    if failure.kind == Kind::Lost {
        return lost;
    }
    let seen = Failure { remedy: None, ..failure };
    Failure { cause: format!("{}; noticed as: {seen}", lost.cause), ..lost }
}

#[cfg(test)]
mod tests {
    use railgauge_wire::Bytes;

    use super::*;

    #[test]
    fn of_two_failures_the_one_that_only_waited_is_not_told() {
        let failure = |kind, cause: &str| Err(Failure::new(Stage::Measure, kind, cause));
        let told = |initiator: Result<Stepped, Failure>, responder| both(initiator, responder).unwrap_err().cause;
        let down = || failure(Kind::Fabric, "the port went down");
        assert_eq!(told(failure(Kind::Aborted, "the other end failed"), down()), "the port went down");
        assert_eq!(told(failure(Kind::Deadline, "no progress"), down()), "the port went down");
        assert_eq!(told(down(), failure(Kind::Fabric, "flushed")), "the port went down");
        assert_eq!(told(down(), failure(Kind::Aborted, "the other end failed")), "the port went down");
        assert_eq!(told(Ok(Stepped::Done), down()), "the port went down");
    }

    #[test]
    fn an_end_s_own_reason_is_told_before_what_the_other_end_saw_of_it() {
        let failure = |stage, kind| Failure::new(stage, kind, "");
        let own = || failure(Stage::Measure, Kind::Configuration);
        let broken = || failure(Stage::Measure, Kind::Fabric);
        let silent = || failure(Stage::Converse, Kind::Deadline);
        let waited = || failure(Stage::Measure, Kind::Deadline);
        let ended = || failure(Stage::Measure, Kind::Aborted);
        let ill = || waited().remedy(remedy::XID);
        for (more, less) in [
            (ill(), own()),
            (ill(), waited()),
            (own(), broken()),
            (own(), silent()),
            (broken(), silent()),
            (silent(), waited()),
            (silent(), ended()),
        ] {
            assert_eq!(more_telling(more.clone(), less.clone()), more);
            assert_eq!(more_telling(less, more.clone()), more);
        }
        assert_eq!(both::<()>(Err(broken()), Err(own())).unwrap_err(), own());
        assert_eq!(both::<()>(Err(waited()), Err(silent())).unwrap_err(), silent());
        assert_eq!(more_telling(waited(), ended()), waited());
    }

    #[test]
    fn wrong_bytes_are_told_whatever_comes_after_them() {
        let cut = Failure::new(Stage::Measure, Kind::Fabric, "cut").at("gpu1").remedy(remedy::LOOK_AT_CABLE);
        let wrong = Checked { verified: Bytes(4096), wrong: Bytes(5), ..Checked::default() };
        let told = corrupted(wrong, cut.clone());
        assert_eq!((told.stage, told.kind), (Stage::Verify, Kind::Corruption));
        assert_eq!(told.remedy, cut.remedy);
        assert!(told.cause.contains("5 of 4096") && told.cause.ends_with("gpu1: measure: cut"), "{told}");
        assert_eq!((told.host, told.peer), (None, None), "who noticed the cut corrupted nothing");
        assert_eq!(corrupted(Checked { verified: Bytes(4096), ..Checked::default() }, cut.clone()), cut);
    }
}

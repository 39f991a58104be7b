//! Concurrent flows: each link is verified by itself, then all are timed together from one planned start.
//!
//! ```text
//! verify all → the plan's command → compare clocks → counters → arm all → time all from the planned start → end it → counters → verify all
//! ```
//! The analysis of the journal, not this module, decides whether they overlapped; every sample has its place in time.

use std::{
    collections::{BTreeMap, HashMap},
    future::Future,
    sync::Arc,
    time::Duration,
};

use railgauge_wire::{Checked, Failure, Kind, Nanoseconds, Stage};
use tokio::task::JoinSet;

use super::super::{
    clocks::{self, Clocks},
    links::{Held, Link},
    spine::now,
};
use super::{
    case::{PairCase, Tried},
    command::Commands,
    counters::{self, Counters},
    neighbour::{self, Neighbours},
    steps::{self, Timed},
    traffic::Traffic,
};
use railgauge_model::journal::event::{Moment, Neighbour, Sample, Started, Together};
use railgauge_model::{
    plan::Plan,
    schedule::{BEFORE, Cell, LEAD},
};

#[derive(Clone)]
struct Job {
    plan: Arc<Plan>,
    test: usize,
    cell: Cell,
    traffic: Traffic,
}

struct Member {
    link: Link,
    beside: Option<Arc<Neighbours>>,
    so_far: Result<SoFar, Failure>,
}

#[derive(Default)]
struct SoFar {
    checked: Checked,
    together: Option<Together>,
    neighbours: Vec<Neighbour>,
    measured: Option<Timed>,
}

/// Runs the cases of one cell whose flows share NICs. All links are open before the first of them is measured.
pub(crate) async fn run(flows: Vec<PairCase>) -> Vec<Tried<Link>> {
    let started_at = Started::from(now());
    let Some(first) = flows.first() else { return Vec::new() };
    let job = Job {
        plan: first.plan.clone(),
        test: first.index,
        cell: Cell::clone(&first.case.cell),
        traffic: first.traffic,
    };
    let mut opening = JoinSet::new();
    for flow in flows {
        opening.spawn(async move { (flow.link().await, neighbour::open(&flow).await, flow) });
    }
    let (mut tried, mut open, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (link, beside, flow) in opening.join_all().await {
        match link {
            Ok(link) => {
                open.push(flow);
                links.push((link, beside));
            }
            Err(failure) => tried.push(flow.tried(started_at.clone(), None, Err(failure))),
        }
    }
    // If dropped, both ends of every link stop.
    let held: Vec<_> = links.iter().map(|(link, _)| Held::new(&link.from, &link.to, link.id)).collect();
    let mut closing = JoinSet::new();
    for ((flow, held), (link, result)) in open.into_iter().zip(held).zip(measure(&job, links).await) {
        let mut one = flow.tried(started_at.clone(), Some(link), result);
        if one.outcome.result.is_ok() {
            held.keep();
        } else {
            one.open = None;
            closing.spawn(held.close());
        }
        tried.push(one);
    }
    closing.join_all().await;
    tried
}

type Opened = (Link, Result<Option<Neighbours>, Failure>);

/// Measures a cell on all links at the same time; the answers are in their order. The others continue without a flow that fails.
async fn measure(job: &Job, links: Vec<Opened>) -> Vec<(Link, Result<Sample, Failure>)> {
    let member = |(link, beside): Opened| match beside {
        Ok(beside) => Member { link, beside: beside.map(Arc::new), so_far: Ok(SoFar::default()) },
        Err(failure) => Member { link, beside: None, so_far: Err(failure) },
    };
    let mut members: Vec<Member> = links.into_iter().map(member).collect();
    verify(job, &mut members, 1).await;
    let mut commands = begin(job, &mut members).await;
    let plan = Planned::new(job, &members).await;
    let before = counters::all(&sound(&members)).await;
    time(job, &mut members, &plan).await;
    commands.end().await;
    refuse(&mut members, &commands);
    let after = counters::all(&sound(&members)).await;
    verify(job, &mut members, 2).await;
    for beside in members.iter_mut().filter_map(|member| Arc::into_inner(member.beside.take()?)) {
        beside.close().await;
    }
    let test = &job.plan.tests[job.test];
    let difference = match test.has_victim() || test.beside.is_some() {
        true => counters::of_congestion,
        false => counters::difference,
    };
    members.into_iter().map(|member| finish(member, (&before, &after), difference)).collect()
}

async fn begin(job: &Job, members: &mut [Member]) -> Commands {
    if job.cell.neighbours.is_none() {
        return Commands::default();
    }
    let commands = Commands::on_links(&job.plan, &job.plan.tests[job.test], &sound(members)).await;
    refuse(members, &commands);
    commands
}

fn refuse(members: &mut [Member], commands: &Commands) {
    for member in members.iter_mut().filter(|member| member.so_far.is_ok()) {
        if let Some(failure) = commands.against(&member.link) {
            member.so_far = Err(failure.clone());
        }
    }
}

struct Planned {
    /// Since 1970.
    start: Nanoseconds,
    moment: Nanoseconds,
    wait: Duration,
    clocks: BTreeMap<String, Result<Clocks, Failure>>,
}

impl Planned {
    async fn new(job: &Job, members: &[Member]) -> Self {
        let mut reading = JoinSet::new();
        let mut clocks = BTreeMap::new();
        for link in sound(members) {
            for agent in [&link.from, &link.to] {
                let unread = || Failure::new(Stage::Measure, Kind::Internal, "no clock reading").at(agent.host());
                if clocks.insert(agent.host().to_owned(), Err(unread())).is_none() {
                    let agent = agent.clone();
                    reading.spawn(async move { (agent.host().to_owned(), clocks::clocks(&agent).await) });
                }
            }
        }
        clocks.extend(reading.join_all().await);
        let slowest = clocks.values().flatten().map(|clocks| clocks.half).max().unwrap_or_default();
        // Arming takes a round trip, starting the initiators another half: four halves leave a margin for both.
        let test = &job.plan.tests[job.test];
        // Traffic alongside a flow starts this much earlier. The flow alone waits as long, so that both are measured alike.
        let before = if test.beside.is_some() { BEFORE } else { Duration::ZERO };
        let wait = test.warm_up + LEAD + before + Duration::from(slowest * 4);
        let ahead = wait.into();
        let start = clocks::wall_clock().saturating_add(ahead);
        Self { start, moment: clocks::controller_clock().saturating_add(ahead), wait, clocks }
    }

    fn of(&self, link: &Link) -> Result<Together, Failure> {
        let moment = |host: &str| match self.clocks.get(host) {
            Some(Ok(clocks)) => Ok(Moment { at: self.moment.saturating_add_signed(clocks.offset), error: clocks.half }),
            Some(Err(failure)) => Err(failure.clone()),
            None => Err(Failure::new(Stage::Measure, Kind::Internal, "its clock was not compared").at(host)),
        };
        Ok(Together { start: self.start, from: moment(link.from.host())?, to: moment(link.to.host())? })
    }
}

fn sound(members: &[Member]) -> Vec<&Link> {
    members.iter().filter(|member| member.so_far.is_ok()).map(|member| &member.link).collect()
}

/// Runs this for every remaining flow at the same time. A failure removes a flow.
async fn on_all<T, F>(
    members: &mut [Member],
    work: impl Fn(Link, Option<Arc<Neighbours>>) -> F,
    keep: impl Fn(&mut SoFar, T),
) where
    T: Send + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for (place, member) in members.iter().enumerate().filter(|(_, member)| member.so_far.is_ok()) {
        let (link, work) = (member.link.clone(), work(member.link.clone(), member.beside.clone()));
        running.spawn(async move {
            let done = match work.await {
                Err(failure) => Err(steps::attribute(failure, &link).await),
                done => done,
            };
            (place, done)
        });
    }
    for (place, done) in running.join_all().await {
        match (done, &mut members[place].so_far) {
            (Ok(done), Ok(so_far)) => keep(so_far, done),
            (Err(failure), so_far) => {
                let before = so_far.as_ref().map(|so_far| so_far.checked).unwrap_or_default();
                *so_far = Err(steps::corrupted(before, failure));
            }
            (Ok(_), Err(_)) => {}
        }
    }
}

async fn verify(job: &Job, members: &mut [Member], iteration: u64) {
    let work = |link: Link, _| {
        let job = job.clone();
        async move { steps::verify(&link, &job.plan.tests[job.test], &job.cell, job.plan.seed, iteration).await }
    };
    on_all(members, work, |so_far, checked| so_far.checked += checked).await;
}

/// Arms every responder, then starts every initiator as soon as its own responder is armed: all wait for the planned start.
async fn time(job: &Job, members: &mut [Member], planned: &Planned) {
    let (moments, wait): (HashMap<_, _>, _) =
        (members.iter().map(|member| (member.link.id, planned.of(&member.link))).collect(), planned.wait);
    let work = |link: Link, beside: Option<Arc<Neighbours>>| {
        let (job, together) = (job.clone(), moments[&link.id].clone());
        async move {
            let (test, together) = (&job.plan.tests[job.test], together?);
            steps::arm(&link, test, &job.cell).await?;
            let timed = steps::timed(&link, test, &job.cell, Some((together.from.at, wait)), job.traffic.rate_limit);
            let Some(beside) = beside else { return Ok((together, timed.await?, Vec::new())) };
            let (measured, neighbours) = tokio::join!(timed, beside.run(together, wait));
            let (measured, neighbours) = (measured?, neighbours?);
            for one in &neighbours {
                beside
                    .covered(&measured.initiator, &together, one)
                    .map_err(|failure| failure.at(link.from.host()).with(link.to.host()))?;
            }
            Ok((together, measured, neighbours))
        }
    };
    on_all(members, work, |so_far, (together, measured, neighbours)| {
        (so_far.together, so_far.measured, so_far.neighbours) = (Some(together), Some(measured), neighbours);
    })
    .await;
}

type ByNic = HashMap<(String, String), Counters>;

fn finish(
    Member { link, so_far, .. }: Member,
    (before, after): (&ByNic, &ByNic),
    difference: fn(&Counters, &Counters) -> Counters,
) -> (Link, Result<Sample, Failure>) {
    let moved = |host: &str, device: &str| {
        let nic = (host.to_owned(), device.to_owned());
        let both = before.get(&nic).zip(after.get(&nic));
        both.map(|(before, after)| difference(before, after)).unwrap_or_default()
    };
    let (from_counters, to_counters) =
        (moved(link.from.host(), &link.record.from_device), moved(link.to.host(), &link.record.to_device));
    let sample = so_far.and_then(|SoFar { checked, together, neighbours, measured }| {
        let nothing = || Failure::new(Stage::Measure, Kind::Internal, "the timed pass returned no measurement");
        let Timed { initiator, responder, waited, gpus } = measured.ok_or_else(nothing)?;
        let waited = Some(waited);
        let counters = Sample { from_counters, to_counters, ..Sample::default() };
        Ok(Sample {
            initiator,
            responder,
            checked,
            waited,
            together: together.map(Box::new),
            neighbours: neighbours.into(),
            gpus: gpus.into(),
            ..counters
        })
    });
    (link, sample)
}

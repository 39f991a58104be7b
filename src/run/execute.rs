use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use railgauge_model::schedule::devices::devices;
use railgauge_preflight::{self as preflight, Cluster, Severity};
use railgauge_wire::{HostFacts, remedy::Remedy};
use tokio::{
    task::{AbortHandle, JoinHandle},
    time::sleep,
};

use super::{
    aside::aside,
    confirm::FollowUp,
    fabric, gpus,
    hosts::{self, Hosts},
    rounds, soak,
    spine::{Halt, Spine},
    work::Work,
};
use crate::cluster::AgentBinary;
use railgauge_model::{
    border::text::path_text,
    directory::Directory,
    files,
    journal::{
        event::{Case, Change, Event},
        stages::Stages,
    },
    plan::Plan,
    schedule::{Inventory, ScheduleError, schedule},
};

#[derive(Debug, Default)]
pub struct Past {
    pub cases: Vec<Case>,
    pub further: Vec<Case>,
    pub done: HashSet<(u64, u32)>,
    pub soaked: Duration,
    pub configured: Option<Change>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd {
    Complete,
    Interrupted,
    Revoked(String),
    /// The cluster or the disk prevented it; in words, and what to do before running the plan again if `--resume` would fail in the same
    /// way.
    Prevented(String, Option<Remedy>),
}

/// Runs a plan. The caller records the first event (`Started` or `Resumed`); `follow_up` is called after the tests if the plan wants
/// suspects confirmed. The agents are released in the background: the caller waits for the [`Farewell`] before the process ends.
pub async fn execute(
    plan: Arc<Plan>,
    directory: &Directory,
    past: Past,
    binary: AgentBinary,
    follow_up: FollowUp,
    spine: &Spine,
) -> (RunEnd, Farewell) {
    // Rounds that do not fit do not begin; this ends those that take longer than planned, and hosts that do not come up.
    let limit = plan.until_soak().map(|limit| {
        let spine = spine.clone();
        tokio::spawn(async move {
            sleep(limit).await;
            spine.emit(Event::Note { host: String::new(), text: "the time of the plan (`at_most`) is over".into() });
            spine.halt(Halt::TimeOver);
        })
    });
    let limit = limit.map(|task| task.abort_handle());
    let mut hosts = hosts::bring_up(&plan, &directory.run_id(), binary, spine).await;
    let mut stages = hosts.stages;
    let end = measure(plan, directory, past, &follow_up, (&mut hosts, &mut stages), limit.as_ref(), spine).await;
    limit.iter().for_each(AbortHandle::abort);
    spine.time_is_noted();
    let farewell = Farewell(tokio::spawn(async move { hosts.close().await }));
    spine.emit(Event::Stages(stages));
    match &end {
        RunEnd::Complete => spine.emit(Event::Finished),
        RunEnd::Interrupted | RunEnd::Revoked(_) => spine.emit(Event::Interrupted),
        RunEnd::Prevented(why, remedy) => spine.emit(Event::Prevented { why: why.clone(), remedy: remedy.clone() }),
    }
    spine.sync();
    (end, farewell)
}

#[must_use = "agents that are not waited for may be left on their hosts"]
pub struct Farewell(JoinHandle<()>);

impl Farewell {
    /// Waits until every agent has ended and its file is removed, or cannot be.
    pub async fn said(self) {
        // A goodbye that panicked is over, too.
        let _ = self.0.await;
    }
}

async fn measure(
    plan: Arc<Plan>,
    directory: &Directory,
    past: Past,
    follow_up: &FollowUp,
    (hosts, stages): (&mut Hosts, &mut Stages),
    limit: Option<&AbortHandle>,
    spine: &Spine,
) -> RunEnd {
    let planning = Instant::now();
    if let Err(error) = write_facts(directory, &hosts.facts) {
        spine.halt(Halt::Prevented(format!("cannot write {}: {error}", path_text(directory.facts()))));
    }
    remark(&plan, hosts, spine);
    let cases = match past.cases {
        known if !known.is_empty() => known,
        _ => {
            let planning = {
                let (plan, facts, spine) = (Arc::clone(&plan), hosts.facts.clone(), spine.clone());
                move || plan_cases(&plan, &facts, &spine)
            };
            let cases = match aside(spine, Duration::ZERO, planning).await {
                Ok(Some(Ok(cases))) => cases,
                Ok(Some(Err(error))) => return RunEnd::Prevented(error.to_string(), None),
                Ok(None) => return halted(spine).unwrap_or(RunEnd::Interrupted),
                Err(error) => return RunEnd::Prevented(format!("the cases cannot be planned: {error}"), None),
            };
            spine.emit(Event::Planned { cases: cases.clone() });
            cases
        }
    };
    if let Some(end) = halted(spine) {
        return end;
    }
    if hosts.agents.is_empty() {
        return RunEnd::Prevented("no host could be used; the report has the reason for each".into(), None);
    }
    let work = Work { plan, cases, done: past.done };
    spine.expect(work.outstanding());
    stages.planning = planning.elapsed().into();
    let soaking = soak::work(&work);
    let mut floor = rounds::run(&work, past.configured.as_ref(), hosts, spine).await;
    if work.plan.localise.confirm && spine.halted().is_none() {
        floor.confirm(&past.further, &work.done, follow_up, hosts).await;
    }
    limit.into_iter().for_each(AbortHandle::abort);
    if let (Some(wanted), Some(soaking)) = (&work.plan.soak, &soaking)
        && past.soaked < wanted.lasts
        && spine.halted().is_none()
    {
        floor.soak(wanted, soaking, past.soaked, hosts).await;
    }
    floor.settle(hosts).await;
    if spine.halted().is_none() {
        hosts.lose_silent(spine).await;
    }
    *stages += floor.stages;
    spine.time_is_noted();
    halted(spine).unwrap_or(RunEnd::Complete)
}

fn halted(spine: &Spine) -> Option<RunEnd> {
    spine.halted().map(|halt| match halt {
        Halt::Interrupted => RunEnd::Interrupted,
        Halt::TimeOver => RunEnd::Prevented("the time of the plan (`at_most`) was over before its cases".into(), None),
        Halt::Revoked(why) => RunEnd::Revoked(why),
        Halt::Prevented(why) => RunEnd::Prevented(why, None),
        Halt::Unfit(why, remedy) => RunEnd::Prevented(why, Some(remedy)),
    })
}

fn remark(plan: &Plan, hosts: &Hosts, spine: &Spine) {
    let cluster = Cluster { facts: hosts.facts.clone(), clocks: hosts.walls.clone() };
    for finding in preflight::judge(plan, &cluster).into_iter().filter(|f| f.severity > Severity::Notice) {
        let text = format!("{} [{}]: {}; remedy: {}", finding.what, finding.check, finding.meaning, finding.remedy);
        // A finding about switches has no host.
        let hosts = if finding.hosts.is_empty() { vec![String::new()] } else { finding.hosts };
        for host in hosts {
            spine.emit(Event::Note { host, text: text.clone() });
        }
    }
}

fn plan_cases(plan: &Plan, facts: &BTreeMap<String, HostFacts>, spine: &Spine) -> Result<Vec<Case>, ScheduleError> {
    let mut inventory = Inventory::of_run(plan, |host, transport| {
        let facts = facts.get(&host.name)?;
        u32::try_from(devices(host, Some(facts), transport).len()).ok()
    });
    for host in &plan.hosts {
        if let Some(facts) = facts.get(&host.name) {
            inventory.set_distances(&host.name, gpus::distances(host, facts));
            fabric::place(&mut inventory, host, facts);
        }
    }
    let schedule = schedule(plan, &inventory)?;
    for note in &schedule.notes {
        spine.emit(Event::Note { host: String::new(), text: note.text.clone() });
    }
    let cases = Case::planned(plan, &schedule);
    let routes = fabric::routes(&inventory, &cases);
    if !routes.is_empty() {
        spine.emit(Event::Routes { routes });
    }
    Ok(cases)
}

/// Writes the facts of every host; hosts that are not up keep those of an earlier process.
fn write_facts(directory: &Directory, facts: &BTreeMap<String, HostFacts>) -> std::io::Result<()> {
    let path = directory.facts();
    let earlier = files::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let mut all: BTreeMap<String, HostFacts> = earlier.unwrap_or_default();
    all.extend(facts.iter().map(|(host, facts)| (host.clone(), facts.clone())));
    // Atomically: a reader, or the next process after a power failure, finds the old or the new document.
    files::write(&path, serde_json::to_vec_pretty(&all)?)
}

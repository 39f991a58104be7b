use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use railgauge_model::schedule::devices::devices;
use railgauge_wire::{
    copies::Copies,
    failure::{Failure, Stage},
    message::{Answer, Ask},
};
use tokio::task::JoinSet;

use super::super::{failures::unexpected, gpus, hosts::Hosts, spine::Spine, work::Work};
use crate::cluster::Agent;
use railgauge_model::journal::event::Event;

const LIMIT: Duration = Duration::from_secs(30);

/// Measures the GPUs of all open pairs, one GPU of a host after the other. Every GPU is an event; a failure is only a note, and its cases
/// report why they fail.
pub(crate) async fn measure(work: &Work, hosts: &Hosts, spine: &Spine) {
    let mut running = JoinSet::new();
    // All hosts of a local run are this machine: simultaneous copies would share its slots.
    let at_once = if work.plan.launch.via.way().is_one_machine { 1 } else { usize::MAX };
    for (host, gpus) in wanted(work, hosts) {
        let Some(agent) = hosts.agents.get(&host).cloned() else { continue };
        if running.len() >= at_once {
            record(running.join_next().await, spine);
        }
        running.spawn(async move { (host, of_host(&agent, &gpus).await) });
    }
    while let Some(joined) = running.join_next().await {
        record(Some(joined), spine);
    }
}

type Measured = (String, Result<Vec<Copies>, Failure>);

fn record(joined: Option<Result<Measured, tokio::task::JoinError>>, spine: &Spine) {
    let Some(Ok((host, measured))) = joined else { return };
    match measured {
        Ok(all) => all.into_iter().for_each(|copies| spine.emit(Event::Copies { host: host.clone(), copies })),
        Err(failure) => spine.emit(Event::Note { host, text: format!("copies of its GPUs: {}", failure.unnamed()) }),
    }
}

async fn of_host(agent: &Agent, gpus: &BTreeSet<u32>) -> Result<Vec<Copies>, Failure> {
    let mut all = Vec::new();
    for gpu in gpus {
        let peers = gpus.iter().filter(|peer| *peer != gpu).copied().collect();
        match agent.ask(Ask::Copies { gpu: *gpu, peers }, LIMIT).await? {
            Answer::Copies(copies) => all.push(copies),
            other => return Err(unexpected(agent.host(), Stage::Open, &other)),
        }
    }
    Ok(all)
}

fn wanted(work: &Work, hosts: &Hosts) -> BTreeMap<String, BTreeSet<u32>> {
    let mut wanted: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for case in work.cases.iter().filter(|case| case.flow.members.is_empty()) {
        // Tests within hosts need no measurement before them.
        let Some((_, test)) = work.test(case).filter(|(_, test)| !test.transport.is_within_host()) else { continue };
        if work.is_done(test, case) {
            continue;
        }
        for port in [&case.flow.from, &case.flow.to] {
            let host = work.plan.hosts.iter().find(|host| *host.name == *port.host);
            let Some((host, facts)) = host.zip(hosts.facts.get(&*port.host)) else { continue };
            let device = devices(host, Some(facts), test.transport).get(port.rail as usize).cloned();
            if let Ok(Some(gpu)) = gpus::of_end(test, port, device.as_deref(), facts) {
                wanted.entry(port.host.to_string()).or_default().insert(gpu);
            }
        }
    }
    wanted
}

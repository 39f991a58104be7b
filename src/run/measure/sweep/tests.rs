//! Sweeps against agents that answer as late as they may.

use std::{collections::VecDeque, path::Path, sync::Arc, time::Duration};

use railgauge_model::{
    journal::event::Case,
    plan::{Plan, parse},
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    case::{CaseAccount, Spent},
    facts::HostFacts,
    failure::{Failure, Kind, Stage},
    frame,
    link::{Endpoint, Opened, TcpEndpoint},
    measure::Measurement,
    message::{Answer, Ask, FromAgent, Request},
    step::Checked,
    terms::{Carrier, GpuPath, LinkLayer},
    unit::{Bytes, Nanoseconds},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::mpsc,
};

use super::{Sweep, Tried, pace::Pace, run};
use crate::{cluster::Agent, run::links::Link};

const PLAN: &str = r#"
name = "sweep"
launch = { via = "local" }
hosts = { names = ["a", "b"] }
[[test]]
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "64..1MiB x4"
pattern = "pairs"
pairs = [["a", "b"]]
measure = "10ms"
warm_up = "0s"
"#;
/// Sizes of the plan.
const CASES: usize = 8;

fn plan() -> Plan {
    parse("plan.toml", PLAN, Path::new("")).unwrap().0
}

fn cases(plan: &Plan) -> VecDeque<(usize, Case)> {
    let schedule = schedule(plan, &Inventory::of_plan(plan)).unwrap();
    let case = |place: railgauge_model::schedule::CaseIndex| {
        let (round, flow, cell) = schedule.resolve(place).unwrap();
        let test = plan.tests[0].name.clone();
        Case { id: place.id, test, round: round.number, flow: flow.clone(), cell: cell.clone() }
    };
    schedule.cases().map(case).enumerate().collect()
}

fn opened() -> Opened {
    Opened {
        endpoint: Endpoint::Tcp(TcpEndpoint { address: "127.0.0.1".into(), port: 1 }),
        device: "lo".into(),
        transport: Carrier::Tcp,
        link_layer: LinkLayer::Loopback,
        gpu_path: GpuPath::None,
        rate_gbps: None,
        mtu: 65_536,
        software: false,
        write_order: None,
        settings: Default::default(),
    }
}

fn account() -> CaseAccount {
    let window = Nanoseconds::from_millis(10);
    let measured = Measurement { elapsed: window, operations: 1, bytes: Bytes(64), ..Measurement::default() };
    let checked = Checked { verified: Bytes(64), ..Checked::default() };
    let spent = Spent { window, ..Spent::default() };
    CaseAccount { checked, measured: Some(Box::new(measured)), spent, ..CaseAccount::default() }
}

/// Plays an agent that answers no join and no case before it knows of `all` cases; the case at `fails` it cannot do, and refuses
/// those behind it. Returns what it was asked, in a word each.
async fn play(stream: DuplexStream, all: usize, fails: Option<usize>) -> Vec<&'static str> {
    let (mut from, mut to) = tokio::io::split(stream);
    to.write_all(frame::MAGIC).await.unwrap();
    let (mut asked, mut held, mut known) = (Vec::new(), Vec::new(), 0);
    loop {
        let mut prefix = [0; 4];
        if from.read_exact(&mut prefix).await.is_err() {
            return asked;
        }
        let mut bytes = vec![0; frame::length(prefix).unwrap()];
        from.read_exact(&mut bytes).await.unwrap();
        let Request { id, ask } = frame::decode(&bytes).unwrap();
        let mut answers = Vec::new();
        match ask {
            Ask::Hello { protocol, .. } => {
                answers.push((id, Ok(Answer::Hello { protocol, version: String::new(), pid: 1 })));
            }
            Ask::Open { .. } => {
                asked.push("open");
                answers.push((id, Ok(Answer::Opened(Box::new(opened())))));
            }
            Ask::Join { .. } => {
                asked.push("join");
                held.push((id, Ok(Answer::Joined(Box::new(opened())))));
            }
            Ask::Case { .. } => {
                asked.push("case");
                let outcome = match fails {
                    Some(at) if known == at => {
                        let failure = Failure::new(Stage::Measure, Kind::Unsupported, "not here");
                        Ok(Answer::Case(Box::new(CaseAccount { failure: Some(failure), ..CaseAccount::default() })))
                    }
                    Some(at) if known > at => Err(Failure::new(Stage::Measure, Kind::Aborted, "one before failed")),
                    _ => Ok(Answer::Case(Box::new(account()))),
                };
                known += 1;
                held.push((id, outcome));
            }
            _ => answers.push((id, Ok(Answer::Done))),
        }
        if known == all {
            answers.append(&mut held);
        }
        for (id, outcome) in answers {
            to.write_all(&frame::encode(&FromAgent::Reply { id, outcome }).unwrap()).await.unwrap();
        }
    }
}

/// What a sweep over all cases of the plan came to, what was left, and what each agent was asked.
async fn sweep(fails: Option<usize>) -> (Vec<Tried<Link>>, usize, [Vec<&'static str>; 2]) {
    let plan = Arc::new(plan());
    let cases = cases(&plan);
    let (mut agents, mut players) = (Vec::new(), Vec::new());
    for host in ["a", "b"] {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        players.push(tokio::spawn(play(theirs, CASES, fails)));
        let (from, to) = tokio::io::split(ours);
        agents.push((Agent::over(host, "run", from, to).await.unwrap(), Arc::new(HostFacts::default())));
    }
    let (to, from) = (agents.pop().unwrap(), agents.pop().unwrap());
    let place = Pace::new(&plan.tests[0]).place();
    let max_size = Bytes::from_mib(1);
    let sweep = Sweep { plan, index: 0, cases, repeat: 0, from, to, warm: None, id: 1, max_size, place };
    let (done, mut tried) = mpsc::unbounded_channel();
    let (left, _) =
        tokio::time::timeout(Duration::from_secs(60), run(sweep, done)).await.expect("it waits for an answer");
    let mut all = Vec::new();
    while let Some(one) = tried.recv().await {
        all.push(one);
    }
    let asked = {
        // The last that knows the agents: their ends close.
        let kept: Vec<_> = all.iter_mut().map(|tried| tried.open.take()).collect();
        drop(kept);
        let mut asked = Vec::new();
        for player in players {
            asked.push(player.await.unwrap());
        }
        asked
    };
    (all, left.len(), asked.try_into().unwrap())
}

#[tokio::test]
async fn a_link_costs_two_round_trips_however_many_sizes_there_are() {
    let (tried, left, asked) = sweep(None).await;
    assert_eq!(left, 0);
    assert_eq!(tried.iter().map(|tried| tried.case.id).collect::<Vec<_>>(), (0..CASES as u64).collect::<Vec<_>>());
    assert!(tried.iter().all(|tried| tried.outcome.result.is_ok()), "{:?}", tried[0].outcome);
    for asked in asked {
        // Nothing else was asked, and nothing was answered between the first case and the last.
        assert_eq!(asked.iter().filter(|word| **word == "case").count(), CASES);
        assert_eq!(asked.len(), CASES + 2, "{asked:?}");
    }
}

#[tokio::test]
async fn what_stands_behind_a_failed_case_was_not_tried() {
    let (tried, left, _) = sweep(Some(3)).await;
    assert_eq!((tried.len(), left), (4, CASES - 4));
    let failure = tried[3].outcome.result.as_ref().unwrap_err();
    assert_eq!((failure.kind, failure.host.as_deref()), (Kind::Unsupported, Some("a")));
    assert!(tried[..3].iter().all(|tried| tried.outcome.result.is_ok()));
}

//! Sweeps against agents that answer as late as they may.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use railgauge_model::{
    journal::event::Case,
    plan::{Plan, parse},
    schedule::{Inventory, schedule},
};
use railgauge_wire::{
    Answer, Ask, Bytes, Carrier, CaseAccount, Checked, Endpoint, Failure, FromAgent, GpuPath, HostFacts, Kind,
    LinkLayer, Measurement, Nanoseconds, Opened, Request, Spent, Stage, TcpEndpoint, VerbsEndpoint, frame,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    sync::mpsc,
    task::JoinHandle,
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
/// How long an agent takes to open a link.
const OPENING: Duration = Duration::from_millis(50);
const CASES: usize = 8;

fn plan() -> Plan {
    parse("plan.toml", PLAN, Path::new("")).unwrap().0
}

fn cases(plan: &Plan) -> VecDeque<(usize, Case)> {
    let schedule = schedule(plan, &Inventory::of_plan(plan)).unwrap();
    Case::planned(plan, &schedule).into_iter().enumerate().collect()
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

fn good(_: usize) -> Result<Answer, Failure> {
    Ok(Answer::Case(Box::new(account())))
}

fn failed(kind: Kind) -> Result<Answer, Failure> {
    let failure = Some(Failure::new(Stage::Measure, kind, "not here"));
    Ok(Answer::Case(Box::new(CaseAccount { failure, ..CaseAccount::default() })))
}

/// What an agent answers to a case, by its number.
type Answers = fn(usize) -> Result<Answer, Failure>;

#[derive(Clone, Copy)]
enum Joins {
    /// Once it knows of so many cases.
    Behind(usize),
    /// After so much time. Its peer finds it by rdma_cm.
    ByManager(Duration),
}

impl Joins {
    fn opened(self) -> Opened {
        let Self::ByManager(_) = self else { return opened() };
        let endpoint = VerbsEndpoint {
            qp_numbers: vec![1],
            psns: vec![0],
            lid: 0,
            gid: String::new(),
            gid_type: "iWARP".into(),
            mtu: 1024,
            address: 0,
            length: Bytes::from_mib(2),
            rkey: 0,
            polled: true,
            grh_required: false,
            ece: None,
            pkey: None,
            control: None,
            max_reads: 1,
            qkey: 0,
            cm_port: Some(7),
            cm_address: Some("127.0.0.1".into()),
        };
        Opened { endpoint: Endpoint::Verbs(endpoint), ..opened() }
    }
}

/// Plays an agent that answers no join and no case before its time. Returns what it was asked, in a word each.
///
/// `ends` counts those that joined. A case that comes before both have is told as `early` where that matters.
async fn play(stream: DuplexStream, joins: Joins, answers_with: Answers, ends: Arc<AtomicUsize>) -> Vec<&'static str> {
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
        let all = match joins {
            Joins::Behind(cases) => cases,
            Joins::ByManager(_) => 0,
        };
        match ask {
            Ask::Hello { protocol, .. } => {
                answers.push((id, Ok(Answer::Hello { protocol, version: String::new(), pid: 1 })));
            }
            Ask::Open { .. } => {
                asked.push("open");
                tokio::time::sleep(OPENING).await;
                answers.push((id, Ok(Answer::Opened(Box::new(joins.opened())))));
            }
            Ask::Join { .. } => {
                asked.push("join");
                let joined = (id, Ok(Answer::Joined(Box::new(joins.opened()))));
                match joins {
                    Joins::Behind(_) => held.push(joined),
                    Joins::ByManager(time) => {
                        tokio::time::sleep(time).await;
                        ends.fetch_add(1, Ordering::Relaxed);
                        answers.push(joined);
                    }
                }
            }
            Ask::Case { .. } => {
                let is_early = all == 0 && ends.load(Ordering::Relaxed) < 2;
                asked.push(if is_early { "early" } else { "case" });
                held.push((id, answers_with(known)));
                known += 1;
            }
            Ask::Close { .. } => {
                asked.push("close");
                answers.push((id, Ok(Answer::Done)));
            }
            _ => answers.push((id, Ok(Answer::Done))),
        }
        if known == all || all == 0 {
            answers.append(&mut held);
        }
        for (id, outcome) in answers {
            to.write_all(&frame::encode(&FromAgent::Reply { id, outcome }).unwrap()).await.unwrap();
        }
    }
}

/// A sweep over all cases of the plan, and what its agents play.
async fn begin(joins: [Joins; 2], answers: [Answers; 2]) -> (Sweep, Vec<JoinHandle<Vec<&'static str>>>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let plan = Arc::new(plan());
    let cases = cases(&plan);
    let (mut agents, mut players) = (Vec::new(), Vec::new());
    for ((host, answers), joins) in ["a", "b"].into_iter().zip(answers).zip(joins) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        players.push(tokio::spawn(play(theirs, joins, answers, ends.clone())));
        let (from, to) = tokio::io::split(ours);
        agents.push((Agent::over(host, "run", from, to).await.unwrap(), Arc::new(HostFacts::default())));
    }
    let (to, from) = (agents.pop().unwrap(), agents.pop().unwrap());
    let place = Pace::new().place(0);
    let max_size = Bytes::from_mib(1);
    (
        Sweep {
            plan,
            index: 0,
            cases,
            repeat: 0,
            from,
            to,
            warm: None,
            id: 1,
            max_size,
            traffic: Default::default(),
            place,
        },
        players,
    )
}

/// What a sweep over all cases of the plan resulted in, what was left, and what each agent was asked.
async fn sweep(answers: [Answers; 2]) -> (Vec<Tried<Link>>, usize, [Vec<&'static str>; 2]) {
    swept([Joins::Behind(CASES); 2], answers).await
}

async fn swept(joins: [Joins; 2], answers: [Answers; 2]) -> (Vec<Tried<Link>>, usize, [Vec<&'static str>; 2]) {
    let (sweep, players) = begin(joins, answers).await;
    let (done, mut tried) = mpsc::unbounded_channel();
    let keep = move |tried| drop(done.send(tried));
    let left = tokio::time::timeout(Duration::from_secs(60), run(sweep, keep)).await.expect("it waits for an answer");
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
    (all, left.cases.len(), asked.try_into().unwrap())
}

#[tokio::test]
async fn a_link_costs_two_round_trips_however_many_sizes_there_are() {
    let (tried, left, asked) = sweep([good, good]).await;
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
async fn nothing_is_sent_over_a_connection_of_rdma_cm_before_both_ends_have_it() {
    let slowly = Joins::ByManager(Duration::from_millis(100));
    for joins in [[Joins::ByManager(Duration::ZERO), slowly], [slowly, Joins::ByManager(Duration::ZERO)]] {
        let (tried, left, asked) = swept(joins, [good, good]).await;
        assert_eq!((tried.len(), left), (CASES, 0));
        assert!(tried.iter().all(|tried| tried.outcome.result.is_ok()), "{:?}", tried[0].outcome);
        for asked in asked {
            assert_eq!(asked.iter().filter(|word| **word == "case").count(), CASES, "{asked:?}");
        }
    }
}

#[tokio::test]
async fn what_stands_behind_a_failed_case_was_not_tried() {
    let fourth_fails: Answers = |number| match number {
        0..3 => good(number),
        3 => failed(Kind::Unsupported),
        _ => Err(Failure::new(Stage::Measure, Kind::Aborted, "one before failed")),
    };
    let (tried, left, _) = sweep([fourth_fails, fourth_fails]).await;
    assert_eq!((tried.len(), left), (4, CASES - 4));
    let failure = tried[3].outcome.result.as_ref().unwrap_err();
    assert_eq!((failure.kind, failure.host.as_deref()), (Kind::Unsupported, Some("a")));
    assert!(tried[..3].iter().all(|tried| tried.outcome.result.is_ok()));
}

#[tokio::test]
async fn only_the_end_where_bytes_arrive_says_whether_they_are_right() {
    let wrong: Answers = |_| {
        let checked = Checked { verified: Bytes(64), wrong: Bytes(1), first_wrong: Some(0) };
        Ok(Answer::Case(Box::new(CaseAccount { checked, ..account() })))
    };
    let wrong_of = |tried: &Tried<Link>| tried.outcome.result.as_ref().ok().map(|sample| sample.checked.wrong);
    // The bytes of a write arrive at the responder.
    let (tried, _, _) = sweep([wrong, good]).await;
    assert!(tried.iter().all(|tried| wrong_of(tried) == Some(Bytes::ZERO)));
    let (tried, _, _) = sweep([good, wrong]).await;
    assert!(tried.iter().all(|tried| wrong_of(tried) == Some(Bytes(1))));
}

#[tokio::test]
async fn of_two_failures_the_one_with_a_reason_is_told() {
    for (from, to, told) in [
        (Kind::Fabric, Kind::Configuration, "b"),
        (Kind::Deadline, Kind::Fabric, "b"),
        (Kind::Fabric, Kind::Fabric, "a"),
        (Kind::Unsupported, Kind::Fabric, "a"),
    ] {
        let fails = |kind| -> Answers {
            match kind {
                Kind::Fabric => |_| failed(Kind::Fabric),
                Kind::Configuration => |_| failed(Kind::Configuration),
                Kind::Deadline => |_| failed(Kind::Deadline),
                _ => |_| failed(Kind::Unsupported),
            }
        };
        let (tried, left, _) = sweep([fails(from), fails(to)]).await;
        let failure = tried[0].outcome.result.as_ref().unwrap_err();
        assert_eq!((failure.host.as_deref(), left), (Some(told), CASES - 1), "{from:?} {to:?}: {failure}");
    }
}

#[tokio::test]
async fn a_case_begins_when_its_link_is_there_and_not_before() {
    let asked = jiff::Timestamp::now();
    let (tried, _, _) = sweep([good, good]).await;
    // Times of the journal are cut to milliseconds.
    let earliest = asked + OPENING - Duration::from_millis(1);
    for tried in tried {
        let started = tried.outcome.started_at.time().unwrap();
        assert!((earliest..=jiff::Timestamp::now()).contains(&started), "{started}, asked for at {asked}");
    }
}

/// Only the controller knows of this failure: the ends may be at a case far behind it.
#[tokio::test]
async fn ends_are_told_to_stop_when_a_case_fails_that_they_know_to_be_good() {
    let second_is_nonsense: Answers = |number| if number == 1 { Ok(Answer::Done) } else { good(number) };
    let (tried, left, asked) = sweep([good, second_is_nonsense]).await;
    assert_eq!((tried.len(), left), (2, CASES - 2));
    for asked in asked {
        assert_eq!(asked.last(), Some(&"close"), "{asked:?}");
    }
    // An end that is still open is idle: nothing is to be closed there.
    let (_, _, asked) = sweep([good, good]).await;
    assert!(asked.iter().flatten().all(|word| *word != "close"));
}

#[tokio::test(start_paused = true)]
async fn ends_are_told_to_stop_when_a_sweep_is_given_up() {
    let (mut sweep, players) = begin([Joins::Behind(CASES); 2], [good, good]).await;
    // The run keeps its agents: dropping the last copy ends the conversation.
    let agents = (sweep.from.0.clone(), sweep.to.0.clone());
    // One case fewer than the agents wait for: none is answered.
    sweep.cases.pop_back();
    let mut under_way = Box::pin(run(sweep, |_| ()));
    tokio::time::timeout(OPENING * 10, &mut under_way).await.err().expect("nothing was answered");
    drop(under_way);
    tokio::time::sleep(OPENING).await;
    drop(agents);
    for player in players {
        let asked = player.await.unwrap();
        assert_eq!((asked.iter().filter(|word| **word == "case").count(), asked.last()), (CASES - 1, Some(&"close")));
    }
}

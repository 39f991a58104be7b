//! A thousand hosts: real conversations with simulated agents in this process. Times are printed; the limits are those
//! of a quiet machine with room to spare, so that a busy one does not fail.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use railgauge_wire::{
    PROTOCOL, frame,
    message::{Answer, Ask, FromAgent, Request},
    unit::Nanoseconds,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinSet,
};

use super::*;

const HOSTS: usize = 1024;

/// Answers like an agent; a `deaf` one answers the greeting only.
async fn simulated(mut pipe: DuplexStream, deaf: bool) -> std::io::Result<()> {
    pipe.write_all(frame::MAGIC).await?;
    loop {
        let mut prefix = [0; 4];
        pipe.read_exact(&mut prefix).await?;
        let mut bytes = vec![0; frame::length(prefix)?];
        pipe.read_exact(&mut bytes).await?;
        let Request { id, ask } = frame::decode(&bytes)?;
        let answer = match ask {
            Ask::Hello { .. } => Answer::Hello { protocol: PROTOCOL, version: "simulated".to_owned(), pid: 1 },
            _ if deaf => continue,
            Ask::Clock => Answer::Clock { monotonic: Nanoseconds(1), realtime: Nanoseconds(1) },
            _ => Answer::Done,
        };
        pipe.write_all(&frame::encode(&FromAgent::Reply { id, outcome: Ok(answer) })?).await?;
    }
}

fn hosts(count: usize) -> Vec<Host> {
    let host = |i| Host {
        name: format!("gpu{i:04}"),
        address: String::new(),
        user: None,
        port: None,
        devices: vec![],
        tcp: vec![],
    };
    (0..count).map(host).collect()
}

/// Brings simulated hosts up: half a second for the way there, and one host in twenty refuses the first time.
async fn up(deaf: impl Fn(&str) -> bool + Clone + Send + Sync + 'static) -> Vec<Agent> {
    let terms = Terms { in_flight: 128, retries: 2, timeout: Duration::from_secs(20) };
    let refused = Arc::new(AtomicUsize::new(0));
    let mut results = raise_with(terms, hosts(HOSTS), move |host, _| {
        let (refused, deaf) = (Arc::clone(&refused), deaf.clone());
        async move {
            sleep(Duration::from_millis(500)).await;
            if host.name.ends_with("7") && refused.fetch_add(1, Ordering::Relaxed) < HOSTS / 20 {
                return Err(Trouble::passing(Stage::Connect, Kind::Lost, "refused once"));
            }
            let (here, there) = duplex(64 << 10);
            tokio::spawn(simulated(there, deaf(&host.name)));
            let (from, to) = tokio::io::split(here);
            let agent = Agent::over(&host.name, "run-1", from, to).await;
            agent.map_err(|failure| Trouble { failure, passing: false })
        }
    });
    let mut agents = Vec::new();
    while let Some((name, result)) = results.recv().await {
        let agent = result.unwrap_or_else(|failure| panic!("{name}: {failure}"));
        assert_eq!(agent.host(), name);
        agents.push(agent);
    }
    agents
}

/// Asks all at once and waits for all. Returns how many answered.
async fn barrier(agents: &[Agent], limit: Duration) -> usize {
    let mut asked = JoinSet::new();
    for agent in agents {
        let agent = agent.clone();
        asked.spawn(async move { agent.ask(Ask::Clock, limit).await });
    }
    asked.join_all().await.iter().filter(|answer| answer.is_ok()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_hosts_come_up_and_meet() {
    let started = Instant::now();
    let agents = up(|_| false).await;
    let raised = started.elapsed();
    assert_eq!(agents.len(), HOSTS);
    let mut times = Vec::new();
    for _ in 0..11 {
        let asked = Instant::now();
        assert_eq!(barrier(&agents, Duration::from_secs(10)).await, HOSTS);
        times.push(asked.elapsed());
    }
    times.sort();
    println!("{HOSTS} hosts up in {raised:.2?} (128 at a time, 0.5 s each way); a round's barrier {:.2?}", times[5]);
    // One after another they would take half a second each. How fast it is depends on the machine, and is only printed.
    assert!(raised < Duration::from_millis(500) * HOSTS as u32 / 10, "{raised:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_hosts_hold_a_round_up_no_longer_than_its_limit() {
    let agents = up(|name| name.ends_with('3')).await;
    let limit = Duration::from_millis(1000);
    let asked = Instant::now();
    let answered = barrier(&agents, limit).await;
    let took = asked.elapsed();
    println!("{answered} of {HOSTS} hosts answered; the round took {took:.2?} with a limit of {limit:.2?}");
    assert_eq!(answered, agents.iter().filter(|agent| !agent.host().ends_with('3')).count());
    // One after another they would hold it up a hundred times as long.
    assert!(took < 10 * limit, "{took:?}");
}

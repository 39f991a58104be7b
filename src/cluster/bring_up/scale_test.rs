//! A thousand hosts: real conversations with simulated agents in this process. The clock is paused while work is left, so that times
//! consist of waits only, however busy the machine is.

use std::sync::atomic::{AtomicUsize, Ordering};

use railgauge_wire::{Answer, Ask, FromAgent, Nanoseconds, PROTOCOL, Request, frame};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    task::JoinSet,
    time::Instant,
};

use super::*;

const HOSTS: usize = 1024;
const IN_FLIGHT: usize = 128;
const WAY: Duration = Duration::from_millis(500);

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

async fn up(deaf: impl Fn(&str) -> bool + Clone + Send + Sync + 'static) -> Vec<Agent> {
    let terms = Terms { in_flight: IN_FLIGHT, retries: 2, timeout: Duration::from_secs(20) };
    let refused = Arc::new(AtomicUsize::new(0));
    let mut results = raise_with(terms, hosts(HOSTS), move |host, _| {
        let (refused, deaf) = (Arc::clone(&refused), deaf.clone());
        async move {
            sleep(WAY).await;
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

async fn barrier(agents: &[Agent], limit: Duration) -> usize {
    let mut asked = JoinSet::new();
    for agent in agents {
        let agent = agent.clone();
        asked.spawn(async move { agent.ask(Ask::Clock, limit).await });
    }
    asked.join_all().await.iter().filter(|answer| answer.is_ok()).count()
}

#[tokio::test(start_paused = true)]
async fn a_thousand_hosts_come_up_and_meet() {
    let started = Instant::now();
    let agents = up(|_| false).await;
    let raised = started.elapsed();
    assert_eq!(agents.len(), HOSTS);
    for _ in 0..11 {
        assert_eq!(barrier(&agents, Duration::from_secs(10)).await, HOSTS);
    }
    // This many at once and no more, including the second tries of those that refused.
    let turns = WAY * HOSTS.div_ceil(IN_FLIGHT) as u32;
    assert!((turns..turns + 2 * pause(1, 1.0) + 2 * WAY).contains(&raised), "{raised:?}");
}

#[tokio::test(start_paused = true)]
async fn silent_hosts_hold_a_round_up_no_longer_than_its_limit() {
    let agents = up(|name| name.ends_with('3')).await;
    let limit = Duration::from_secs(1);
    let asked = Instant::now();
    let answered = barrier(&agents, limit).await;
    let took = asked.elapsed();
    assert_eq!(answered, agents.iter().filter(|agent| !agent.host().ends_with('3')).count());
    assert!((limit..2 * limit).contains(&took), "{took:?}");
}

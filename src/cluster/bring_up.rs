//! Brings all hosts up: limited parallel tries, a time for each try, retries with jitter.

use std::{
    future::Future,
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};

use railgauge_model::plan::model::{Host, Launch};
use railgauge_wire::{Ask, Failure, Kind, Stage, remedy};
use tokio::{
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};

use super::{Agent, AgentBinary, BringUp, LogSink, Progress, Trouble, deploy, launcher};

/// Brings all hosts up: at most `launch.in_flight` at once, each try at most `launch.timeout`, and `launch.retries` retries after passing
/// trouble. Sends each host's result with its name in the plan when it is ready. Dropping the receiver ends all tries; returned agents stay
/// alive.
///
/// Must be called inside a tokio runtime.
pub fn bring_up(
    launch: Launch,
    hosts: Vec<Host>,
    run_id: String,
    binary: AgentBinary,
    log: LogSink,
) -> mpsc::Receiver<(String, Result<Agent, Failure>)> {
    bring_up_asking(launch, hosts, run_id, binary, log, Vec::new())
}

pub(crate) fn bring_up_asking(
    launch: Launch,
    hosts: Vec<Host>,
    run_id: String,
    binary: AgentBinary,
    log: LogSink,
    first: Vec<Ask>,
) -> mpsc::Receiver<(String, Result<Agent, Failure>)> {
    let terms = Terms { in_flight: launch.in_flight, retries: launch.retries, timeout: launch.timeout };
    allow_files(hosts.len(), launch.in_flight, &log);
    let launcher = launcher::prepare(&launch);
    let shared = Arc::new((launcher, launch, run_id, binary, log, first));
    raise_with(terms, hosts, move |host, progress| {
        let shared = Arc::clone(&shared);
        async move {
            let (launcher, launch, run_id, binary, log, first) = &*shared;
            let launcher = launcher.as_ref().map_err(Trouble::clone)?;
            let begun = Instant::now();
            let way = launcher.open(&host).await?;
            let connect = begun.elapsed();
            let (pipe, deployed) = deploy::start(way, launch, binary, &progress).await?;
            let deploy = begun.elapsed() - connect;
            progress.to(Stage::Start, "waiting for the agent's greeting");
            let agent = Agent::greet(pipe, Some(deployed), (&host.name, run_id), log, first).await?;
            let start = begun.elapsed() - connect - deploy;
            Ok(agent.with_took(BringUp { connect, deploy, start }))
        }
    })
}

/// Raises the limit of open files if needed: three pipes and a socket or a process handle per host, twice that for hosts being brought up,
/// and a hundred for everything else.
fn allow_files(hosts: usize, in_flight: usize, log: &LogSink) {
    let needed = 4 * hosts + 4 * in_flight.min(hosts) + 100;
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    let allowed = rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX);
    if allowed >= needed {
        return;
    }
    // Never lowers it; returns what the hard limit allowed.
    let allowed = rlimit::increase_nofile_limit(needed).unwrap_or(allowed);
    if allowed < needed {
        let line = format!("{hosts} hosts need about {needed} open files, {allowed} are allowed: raise `ulimit -Hn`");
        log.line("railgauge", &line);
    }
}

#[derive(Debug, Clone, Copy)]
struct Terms {
    in_flight: usize,
    retries: u32,
    timeout: Duration,
}

fn raise_with<F, T>(terms: Terms, hosts: Vec<Host>, open: F) -> mpsc::Receiver<(String, Result<Agent, Failure>)>
where
    F: Fn(Arc<Host>, Progress) -> T + Send + Sync + 'static,
    T: Future<Output = Result<Agent, Trouble>> + Send + 'static,
{
    // One slot per host: no task waits for a slow reader while it holds its turn.
    let (results, receiver) = mpsc::channel(hosts.len().max(1));
    let turns = Arc::new(Semaphore::new(terms.in_flight.max(1)));
    let open = Arc::new(open);
    for host in hosts {
        let (results, turns, open) = (results.clone(), Arc::clone(&turns), Arc::clone(&open));
        tokio::spawn(async move {
            let host = Arc::new(host);
            let tries = try_often(terms, &host, &turns, &*open);
            let result = tokio::select! {
                result = tries => result,
                () = results.closed() => return,
            };
            let result = result.map_err(|trouble| trouble.at(&host.name));
            // If the receiver is gone, dropping the agent ends it.
            let _ = results.send((host.name.clone(), result)).await;
        });
    }
    receiver
}

/// One host: tries until one works, the trouble is lasting, or no try is left. Waits without holding a turn.
async fn try_often<F, T>(terms: Terms, host: &Arc<Host>, turns: &Semaphore, open: &F) -> Result<Agent, Trouble>
where
    F: Fn(Arc<Host>, Progress) -> T,
    T: Future<Output = Result<Agent, Trouble>>,
{
    let mut tried = 0;
    loop {
        let progress = Progress::new();
        let outcome = {
            // The semaphore is never closed; without a turn the try proceeds anyway.
            let _turn = turns.acquire().await;
            match timeout(terms.timeout, open(Arc::clone(host), progress.clone())).await {
                Ok(outcome) => outcome,
                Err(_) => Err(out_of_time(terms.timeout, &progress)),
            }
        };
        tried += 1;
        match outcome {
            Err(trouble) if trouble.passing && tried <= terms.retries => sleep(pause(tried, chance())).await,
            Err(mut trouble) if tried > 1 => {
                trouble.failure.cause += &format!(" (tried {tried} times)");
                return Err(trouble);
            }
            outcome => return outcome,
        }
    }
}

fn out_of_time(limit: Duration, progress: &Progress) -> Trouble {
    let (stage, doing) = progress.now();
    let cause = format!("no result within {:.1} s while {doing}", limit.as_secs_f64());
    Trouble::passing(stage, Kind::Deadline, cause).remedy(match stage {
        Stage::Connect => remedy::RAISE_CONNECT_TIMEOUT,
        Stage::Deploy => remedy::RAISE_DEPLOY_TIMEOUT,
        _ => remedy::RAISE_START_TIMEOUT,
    })
}

/// Pause before try `tried + 1`: half a second, doubled each time up to eight, times 0.5 to 1.5 by `chance`, so that hosts refused together
/// (sshd's MaxStartups on a bastion) do not retry together.
fn pause(tried: u32, chance: f64) -> Duration {
    let base = 0.5 * f64::from(1_u32 << (tried.saturating_sub(1)).min(4));
    Duration::from_secs_f64(base * (0.5 + chance))
}

/// A number in [0, 1) from the standard library's random hash keys: jitter needs no generator of its own.
fn chance() -> f64 {
    (RandomState::new().hash_one(0_u8) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod scale_test;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_stay_bounded() {
        assert_eq!(pause(1, 0.5), Duration::from_millis(500));
        assert_eq!(pause(2, 0.5), Duration::from_secs(1));
        assert_eq!(pause(30, 0.5), Duration::from_secs(8));
        assert!((0..100).map(|_| chance()).all(|c| (0.0..1.0).contains(&c)));
    }
}

//! What slurmctld says of the job. All hosts share one query: a thousand steps that end together must not cause a thousand.

use std::{process::Stdio, time::Duration};

use tokio::{
    process::Command,
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use super::super::Pending;
use super::scontrol::{self, field};

const LIMIT: Duration = Duration::from_secs(2);
const GATHER: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub job: String,
    /// Such as `RUNNING` or `CANCELLED`; empty where unknown.
    pub state: String,
    /// Such as `TimeLimit`; empty where unknown.
    pub reason: String,
}

struct Last {
    asked: Instant,
    came: Instant,
    known: Known,
}

pub(super) struct Desk {
    job: String,
    /// The job's record; empty if there was no answer in time.
    ask: Box<dyn Fn() -> Pending<'static, String> + Send + Sync>,
    last: Mutex<Option<Last>>,
}

impl Desk {
    pub(super) fn new(job: &str) -> Self {
        let number = job.to_owned();
        let ask = move || -> Pending<'static, String> {
            let number = number.clone();
            Box::pin(async move { inquire(&number).await })
        };
        Self { job: job.to_owned(), ask: Box::new(ask), last: Mutex::default() }
    }

    /// An answer to a query made after this call: an older one may predate the failure. A timeout serves all waiters: a silent slurmctld is
    /// not awaited twice.
    pub(super) async fn known(&self) -> Known {
        let came = Instant::now();
        let mut last = self.last.lock().await;
        let serves = |last: &&Last| last.asked >= came || (last.known.state.is_empty() && last.came >= came);
        if let Some(Last { known, .. }) = last.as_ref().filter(serves) {
            return known.clone();
        }
        sleep(GATHER).await;
        let asked = Instant::now();
        let record = (self.ask)().await;
        let of = |name: &str| field(&record, name).unwrap_or_default().to_owned();
        let known = Known { job: self.job.clone(), state: of("JobState"), reason: of("Reason") };
        *last = Some(Last { asked, came: Instant::now(), known: known.clone() });
        known
    }
}

async fn inquire(job: &str) -> String {
    let asked = Command::new("scontrol")
        .args(["--oneliner", "show", "job", job])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(LIMIT, asked).await {
        Ok(Ok(output)) => scontrol::job(&output.stdout, job).unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    fn counting(answer: &'static str, takes: Duration) -> (Arc<Desk>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let ask = move || -> Pending<'static, String> {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            Box::pin(async move {
                sleep(takes).await;
                if answer.is_empty() { String::new() } else { format!("JobId=7 JobState={answer} Reason={number}") }
            })
        };
        (Arc::new(Desk { job: "7".into(), ask: Box::new(ask), last: Mutex::default() }), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_steps_that_end_together_ask_once_and_a_later_one_again() {
        let (desk, asked) = counting("RUNNING", Duration::from_millis(100));
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..1024 {
            let desk = Arc::clone(&desk);
            waiting.spawn(async move { desk.known().await });
        }
        for known in waiting.join_all().await {
            assert_eq!((known.state.as_str(), known.reason.as_str()), ("RUNNING", "1"));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert_eq!(desk.known().await.reason, "2");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_the_question_is_under_way_has_it_asked_again() {
        let (desk, asked) = counting("RUNNING", Duration::from_millis(100));
        let late = async {
            sleep(GATHER + Duration::from_millis(10)).await;
            desk.known().await.reason
        };
        let (early, late) = tokio::join!(desk.known(), late);
        assert_eq!((early.reason.as_str(), late.as_str()), ("1", "2"));
        let (desk, silent) = counting("", 2 * SHORT);
        let late = async {
            sleep(SHORT).await;
            desk.known().await.state
        };
        let began = Instant::now();
        let (early, late) = tokio::join!(desk.known(), late);
        assert_eq!((early.state.as_str(), late.as_str()), ("", ""));
        assert!(began.elapsed() < GATHER + 3 * SHORT, "{:?}", began.elapsed());
        assert_eq!((asked.load(Ordering::SeqCst), silent.load(Ordering::SeqCst)), (2, 1));
    }
}

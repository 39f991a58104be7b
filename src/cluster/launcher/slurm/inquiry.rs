//! What slurmctld says of the job and of its nodes. All hosts share one query: a thousand steps that end together must not cause two
//! thousand.

use std::{collections::BTreeMap, process::Stdio, sync::Arc, time::Duration};

use railgauge_model::plan::hostlist;
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
    pub node: String,
    /// Such as `RUNNING` or `CANCELLED`; empty where unknown.
    pub job_state: String,
    /// Such as `TimeLimit`; empty where unknown.
    pub job_reason: String,
    /// Such as `ALLOCATED+DRAIN` or `DOWN*`; empty where unknown.
    pub node_state: String,
    pub node_reason: String,
}

/// Records of the job, and of its nodes by name. Empty if there was no answer in time.
#[derive(Debug, Default)]
struct Told {
    job: String,
    nodes: BTreeMap<String, String>,
}

struct Last {
    asked: Instant,
    came: Instant,
    told: Arc<Told>,
}

pub(super) struct Desk {
    job: String,
    ask: Box<dyn Fn() -> Pending<'static, Told> + Send + Sync>,
    last: Mutex<Option<Last>>,
}

impl Desk {
    pub(super) fn new<'n>(job: &str, nodes: impl Iterator<Item = &'n str>) -> Self {
        let (number, list) = (job.to_owned(), hostlist::fold(nodes));
        let ask = move || -> Pending<'static, Told> {
            let (number, list) = (number.clone(), list.clone());
            Box::pin(async move { inquire(&number, &list).await })
        };
        Self { job: job.to_owned(), ask: Box::new(ask), last: Mutex::default() }
    }

    pub(super) async fn known(&self, node: Option<&str>) -> Known {
        let told = self.told().await;
        let of_job = |name: &str| field(&told.job, name).unwrap_or_default().to_owned();
        let of_node = node.and_then(|node| told.nodes.get(node)).map(String::as_str).unwrap_or_default();
        Known {
            job: self.job.clone(),
            node: node.unwrap_or_default().to_owned(),
            job_state: of_job("JobState"),
            job_reason: of_job("Reason"),
            node_state: field(of_node, "State").unwrap_or_default().to_owned(),
            node_reason: reason(of_node),
        }
    }

    /// An answer to a query made after this call: an older one may predate the failure. A timeout serves all waiters: a silent slurmctld is
    /// not awaited twice.
    async fn told(&self) -> Arc<Told> {
        let came = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(Last { told, .. }) =
            last.as_ref().filter(|last| last.asked >= came || (last.told.job.is_empty() && last.came >= came))
        {
            return Arc::clone(told);
        }
        sleep(GATHER).await;
        let asked = Instant::now();
        let told = Arc::new((self.ask)().await);
        *last = Some(Last { asked, came: Instant::now(), told: Arc::clone(&told) });
        told
    }
}

async fn inquire(job: &str, nodes: &str) -> Told {
    let (of_job, of_nodes) = tokio::join!(show("job", job), show("node", nodes));
    let named = |record: String| Some((field(&record, "NodeName")?.to_owned(), record));
    Told {
        job: scontrol::job(&of_job, job).unwrap_or_default(),
        nodes: scontrol::records(&of_nodes).filter_map(named).collect(),
    }
}

/// `scontrol --oneliner show …`; empty on timeout.
async fn show(kind: &str, name: &str) -> Vec<u8> {
    let asked = Command::new("scontrol")
        .args(["--oneliner", "show", kind, name])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(LIMIT, asked).await {
        Ok(Ok(output)) => output.stdout,
        _ => Vec::new(),
    }
}

fn reason(record: &str) -> String {
    let Some((_, rest)) = record.split_once(" Reason=") else { return String::new() };
    rest.split(" [").next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    fn counting(answer: &'static str, takes: Duration) -> (Arc<Desk>, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let ask = move || -> Pending<'static, Told> {
            let number = count.fetch_add(1, Ordering::SeqCst) + 1;
            Box::pin(async move {
                sleep(takes).await;
                let job = if answer.is_empty() {
                    String::new()
                } else {
                    format!("JobId=7 JobState={answer} Reason={number}")
                };
                Told { job, nodes: BTreeMap::new() }
            })
        };
        (Arc::new(Desk { job: "7".into(), ask: Box::new(ask), last: Mutex::default() }), asked)
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_steps_that_end_together_ask_once_and_a_later_one_again() {
        let (desk, asked) = counting("RUNNING", Duration::from_millis(100));
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..1024 {
            let desk = Arc::clone(&desk);
            waiting.spawn(async move { desk.known(Some(&format!("n{number}"))).await });
        }
        for known in waiting.join_all().await {
            assert_eq!((known.job_state.as_str(), known.job_reason.as_str()), ("RUNNING", "1"));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        assert_eq!(desk.known(None).await.job_reason, "2");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_while_the_question_is_under_way_has_it_asked_again() {
        let (desk, asked) = counting("RUNNING", Duration::from_millis(100));
        let late = async {
            sleep(GATHER + Duration::from_millis(10)).await;
            desk.known(None).await.job_reason
        };
        let (early, late) = tokio::join!(desk.known(None), late);
        assert_eq!((early.job_reason.as_str(), late.as_str()), ("1", "2"));
        let (desk, silent) = counting("", 2 * SHORT);
        let late = async {
            sleep(SHORT).await;
            desk.known(None).await.job_state
        };
        let began = Instant::now();
        let (early, late) = tokio::join!(desk.known(None), late);
        assert_eq!((early.job_state.as_str(), late.as_str()), ("", ""));
        assert!(began.elapsed() < GATHER + 3 * SHORT, "{:?}", began.elapsed());
        assert_eq!((asked.load(Ordering::SeqCst), silent.load(Ordering::SeqCst)), (2, 1));
    }

    #[test]
    fn the_reason_of_a_node_is_read() {
        let node =
            "NodeName=n2 State=MIXED+DRAIN ThreadsPerCore=1 Reason=bad cable in rail 3 [root@2026-11-25T01:39:02]";
        assert_eq!(field(node, "State"), Some("MIXED+DRAIN"));
        assert_eq!(reason(node), "bad cable in rail 3");
        assert_eq!(reason("NodeName=n2 State=IDLE"), "");
    }
}

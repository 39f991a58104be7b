//! The ranks of a collective: asks all of them at once, and determines which one caused a failure.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use railgauge_model::{journal::event::LinkRecord, schedule::Port};
use railgauge_wire::{Failure, HostFacts, Kind, LinkId, MemberOpened, Stage, remedy};
use tokio::task::JoinSet;

use crate::cluster::Agent;

pub(crate) struct Group {
    pub members: Vec<Member>,
    pub env: BTreeMap<String, String>,
    /// Known from the first collective on.
    pub record: Option<LinkRecord>,
}

pub(in crate::run) struct Member {
    pub agent: Agent,
    pub facts: Arc<HostFacts>,
    pub link: LinkId,
    pub port: Port,
    pub gpu: Option<u32>,
    pub opened: Option<MemberOpened>,
}

impl Member {
    /// Its host, and its device once it is open.
    pub(super) fn place(&self) -> (&str, &str) {
        (&self.port.host, self.opened.as_ref().map_or("", |opened| &opened.device))
    }
}

/// How long other ranks may still report after one failed: the first to notice is not always the cause, and an agent needs three seconds
/// to see that its rank is silent.
const ATTRIBUTION: Duration = Duration::from_secs(4);

/// Asks the same of every rank at once. After a first failure the others have a moment to report theirs.
pub(super) async fn on_all<T: Send + 'static, F>(
    group: &Group,
    ask: impl Fn(usize, Agent, LinkId) -> F,
) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
{
    let mut running = JoinSet::new();
    for (rank, member) in group.members.iter().enumerate() {
        let asked = ask(rank, member.agent.clone(), member.link);
        running.spawn(async move { (rank, asked.await) });
    }
    let mut answers: Vec<Option<T>> = group.members.iter().map(|_| None).collect();
    let mut failures: Vec<(usize, Failure)> = Vec::new();
    let mut until = None;
    loop {
        let next = match until {
            None => running.join_next().await,
            Some(until) => tokio::time::timeout_at(until, running.join_next()).await.unwrap_or(None),
        };
        match next {
            None => break,
            Some(Ok((rank, Ok(answer)))) => answers[rank] = Some(answer),
            Some(Ok((rank, Err(failure)))) => {
                until.get_or_insert_with(|| tokio::time::Instant::now() + ATTRIBUTION);
                failures.push((rank, failure));
            }
            Some(Err(error)) => {
                let cause = format!("a rank's request was dropped: {error}");
                failures.push((0, Failure::new(Stage::Converse, Kind::Internal, cause)));
            }
        }
    }
    let silent = |rank: &usize| answers[*rank].is_none() && failures.iter().all(|(failed, _)| failed != rank);
    let silent: Vec<usize> = (0..answers.len()).filter(silent).collect();
    let answers: Vec<T> = answers.into_iter().flatten().collect();
    if failures.is_empty() && answers.len() == group.members.len() {
        return Ok(answers);
    }
    Err(to_blame(group, failures, &silent))
}

/// The failure that explains the others: a lost host, then an ill GPU, then one of a rank's own, then a connection that broke or a host
/// that does not answer, and only then a rank that waited for the others in vain. `silent` ranks have not reported.
fn to_blame(group: &Group, mut failures: Vec<(usize, Failure)>, silent: &[usize]) -> Failure {
    for member in &group.members {
        if let Some(lost) = member.agent.lost() {
            return lost;
        }
    }
    failures.sort_by_key(|(rank, failure)| {
        let order = match (failure.kind, failure.stage) {
            _ if failure.is_of_gpu() => 0,
            (Kind::Lost, _) => 1,
            (Kind::Deadline, Stage::Converse) => 3,
            (Kind::Deadline, _) => 4,
            (Kind::Fabric | Kind::Aborted, _) => 3,
            _ => 2,
        };
        (order, *rank)
    });
    let others = failures.len().saturating_sub(1);
    // A rank that waits knows what NCCL says of the one that hangs.
    let said = failures.iter().find_map(|(_, failure)| failure.said.clone());
    let Some((_, mut failure)) = failures.into_iter().next() else {
        return Failure::new(Stage::Measure, Kind::Internal, "a rank gave no answer".to_owned());
    };
    failure.said = said;
    // All had the same time: healthy ranks have given up and reported by now. Where most are silent that means nothing: the hosts are slow.
    let gave_up = others + 1;
    let silent = silent.first().filter(|_| silent.len() < gave_up && !failure.is_of_gpu());
    if let (Kind::Deadline, Some(rank)) = (failure.kind, silent) {
        let host = &group.members[*rank].port.host;
        let first = Failure { remedy: None, ..failure };
        let cause = format!("rank {rank} does not answer, {gave_up} of {} gave up: {first}", group.members.len());
        return Failure::new(Stage::Converse, Kind::Deadline, cause).at(host).remedy(remedy::CHECK_HOST_LOAD);
    }
    if others > 0 && failure.kind == Kind::Deadline {
        failure.cause.push_str(&format!("; {others} other ranks of {} gave up too", group.members.len()));
    }
    failure
}

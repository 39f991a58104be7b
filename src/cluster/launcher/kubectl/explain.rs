//! Turns kubectl's output and the API server's knowledge into a cause and a next step. kubectl's texts are those of 1.32 and 1.20; they may
//! change, so the state of the pod has precedence.

use jiff::Timestamp;
use railgauge_wire::{
    failure::{Kind, Stage},
    remedy::{self, Entry, Remedy},
};

use super::{
    client::{Client, NoAnswer},
    pod::{Container, Known, Pod},
};
use crate::cluster::{
    pipe::ProcessEnd,
    sign::{Sign, find, lasting, own_lines, passing},
    trouble::Trouble,
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Exec<'a> {
    pub client: &'a Client,
    pub pod: &'a str,
    pub began: Timestamp,
}

impl Exec<'_> {
    pub(super) fn with(&self, entry: Entry) -> Remedy {
        entry.with([("pod", self.pod.to_owned())].into_iter().chain(self.client.place()))
    }

    fn named(&self) -> String {
        match self.client.namespace() {
            Some(namespace) => format!("the pod {} in namespace {namespace}", self.pod),
            None => format!("the pod {}", self.pod),
        }
    }

    fn lasting(&self, kind: Kind, cause: String, entry: Entry) -> Trouble {
        Trouble::lasting(Stage::Connect, kind, cause).remedy(self.with(entry))
    }

    fn passing(&self, kind: Kind, cause: String, entry: Entry) -> Trouble {
        Trouble { passing: true, ..self.lasting(kind, cause, entry) }
    }
}

/// The first match counts: the subject of a line comes before what it may also name. The state of a pod does not show these.
const SIGNS: &[Sign] = &[
    lasting(
        "context was not found|context \"*does not exist|cluster \"*does not exist|auth info*does not exist\
         |no server found for cluster|error loading config file|error: stat /|invalid configuration\
         |unable to read certificate-authority|unable to read client-",
        "kubectl does not find its configuration or the context in it",
        remedy::KUBECTL_CONFIG,
    ),
    lasting(
        "must be logged in|(unauthorized)|getting credentials",
        "the API server does not accept your credentials",
        remedy::KUBECTL_LOGIN,
    ),
    lasting("(forbidden)", "you may not run processes in pods there", remedy::KUBECTL_FORBIDDEN),
    lasting(
        "that match label selector|unable to parse requirement",
        "the API server does not accept the selector",
        remedy::KUBECTL_SELECTOR,
    ),
    Sign { kind: Kind::Lost, ..lasting("(notfound): pods ", "there is no such pod", remedy::KUBECTL_NO_POD) },
    lasting("(notfound)", "the API server does not have what was asked for", remedy::KUBECTL_CONFIG),
    // Also where the API server does not accept the kubelet's certificate.
    passing(
        "error dialing backend|no agent available",
        "the API server does not reach the kubelet of the pod's node",
        remedy::KUBECTL_NODE,
    ),
    passing(
        "pod does not exist",
        "the kubelet that was asked does not know the pod: it has just started, or another node has its address",
        remedy::KUBECTL_NODE,
    ),
    lasting("x509: ", "kubectl does not accept the certificate of the API server", remedy::KUBECTL_CERTIFICATE),
    lasting(
        "is not valid for pod|container not found|container*not found in pod|container*does not exist",
        "the container is not there, or does not run",
        remedy::KUBECTL_CONTAINER,
    ),
    lasting(
        "executable file not found|internal error occurred*no such file or directory",
        "the container's image has no `sh`",
        remedy::CONTAINER_IMAGE,
    ),
    passing(
        "the connection to the server|unable to connect to the server|the server was unable to return a response\
         |service unavailable|apiserver not ready",
        "the API server does not answer",
        remedy::KUBECTL_SERVER,
    ),
];

fn is_own(line: &str) -> bool {
    let line = line.to_lowercase();
    let begins =
        ["error: ", "error from server", "error in configuration", "the connection to the server", "unable to connect"];
    // klog: `E1125 07:59:02.354992   28745 v2.go:150] …`.
    let is_logged =
        line.starts_with('e') && line.as_bytes().get(1).is_some_and(u8::is_ascii_digit) && line.contains("] ");
    is_logged || begins.iter().any(|begin| line.starts_with(begin))
}

fn sign(words: &str) -> Option<&'static Sign> {
    find(SIGNS, &own_lines(words, is_own))
}

pub(super) fn unlisted(none: &NoAnswer) -> (Kind, Entry) {
    match none {
        NoAnswer::NotStarted(_) => (Kind::Configuration, remedy::KUBECTL_CLIENT),
        NoAnswer::Late(_) => (Kind::Lost, remedy::KUBECTL_SERVER),
        NoAnswer::NotThere => (Kind::Lost, remedy::KUBECTL_NO_POD),
        NoAnswer::Refused(words) => {
            sign(words).map_or((Kind::Configuration, remedy::KUBECTL_CONFIG), |sign| (sign.kind, sign.remedy))
        }
    }
}

fn said(words: &str, exec: &Exec<'_>) -> Option<Trouble> {
    let sign = sign(words)?;
    let cause = format!("{}: {}", exec.named(), sign.cause);
    let trouble = exec.lasting(sign.kind, cause, sign.remedy);
    Some(Trouble { passing: sign.passing, ..trouble })
}

/// Why a process in a pod ended, or does not answer. `None` where the process itself ended and the pod is well.
pub(super) fn ended(end: Option<&ProcessEnd>, words: &str, known: &Known, exec: &Exec<'_>) -> Option<Trouble> {
    if let Known::Pod(pod) = known
        && let Some(trouble) = of_state(pod, exec)
    {
        return Some(trouble);
    }
    if let Some(trouble) = said(words, exec) {
        return Some(trouble);
    }
    let unanswered = match known {
        // A slow API server does not explain the end of a process.
        Known::Nothing(NoAnswer::Late(_)) if end.is_some() => None,
        Known::Nothing(none) => unanswered(none, exec),
        Known::Pod(_) => None,
    };
    // kubectl reports the status of the process; without this line the status is that of kubectl.
    if end.is_some() && words.to_lowercase().contains("command terminated with exit code") {
        let is_gone = |trouble: &Trouble| has_remedy(trouble, remedy::KUBECTL_NO_POD);
        return unanswered.filter(is_gone).or_else(|| own_end(end, exec));
    }
    if unanswered.is_some() {
        return unanswered;
    }
    match end {
        None => {
            let cause =
                format!("nothing comes from {}: the stream, the agent or the node hangs{}", exec.named(), well(known));
            Some(exec.passing(Kind::Lost, cause, remedy::KUBECTL_CUT))
        }
        Some(ProcessEnd::Code(0 | 1)) if drops(words) => {
            let cause =
                format!("kubectl dropped an answer for {}, which came before kubectl was ready for it", exec.named());
            Some(exec.passing(Kind::Lost, cause, remedy::KUBECTL_DROPPED))
        }
        Some(ProcessEnd::Code(code @ (0 | 1))) => {
            let cause = format!(
                "the stream to {} was cut: kubectl exec ended with exit status {code}, and nobody ended the process in it{}",
                exec.named(),
                well(known)
            );
            Some(exec.passing(Kind::Lost, cause, remedy::KUBECTL_CUT))
        }
        Some(_) => None,
    }
}

/// Whether kubectl got data for a stream that it had not made yet: it reads before all streams are made (kubernetes#131189), and may drop
/// the status of the process.
pub(super) fn drops(words: &str) -> bool {
    let is_dropped = |line: &&str| line.contains("nknown stream id") && line.contains("discarding message");
    own_lines(words, is_own).iter().any(is_dropped)
}

fn has_remedy(trouble: &Trouble, entry: Entry) -> bool {
    trouble.failure.remedy.as_ref().is_some_and(|remedy| remedy.id == entry.id)
}

const fn well(known: &Known) -> &'static str {
    match known {
        Known::Pod(_) => "; the API server says that the pod runs",
        Known::Nothing(_) => "; whether the pod runs is not known",
    }
}

fn own_end(end: Option<&ProcessEnd>, exec: &Exec<'_>) -> Option<Trouble> {
    const KILLED: ProcessEnd = ProcessEnd::Code(128 + 9);
    (end == Some(&KILLED)).then(|| {
        let cause = format!("the process in {} was killed by signal 9 (SIGKILL)", exec.named());
        exec.lasting(Kind::Lost, cause, remedy::CONTAINER_KILLED)
    })
}

pub(super) fn late(exec: &Exec<'_>, known: &Known) -> Option<Trouble> {
    match known {
        Known::Pod(pod) => Some(of_state(pod, exec).unwrap_or_else(|| {
            let cause = format!("{} runs, but the stream to it stands still or is slow", exec.named());
            exec.passing(Kind::Deadline, cause, remedy::KUBECTL_CUT)
        })),
        Known::Nothing(none) => unanswered(none, exec),
    }
}

/// What it means that the API server gives no answer about the pod. A user who may run processes in pods need not be allowed to look at
/// them.
fn unanswered(none: &NoAnswer, exec: &Exec<'_>) -> Option<Trouble> {
    match none {
        NoAnswer::Refused(words) => said(words, exec).filter(|told| !has_remedy(told, remedy::KUBECTL_FORBIDDEN)),
        NoAnswer::Late(limit) => {
            let cause = format!("the API server did not tell of {} within {} s", exec.named(), limit.as_secs());
            Some(exec.passing(Kind::Lost, cause, remedy::KUBECTL_SERVER))
        }
        NoAnswer::NotThere => {
            Some(exec.lasting(Kind::Lost, format!("{}: there is no such pod", exec.named()), remedy::KUBECTL_NO_POD))
        }
        NoAnswer::NotStarted(_) => None,
    }
}

fn of_state(pod: &Pod, exec: &Exec<'_>) -> Option<Trouble> {
    let (status, named) = (&pod.status, exec.named());
    let because = |reason: &str, message: &str| match [reason, message].map(str::trim) {
        ["", ""] => String::new(),
        [one, ""] | ["", one] => format!(": {one}"),
        [reason, message] => format!(": {reason}: {message}"),
    };
    if matches!(status.phase.as_str(), "Failed" | "Succeeded") {
        let how = if status.reason == "Evicted" { "was evicted" } else { "has ended" };
        let why = because(if status.reason == "Evicted" { "" } else { &status.reason }, &status.message);
        return Some(exec.lasting(Kind::Lost, format!("{named} {how}{why}"), remedy::KUBECTL_POD_ENDED));
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return Some(exec.lasting(Kind::Lost, format!("{named} is being deleted"), remedy::KUBECTL_POD_ENDED));
    }
    if status.phase == "Unknown" {
        let cause = format!("the node of {named} does not answer{}", because(&status.reason, &status.message));
        return Some(Trouble::passing(Stage::Connect, Kind::Lost, cause).remedy(of_node(pod, exec)));
    }
    if status.phase == "Pending" {
        let unmet = status.conditions.iter().find(|one| one.status == "False" && !one.message.is_empty());
        let why = waiting(pod, exec)
            .unwrap_or_else(|| unmet.map_or_else(String::new, |one| because(&one.reason, &one.message)));
        return Some(exec.passing(
            Kind::Configuration,
            format!("{named} is Pending{why}"),
            remedy::KUBECTL_POD_PENDING,
        ));
    }
    of_container(pod, exec)
}

fn of_container(pod: &Pod, exec: &Exec<'_>) -> Option<Trouble> {
    let named = exec.named();
    if let Some(wanted) = exec.client.container()
        && !pod.spec.containers.is_empty()
        && pod.spec.containers.iter().all(|container| container.name != wanted)
    {
        let there: Vec<&str> = pod.spec.containers.iter().map(|container| container.name.as_str()).collect();
        let cause = format!("{named} has no container {wanted}; it has {}", there.join(", "));
        return Some(exec.lasting(Kind::Configuration, cause, remedy::KUBECTL_CONTAINER));
    }
    if let Some(why) = waiting(pod, exec) {
        let cause = format!("the container of {named} does not run{why}");
        return Some(exec.passing(Kind::Lost, cause, remedy::KUBECTL_POD_PENDING));
    }
    let container = container(pod, exec)?;
    if let Some(ended) = &container.state.terminated {
        let cause = format!("the container of {named} has ended: {}, exit code {}", ended.reason, ended.exit_code);
        return Some(exec.lasting(Kind::Lost, cause, remedy::KUBECTL_POD_ENDED));
    }
    let ended = container.last_state.terminated.as_ref().filter(|ended| ended.is_after(exec.began))?;
    let cause = format!(
        "the container of {named} was restarted: it had ended ({}, exit code {})",
        ended.reason, ended.exit_code
    );
    Some(exec.passing(Kind::Lost, cause, remedy::KUBECTL_POD_ENDED))
}

fn container<'a>(pod: &'a Pod, exec: &Exec<'_>) -> Option<&'a Container> {
    let wanted = exec.client.container().or(pod.spec.containers.first().map(|first| first.name.as_str()))?;
    pod.status.container_statuses.iter().find(|container| container.name == wanted)
}

fn waiting(pod: &Pod, exec: &Exec<'_>) -> Option<String> {
    let waiting = container(pod, exec)?.state.waiting.as_ref()?;
    let message = if waiting.message.is_empty() { String::new() } else { format!(" ({})", waiting.message) };
    Some(format!(": {}{message}", waiting.reason))
}

fn of_node(pod: &Pod, exec: &Exec<'_>) -> Remedy {
    remedy::KUBECTL_NODE.with([("node", pod.spec.node_name.clone())].into_iter().chain(exec.client.place()))
}

#[cfg(test)]
mod tests;

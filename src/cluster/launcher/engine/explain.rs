//! Turns an engine's output and knowledge into a cause and a next step. Texts are those of podman 4.3 and docker 28; the state of the
//! container has precedence.

use jiff::Timestamp;
use railgauge_wire::{
    failure::{Kind, Stage},
    remedy::{self, Entry},
};

use super::{
    Container,
    inspect::{Known, State},
};
use crate::cluster::{
    pipe::ProcessEnd,
    sign::{Sign, find, lasting, own_lines},
    trouble::Trouble,
};

const SIGNS: &[Sign] = &[
    lasting(
        "no such container|no such object|no container with name or id",
        "there is no such container",
        remedy::ENGINE_NO_CONTAINER,
    ),
    lasting(
        "cannot connect to the docker daemon|cannot connect to podman|unable to connect to podman\
         |permission denied while trying to connect|error during connect|failed to initialize",
        "the engine's service does not answer, or not to you",
        remedy::ENGINE_SERVICE,
    ),
    lasting("executable file", "the container's image has no `sh`", remedy::CONTAINER_IMAGE),
    lasting("unable to find user|no matching entries in passwd", "it has no such user", remedy::ENGINE_BY_HAND),
];

const KILLED: ProcessEnd = ProcessEnd::Code(128 + 9);

/// Why a process in a container ended, or does not answer. `None` where the process itself ended and the container is well.
pub(super) fn ended(
    end: Option<&ProcessEnd>,
    words: &str,
    known: &Known,
    container: &Container,
    began: Timestamp,
) -> Option<Trouble> {
    late(container, known, began).or_else(|| said(words, container)).or_else(|| {
        let name = &container.name;
        if end == Some(&KILLED) {
            let cause = format!("the process in the container {name} was killed by signal 9 (SIGKILL)");
            return Some(lost(cause, container, remedy::CONTAINER_KILLED));
        }
        end.is_none().then(|| {
            let cause = format!("nothing comes from the container {name}: the agent or the engine hangs");
            lost(cause, container, remedy::ENGINE_BY_HAND)
        })
    })
}

pub(super) fn late(container: &Container, known: &Known, began: Timestamp) -> Option<Trouble> {
    match known {
        Known::State(state) => of_state(state, container, began),
        Known::Refused(words) => said(words, container),
        Known::Nothing => None,
    }
}

fn lost(cause: String, container: &Container, entry: Entry) -> Trouble {
    Trouble::lasting(Stage::Connect, Kind::Lost, cause).remedy(container.with(entry))
}

/// The meaning of the engine's output. An agent's output is in the same stream: only lines of the engine count.
fn said(words: &str, container: &Container) -> Option<Trouble> {
    let begins = [
        "Error",
        "OCI runtime",
        "Cannot connect",
        "Failed to initialize",
        "error during connect",
        "Got permission denied",
        "permission denied",
    ];
    let sign = find(SIGNS, &own_lines(words, |line| begins.iter().any(|begin| line.starts_with(begin))))?;
    let cause = format!("the container {}: {}", container.name, sign.cause);
    Some(Trouble::lasting(Stage::Connect, sign.kind, cause).remedy(container.with(sign.remedy)))
}

fn of_state(state: &State, container: &Container, began: Timestamp) -> Option<Trouble> {
    let name = &container.name;
    if state.paused {
        return Some(lost(format!("the container {name} is paused"), container, remedy::ENGINE_PAUSED));
    }
    if !state.running {
        let mut cause = format!("the container {name} does not run ({}, exit code {}", state.status, state.exit_code);
        if state.oom_killed {
            cause += ", out of memory";
        }
        cause += ")";
        if !state.error.is_empty() {
            cause += &format!(": {}", state.error);
        }
        return Some(lost(cause, container, remedy::ENGINE_NOT_RUNNING));
    }
    let started: Option<Timestamp> = state.started_at.parse().ok();
    started
        .filter(|started| *started > began)
        .map(|_| lost(format!("the container {name} was restarted"), container, remedy::ENGINE_RESTARTED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::launcher::engine::Engine;

    fn told(end: Option<i32>, words: &str, known: Known) -> String {
        let container = Container { engine: Engine("podman"), name: "c1".into(), user: None };
        let began = "2026-11-25T08:00:00Z".parse().unwrap();
        let trouble = ended(end.map(ProcessEnd::Code).as_ref(), words, &known, &container, began);
        trouble.and_then(|trouble| trouble.failure.remedy).map_or("none".into(), |remedy| remedy.id.into_owned())
    }

    fn running() -> State {
        State { status: "running".into(), running: true, started_at: "2026-11-25T07:00:00Z".into(), ..State::default() }
    }

    #[test]
    fn ends_in_containers_are_told_apart() {
        let well = || Known::State(running());
        let no_sh = "Error: crun: executable file `sh` not found in $PATH: No such file or directory: OCI runtime attempted to \
                     invoke a command that was not found";
        let no_sh_docker = "OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file \
                            not found in $PATH: unknown";
        let missing = "Error: no container with name or ID \"c1\" found: no such container";
        for (end, words, known, expected) in [
            (Some(137), "", well(), "container-killed"),
            (Some(127), no_sh, well(), "container-image"),
            (Some(127), no_sh_docker, well(), "container-image"),
            (
                Some(125),
                missing,
                Known::Refused("Error: inspecting object: no such container c1".into()),
                "engine-no-container",
            ),
            (Some(1), "Error response from daemon: No such container: c1", Known::Nothing, "engine-no-container"),
            (
                Some(1),
                "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
                Known::Nothing,
                "engine-service",
            ),
            (
                Some(1),
                "error during connect: Get \"http://far:2375/v1.50/containers/c1/json\": dial tcp: lookup far: no such host",
                Known::Nothing,
                "engine-service",
            ),
            (
                Some(1),
                "Failed to initialize: unable to resolve docker endpoint: context \"x\": context not found",
                Known::Nothing,
                "engine-service",
            ),
            (None, "", well(), "engine-by-hand"),
            (None, "", Known::State(State { paused: true, ..running() }), "engine-paused"),
            (Some(137), "", Known::State(State { status: "exited".into(), ..State::default() }), "engine-not-running"),
            (
                Some(137),
                "",
                Known::State(State { started_at: "2026-11-25T08:00:01+00:00".into(), ..running() }),
                "engine-restarted",
            ),
            (Some(3), "agent: no such container", well(), "none"),
            (Some(127), "railgauge: 1: exec: /root/use-1: not found", well(), "none"),
        ] {
            assert_eq!(told(end, words, known.clone()), expected, "{end:?} {words} {known:?}");
        }
    }
}

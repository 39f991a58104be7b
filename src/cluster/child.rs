//! Child processes of this machine: local agents, and the programs by which launchers reach a host.

use std::{collections::BTreeMap, ffi::OsString, process::Stdio};

use railgauge_wire::{
    Kind, Stage,
    remedy::{self, Remedy},
};
use tokio::process::Command;

use super::{Pipe, Trouble};

/// Starts a child process with piped streams, in a process group of its own: Ctrl-C on the terminal reaches only the controller, which then
/// stops its agents cleanly.
///
/// # Errors
/// The program cannot be started; `remedy` is the advice unless this machine lacks resources.
pub(super) fn child(
    words: &[String],
    env: &BTreeMap<String, String>,
    remedy: impl Into<Remedy>,
) -> Result<Pipe, Trouble> {
    child_without(words, env, &[], remedy)
}

/// [`child`], without these variables of this process's environment.
pub(super) fn child_without(
    words: &[String],
    env: &BTreeMap<String, String>,
    without: &[OsString],
    remedy: impl Into<Remedy>,
) -> Result<Pipe, Trouble> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(Trouble::lasting(Stage::Connect, Kind::Configuration, "the launcher's command is empty"));
    };
    let mut command = Command::new(program);
    without.iter().for_each(|name| _ = command.env_remove(name));
    let piped = command
        .args(arguments)
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // Its group ends with it: see `Group`.
        .kill_on_drop(true)
        .spawn()
        .and_then(Pipe::of_child);
    piped.map_err(|error| {
        let cause = format!("cannot start {program}: {error}");
        match error.raw_os_error() {
            // EAGAIN, ENOMEM, EMFILE, ENFILE: short of processes, memory or files at this moment.
            Some(11 | 12 | 23 | 24) => {
                Trouble::passing(Stage::Connect, Kind::Configuration, cause).remedy(remedy::LOWER_IN_FLIGHT)
            }
            _ => Trouble::lasting(Stage::Connect, Kind::Configuration, cause).remedy(remedy),
        }
    })
}

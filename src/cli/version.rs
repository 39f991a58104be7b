//! `railgauge version`: what this program is, and which agents it sends.

use std::fmt::Write;

use railgauge_model::{border::text::path_text, journal::event::VERSION};
use serde::Serialize;

use super::{Common, Exit};
use crate::cluster::{AgentBinary, Image, Machine};

/// Arguments of `version`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print everything as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// What is told.
#[derive(Debug, Serialize)]
struct Version {
    /// Version of railgauge.
    version: &'static str,
    /// Commit that a release was made of; `None` where the build did not say.
    commit: Option<&'static str>,
    /// Architecture this program runs on, as `uname -m` spells it.
    machine: String,
    /// Whether it was built with optimisation.
    optimised: bool,
    /// Version of the protocol between controller and agents.
    protocol: u32,
    /// Version of the journal in run directories.
    journal: u32,
    /// Agents that can be sent, by architecture; empty where none was found.
    agents: Vec<Agent>,
    /// Why no agent was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

/// An agent that can be sent.
#[derive(Debug, Serialize)]
struct Agent {
    machine: String,
    path: String,
    sha256: String,
    bytes: usize,
}

impl Agent {
    fn of(image: &Image) -> Self {
        Self {
            machine: image.machine.to_string(),
            path: path_text(&image.path),
            sha256: image.hash.clone(),
            bytes: image.bytes.len(),
        }
    }
}

/// Tells what this program is.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn run(args: &Args, common: &Common) -> anyhow::Result<Exit> {
    let (agents, missing) = match AgentBinary::find() {
        Ok(found) => (found.images().iter().map(|image| Agent::of(image)).collect(), None),
        Err(failure) => (Vec::new(), Some(failure.to_string())),
    };
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: option_env!("RAILGAUGE_COMMIT"),
        machine: Machine::here().to_string(),
        optimised: !cfg!(debug_assertions),
        protocol: railgauge_wire::PROTOCOL,
        journal: VERSION,
        agents,
        missing,
    };
    common.answer(args.json, &version, false, |_| text(&version))?;
    Ok(Exit::Passed)
}

fn text(version: &Version) -> String {
    let mut out = String::new();
    let build = if version.optimised { "" } else { ", built without optimisation" };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "railgauge {} for {}{build}", version.version, version.machine);
    let _ = match version.commit {
        Some(commit) => writeln!(out, "commit    {commit}"),
        None => writeln!(out, "commit    not recorded (built from source)"),
    };
    let _ = writeln!(out, "protocol  {}, journal {}", version.protocol, version.journal);
    for agent in &version.agents {
        let _ = writeln!(
            out,
            "agent     {} {} ({} bytes, sha256 {})",
            agent.machine, agent.path, agent.bytes, agent.sha256
        );
    }
    if let Some(missing) = &version.missing {
        let _ = writeln!(out, "agent     {missing}");
    }
    out
}

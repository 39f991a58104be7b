//! Commands that take the hosts that failed verdicts blame out of service, and those that undo it, for Slurm and Kubernetes. They are
//! text: railgauge executes none of them.

use std::fmt::Write;

use railgauge_wire::shell::quoted;
use serde::Serialize;

use super::{
    blame::Blamed,
    state::{Standing, State},
};

/// What every reason begins with, by which the undo tells its own.
const OURS: &str = "railgauge:";
/// Longest reason, in characters: more is hard to read in a list of nodes.
const LONGEST: usize = 120;
/// Key of the taint.
const TAINT: &str = "railgauge/unhealthy";

/// Whose commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// `scontrol update`.
    Slurm,
    /// `kubectl taint`.
    Kubernetes,
}

/// Hosts to take out of service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lists {
    /// Version of this document.
    pub version: u32,
    /// Identity of the run.
    pub run_id: String,
    /// Whose commands.
    pub scheduler: Scheduler,
    /// The hosts, and why.
    pub hosts: Vec<Blamed>,
    /// A command for each.
    pub drain: Vec<String>,
    /// A command for each that takes it back, where nobody else has changed it meanwhile.
    pub undo: Vec<String>,
    /// Why the list is empty or may be too short, in words; empty where there is nothing to say.
    pub remarks: Vec<String>,
}

impl Lists {
    /// The lists for a run. There is no host in them unless the run's result is certain and new enough.
    pub fn of(standing: &Standing, scheduler: Scheduler) -> Self {
        let mut remarks = Vec::new();
        let hosts = match standing.state {
            State::Critical => standing.blamed.clone(),
            State::Unknown => {
                remarks.push(format!("no host is listed, since the result is unknown: {}", standing.text));
                Vec::new()
            }
            State::Warning => {
                remarks.push(format!("no host is listed, since the result is inconclusive: {}", standing.text));
                Vec::new()
            }
            State::Ok => Vec::new(),
        };
        if standing.state == State::Critical && hosts.is_empty() {
            remarks.push(format!("no host is listed, since no failed verdict blames one by itself: {}", standing.text));
        }
        let (drain, undo) = hosts.iter().map(|host| commands(scheduler, host, standing)).unzip();
        Self { version: 1, run_id: standing.run_id.clone(), scheduler, hosts, drain, undo, remarks }
    }

    /// One list as a script of lines.
    pub fn text(&self, undo: bool) -> String {
        let mut text = String::new();
        for line in if undo { &self.undo } else { &self.drain } {
            // Never fails: it writes to a String.
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

fn commands(scheduler: Scheduler, blamed: &Blamed, standing: &Standing) -> (String, String) {
    let host = &blamed.host;
    match scheduler {
        Scheduler::Slurm => {
            let name = quoted(host);
            let reason = reason(blamed, standing);
            let drain = format!("scontrol update nodename={name} state=drain reason={}", quoted(&reason));
            // Only what this tool drained: somebody else's reason stays.
            let undo =
                format!("sinfo -h -n {name} -o %E | grep -q '^{OURS}' && scontrol update nodename={name} state=resume");
            (drain, undo)
        }
        Scheduler::Kubernetes => {
            let name = quoted(host);
            // The value of a taint is a label's: letters, digits, `-`, `_` and `.`, 63 characters at most, none at its ends.
            let value = label(&standing.run_id);
            let drain = format!("kubectl taint nodes {name} {TAINT}={value}:NoSchedule --overwrite");
            (drain, format!("kubectl taint nodes {name} {TAINT}-"))
        }
    }
}

/// `railgauge: nightly: NIC mlx5_3 of gpu031: -22.0 % … (run nightly-20261126)`, in plain characters.
fn reason(blamed: &Blamed, standing: &Standing) -> String {
    let text = format!("{OURS} {}: {}", standing.plan, blamed.why.join("; "));
    let plain: String =
        text.chars().map(|c| if c.is_ascii_graphic() && !"\"\\`$".contains(c) { c } else { ' ' }).collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = format!(" (run {})", label(&standing.run_id));
    if words.chars().count() + end.len() <= LONGEST {
        return words + &end;
    }
    let kept: String = words.chars().take(LONGEST.saturating_sub(end.len() + 3)).collect();
    kept + "..." + &end
}

/// Text as the value of a Kubernetes label.
fn label(text: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let kept: String = text.chars().take(63).map(allowed).collect();
    let kept = kept.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if kept.is_empty() { "run".to_owned() } else { kept.to_owned() }
}

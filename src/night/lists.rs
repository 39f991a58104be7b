//! Commands that take the hosts that failed verdicts blame out of service, and those that undo it, for Slurm and Kubernetes. They are
//! text: railgauge executes none of them.

use std::{collections::BTreeSet, fmt::Write};

use railgauge_model::border::text::printable;
use railgauge_wire::shell::quoted;
use serde::Serialize;

use super::{
    blame::{Blamed, blame},
    judged::Judged,
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
    /// Commands that take back what this run drains: for every host that it blames, whatever its age.
    pub undo: Vec<String>,
    /// Why there is nothing to drain or less than there may seem, in words; empty where there is nothing to say.
    pub remarks: Vec<String>,
}

impl Lists {
    /// The lists for a run. There is no host to drain unless the run's result is certain and new enough; what takes it back is listed
    /// whatever happened since.
    pub fn of(run: &Judged, standing: &Standing, scheduler: Scheduler) -> Self {
        let mut remarks = standing.remarks.clone();
        let why = match standing.state {
            State::Unknown => Some("the result is unknown"),
            State::Warning => Some("the result is inconclusive"),
            State::Critical if standing.blamed.is_empty() => Some("no failed verdict blames one by itself"),
            State::Critical | State::Ok => None,
        };
        remarks.extend(why.map(|why| format!("no host is listed, since {why}: {}", standing.text)));
        let ever = blame(run).hosts;
        let strange = standing.blamed.iter().chain(&ever).map(|one| one.host.as_str()).filter(|host| !is_node(host));
        let strange: BTreeSet<&str> = strange.collect();
        remarks.extend(strange.into_iter().map(|host| {
            let host = printable(host);
            format!("no command is listed for `{host}`, which could be taken for another word or for more than one node: do it by hand")
        }));
        let commands = |hosts: &[Blamed]| {
            let nodes = hosts.iter().filter(|one| is_node(&one.host));
            nodes.map(|one| commands(scheduler, one, standing)).collect::<Vec<_>>()
        };
        let drain = commands(&standing.blamed).into_iter().map(|(drain, _)| drain).collect();
        let undo = commands(&ever).into_iter().map(|(_, undo)| undo).collect();
        let hosts = standing.blamed.clone();
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

/// Whether both schedulers take a name for one node and for nothing else: `scontrol` takes `ALL`, a comma and brackets for many, `kubectl`
/// a dash in front for an option, and whoever reads a list line by line takes a line break for its end.
fn is_node(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    is_plain && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !name.eq_ignore_ascii_case("all")
}

fn commands(scheduler: Scheduler, blamed: &Blamed, standing: &Standing) -> (String, String) {
    let host = &blamed.host;
    match scheduler {
        Scheduler::Slurm => {
            let name = quoted(host);
            let reason = reason(blamed, standing);
            // A node that somebody else drained, or that is down, keeps its reason.
            let drain = format!(
                "sinfo -h -n {name} -o %T | grep -qE 'drain|down|fail|maint' || scontrol update nodename={name} state=drain \
                 reason={}",
                quoted(&reason)
            );
            // Only what this run drained: another reason stays.
            let undo = format!(
                "sinfo -h -n {name} -o %E | grep -q '^{OURS} .*(run {})' && scontrol update nodename={name} state=resume",
                label(&standing.run_id)
            );
            (drain, undo)
        }
        Scheduler::Kubernetes => {
            let name = quoted(host);
            // The value of a taint is a label's: letters, digits, `-`, `_` and `.`, 63 characters at most, none at its ends.
            let value = label(&standing.run_id);
            // Without `--overwrite` a taint of another run stays.
            let drain = format!("kubectl taint nodes {name} {TAINT}={value}:NoSchedule");
            (drain, format!("kubectl taint nodes {name} {TAINT}={value}:NoSchedule-"))
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

#[cfg(test)]
mod tests {
    use super::is_node;

    #[test]
    fn only_a_plain_name_is_a_node() {
        for name in ["gpu001", "GPU-1.rack_2.example.org", "10.0.0.7", "all1"] {
            assert!(is_node(name), "{name}");
        }
        let several = ["ALL", "all", "a,b", "gpu[001-064]", "gpu*", "a b", "a\nscontrol reboot"];
        let words = ["--all", "-l", "~root", ".", "a=b", "a/b", "", "gp\u{fc}1", "a\u{202e}b"];
        let shell = ["$(touch x)", "`x`", "a;b", "a'b", "a\"b", "a|b"];
        for name in several.into_iter().chain(words).chain(shell) {
            assert!(!is_node(name), "{name:?}");
        }
    }
}

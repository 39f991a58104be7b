//! Commands that take faulty hosts out of service, and those that undo it, for Slurm and Kubernetes. They are text: railgauge executes
//! none of them.

use std::{collections::BTreeSet, fmt::Write};

use railgauge_model::border::text::printable;
use railgauge_wire::shell::quoted;
use serde::Serialize;

use super::{nights::Nights, state::Standing, states::Known};

/// What every reason begins with, by which the undo recognises its own.
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

/// Hosts to take out of service, and hosts to take back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lists {
    /// Version of this document.
    pub version: u32,
    /// Name of the plan.
    pub plan: String,
    /// Whose commands.
    pub scheduler: Scheduler,
    /// The faulty hosts, and why.
    pub hosts: Vec<Known>,
    /// A command for each.
    pub drain: Vec<String>,
    /// Hosts that were faulty and were measured as good since.
    pub repaired: Vec<String>,
    /// A command for each.
    pub undo: Vec<String>,
    /// Why there is nothing to drain or less than there may seem, in words; empty where there is nothing to say.
    pub remarks: Vec<String>,
}

impl Lists {
    /// The lists for the states of hosts after all runs.
    pub fn of(nights: &Nights, standing: &Standing, scheduler: Scheduler) -> Self {
        let mut remarks = standing.remarks.clone();
        let hosts: Vec<Known> = standing.faulty_hosts().cloned().collect();
        let repaired: Vec<&Known> = nights.states.hosts.iter().filter(|one| one.repaired).collect();
        if hosts.is_empty() && standing.state != super::State::Ok {
            remarks.push(format!("the state is {}: {}", standing.state.word(), standing.text));
        }
        let name = |one: &Known| one.hosts.concat();
        let all = hosts.iter().chain(repaired.iter().copied()).map(name);
        let strange: BTreeSet<String> = all.filter(|host| !is_node(host)).collect();
        remarks.extend(strange.into_iter().map(|host| {
            let host = printable(&host);
            format!("no command is listed for `{host}`, which could be taken for another word or for more than one node: do it by hand")
        }));
        let plan = &standing.plan;
        let is_plain = |one: &&Known| is_node(&name(one));
        Self {
            version: 2,
            plan: plan.clone(),
            scheduler,
            drain: hosts.iter().filter(is_plain).map(|one| drain(scheduler, one, plan)).collect(),
            undo: repaired.iter().copied().filter(is_plain).map(|one| undo(scheduler, &name(one), plan)).collect(),
            repaired: repaired.iter().map(|one| name(one)).collect(),
            hosts,
            remarks,
        }
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

fn drain(scheduler: Scheduler, known: &Known, plan: &str) -> String {
    let name = quoted(&known.hosts.concat()).to_string();
    match scheduler {
        // A node that somebody else drained, or that is down, keeps its reason.
        Scheduler::Slurm => format!(
            "sinfo -h -n {name} -o %T | grep -qE 'drain|down|fail|maint' || scontrol update nodename={name} state=drain reason={}",
            quoted(&reason(known, plan))
        ),
        // Without `--overwrite` a taint of another plan stays.
        Scheduler::Kubernetes => format!("kubectl taint nodes {name} {TAINT}={}:NoSchedule", label(plan)),
    }
}

/// What takes back what this plan drained: another reason stays.
fn undo(scheduler: Scheduler, host: &str, plan: &str) -> String {
    let (name, plan) = (quoted(host), label(plan));
    match scheduler {
        Scheduler::Slurm => format!(
            "sinfo -h -n {name} -o %E | grep -q '^{OURS} {}: ' && scontrol update nodename={name} state=resume",
            plan.replace('.', "[.]")
        ),
        Scheduler::Kubernetes => format!("kubectl taint nodes {name} {TAINT}={plan}:NoSchedule-"),
    }
}

/// `railgauge: nightly: rail 3 of gpu031 (mlx5_3): -22.0 % … (run nightly-20261126)`, in plain characters; the run is the first that says so.
fn reason(known: &Known, plan: &str) -> String {
    let text = format!("{OURS} {}: {}", label(plan), known.why.join("; "));
    let plain: String = text
        .chars()
        .map(|c| match c {
            '−' => '-',
            c if c.is_ascii_graphic() && !"\"\\`$".contains(c) => c,
            _ => ' ',
        })
        .collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = format!(" (run {})", label(known.since.as_ref().map_or("", |said| &said.run_id)));
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

//! The text of a first plan, made of host names and of what the hosts are. Pure.
//!
//! | file | holds |
//! | --- | --- |
//! | `seen` | what the hosts have: rails, GPUs, libraries; whether their speeds can be judged |
//! | `groups` | groups that the hosts' names tell |
//! | `wanted` | `[preflight]`: the values that all hosts have |
//! | `measure` | the tests of each purpose |
//! | `within` | tests within hosts: GPUs and memory |
//! | `systems` | shipped plans for known systems, and which of them fits |
//! | `page` | comments and TOML as text |

mod groups;
mod measure;
mod page;
mod seen;
mod systems;
mod wanted;
mod within;

use std::{collections::BTreeMap, path::Path};

use railgauge_model::{
    border::text::printable,
    plan::{
        self, Mistakes, Plan,
        count::{capital, count},
        hostlist::fold,
    },
    schedule::{Inventory, ScheduleError, Time, schedule},
};
use railgauge_wire::failure::Failure;

use self::{page::Page, seen::Seen};
use crate::preflight::{self, Cluster, Severity};

pub use self::{
    page::quoted,
    systems::{SYSTEMS, System, system},
};

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// The day on which a cluster is handed over: every pair, NCCL, what the hosts must be
    Acceptance,
    /// Every night between jobs: short, other pairs each night
    Nightly,
    /// Two variants of a setting, measured in turn
    Tuning,
}

impl Purpose {
    /// Its word, which is the plan's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Acceptance => "acceptance",
            Self::Nightly => "nightly",
            Self::Tuning => "tuning",
        }
    }

    const fn about(self, is_known: bool) -> &'static str {
        match self {
            Self::Acceptance if is_known => {
                "The configuration of today is required from now on, and what links and GPUs reach is measured."
            }
            Self::Acceptance => {
                "What links reach is measured; nothing is required of the hosts, because nobody looked at them."
            }
            Self::Nightly => {
                "Other pairs each night, short windows: it finds the link that became slow since yesterday."
            }
            Self::Tuning => "One setting in two variants, measured in turn: does it make a difference here?",
        }
    }
}

/// What a plan is made of.
#[derive(Debug)]
pub struct Request<'r> {
    /// What it is for.
    pub purpose: Purpose,
    /// The lines of `[launch]`, with its header and tables.
    pub launch: &'r str,
    /// Whether all hosts are processes of the controller's machine.
    pub is_local: bool,
    /// Hosts in their order, those that did not answer too.
    pub hosts: &'r [String],
    /// What those are that answered.
    pub cluster: &'r Cluster,
    /// Why others did not.
    pub lost: &'r BTreeMap<String, Failure>,
    /// The day it is written on.
    pub day: &'r str,
}

/// A plan that was written.
#[derive(Debug)]
pub struct Draft {
    /// Its text.
    pub text: String,
    /// The same, read.
    pub plan: Plan,
    /// What was found, in words.
    pub found: String,
    /// Values of the hosts' configuration that it requires.
    pub wanted: usize,
    /// How long a run takes once agents run, in words.
    pub time: String,
    /// What a reader should know, one sentence each or two.
    pub notes: Vec<String>,
    /// The shipped plan of such a system.
    pub system: Option<&'static System>,
    /// Findings of its preflight that a run of it will show: failures and warnings.
    pub findings: (usize, usize),
}

/// Why no plan was written.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// Too few hosts for a pair.
    #[error("a plan needs at least two hosts")]
    TooFew,
    /// The text that was made is no plan.
    #[error("the plan that was made has mistakes:\n{}", .0.render(false))]
    Mistaken(Box<Mistakes>),
    /// Its rounds cannot be made.
    #[error("the plan that was made cannot be scheduled: {0}")]
    Unscheduled(#[from] ScheduleError),
}

/// Writes a plan. Of hosts that are neither in the cluster nor among the lost nothing is known.
///
/// # Errors
/// There are fewer than two hosts to plan for, or what was made is no plan.
pub fn draft(request: &Request<'_>) -> Result<Draft, DraftError> {
    let hosts: Vec<String> = request.hosts.iter().filter(|host| !request.lost.contains_key(*host)).cloned().collect();
    if hosts.len() < 2 {
        return Err(DraftError::TooFew);
    }
    let is_known = !request.cluster.facts.is_empty();
    let seen = match is_known {
        true => Seen::of(&hosts, request.cluster, request.is_local),
        false => Seen::unseen(&hosts, request.is_local),
    };
    let mut body = Page::default();
    head(&mut body, request, &seen);
    let mut wanted = 0;
    if is_known && request.purpose == Purpose::Acceptance {
        let bare = read(&format!("{}{BARE_TEST}", body_text(request, &seen)))?;
        let agreed = wanted::agreed(&bare, request.cluster, &seen);
        wanted = agreed.values();
        agreed.write(&mut body);
    }
    if seen.one_machine || seen.is_emulated {
        body.gap();
        body.say("What differs between such hosts is the turn they get from a processor, and no part of a fabric.");
        body.line("[localise]\nconfirm = false\nwaive = [\"all\"]");
    }
    match request.purpose {
        Purpose::Acceptance => measure::acceptance(&mut body, &seen),
        Purpose::Nightly => measure::nightly(&mut body, &seen),
        Purpose::Tuning => measure::tuning(&mut body, &seen),
    }
    let body = body.finished();
    let plan = read(&body)?;
    let time = time(&plan)?;
    let system = systems::fitting(&seen);
    let found = if is_known { found(&seen) } else { String::new() };
    let text = [introduction(request, &seen, &found, system, &time), body].concat();
    let plan = read(&text)?;
    let findings = if is_known { preflight::judge(&plan, request.cluster) } else { Vec::new() };
    let with = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let findings = (with(Severity::Failure), with(Severity::Warning));
    Ok(Draft { text, plan, found, wanted, time, notes: seen.notes, system, findings })
}

/// A test that makes a plan of a head.
const BARE_TEST: &str = "\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n";

fn read(text: &str) -> Result<Plan, DraftError> {
    let read = plan::parse("plan.toml", text, Path::new(""));
    read.map(|(plan, _)| plan).map_err(|mistakes| DraftError::Mistaken(Box::new(mistakes)))
}

/// The head alone.
fn body_text(request: &Request<'_>, seen: &Seen) -> String {
    let mut page = Page::default();
    head(&mut page, request, seen);
    page.finished()
}

/// Comments at the top: what the plan is, what was found, how long it takes, and who is missing.
fn introduction(request: &Request<'_>, seen: &Seen, found: &str, system: Option<&System>, time: &str) -> String {
    let mut page = Page::default();
    let hosts = count(seen.hosts.len(), "host");
    page.say(format!(
        "{} of {hosts}. {}",
        capital(request.purpose.word()),
        request.purpose.about(!request.cluster.facts.is_empty())
    ));
    page.say(format!(
        "Written by `railgauge init` on {}: a beginning to be changed. `railgauge check` reads it, docs/plan-format.md has all keys.",
        request.day
    ));
    page.blank();
    match found.is_empty() {
        true => page.say(
            "No host was asked what it is (--offline): look at transport, devices and GPUs before you run it, or write it again \
             without --offline.",
        ),
        false => page.say(format!("Found: {found}.")),
    }
    page.say(format!("Takes {time}; `railgauge run --dry-run` shows every round."));
    if let Some(system) = system {
        page.say(format!(
            "This may be {}. plans/systems/{}.toml has limits that others use for such hosts (`railgauge init --system {}`).",
            system.about, system.name, system.name
        ));
    }
    for note in &seen.notes {
        page.say(printable(note));
    }
    if !request.lost.is_empty() {
        page.blank();
        page.say("Left out, because no agent could be brought up there:");
        for (cause, hosts) in causes(request) {
            page.item(format!("{}: {cause}", fold(hosts.iter().copied())));
        }
    }
    page.finished()
}

/// Hosts that were lost, by the reason.
fn causes<'r>(request: &'r Request<'_>) -> Vec<(String, Vec<&'r str>)> {
    let mut causes: Vec<(String, Vec<&str>)> = Vec::new();
    for host in request.hosts {
        let Some(failure) = request.lost.get(host) else { continue };
        let cause = printable(&format!("{}: {}", failure.stage, unnamed(&failure.cause, host)));
        match causes.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, hosts)) => hosts.push(host),
            None => causes.push((cause, vec![host])),
        }
    }
    causes
}

/// A reason without the host's name, so that many hosts can have the same one. A name that may be a word of the reason stays.
fn unnamed(cause: &str, host: &str) -> String {
    let is_name = host.contains(|c: char| c.is_ascii_digit() || c == '.');
    let belongs = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let (mut out, mut rest) = (String::new(), cause);
    while let Some(at) = rest.find(host).filter(|_| is_name) {
        let (before, after) = (&rest[..at], &rest[at + host.len()..]);
        let is_whole = !before.ends_with(belongs) && !after.starts_with(belongs);
        out.push_str(before);
        out.push_str(if is_whole { "HOST" } else { host });
        rest = after;
    }
    out + rest
}

/// Name, launch and hosts.
fn head(page: &mut Page, request: &Request<'_>, seen: &Seen) {
    page.line(format!("name = \"{}\"", request.purpose.word()));
    page.line("seed = 1");
    if request.purpose == Purpose::Nightly {
        page.line("rotate = true  # other pairs each night, until every round had its turn");
    }
    page.gap();
    page.line(request.launch.trim_end());
    page.gap();
    page.line("[hosts]");
    let names: Vec<String> = pieces(&seen.hosts);
    page.line(format!("names = {}", page::list(&names)));
    if !seen.devices.is_empty() {
        page.line(format!("devices = {}", page::list(&seen.devices)));
    }
    let groups = groups::groups(&seen.hosts);
    if !groups.is_empty() {
        page.gap();
        page.say("By their names: the report then looks for bad groups, and for what lies between them.");
        page.line("[hosts.groups]");
        for (group, hosts) in groups {
            let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
            page.line(format!("{} = {}", quoted(&group), page::list(&pieces(&hosts))));
        }
    }
    for (devices, hosts) in &seen.other_devices {
        page.gap();
        page.line(format!(
            "[[hosts.override]]\nmatch = {}\ndevices = {}",
            page::list(&pieces(hosts)),
            page::list(devices)
        ));
    }
}

/// Hosts in short form, cut at the commas outside of brackets.
fn pieces(hosts: &[String]) -> Vec<String> {
    let folded = fold(hosts.iter().map(String::as_str));
    let (mut pieces, mut depth) = (vec![String::new()], 0_u32);
    for c in folded.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = pieces.last_mut() {
            last.push(c);
        }
    }
    pieces
}

/// What the hosts have, in words.
fn found(seen: &Seen) -> String {
    let mut words = Vec::new();
    if seen.gpus > 0 {
        let name = seen.gpu_name.clone().unwrap_or_else(|| "GPUs of several kinds".to_owned());
        words.push(format!("{} × {name}", seen.gpus));
    }
    match (seen.carrier, seen.devices.len()) {
        (seen::Carrier::Verbs, ports) => {
            let layer = seen.layer.map(|layer| format!(" ({layer})")).unwrap_or_default();
            let rate = seen.rate.map(|rate| format!(" of {rate} Gb/s")).unwrap_or_default();
            words.push(format!("{}{rate}{layer}", count(ports, "RDMA port")));
        }
        (seen::Carrier::Tcp, _) => words.push("no RDMA that can be used, so TCP is measured".to_owned()),
    }
    if let Some(version) = &seen.nccl {
        let name = if seen.is_amd { "RCCL" } else { "NCCL" };
        words.push(format!("{name} {version}").trim_end().to_owned());
    }
    if let Some(product) = &seen.product {
        words.push(product.clone());
    }
    printable(&words.join(", "))
}

/// How long a run takes, in words.
fn time(plan: &Plan) -> Result<String, ScheduleError> {
    let total: Time = schedule(plan, &Inventory::of_plan(plan))?.times(plan, None).into_iter().sum();
    Ok(plan.takes(total, None) + &plan.then_suspects())
}

#[cfg(test)]
mod tests;

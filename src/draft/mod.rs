//! The text of a first plan, made of host names and of what the hosts are. Pure.
//!
//! | file | holds |
//! | --- | --- |
//! | `seen` | what the hosts have: rails, GPUs, libraries; whether their speeds can be judged |
//! | `groups` | groups from the hosts' names |
//! | `wanted` | `[preflight]`: the values that all hosts have |
//! | `within` | what can be measured within hosts: GPUs and memory |
//! | `page` | the text, by `templates/plan.toml`, which has the tests of each purpose |

mod groups;
mod page;
mod seen;
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
use railgauge_preflight::{self as preflight, Cluster, Severity};
use railgauge_wire::{Failure, GigabitsPerSecond};
use serde::Serialize;

use self::{page::comment, seen::Seen};

pub use self::page::quoted;

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// A new cluster, once: every pair, NCCL, and the configuration of the hosts
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
                "What links reach is measured; nothing is required of the hosts, because they were not queried."
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
    /// Findings of its preflight that a run of it will show: failures and warnings.
    pub findings: (usize, usize),
}

/// Why no plan was written.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// Too few hosts for a pair, and no GPU within the only one.
    #[error("a plan needs at least two hosts, or one with a GPU")]
    TooFew,
    /// The text that was made is not a plan.
    #[error("the new plan has errors:\n{}", .0.render(false))]
    Mistaken(Box<Mistakes>),
    /// The template does not fit what it is given.
    #[error("the text cannot be made: {0:#}")]
    Template(#[from] minijinja::Error),
    /// Its rounds cannot be made.
    #[error("the plan that was made cannot be scheduled: {0}")]
    Unscheduled(#[from] ScheduleError),
}

/// Hosts up to which every pair is measured.
const TOURNAMENT: usize = 32;
/// Rounds of a larger cluster: every host meets as many others.
const ROUNDS: usize = 32;
/// Rounds of one night.
const NIGHTLY_ROUNDS: usize = 4;
/// GPU memory below which collectives stay small, in bytes.
const SMALL_GPU: u64 = 8 << 30;

/// Writes a plan. Of hosts that are neither in the cluster nor among the lost nothing is known.
///
/// # Errors
/// There is nothing to measure between or within the hosts, or what was made is not a plan.
pub fn draft(request: &Request<'_>) -> Result<Draft, DraftError> {
    let hosts: Vec<String> = request.hosts.iter().filter(|host| !request.lost.contains_key(*host)).cloned().collect();
    let is_known = !request.cluster.facts.is_empty();
    let is_local = request.is_local && hosts.len() > 1;
    let seen = match is_known {
        true => Seen::of(&hosts, request.cluster, is_local),
        false => Seen::unseen(&hosts, is_local),
    };
    if hosts.len() < 2 && !(request.purpose == Purpose::Acceptance && seen.gpus > 0) {
        return Err(DraftError::TooFew);
    }
    let mut text = Text::of(request, &seen);
    text.bare = is_known && request.purpose == Purpose::Acceptance;
    if text.bare {
        let bare = read(&page::page(&text)?)?;
        (text.bare, text.agreed) = (false, wanted::agreed(&bare, request.cluster, &seen));
    }
    let time = time(&read(&page::page(&text)?)?, seen.rate.map(GigabitsPerSecond))?;
    let found = if is_known { found(&seen) } else { String::new() };
    (text.time, text.found) = (time.clone(), found.clone());
    let wanted = text.agreed.as_ref().map_or(0, |agreed| agreed.values.len());
    let text = page::page(&text)?;
    let plan = read(&text)?;
    let findings = if is_known { preflight::judge(&plan, request.cluster) } else { Vec::new() };
    let with = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let findings = (with(Severity::Failure), with(Severity::Warning));
    Ok(Draft { text, plan, found, wanted, time, notes: seen.notes, findings })
}

fn read(text: &str) -> Result<Plan, DraftError> {
    let read = plan::parse("plan.toml", text, Path::new(""));
    read.map(|(plan, _)| plan).map_err(|mistakes| DraftError::Mistaken(Box::new(mistakes)))
}

/// What `templates/plan.toml` reads.
#[derive(Serialize)]
struct Text<'r> {
    purpose: &'static str,
    title: String,
    about: &'static str,
    count: String,
    day: &'r str,
    launch: &'r str,
    seen: Seen,
    names: String,
    devices: String,
    groups: Vec<String>,
    /// Devices that differ: hosts and devices, as lists of TOML.
    overrides: Vec<(String, String)>,
    lost: Vec<String>,
    /// Rounds of random pairs; none where every pair is measured.
    rounds: Option<usize>,
    /// How many pairs are measured.
    pairs: usize,
    far: String,
    small_gpus: bool,
    agreed: Option<wanted::Agreed>,
    /// Whether only the hosts matter.
    bare: bool,
    /// Empty until it is known; so are comments at the top.
    time: String,
    found: String,
}

impl<'r> Text<'r> {
    fn of(request: &Request<'r>, seen: &Seen) -> Self {
        let mut seen = seen.clone();
        seen.notes.iter_mut().chain(&mut seen.unjudged).for_each(|text| *text = comment(text));
        let hosts = seen.hosts.len();
        let rounds = match request.purpose {
            Purpose::Acceptance if hosts <= TOURNAMENT => None,
            Purpose::Acceptance => Some(ROUNDS),
            Purpose::Nightly => Some(NIGHTLY_ROUNDS),
            // A round of an odd number of hosts leaves one out, about which nothing would be known: two have all of them.
            Purpose::Tuning => Some(1 + hosts % 2),
        };
        // Every pair once takes so many rounds (circle method).
        let all = hosts.div_ceil(2) * 2 - 1;
        let rounds = rounds.map(|rounds| rounds.min(all));
        let in_toml = |hosts: &[String]| page::list(&pieces(hosts));
        let groups = groups::groups(&seen.hosts).into_iter().map(|(group, hosts)| {
            let hosts: Vec<String> = hosts.into_iter().map(str::to_owned).collect();
            format!("{} = {}", quoted(&group), in_toml(&hosts))
        });
        let lost = causes(request).into_iter();
        Self {
            purpose: request.purpose.word(),
            title: capital(request.purpose.word()),
            about: request.purpose.about(!request.cluster.facts.is_empty()),
            count: count(hosts, "host"),
            day: request.day,
            launch: request.launch.trim_end(),
            names: in_toml(&seen.hosts),
            devices: if seen.devices.is_empty() { String::new() } else { page::list(&seen.devices) },
            groups: groups.collect(),
            overrides: seen
                .other_devices
                .iter()
                .map(|(devices, hosts)| (in_toml(hosts), page::list(devices)))
                .collect(),
            lost: lost.map(|(cause, hosts)| comment(&format!("{}: {cause}", fold(hosts.iter().copied())))).collect(),
            rounds,
            pairs: rounds.map_or(hosts * (hosts - 1) / 2, |rounds| rounds * (hosts / 2)),
            far: if seen.far_from_gpus.is_empty() { String::new() } else { comment(&within::has(&seen.far_from_gpus)) },
            small_gpus: seen.gpu_bytes.is_some_and(|bytes| bytes < SMALL_GPU),
            seen,
            agreed: None,
            bare: false,
            time: String::new(),
            found: String::new(),
        }
    }
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
        (seen::Carrier::Tcp, _) if seen.hosts.len() < 2 => {}
        (seen::Carrier::Tcp, _) => words.push("no RDMA that can be used, so TCP is measured".to_owned()),
    }
    if let Some(version) = &seen.nccl {
        let name = if seen.is_amd { "RCCL" } else { "NCCL" };
        words.push(format!("{name} {version}").trim_end().to_owned());
    }
    if let Some(product) = &seen.product {
        words.push(product.clone());
    }
    comment(&words.join(", "))
}

/// How long a run takes on links of this rate, in words.
fn time(plan: &Plan, rate: Option<GigabitsPerSecond>) -> Result<String, ScheduleError> {
    let total: Time = schedule(plan, &Inventory::of_plan(plan))?.times(plan, rate).into_iter().sum();
    Ok(plan.takes(total, rate) + &plan.then_suspects())
}

#[cfg(test)]
mod tests;

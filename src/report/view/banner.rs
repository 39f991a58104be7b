//! What the banner says below the verdict: the part that is bad, and the first thing to do.

use railgauge_model::plan::{count::count, hostlist};
use serde::Serialize;

use super::{FindingView, Hosts, Parts, TroubleGroup, help};
use crate::{
    analysis::{results::State, verdict::Status},
    preflight::Severity,
};

/// What the banner says below the verdict.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Banner {
    /// Which part is bad, or that none is named and why.
    pub part: Pointer,
    /// The first thing to do and what it is for; `None` where nothing is wrong.
    pub remedy: Option<Pointer>,
}

/// A sentence and where the page tells more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pointer {
    /// What it is about; empty where the text says it.
    pub about: String,
    /// The sentence.
    pub text: String,
    /// Place on the page; empty for none.
    pub anchor: &'static str,
}

/// Parts that are named in the banner.
const NAMED: usize = 3;

/// Makes what the banner says.
pub(super) fn banner(
    status: Status,
    parts: Option<&Parts>,
    is_waived: impl Fn(&str) -> bool,
    troubles: &[TroubleGroup],
    hosts: &Hosts,
) -> Banner {
    let part = match parts {
        None => Pointer {
            about: String::new(),
            text: "No part is named: no test of this run could be searched for one.".to_owned(),
            anchor: "",
        },
        Some(parts) => Pointer { about: String::new(), text: part(parts, is_waived), anchor: "parts" },
    };
    Banner { part, remedy: (status != Status::Pass).then(|| remedy(troubles, hosts)) }
}

fn part(parts: &Parts, is_waived: impl Fn(&str) -> bool) -> String {
    let names = |waived: bool| -> Vec<String> {
        let named = parts.named.iter().filter(|part| !part.cleared && is_waived(&part.name) == waived);
        named.map(|part| format!("{} ({})", part.name, part.standing)).collect()
    };
    let list = |names: &[String]| {
        let more = names.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; "))
    };
    let (open, waived) = (names(false), names(true));
    if !open.is_empty() {
        return format!("Named: {}.", list(&open));
    }
    if !waived.is_empty() {
        return format!("The plan waives every part that is named: {}.", list(&waived));
    }
    match parts {
        Parts { nothing: true, missing: 0, .. } => "No part stands out.".to_owned(),
        Parts { nothing: true, missing, .. } => format!(
            "No part stands out among what was measured. Not compared, without a value that may be trusted: {missing}."
        ),
        Parts { beside: 1, .. } => "No part is named; 1 link stands out.".to_owned(),
        Parts { beside: n @ 2.., .. } => format!("No part is named; {} stand out.", count(*n, "link")),
        Parts { noisy: true, .. } => "No part is named: the values scatter too much to tell.".to_owned(),
        _ => "No part is named, and nothing says that all are good.".to_owned(),
    }
}

fn remedy(troubles: &[TroubleGroup], hosts: &Hosts) -> Pointer {
    let helped = |wrong: bool| troubles.iter().find(move |group| group.wrong == wrong && !group.help.is_empty());
    let explains = || hosts.findings.iter().find(|view| !view.explains.is_empty());
    let lost = || hosts.all.iter().find(|host| !host.help.is_empty());
    let gravest = || hosts.findings.iter().find(|view| view.finding.severity > Severity::Notice);
    if let Some(group) = helped(true) {
        return of_troubles(group);
    }
    if let Some(view) = explains() {
        return of_finding(view, view.explains.first().map_or("", |one| one.how.as_str()));
    }
    if let Some(group) = helped(false) {
        return of_troubles(group);
    }
    if let Some(host) = lost() {
        return Pointer { about: format!("{} was lost", host.name), text: host.help.clone(), anchor: "where" };
    }
    if let Some(view) = gravest() {
        let found = of_finding(view, "");
        if hosts.unexplained.is_empty() {
            return found;
        }
        let about =
            format!("no remedy is known for what was seen. The gravest finding of the configuration, {}", found.about);
        return Pointer { about, ..found };
    }
    let text = "No remedy is known for anything that this page names.".to_owned();
    Pointer { about: String::new(), text, anchor: "" }
}

fn of_troubles(group: &TroubleGroup) -> Pointer {
    let verb = match group.state {
        State::NotRun | State::Failed => format!(" {}", group.state.word()),
        _ => format!(" ({})", group.state.word()),
    };
    let place = if group.named { "at" } else { "between" };
    let about = format!("{}{verb} {place} {}", count(group.cases, "case"), group.hosts);
    Pointer { about, text: group.help.clone(), anchor: "troubles" }
}

fn of_finding(view: &FindingView, how: &str) -> Pointer {
    let finding = &view.finding;
    let hosts = hostlist::fold(finding.hosts.iter().map(String::as_str));
    let hosts = if hosts.is_empty() { String::new() } else { format!(" ({hosts})") };
    let what = view.explains.first().map_or_else(String::new, |one| format!(" {}", one.words));
    let how = if how.is_empty() { String::new() } else { format!(", which {how}{what}") };
    Pointer {
        about: format!("{}{hosts}: {}{how}", finding.check, finding.what),
        text: help(&finding.remedy),
        anchor: "configuration",
    }
}

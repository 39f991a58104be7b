//! `railgauge preflight PLAN`: connects, collects facts, judges every host's configuration; no traffic.

use std::{path::PathBuf, time::Instant};

use railgauge_analysis::status::Status;
use railgauge_model::{
    border::text::path_text,
    plan::{self, count::count},
};
use railgauge_preflight::{self as preflight, Cluster, Demand, Drift, Finding, Held, Severity};
use railgauge_report::{self as report, preflight::Looked, text::Screen};
use railgauge_wire::natural;

use super::{
    Common, Exit,
    common::{no_foreign_file, page_path, runtime},
    selection::Selection,
};
use crate::{
    cluster::AgentBinary,
    run::{
        hosts::{self, Hosts},
        spine::{self, Spine},
    },
};

/// Version of the JSON document.
const VERSION: u32 = 1;

/// Arguments of `preflight`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan
    plan: PathBuf,
    #[command(flatten)]
    selection: Selection,
    /// The page to write; without it none is written
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print findings, drift and lost hosts as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Checks the hosts of a plan.
///
/// # Errors
/// There is no agent to send, or the page or stdout cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    // Before hosts are reached: a page that cannot be written is no reason to wait.
    let page = args.output.map(|asked| page_path(Some(asked), "preflight", no_foreign_file)).transpose()?;
    let Some(loaded) = args.selection.load_of_hosts(&args.plan, common)? else { return Ok(Exit::Wrong) };
    let binary = AgentBinary::find()?;
    let runtime = runtime()?;
    let run_id = format!("preflight-{}-{}", std::process::id(), spine::now());
    let met = runtime.block_on(async {
        let spine = Spine::unrecorded(common.quiet, common.verbose);
        let mut met = hosts::bring_up(&loaded.plan, &run_id, binary, &spine).await;
        met.close().await;
        met
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    let cluster = Cluster { facts: met.facts.clone(), clocks: met.walls.clone() };
    let started = Instant::now();
    let findings = preflight::judge(&loaded.plan, &cluster);
    let demands = preflight::demands(&loaded.plan, &cluster, &findings);
    let drift = preflight::drift(&cluster.facts);
    if common.verbose {
        common.say(format_args!(
            "facts from {} of {}, {:.2} s after their agents' greetings; checked in {:.3} s",
            met.facts.len(),
            count(loaded.plan.hosts.len(), "host"),
            met.told_within.as_secs_f64(),
            started.elapsed().as_secs_f64(),
        ));
    }
    let document = serde_json::json!({
        "version": VERSION, "demands": demands, "findings": findings, "drift": drift, "lost": met.lost, "facts": cluster.facts,
        "told_within_s": met.told_within.as_secs_f64(),
    });
    let looked = Looked {
        plan: &loaded.plan,
        cluster: &cluster,
        demands: &demands,
        findings: &findings,
        drift: &drift,
        lost: &met.lost,
    };
    let status = report::preflight::status(&looked);
    if let Some(page) = &page {
        let time = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
        report::preflight::write(&report::preflight::view(&looked, time), page)?;
        common.say(format_args!("page: {}", path_text(page)));
    }
    let text = Text { demands: &demands, findings: &findings, drift: &drift, met: &met };
    common.answer(args.json, &document, |screen| text.whole(status, screen))?;
    Ok(match status {
        Status::Pass => Exit::Passed,
        Status::Fail => Exit::Failed,
        Status::Inconclusive => Exit::Inconclusive,
        Status::NotRun => Exit::Unable,
    })
}

/// What was found, for a terminal.
struct Text<'f> {
    demands: &'f [Demand],
    findings: &'f [Finding],
    drift: &'f [Drift],
    met: &'f Hosts,
}

/// Lines of each kind without `-v`.
const SHOWN: usize = 5;

impl Text<'_> {
    fn whole(&self, status: Status, screen: &Screen) -> String {
        let of = |severity| self.findings.iter().filter(|one| !one.waived && one.severity == severity).count();
        let up = self.met.facts.len();
        let hosts = count(up + self.met.lost.len(), "host");
        let words = [(Severity::Failure, "failure"), (Severity::Warning, "warning"), (Severity::Notice, "notice")];
        let found = words.map(|(severity, word)| (of(severity), word)).into_iter().filter(|(n, _)| *n > 0);
        let found: Vec<String> = found.map(|(n, word)| count(n, word)).collect();
        let found = if found.is_empty() { "nothing found".to_owned() } else { found.join(", ") };
        let unmet = self.demands.iter().filter(|demand| !demand.waived && demand.held() != Held::Met).count();
        let met = match (self.demands.len(), unmet) {
            (0, _) => String::new(),
            (all, 0) => format!("{} met, ", count(all, "requirement")),
            (all, unmet) => format!("{unmet} of {} not met, ", count(all, "requirement")),
        };
        let mut out = screen.answer(status, &format!("{up} of {hosts} checked: {met}{found}"));
        let most = if screen.verbose { usize::MAX } else { SHOWN };
        for (kind, lines) in [
            ("lost host", self.lost()),
            ("requirement", self.wanted(screen.verbose)),
            ("finding", self.found(screen.verbose)),
            ("difference between hosts", if screen.verbose { self.drifted() } else { Vec::new() }),
        ] {
            let more = lines.len().saturating_sub(most);
            out.extend(lines.iter().take(most).map(|line| screen.wrapped(line, "    ")));
            if more > 0 {
                out += &format!("  and {}: -v\n", count(more, &format!("more {kind}")));
            }
        }
        if !self.drift.is_empty() && !screen.verbose {
            out += &format!("{} not the same on all hosts: -v\n", count(self.drift.len(), "fact"));
        }
        out
    }

    fn lost(&self) -> Vec<String> {
        let mut names: Vec<&String> = self.met.lost.keys().collect();
        natural::sort(&mut names);
        // Failures of hosts name their host.
        names.iter().map(|host| format!("  lost: {}", self.met.lost[*host])).collect()
    }

    /// What the plan wants: all with details, otherwise what is not met.
    fn wanted(&self, all: bool) -> Vec<String> {
        let line = |demand: &Demand| {
            let waived = if demand.waived { ", waived" } else { "" };
            let parts: Vec<String> = [(Held::Unmet, "not met: "), (Held::Unread, "not read: ")]
                .into_iter()
                .map(|(state, words)| (words, demand.departures(state)))
                .filter(|(_, departures)| !departures.is_empty())
                .map(|(words, departures)| format!("{words}{departures}"))
                .collect();
            let met = || format!("met by {}", count(demand.hosts(), "host"));
            let parts = if parts.is_empty() { met() } else { parts.join("; ") };
            format!("  {} = {} [{}{waived}]: {parts}", demand.key, demand.wanted, demand.check)
        };
        // A failure repeats what is not met, with its remedy.
        let has_failure = |demand: &Demand| {
            let own = |one: &&Finding| one.severity == Severity::Failure && one.check == demand.check;
            demand.held() == Held::Unmet && self.findings.iter().any(|one| own(&one))
        };
        let is_shown = |demand: &&Demand| all || demand.held() != Held::Met && !has_failure(demand);
        self.demands.iter().filter(is_shown).map(line).collect()
    }

    /// The gravest first; notices are details.
    fn found(&self, all: bool) -> Vec<String> {
        let shown = self.findings.iter().filter(|one| all || one.severity > Severity::Notice);
        let line = |finding: &Finding| {
            let hosts = plan::hostlist::listed(finding.hosts.iter().map(String::as_str));
            let waived = if finding.waived { ", waived" } else { "" };
            let what = format!("  {} {hosts}: {} [{}{waived}]", finding.severity.word(), finding.what, finding.check);
            let meaning = if all { format!("; {}", finding.meaning) } else { String::new() };
            format!("{what}{meaning}: {}", finding.remedy)
        };
        shown.map(line).collect()
    }

    fn drifted(&self) -> Vec<String> {
        let line = |row: &Drift| {
            let others = row.by_value().into_iter();
            let others: Vec<String> =
                others.map(|(value, hosts)| format!("{} {value}", plan::hostlist::listed(hosts))).collect();
            let agreed = if row.decided { "most hosts" } else { "the largest group" };
            format!("  drift {}: {} on {agreed}; {}", row.fact, row.majority, others.join(", "))
        };
        self.drift.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railgauge_wire::remedy;

    #[test]
    fn findings_name_hosts_and_remedies() {
        let finding = Finding {
            check: "mtu".into(),
            severity: Severity::Warning,
            waived: false,
            unread: false,
            devices: Vec::new(),
            hosts: vec!["gpu01".into(), "gpu02".into()],
            observed: None,
            key: None,
            what: "MTU is 1500, others 9000".into(),
            meaning: "smaller packets".into(),
            remedy: remedy::MTU.with([("interface", "eth1"), ("mtu", "9000")]),
            source: String::new(),
        };
        let others = [("gpu03".to_owned(), "6.1".to_owned())].into();
        let row = Drift { fact: "kernel".into(), majority: "6.12".into(), holders: 3, decided: true, others };
        let met = Hosts::default();
        let text = Text { demands: &[], findings: &[finding], drift: &[row], met: &met };
        assert_eq!(
            text.whole(Status::Pass, &Screen::PLAIN),
            "PASS  0 of 0 hosts checked: 1 warning\n  warning gpu[01-02]: MTU is 1500, others 9000 [mtu]: `ip link set eth1 \
             mtu 9000`, and in the\n    network configuration\n1 fact not the same on all hosts: -v\n"
        );
        let whole = text.whole(Status::Pass, &Screen { verbose: true, ..Screen::PLAIN });
        assert!(
            whole.contains("smaller packets") && whole.contains("drift kernel: 6.12 on most hosts; gpu03 6.1"),
            "{whole}"
        );
    }
}

//! `railgauge preflight PLAN`: connects, collects facts, judges every host's configuration; no traffic.

use std::{collections::BTreeMap, fmt::Write, path::PathBuf, time::Instant};

use railgauge_analysis::verdict::Status;
use railgauge_model::{
    border::text::path_text,
    plan::{self, count::count},
};
use railgauge_preflight::{self as preflight, Cluster, Demand, Drift, Finding, Held, Severity};
use railgauge_report::{self as report, preflight::Looked};
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
    common.say(format_args!(
        "facts from {} of {}, {:.2} s after their agents' greetings; checked in {:.3} s",
        met.facts.len(),
        count(loaded.plan.hosts.len(), "host"),
        met.told_within.as_secs_f64(),
        started.elapsed().as_secs_f64(),
    ));
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
    let well = status == Status::Pass && findings.iter().all(|finding| finding.severity <= Severity::Notice);
    common.answer(args.json, &document, well, |_| text(&demands, &findings, &drift, &met))?;
    Ok(match status {
        Status::Pass => Exit::Passed,
        Status::Fail => Exit::Failed,
        Status::Inconclusive => Exit::Inconclusive,
        Status::NotRun => Exit::Unable,
    })
}

/// Demands, findings, drift and lost hosts for a terminal.
fn text(demands: &[Demand], findings: &[Finding], drift: &[Drift], met: &Hosts) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = demands.iter().try_for_each(|demand| wanted(&mut out, demand));
    let _ = write(&mut out, findings, drift, &met.facts.len(), &met.lost);
    out
}

/// What the plan wants, and who has it.
fn wanted(out: &mut String, demand: &Demand) -> std::fmt::Result {
    let word = match demand.held() {
        Held::Met => "met",
        Held::Unread => "unread",
        Held::Unmet => "unmet",
    };
    let waived = if demand.waived { ", waived" } else { "" };
    write!(out, "{word:<8} the plan requires {} = {} [{}{waived}]", demand.key, demand.wanted, demand.check)?;
    let parts: Vec<String> = [(Held::Unmet, "not met: "), (Held::Unread, "not read: ")]
        .into_iter()
        .map(|(state, words)| (words, demand.departures(state)))
        .filter(|(_, departures)| !departures.is_empty())
        .map(|(words, departures)| format!("{words}{departures}"))
        .collect();
    match parts.as_slice() {
        [] => writeln!(out, ": {}", count(demand.hosts(), "host")),
        parts => writeln!(out, ": {}", parts.join("; ")),
    }
}

fn write(
    out: &mut String,
    findings: &[Finding],
    drift: &[Drift],
    up: &usize,
    lost: &BTreeMap<String, railgauge_wire::failure::Failure>,
) -> std::fmt::Result {
    for finding in findings {
        let hosts = plan::hostlist::listed(finding.hosts.iter().map(String::as_str));
        let waived = if finding.waived { ", waived" } else { "" };
        writeln!(out, "{:<8} {hosts}: {} [{}{waived}]", finding.severity.word(), finding.what, finding.check)?;
        writeln!(out, "         {}; remedy: {}", finding.meaning, finding.remedy)?;
    }
    for row in drift {
        let others = row.by_value().into_iter();
        let others: Vec<String> =
            others.map(|(value, hosts)| format!("{} {value}", plan::hostlist::listed(hosts))).collect();
        let agreed = if row.decided { "most hosts" } else { "the largest group" };
        writeln!(out, "drift    {}: {} on {agreed}; {}", row.fact, row.majority, others.join(", "))?;
    }
    let mut names: Vec<&String> = lost.keys().collect();
    natural::sort(&mut names);
    for host in names {
        // Failures of hosts name their host.
        writeln!(out, "lost     {}", lost[host])?;
    }
    let serious = findings.iter().filter(|finding| finding.severity > Severity::Notice).count();
    let hosts = count(up + lost.len(), "host");
    let (serious, drift) = (count(serious, "finding"), count(drift.len(), "fact"));
    writeln!(out, "{up} of {hosts} checked: {serious} above notice, {drift} not the same on all hosts")
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
        assert_eq!(
            text(&[], &[finding], &[row], &met),
            "warning  gpu[01-02]: MTU is 1500, others 9000 [mtu]\n         \
             smaller packets; remedy: `ip link set eth1 mtu 9000`, and in the network configuration\n\
             drift    kernel: 6.12 on most hosts; gpu03 6.1\n\
             0 of 0 hosts checked: 1 finding above notice, 1 fact not the same on all hosts\n"
        );
    }
}

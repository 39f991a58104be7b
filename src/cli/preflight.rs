//! `railgauge preflight PLAN`: connects, collects facts, judges every host's configuration; no traffic.

use std::{path::PathBuf, time::Instant};

use railgauge_analysis::status::Status;
use railgauge_model::{border::text::path_text, plan::count::count};
use railgauge_preflight::{self as preflight, Cluster};
use railgauge_report::{self as report, preflight::Looked};

use super::{Common, Exit, PAGES, page_path, runtime, selection::Selection};
use crate::{
    cluster::AgentBinary,
    run::{
        hosts,
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
    let page = args.output.map(|asked| page_path(Some(asked), "preflight", &PAGES)).transpose()?;
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
    let time = jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let view = report::preflight::view(&looked, time);
    if let Some(page) = &page {
        report::preflight::write(&view, page)?;
        common.say(format_args!("page: {}", path_text(page)));
    }
    common.answer(args.json, &document, |screen| report::preflight::summary(&view, screen))?;
    Ok(match view.status {
        Status::Pass => Exit::Passed,
        Status::Fail => Exit::Failed,
        Status::Inconclusive => Exit::Inconclusive,
        Status::NotRun => Exit::Unable,
    })
}

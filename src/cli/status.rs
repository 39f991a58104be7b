//! `railgauge status RUNS`: how the newest run stands, for a monitoring system, a health check or a message.

use std::fs;

use jiff::{SignedDuration, Timestamp};

use super::{
    Common, Exit,
    common::{no_run, print},
};
use crate::night::{NightError, Standing, State, newest};

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A run directory, a directory of run directories, or a quoted pattern: the newest counts that is not still going on
    runs: String,
    /// One line and the exit codes of a monitoring plugin: 0 OK, 1 warning, 2 critical, 3 unknown
    #[arg(long, conflicts_with_all = ["nhc", "json"])]
    nagios: bool,
    /// For Slurm's node health check: exit code 1 only if a failed verdict blames this host by itself, else 0
    #[arg(long, conflicts_with = "json")]
    nhc: bool,
    /// This host of the plan only [default with --nhc: the name of this machine]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Oldest result that counts; an older one is unknown, whatever it was
    #[arg(long, value_name = "TIME", default_value = "26h", value_parser = length)]
    max_age: SignedDuration,
    /// Print the state as JSON on stdout; its `text` serves as a message
    #[arg(long)]
    json: bool,
}

/// A length of time as `26h`, `90min` or `2 days`.
pub(super) fn length(text: &str) -> Result<SignedDuration, String> {
    let span: jiff::Span =
        text.parse().map_err(|_| format!("`{text}` is no length of time; write it as 26h or 90min"))?;
    let length = span
        .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
        .map_err(|_| format!("`{text}` is no length of time; write it as 26h or 90min"))?;
    if length.is_positive() { Ok(length) } else { Err(format!("`{text}` has to be more than 0")) }
}

/// Tells how the newest run stands.
///
/// # Errors
/// There is no run that can be read, but for a monitoring plugin or a health check, which are told so in their own way.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let host = args.host.or_else(|| args.nhc.then(this_machine).flatten());
    let standing = newest(&args.runs).map(|run| Standing::of(&run, host.as_deref(), args.max_age, Timestamp::now()));
    match (args.nagios, args.nhc) {
        (true, _) => plugin(standing),
        (_, true) => Ok(health_check(standing)),
        _ => shown(&standing.map_err(no_run)?, args.json, common),
    }
}

/// A plugin's line is always printed, and its code says nothing else.
fn plugin(standing: Result<Standing, NightError>) -> anyhow::Result<Exit> {
    let (state, line) = match standing {
        Ok(standing) => (standing.state, standing.plugin_line()),
        Err(error) => {
            let words = error.to_string().replace(['|', '\n'], " ");
            (State::Unknown, format!("RAILGAUGE {} - {words}", State::Unknown.word()))
        }
    };
    // A plugin whose line nobody can read still has its code.
    let _ = print(&(line + "\n"));
    Ok(Exit::Plugin(state.code()))
}

/// Anything but a certain fault of this host leaves the node in service, and is said.
fn health_check(standing: Result<Standing, NightError>) -> Exit {
    let (code, line) = match standing {
        Ok(standing) => {
            let code = u8::from(standing.state == State::Critical && standing.host.is_some());
            (code, standing.plugin_line())
        }
        Err(error) => (0, format!("RAILGAUGE {} - {error}", State::Unknown.word())),
    };
    let _ = print(&(line + "\n"));
    Exit::Plugin(code)
}

fn shown(standing: &Standing, json: bool, common: &Common) -> anyhow::Result<Exit> {
    let well = standing.state == State::Ok;
    common.answer(json, standing, well, |_| {
        let of = standing.host.as_ref().map_or_else(String::new, |host| format!("{host} in "));
        let mut text = format!("{:<9} {of}{} ({})\n", standing.state.word(), standing.plan, standing.run_id);
        text += &format!("          {}\n          ended {}\n", standing.text, standing.ended);
        for blamed in &standing.blamed {
            let place = blamed.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            text += &format!("          {}{place}: {}\n", blamed.host, blamed.why.join("; "));
        }
        text
    })?;
    Ok(match standing.state {
        State::Ok => Exit::Passed,
        State::Critical => Exit::Failed,
        State::Warning | State::Unknown => Exit::Inconclusive,
    })
}

/// The name of this machine as Slurm's nodes have it: without its domain.
fn this_machine() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().split('.').next()?.to_owned())
}

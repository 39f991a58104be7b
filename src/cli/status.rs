//! `railgauge status RUNS`: the state of a cluster or a host after all runs, for a monitoring system, a health check or a message.

use std::{ffi::OsString, fs};

use jiff::{SignedDuration, Timestamp};

use super::{Common, Exit, common::print};
use crate::night::{Message, Nights, Standing, State};

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A directory of run directories, a quoted pattern, or a run directory
    runs: String,
    /// One line and the exit codes of a monitoring plugin: 0 OK, 1 warning, 2 critical, 3 unknown
    #[arg(long, conflicts_with_all = ["nhc", "json"])]
    nagios: bool,
    /// For Slurm's node health check: exit code 1 only if this host is faulty, else 0
    #[arg(long, conflicts_with = "json")]
    nhc: bool,
    /// One line for a chat or mail, or with --json an object for a web service: state, bad part, first step, and the report
    #[arg(long, conflicts_with_all = ["nagios", "nhc", "host"])]
    message: bool,
    /// URL under which the directory with the runs can be read: the message's link begins with it
    #[arg(long, value_name = "URL", requires = "message", value_parser = url)]
    link: Option<String>,
    /// This host only, whether the newest run measured it or not [default with --nhc: the name of this machine]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Oldest age of the newest run: with an older one the cluster's state is unknown unless a component is faulty
    #[arg(long, value_name = "TIME", default_value = "26h", value_parser = length)]
    max_age: SignedDuration,
    /// The plan, where the directory holds runs of several
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
    /// Print the state as JSON on stdout; its `text` serves as a message
    #[arg(long)]
    json: bool,
}

/// The beginning of a link: what a chat or a mail shows as one.
fn url(text: &str) -> Result<String, String> {
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| text.strip_prefix(scheme));
    let is_one = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
        && text.chars().all(|c| c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '@' | '`' | '\\'));
    if is_one {
        Ok(text.to_owned())
    } else {
        Err("write it as https://host/path, without spaces and passwords".to_owned())
    }
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

/// Reports the state. That nothing can be read is an answer too: unknown.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let host = args.host.or_else(|| args.nhc.then(this_machine).flatten());
    let (host, now) = (host.as_deref(), Timestamp::now());
    let nights = Nights::of(&args.runs, args.plan.as_deref(), now);
    let standing = match (&nights, host) {
        (Ok(nights), Some(host)) => Standing::of_host(nights, host, args.max_age, now),
        (Ok(nights), None) => Standing::of(nights, args.max_age, now),
        (Err(error), _) => Standing::of_nothing(error, host, args.max_age),
    };
    if args.nagios || args.nhc {
        // A plugin whose line nobody can read still has its code.
        let _ = print(&(standing.plugin_line() + "\n"));
        return Ok(Exit::Plugin(if args.nagios { standing.state.code() } else { health_code(&standing) }));
    }
    if args.message {
        let message = Message::of(nights.as_ref().ok(), &standing, args.link.as_deref());
        common.answer(args.json, &message, message.state == State::Ok, |_| message.text.clone() + "\n")?;
        return Ok(exit(message.state));
    }
    shown(&standing, args.json, common)
}

const fn exit(state: State) -> Exit {
    match state {
        State::Ok => Exit::Passed,
        State::Critical => Exit::Failed,
        State::Warning | State::Unknown => Exit::Inconclusive,
    }
}

/// Anything but a certain fault of this host leaves the node in service.
fn health_code(standing: &Standing) -> u8 {
    u8::from(standing.state == State::Critical && standing.host.is_some())
}

/// How a command line ends that could not be understood, where its codes are those of a plugin: in a way that is no alarm and drains no
/// node.
pub(super) fn misunderstood(mut words: impl Iterator<Item = OsString>) -> Option<Exit> {
    words.find_map(|word| match word.to_str() {
        Some("--nagios") => Some(Exit::Plugin(State::Unknown.code())),
        Some("--nhc") => Some(Exit::Plugin(0)),
        _ => None,
    })
}

fn shown(standing: &Standing, json: bool, common: &Common) -> anyhow::Result<Exit> {
    let well = standing.state == State::Ok && standing.remarks.is_empty();
    common.answer(json, standing, well, |_| {
        let of = standing.host.as_ref().map_or_else(String::new, |host| format!("{host} in "));
        let run = standing.ended.as_ref().map(|_| format!("{of}{} ({})", standing.plan, standing.run_id));
        let mut text = format!("{:<9} {}\n", standing.state.word(), run.as_ref().unwrap_or(&standing.text));
        if let (Some(ended), Some(_)) = (&standing.ended, run) {
            text += &format!("          {}\n          last record {ended}\n", standing.text);
        }
        for one in standing.components.iter().filter(|one| !one.why.is_empty() && standing.host.is_none()) {
            let place = one.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            text += &format!("          {}{place} {}: {}\n", one.name, one.state.word(), one.why.join("; "));
        }
        for remark in &standing.remarks {
            text += &format!("          {remark}\n");
        }
        text
    })?;
    Ok(exit(standing.state))
}

/// The name of this machine as Slurm's nodes have it: without its domain.
fn this_machine() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().split('.').next()?.to_owned())
}

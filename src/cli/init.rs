//! `railgauge init [HOSTS]...`: connects to hosts, reads what they are, and writes a plan that runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fs::OpenOptions,
    io::{self, ErrorKind, IsTerminal, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_model::{
    border::text::{path_quoted, path_text},
    plan::{
        self, FileFault, Plan,
        count::count,
        hostlist::{self, fold},
        model::Launcher,
    },
};
use railgauge_preflight::Cluster;
use railgauge_wire::Failure;
use serde_json::json;

use super::{Common, Exit, Misuse, hostname, kit::check_folder, print, run::interrupts, runtime, tell};
use crate::{
    cluster::AgentBinary,
    draft::{self, Draft, DraftError, Purpose, Request, quoted},
    run::{
        hosts,
        spine::{self, Spine},
    },
};

/// Version of the JSON documents.
const VERSION: u32 = 1;

/// Arguments of `init`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Hosts, such as gpu[001-016]; without any the command prompts for them (with --via local: this machine)
    #[arg(value_name = "HOSTS")]
    names: Vec<String>,
    /// Hosts from a file, one hostlist on each line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "slurm"])]
    hosts_file: Option<PathBuf>,
    /// Another ssh_config
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    /// The hosts of the Slurm allocation this runs in
    #[arg(long, conflicts_with = "names")]
    slurm: bool,
    /// Hosts to leave out
    #[arg(long, value_name = "HOSTS")]
    exclude: Option<String>,
    /// What the plan is for
    #[arg(long = "for", value_name = "PURPOSE", value_enum, default_value_t = Purpose::Acceptance)]
    purpose: Purpose,
    /// How agents get onto the hosts: `via` of the plan [default: ssh; slurm with --slurm, command with --command]
    #[arg(long, value_name = "LAUNCHER")]
    via: Option<String>,
    /// With --via command: the command that starts a program on a host; {host} is replaced by the host
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
    /// Do not connect: the plan then has no requirements and no limits from the hosts
    #[arg(long)]
    offline: bool,
    /// The plan to write; - for stdout
    #[arg(short, long, value_name = "FILE", default_value = "plan.toml")]
    output: PathBuf,
    /// Print what was written as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Hosts that a file of the plan itself could name; beyond it the answer says only how many.
const SHOWN: usize = 80;

/// Writes a plan.
///
/// # Errors
/// The command line is wrong, there is no agent to send, too few hosts answer, or the plan cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let is_stdout = args.output == Path::new("-");
    if is_stdout && args.json {
        return Err(Misuse("-o - and --json both want stdout; choose one".to_owned()).into());
    }
    if !is_stdout {
        refuse_to_replace(&args.output)?;
        check_folder(&args.output)?;
    }
    let names = names_of_hosts(&args)?;
    let launch = launch(&args)?;
    let Some(head) = head(&launch, &names) else { return Ok(Exit::Wrong) };
    let (cluster, lost) = match args.offline {
        true => (Cluster::default(), BTreeMap::new()),
        false => match meet(&head, common)? {
            Some(met) => met,
            None => return Ok(Exit::Interrupted),
        },
    };
    let request = Request {
        purpose: args.purpose,
        launch: &launch,
        is_local: matches!(head.launch.via, Launcher::Local),
        hosts: &names,
        cluster: &cluster,
        lost: &lost,
        day: &jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
    };
    let draft = match draft::draft(&request) {
        Err(DraftError::TooFew) => {
            let (answered, all) = (names.len() - lost.len(), count(names.len(), "host"));
            anyhow::bail!(
                "{answered} of {all} answered; links are measured between two hosts at least, and acceptance of one host needs a GPU; \
                 nothing was written"
            );
        }
        draft => draft?,
    };
    match is_stdout {
        true => print(&draft.text)?,
        false => write(&args.output, &draft.text)?,
    }
    if !is_stdout {
        let document = document(&args, &draft, &lost);
        common.answer(args.json, &document, |_| summary(&args, &draft, &lost))?;
    }
    Ok(if lost.is_empty() { Exit::Passed } else { Exit::Inconclusive })
}

/// A file that somebody may have changed by hand is never replaced.
fn refuse_to_replace(path: &Path) -> Result<(), Misuse> {
    match path.symlink_metadata() {
        Ok(_) => Err(Misuse(format!("{} already exists; choose another file with -o", path_text(path)))),
        Err(_) => Ok(()),
    }
}

/// Writes a new file.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match made {
        // Somebody else was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(refuse_to_replace(path)?),
        made => made.with_context(|| format!("cannot write {}", path_text(path)))?,
    };
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {}", path_text(path)))
}

/// The lines of `[launch]`.
fn launch(args: &Args) -> Result<String, Misuse> {
    let via = match &args.via {
        Some(via) => via.as_str(),
        None if args.command.is_some() => "command",
        None if args.slurm => "slurm",
        None => "ssh",
    };
    if !Launcher::WORDS.contains(&via) {
        return Err(Misuse(format!(
            "--via {via}: there is no such launcher; there are {}",
            Launcher::WORDS.join(", ")
        )));
    }
    if (via == "command") != args.command.is_some() {
        return Err(Misuse(
            "--via command and --command belong together: --command 'docker exec -i {host}'".to_owned(),
        ));
    }
    if via != "ssh" && args.ssh_config.is_some() {
        return Err(Misuse(format!("--ssh-config does not apply with --via {via}")));
    }
    let mut text = format!("[launch]\nvia = {}\n", quoted(via));
    if let Some(command) = &args.command {
        text += &format!("command = {}\n", quoted(command));
    }
    if let Some(config) = &args.ssh_config {
        std::fs::File::open(config).map_err(|error| Misuse(format!("cannot read {}: {error}", path_text(config))))?;
        // Relative paths of a plan start from its own folder.
        let path = std::path::absolute(config).unwrap_or_else(|_| config.clone());
        let Some(path) = path.to_str() else {
            return Err(Misuse(format!("--ssh-config {}: the path is not UTF-8", path_text(config))));
        };
        text += &format!("\n[launch.ssh]\nconfig = {}\n", quoted(path));
    }
    Ok(text)
}

/// The plan with which hosts are asked what they are; `None` after its mistakes were told.
fn head(launch: &str, names: &[String]) -> Option<Plan> {
    let names = quoted(&fold(names.iter().map(String::as_str)));
    let text = format!(
        "name = \"init\"\n\n{launch}\n[hosts]\nnames = {names}\n\n[[test]]\nop = \"memory_read\"\nmetric = \"bandwidth\"\n"
    );
    match plan::parse("(the plan to be written)", &text, Path::new("")) {
        Ok((plan, _)) => Some(plan),
        Err(mistakes) => {
            tell(mistakes.render(false).trim_end());
            None
        }
    }
}

/// What hosts are, and why others did not say.
type Met = (Cluster, BTreeMap<String, Failure>);

/// Asks the hosts what they are; `None` if somebody interrupted.
fn meet(head: &Plan, common: &Common) -> anyhow::Result<Option<Met>> {
    let binary = AgentBinary::find()?;
    let runtime = runtime()?;
    let run_id = format!("init-{}-{}", std::process::id(), spine::now());
    let met = runtime.block_on(async {
        let spine = Spine::unrecorded(common.quiet, common.verbose);
        tokio::spawn(interrupts(spine.clone()));
        let mut met = hosts::bring_up(head, &run_id, binary, &spine).await;
        met.close().await;
        let cluster = Cluster { facts: met.facts.clone(), clocks: met.walls.clone() };
        spine.halted().is_none().then_some((cluster, met.lost))
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(met)
}

/// What was written, for programs.
fn document(args: &Args, draft: &Draft, lost: &BTreeMap<String, Failure>) -> serde_json::Value {
    let names: Vec<&str> = draft.plan.hosts.iter().map(|host| host.name.as_str()).collect();
    json!({
        "version": VERSION, "plan": path_text(&args.output), "purpose": draft.plan.name, "hosts": names, "lost": lost, "found": draft.found,
        "tests": draft.plan.tests.iter().map(|test| &test.name).collect::<Vec<_>>(), "required": draft.wanted,
        "time": draft.time, "notes": draft.notes,
        "findings": { "failures": draft.findings.0, "warnings": draft.findings.1 },
    })
}

/// What was written, for a terminal.
fn summary(args: &Args, draft: &Draft, lost: &BTreeMap<String, Failure>) -> String {
    let (shown, command) = (path_text(&args.output), path_quoted(&args.output));
    let folded = fold(draft.plan.hosts.iter().map(|host| host.name.as_str()));
    let names = if folded.len() > SHOWN { String::new() } else { format!(" ({folded})") };
    let hosts = count(draft.plan.hosts.len(), "host");
    let tests = count(draft.plan.tests.len(), "test");
    let mut out = format!("{shown}: {} of {hosts}{names}: {tests}, {}\n", draft.plan.name, draft.time);
    if !draft.found.is_empty() {
        out += &format!("  found: {}\n", draft.found);
    }
    if draft.wanted > 0 {
        out += &format!("  {} of the hosts' configuration required\n", count(draft.wanted, "value"));
    }
    for note in &draft.notes {
        out += &format!("  note: {note}\n");
    }
    if !lost.is_empty() {
        out += &format!("  left out: {}\n", fold(lost.keys().map(String::as_str)));
    }
    if let (failures, warnings) = draft.findings
        && failures + warnings > 0
    {
        out += &format!(
            "  preflight finds {} and {} on these hosts: railgauge preflight {command}\n",
            count(failures, "failure"),
            count(warnings, "warning")
        );
    }
    out + &format!("next: railgauge run {command}\n")
}

/// Variables in which Slurm tells a job its nodes (sbatch(1), salloc(1)); the second is the older name.
const NODES: [&str; 2] = ["SLURM_JOB_NODELIST", "SLURM_NODELIST"];

/// The names of the hosts, each once, in their order.
///
/// # Errors
/// There are none, or they cannot be read.
fn names_of_hosts(args: &Args) -> Result<Vec<String>, Misuse> {
    let mut names = match (&args.names, &args.hosts_file) {
        (names, _) if !names.is_empty() => expand(&joined(names.iter().map(String::as_str)), "")?,
        (_, Some(path)) => of_file(path)?,
        _ if args.slurm => of_allocation()?,
        _ if args.via.as_deref() == Some("local") => vec![hostname().unwrap_or_else(|| "localhost".to_owned())],
        _ => typed()?,
    };
    let without: BTreeSet<String> = match &args.exclude {
        Some(list) => expand(list, "--exclude: ")?.into_iter().collect(),
        None => BTreeSet::new(),
    };
    let mut known = BTreeSet::new();
    names.retain(|name| !without.contains(name) && known.insert(name.clone()));
    if names.is_empty() {
        return Err(Misuse("no host is left to plan for".to_owned()));
    }
    Ok(names)
}

/// Words as one hostlist, whether commas, blanks or both separate them.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words = words.map(|word| word.trim_matches([',', ' '])).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(",")
}

fn expand(list: &str, place: &str) -> Result<Vec<String>, Misuse> {
    hostlist::expand(list).map_err(|wrong| Misuse(format!("{place}`{list}`: {wrong}")))
}

/// One hostlist on each line, `#` begins a comment: as a plan's `file`.
fn of_file(path: &Path) -> Result<Vec<String>, Misuse> {
    let shown = path_text(path);
    let text = plan::text_of(path).map_err(|fault| {
        let help = match fault {
            FileFault::Io(_) => "check the path",
            _ => "name a text file with one hostlist on each line",
        };
        Misuse(format!("the host file {shown} {fault}; {help}"))
    })?;
    let mut names = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let list = line.split('#').next().unwrap_or_default().trim();
        if !list.is_empty() {
            names.extend(expand(list, &format!("{shown}, line {number}: "))?);
        }
    }
    if names.is_empty() {
        return Err(Misuse(format!("{shown} lists no hosts; write one hostlist on each line, such as gpu[001-016]")));
    }
    Ok(names)
}

fn of_allocation() -> Result<Vec<String>, Misuse> {
    let found = NODES.iter().find_map(|name| env::var(name).ok()).filter(|list| !list.trim().is_empty());
    match found {
        Some(list) => expand(&list, "the nodes of the Slurm allocation: "),
        None => Err(Misuse(format!(
            "--slurm: {} is not set, so this is not inside an allocation; begin one with salloc, or name the hosts",
            NODES[0]
        ))),
    }
}

/// Asks the person at the terminal.
fn typed() -> Result<Vec<String>, Misuse> {
    let nobody = || {
        Misuse(
            "no hosts are given; name them (railgauge init 'gpu[001-016]'), or use --hosts-file or --slurm".to_owned(),
        )
    };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(nobody());
    }
    let mut err = io::stderr();
    let _ = write!(err, "Hosts, separated by commas, ranges in brackets, such as gpu[001-016],login: ");
    let _ = err.flush();
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    match read {
        Ok(1..) if !line.trim().is_empty() => expand(&joined(line.split_whitespace()), ""),
        _ => Err(nobody()),
    }
}

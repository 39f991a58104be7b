//! `railgauge bundle PLAN`: the configuration of hosts and a short run, in one archive.

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_model::{
    border::text::path_text,
    files,
    plan::{
        Loaded, Plan,
        count::count,
        model::{Host, Launcher},
    },
};
use railgauge_wire::terms::Transport;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    Common, Exit, Misuse,
    common::tell,
    run::{hang_up, interrupts, run_in},
};
use crate::{
    cluster::AgentBinary,
    kit::{
        anonymise::Table,
        archive,
        content::{self, Sources},
        shortened,
        stop::Stop,
    },
    run::{
        contact::{Contact, contact},
        rails,
        spine::{self, Spine},
    },
};

/// Version of the JSON document.
const VERSION: u32 = 1;

/// Arguments of `bundle`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan
    plan: PathBuf,
    /// The file to write [default: bundle-<plan name>-<UTC time>.tar.gz]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace host names, addresses, GUIDs, UUIDs and serial numbers; the mapping is saved beside the file
    #[arg(long, visible_alias = "anonymise")]
    anonymize: bool,
    /// Print what was packed as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// What is said before anything is done.
const BEFORE: &str = "\
bundle reads from each host: files of /sys about RDMA devices, network interfaces and the PCI functions above them, the files of
  /proc and /sys that facts are made of, versions of installed packages, and the switches that lldpd hears. It does not read SSH keys, environment variables or
  home directories.
  Then it measures: a known number of bytes between the first two hosts, perftest beside it where it is installed, and the
  tests of the plan, each briefly.
Nothing is uploaded: bundle writes one file here. Look into it before you send it (docs/dev/bundle.md).";

/// Packs a kit.
///
/// # Errors
/// There is no agent to send, a file is in the way, there is no folder for it, or the kit cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let Some(loaded) = common.plan_of_hosts(&args.plan)? else { return Ok(Exit::Wrong) };
    let now = jiff::Timestamp::now();
    let default =
        || PathBuf::from(format!("bundle-{}-{}.tar.gz", file_name(&loaded.plan.name), now.strftime("%Y%m%dT%H%M%SZ")));
    let output = args.output.clone().unwrap_or_else(default);
    let table = table_path(&output);
    for path in [&output, &table] {
        if path.symlink_metadata().is_ok() {
            return Err(Misuse(format!("{} already exists; choose another file with -o", path_text(path))).into());
        }
    }
    check_folder(&output)?;
    let binary = AgentBinary::find()?;
    common.say(BEFORE);
    let stop = watch()?;
    let key = args.anonymize.then(random).transpose()?;
    let own = shortened::own()?;
    let place = tempfile::tempdir().context("no temporary directory")?;
    let (met, interrupted) = meet(&loaded, &own, binary.clone(), common)?;
    if interrupted || stop.is_set() {
        return Ok(Exit::Interrupted);
    }
    let mut loaded = loaded;
    let told = switches(&loaded.plan).into_iter().chain(neighbours(&met));
    let names = here().into_iter().chain(ways(&loaded.plan)).chain(told).collect();
    let hosts: Vec<(String, String)> =
        loaded.plan.hosts.iter().map(|host| (host.name.clone(), host.address.clone())).collect();
    let pair = loaded.plan.hosts.get(..2).unwrap_or_default();
    let active = |host: &Host| !rails::devices(host, met.facts.get(&host.name), Transport::Verbs).is_empty();
    let has_rdma = pair.len() == 2 && pair.iter().all(active);
    let changes = shortened::shorten(&mut loaded.plan, &own, has_rdma);
    let directory = place.path().join("run");
    let end = match (met.facts.is_empty(), loaded.plan.tests.is_empty()) {
        (true, _) => Err("no host answered".to_owned()),
        (_, true) => Err("no test of the plan is left".to_owned()),
        _ => run_in(&directory, loaded, binary, common).map_err(|error| format!("{error:#}")),
    };
    if matches!(end, Ok(Exit::Interrupted)) || stop.is_set() {
        return Ok(Exit::Interrupted);
    }
    let end_words = match &end {
        Ok(exit) => format!("ended with exit code {}", exit.code()),
        Err(why) => why.clone(),
    };
    let sources = Sources {
        contact: &met,
        hosts: &hosts,
        run: &directory,
        end: end_words.clone(),
        plan: changes,
        names,
        made_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        stop: stop.clone(),
    };
    let packed = content::pack(sources, key).and_then(|mut packed| {
        packed.manifest.plan.push(format!("the run {end_words}"));
        let bytes = archive::write_while(&packed.manifest, &packed.items, || stop.check());
        Ok((packed, bytes.context("the kit cannot be packed")?))
    });
    // What was packed so far is in memory and in temporary directories.
    if stop.is_set() {
        return Ok(Exit::Interrupted);
    }
    let (packed, bytes) = packed?;
    let kept = save(&output, &bytes, packed.table.as_ref())?;
    let is_elsewhere = kept != output;
    let (table, output) = (table_path(&kept), kept);
    let document = json!({
        "version": VERSION,
        "bundle": path_text(&output), "bytes": bytes.len(), "files": packed.items.len(), "anonymized": packed.table.is_some(),
        "table": packed.table.as_ref().map(|_| path_text(&table)), "hosts": packed.manifest.hosts.len(), "run": end_words,
        "left_out": packed.manifest.left_out, "lost": met.lost,
    });
    let has_run = matches!(end, Ok(Exit::Passed | Exit::Failed | Exit::Inconclusive));
    let well = has_run && met.is_whole() && !is_elsewhere;
    common.answer(args.json, &document, well, |_| {
        summary(&packed, &met, &end_words, (&path_text(&output), bytes.len()), &path_text(&table))
    })?;
    Ok(match () {
        () if met.facts.is_empty() => Exit::Unable,
        () if well => Exit::Passed,
        () => Exit::Inconclusive,
    })
}

/// What the kit has, for a terminal.
fn summary(packed: &content::Packed, met: &Contact, end: &str, (path, bytes): (&str, usize), table: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "bundle: {path}: {}, {} KiB", count(packed.items.len(), "file"), bytes.div_ceil(1024));
    let _ = writeln!(out, "  hosts: {} answered, {} did not; the run {end}", met.facts.len(), met.lost.len());
    match &met.known {
        Some(Ok(known)) => {
            let moved = known.message_bytes.saturating_mul(known.messages);
            let _ = writeln!(out, "  counters around {moved} bytes from {} to {}", known.from.host, known.to.host);
        }
        Some(Err(failure)) => _ = writeln!(out, "  no counters around known bytes: {failure}"),
        None => {}
    }
    for left in &packed.manifest.left_out {
        let _ = writeln!(out, "  left out: {}: {}", left.what, left.why);
    }
    match &packed.table {
        Some(_) => _ = writeln!(out, "  names replaced; mapping saved in {table} (do not send it)"),
        None => _ = writeln!(out, "  names and addresses are not replaced; --anonymize does that"),
    }
    out
}

/// Learns what hosts are. Returns it, and whether somebody interrupted.
fn meet(
    loaded: &Loaded,
    own: &shortened::Own,
    binary: AgentBinary,
    common: &Common,
) -> anyhow::Result<(Contact, bool)> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
    let run_id = format!("kit-{}-{}", std::process::id(), spine::now());
    let met = runtime.block_on(async {
        let spine = Spine::unrecorded(common.quiet, common.verbose);
        tokio::spawn(interrupts(spine.clone()));
        let met = tokio::select! {
            met = contact(&loaded.plan, &own.known, &run_id, binary, &spine) => met,
            _ = spine.halting() => Contact::default(),
        };
        (met, spine.halted().is_some())
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    Ok(met)
}

/// A key for placeholders.
fn random() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).context("no random bytes for placeholders")?;
    Ok(key)
}

/// Names of this machine and its user: they stand in records.
fn here() -> Vec<String> {
    let hostname = fs::read_to_string("/proc/sys/kernel/hostname").map(|name| name.trim().to_owned());
    let users = ["USER", "LOGNAME"].map(|name| std::env::var(name).unwrap_or_default());
    // `root` is a word of its own, and tells nothing.
    let names = hostname.into_iter().chain(users).filter(|name| !name.is_empty() && name != "root");
    names.collect()
}

/// Names of the switches of a plan, which its text and its groups have.
fn switches(plan: &Plan) -> Vec<String> {
    let told = plan.topology.iter().flat_map(|topology| &topology.told);
    let names = told.flat_map(|told| &told.switches).flat_map(|(key, switch)| [key.clone(), switch.name.clone()]);
    names.filter(|name| !name.is_empty()).collect()
}

/// Names and chassis ids of the switches that the hosts hear: their facts have them.
fn neighbours(met: &Contact) -> Vec<String> {
    let heard = met.facts.values().flat_map(|facts| facts.neighbours.iter().flatten());
    heard.flat_map(|one| [one.chassis.clone(), one.name.clone()]).filter(|name| !name.is_empty()).collect()
}

/// Login names and jump hosts of a plan.
fn ways(plan: &Plan) -> Vec<String> {
    let mut names: Vec<String> = plan.hosts.iter().filter_map(|host| host.user.clone()).collect();
    if let Launcher::Ssh(ssh) = &plan.launch.via {
        names.extend(ssh.user.clone());
        for jump in &ssh.jump {
            let (user, host) = jump.rsplit_once('@').map_or((None, jump.as_str()), |(user, host)| (Some(user), host));
            let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
            names.extend(user.map(str::to_owned));
            names.push(host.to_owned());
            names.extend(host.split_once('.').map(|(short, _)| short.to_owned()));
        }
    }
    if let Launcher::Kubectl(kubectl) = &plan.launch.via {
        // The name that every cluster has tells nothing.
        names.extend(kubectl.namespace.clone().filter(|namespace| namespace != "default"));
        names.extend(kubectl.context.clone());
    }
    names.retain(|name| !name.is_empty() && name != "root");
    names.sort();
    names.dedup();
    names
}

/// Where the table of placeholders lies: beside the kit.
fn table_path(kit: &Path) -> PathBuf {
    let mut name = kit.as_os_str().to_owned();
    name.push(".names.tsv");
    name.into()
}

/// Learns of an interrupt for as long as the process lives: between the parts that listen themselves nothing else would.
fn watch() -> anyhow::Result<Stop> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let (mut int, mut term) = {
        let _inside = runtime.enter();
        let heard = |kind| signal(kind).context("cannot catch signals");
        (heard(SignalKind::interrupt())?, heard(SignalKind::terminate())?)
    };
    let stop = Stop::default();
    let seen = stop.clone();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            tokio::select! {
                _ = int.recv() => {}
                _ = term.recv() => {}
                () = hang_up() => {}
            }
            seen.set();
        });
    });
    Ok(stop)
}

/// Writes the kit, and before it the table, without which nobody understands it. What was measured is not lost because a file
/// has appeared in their place, or because their folder has gone: it then gets another name, or lies in the temporary
/// directory. Returns where it is.
fn save(output: &Path, bytes: &[u8], table: Option<&Table>) -> anyhow::Result<PathBuf> {
    let numbered = (2..10).map(|n| {
        let mut name = output.as_os_str().to_owned();
        name.push(format!(".{n}"));
        PathBuf::from(name)
    });
    let elsewhere = output.file_name().map(|name| std::env::temp_dir().join(name));
    let mut refused = None;
    for path in std::iter::once(output.to_owned()).chain(numbered).chain(elsewhere) {
        match put(&path, bytes, table) {
            Ok(()) => {
                if let Some(error) = refused {
                    tell(format_args!("warning: cannot write {}: {error}", path_text(output)));
                    tell(format_args!("help: the kit is in {}", path_text(&path)));
                }
                return Ok(path);
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let error = refused.unwrap_or_else(|| std::io::ErrorKind::NotFound.into());
    Err(error).with_context(|| format!("cannot write {}", path_text(output)))
}

/// Writes the table and the kit, both or none.
fn put(path: &Path, bytes: &[u8], table: Option<&Table>) -> std::io::Result<()> {
    let beside = table_path(path);
    if let Some(table) = table {
        write_table(&beside, table)?;
    }
    files::write_private_new(path, bytes).inspect_err(|_| {
        if table.is_some() {
            let _ = fs::remove_file(&beside);
        }
    })
}

/// Writes the table. Only the user may read it.
fn write_table(path: &Path, table: &Table) -> std::io::Result<()> {
    let lines = table
        .pairs()
        .into_iter()
        .map(|(kind, original, placeholder)| format!("{}\t{original}\t{placeholder}\n", kind.word()));
    let text: String = std::iter::once("kind\toriginal\tplaceholder\n".to_owned()).chain(lines).collect();
    files::write_private_new(path, text)
}

/// The folder of a file that will be written after some minutes has to be there, and writable, before any host is contacted.
pub(super) fn check_folder(file: &Path) -> Result<(), Misuse> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused =
        |why: String| Misuse(format!("cannot write to {}: {why}; choose another file with -o", path_text(folder)));
    if file.file_name().is_none() {
        return Err(refused("no name of a file is given".to_owned()));
    }
    // A file that is made and taken away again says more than permissions do.
    tempfile::tempfile_in(folder).map(drop).map_err(|error| refused(error.to_string()))
}

/// A plan's name as part of a file's.
fn file_name(plan: &str) -> String {
    plan.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_heard_also_where_nothing_else_listens() {
        let stop = watch().unwrap();
        assert!(stop.check().is_ok());
        let kill = std::process::Command::new("kill").arg("-INT").arg(std::process::id().to_string()).status();
        assert!(kill.unwrap().success());
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !stop.is_set() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // Packing ends at its next file.
        let manifest = archive::Manifest::default();
        let items = [("a".to_owned(), archive::Item::File(Vec::new()))].into();
        assert!(archive::write_while(&manifest, &items, || stop.check()).is_err());
    }

    #[test]
    fn what_was_measured_is_kept_beside_a_file_that_appeared() {
        let place = tempfile::tempdir().unwrap();
        let wanted = place.path().join("x.tar.gz");
        fs::write(&wanted, "theirs").unwrap();
        let kept = save(&wanted, b"kit", Some(&Table::new([0; 32]))).unwrap();
        assert_eq!(kept, place.path().join("x.tar.gz.2"));
        assert_eq!((fs::read(&wanted).unwrap(), fs::read(&kept).unwrap()), (b"theirs".to_vec(), b"kit".to_vec()));
        assert!(table_path(&kept).exists() && !table_path(&wanted).exists());
    }

    #[test]
    fn what_was_measured_is_kept_where_the_folder_has_gone() {
        let place = tempfile::tempdir().unwrap();
        let name = format!("railgauge-test-{}.tar.gz", std::process::id());
        let kept = save(&place.path().join("gone").join(&name), b"kit", None).unwrap();
        assert_eq!(kept, std::env::temp_dir().join(name));
        assert_eq!(fs::read(&kept).unwrap(), b"kit");
        fs::remove_file(kept).unwrap();
    }
}

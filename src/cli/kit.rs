//! `railgauge bundle PLAN`: the configuration of hosts and a short run, in one archive.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_model::{
    border::text::path_text,
    files,
    plan::{Plan, count::count, model::Launcher},
};
use serde_json::json;

use super::{
    Common, Exit, Misuse, hostname,
    run::{interrupts, run_in},
    runtime,
};
use crate::{
    cluster::AgentBinary,
    kit::{
        anonymise::Anonymiser,
        archive,
        content::{self, Sources},
        shortened,
    },
    run::{
        contact::{Contact, contact},
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
    /// Replace host names, addresses, GUIDs, UUIDs and serial numbers; the mapping is saved next to the file
    #[arg(long, visible_alias = "anonymise")]
    anonymize: bool,
    /// Print what was packed as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// What is printed before anything is done.
const BEFORE: &str = "\
bundle reads from each host: files of /sys about RDMA devices, network interfaces and the PCI functions above them, the files of
  /proc and /sys that facts are made of, and the switches that lldpd hears. It does not read SSH keys or home
  directories, and of environments only variables that hide GPUs or replace files for railgauge. Then it runs the tests of the plan, each briefly.
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
    let key = args.anonymize.then(random).transpose()?;
    let place = tempfile::tempdir().context("no temporary directory")?;
    let runtime = runtime()?;
    // It also hears an interrupt of the run and while the kit is packed.
    let spine = Spine::unrecorded(common.quiet, common.verbose);
    let run_id = format!("kit-{}-{}", std::process::id(), spine::now());
    let met = runtime.block_on(async {
        tokio::spawn(interrupts(spine.clone()));
        tokio::select! {
            met = contact(&loaded.plan, &run_id, binary.clone(), &spine) => met,
            _ = spine.halting() => Contact::default(),
        }
    });
    let packing = Packing {
        names: here()
            .into_iter()
            .chain(ways(&loaded.plan))
            .chain(switches(&loaded.plan))
            .chain(neighbours(&met))
            .collect(),
        hosts: loaded.plan.hosts.iter().map(|host| (host.name.clone(), host.address.clone())).collect(),
        directory: place.path().join("run"),
        made_at: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        met,
        output,
        key,
    };
    let mut loaded = loaded;
    let mut changes = shortened::shorten(&mut loaded.plan);
    let end = match (packing.met.facts.is_empty(), loaded.plan.tests.is_empty()) {
        _ if spine.halted().is_some() => return Ok(Exit::Interrupted),
        (true, _) => Err("no host answered".to_owned()),
        (_, true) => Err("no test of the plan is left".to_owned()),
        _ => run_in(&packing.directory, loaded, binary, common).map_err(|error| format!("{error:#}")),
    };
    if matches!(end, Ok(Exit::Interrupted)) {
        return Ok(Exit::Interrupted);
    }
    let how = match &end {
        Ok(exit) => format!("ended with exit code {}", exit.code()),
        Err(why) => why.clone(),
    };
    changes.push(format!("the run {how}"));
    let packed = runtime.block_on(async {
        tokio::select! {
            packed = tokio::task::spawn_blocking(move || packing.pack(changes).map(|packed| (packed, packing))) => Some(packed),
            _ = spine.halting() => None,
        }
    });
    // A kit that is being packed is not waited for.
    runtime.shutdown_background();
    let Some(packed) = packed else { return Ok(Exit::Interrupted) };
    let ((packed, bytes), packing) = packed.context("the bundle cannot be packed")??;
    put(&packing.output, &bytes, packed.names.as_ref())?;
    let Packing { met, output, .. } = packing;
    let document = json!({
        "version": VERSION,
        "bundle": path_text(&output), "bytes": bytes.len(), "files": packed.items.len(), "anonymized": packed.names.is_some(),
        "table": packed.names.as_ref().map(|_| path_text(&table)), "hosts": met.facts.len(), "run": how,
        "left_out": packed.manifest.left_out, "lost": met.lost,
    });
    let has_run = matches!(end, Ok(Exit::Passed | Exit::Failed | Exit::Inconclusive));
    let well = has_run && met.is_whole() && packed.items.contains_key("run/records.jsonl");
    common.answer(args.json, &document, |_| {
        summary(&packed, &met, &how, (&path_text(&output), bytes.len()), &path_text(&table))
    })?;
    Ok(match () {
        () if met.facts.is_empty() => Exit::Unable,
        () if well => Exit::Passed,
        () => Exit::Inconclusive,
    })
}

/// What a kit is packed from.
struct Packing {
    met: Contact,
    hosts: Vec<(String, String)>,
    directory: PathBuf,
    names: Vec<String>,
    made_at: String,
    output: PathBuf,
    key: Option<[u8; 32]>,
}

impl Packing {
    /// The files, and the bytes of the archive.
    fn pack(&self, plan: Vec<String>) -> anyhow::Result<(content::Packed, Vec<u8>)> {
        let Self { met, hosts, directory, names, made_at, .. } = self;
        let sources =
            Sources { contact: met, hosts, run: directory, plan, names: names.clone(), made_at: made_at.clone() };
        let packed = content::pack(&sources, self.key)?;
        let bytes = archive::write(&packed.manifest, &packed.items)?;
        Ok((packed, bytes))
    }
}

/// What the kit has, for a terminal.
fn summary(packed: &content::Packed, met: &Contact, end: &str, (path, bytes): (&str, usize), table: &str) -> String {
    let mut out = format!("bundle: {path}: {}, {} KiB\n", count(packed.items.len(), "file"), bytes.div_ceil(1024));
    out += &format!("  hosts: {} answered, {} did not; the run {end}\n", met.facts.len(), met.lost.len());
    for left in &packed.manifest.left_out {
        out += &format!("  left out: {}: {}\n", left.what, left.why);
    }
    out += &match &packed.names {
        Some(_) => format!("  names replaced; mapping saved in {table} (do not send it)\n"),
        None => "  names and addresses are not replaced; --anonymize does that\n".to_owned(),
    };
    out
}

/// A key for placeholders.
fn random() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).context("no random bytes for placeholders")?;
    Ok(key)
}

/// Names of this machine and its user: they stand in records.
fn here() -> Vec<String> {
    let users = ["USER", "LOGNAME"].map(|name| std::env::var(name).unwrap_or_default());
    // `root` is a word of its own, and tells nothing.
    let names = hostname().into_iter().chain(users).filter(|name| !name.is_empty() && name != "root");
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

/// Writes the table and the kit, both or none. Only the user may read them.
fn put(path: &Path, bytes: &[u8], names: Option<&Anonymiser>) -> anyhow::Result<()> {
    let table = table_path(path);
    if let Some(names) = names {
        let line = |(kind, original, placeholder)| format!("{kind}\t{original}\t{placeholder}\n");
        let text: String =
            std::iter::once("kind\toriginal\tplaceholder\n".to_owned()).chain(names.pairs().map(line)).collect();
        files::write_private_new(&table, text).with_context(|| format!("cannot write {}", path_text(&table)))?;
    }
    let written = files::write_private_new(path, bytes);
    if written.is_err() && names.is_some() {
        let _ = fs::remove_file(&table);
    }
    written.with_context(|| format!("cannot write {}", path_text(path)))
}

/// The folder of a file that will be written after some minutes has to be there, and writable, before any host is contacted.
pub(super) fn check_folder(file: &Path) -> Result<(), Misuse> {
    let folder = files::directory_of(file);
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

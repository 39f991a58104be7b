//! What was learned of hosts, and a run directory, as files of a kit. Texts that may hold secrets are left out or cut down here,
//! whether names are replaced or not.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, bail};
use railgauge_model::{
    border::{self, text::path_text},
    directory::{FACTS, JOURNAL, LOG, PLAN},
    files,
    journal::line::{self, Numbered},
};
use serde_json::{Value, json};

use super::{
    anonymise::{Anonymiser, Table},
    archive::{self, Item, Items, LeftOut, Manifest},
    stop::Stop,
    tree::{self, command_line, without_process},
    withhold::Withheld,
};
use crate::{report, run::contact::Contact};

/// Files of a kit, and what its manifest says of them.
pub(crate) struct Packed {
    /// The files.
    pub items: Items,
    /// The manifest, without its list of files.
    pub manifest: Manifest,
    /// Placeholders and what they stand for, if they were asked for.
    pub table: Option<Table>,
}

/// What a kit is made of.
pub(crate) struct Sources<'a> {
    /// What was learned of the hosts.
    pub contact: &'a Contact,
    /// Names of the hosts in the plan, in its order, and their addresses.
    pub hosts: &'a [(String, String)],
    /// The run directory.
    pub run: &'a Path,
    /// How the run ended, or why there is none.
    pub end: String,
    /// How the plan was changed.
    pub plan: Vec<String>,
    /// Further names to be replaced: of this machine and its user.
    pub names: Vec<String>,
    /// When the kit was made, UTC.
    pub made_at: String,
    /// Whether somebody interrupted it.
    pub stop: Stop,
}

/// Makes the files of a kit. `key` decides on placeholders; without it all names stay.
///
/// # Errors
/// The run's records cannot be read, or not with the names replaced, or somebody interrupted.
pub(crate) fn pack(sources: Sources<'_>, key: Option<[u8; 32]>) -> anyhow::Result<Packed> {
    let mut manifest = Manifest {
        railgauge: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: sources.made_at.clone(),
        anonymized: key.is_some(),
        plan: sources.plan.clone(),
        ..Manifest::default()
    };
    let folders = folders(sources.hosts);
    let mut items = Items::new();
    let left = &mut manifest.left_out;
    let mut leave = |what: &str, why: &str| left.push(LeftOut { what: what.to_owned(), why: why.to_owned() });
    for (host, folder) in &folders {
        of_host(sources.contact, host, folder, &mut items, &mut leave)?;
    }
    for (what, why) in &sources.contact.left_out {
        leave(what, why);
    }
    let known = match &sources.contact.known {
        Some(Ok(known)) => serde_json::to_value(known)?,
        Some(Err(failure)) => json!({ "failure": failure }),
        None => json!({ "failure": null }),
    };
    items.insert("counters.json".to_owned(), document(&known)?);
    items.insert("perftest.json".to_owned(), document(&serde_json::to_value(&sources.contact.perftest)?)?);
    items.insert("README.txt".to_owned(), Item::File(include_bytes!("readme.txt").to_vec()));
    let mut anonymiser = key.map(|key| Anonymiser::new(table(key, &sources)));
    if let Some(anonymiser) = &mut anonymiser {
        // Once to meet every address, so that digits without colons are known, whatever comes first; then to replace.
        for (at, (host, _)) in sources.hosts.iter().enumerate() {
            let placeholder = placeholder(at);
            folders.get(host).into_iter().for_each(|folder| anonymiser.folder(folder, &placeholder));
        }
        anonymiser.items(items.clone(), || sources.stop.check())?;
        run_directory(&sources, Some(anonymiser), &mut Items::new(), &mut |_, _| ())?;
        items = anonymiser.items(items, || sources.stop.check())?;
        let mut value = serde_json::to_value(&manifest)?;
        anonymiser.document(&mut value);
        let whats: Vec<String> = manifest.left_out.iter().map(|left| anonymiser.path(&left.what)).collect();
        manifest = border::typed(&value).context("the manifest")?;
        manifest.left_out.iter_mut().zip(whats).for_each(|(left, what)| left.what = what);
    }
    let mut missing = Vec::new();
    let mut of_run = |what: &str, why: &str| missing.push(LeftOut { what: what.to_owned(), why: why.to_owned() });
    run_directory(&sources, anonymiser.as_mut(), &mut items, &mut of_run)?;
    manifest.left_out.extend(missing);
    // Names that were replaced may have made a path longer.
    let unfit: Vec<String> =
        items.iter().filter(|(path, item)| !archive::is_storable(path, item)).map(|(path, _)| path.clone()).collect();
    for path in unfit {
        items.remove(&path);
        manifest.left_out.push(LeftOut { what: path, why: archive::UNSTORABLE.to_owned() });
    }
    manifest.hosts = folders
        .into_iter()
        .map(|(host, folder)| match &mut anonymiser {
            Some(to) => {
                let folder = to.path(&format!("hosts/{folder}"));
                (to.host(&host), folder.trim_start_matches("hosts/").to_owned())
            }
            None => (host, folder),
        })
        .collect();
    Ok(Packed { items, manifest, table: anonymiser.map(Anonymiser::into_table) })
}

/// Folders of hosts: their names, as far as they can be names of folders.
fn folders(hosts: &[(String, String)]) -> BTreeMap<String, String> {
    let mut folders: BTreeMap<String, String> = BTreeMap::new();
    for (host, _) in hosts {
        let fit = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
        let mut folder: String = host.trim_start_matches('.').chars().map(fit).take(100).collect();
        if folder.is_empty() || folders.values().any(|other| *other == folder) {
            folder = format!("{folder}-{}", folders.len() + 1);
        }
        folders.insert(host.clone(), folder);
    }
    folders
}

fn document(value: &Value) -> anyhow::Result<Item> {
    Ok(Item::File(serde_json::to_vec_pretty(value)?))
}

/// Facts, versions and files of one host.
fn of_host(
    contact: &Contact,
    host: &str,
    folder: &str,
    items: &mut Items,
    leave: &mut impl FnMut(&str, &str),
) -> anyhow::Result<()> {
    let at = format!("hosts/{folder}");
    if let Some(failure) = contact.lost.get(host) {
        leave(&at, &failure.to_string());
        return Ok(());
    }
    if let Some(facts) = contact.facts.get(host) {
        items.insert(format!("{at}/facts.json"), tree::facts(facts)?);
    }
    match contact.versions.get(host) {
        Some(Ok(versions)) => {
            items.insert(format!("{at}/versions.txt"), Item::File((versions.join("\n") + "\n").into_bytes()));
        }
        Some(Err(failure)) => leave(&format!("{at}/versions.txt"), &failure.to_string()),
        None => {}
    }
    let tree = match contact.trees.get(host) {
        Some(Ok(tree)) => tree,
        Some(Err(failure)) => {
            leave(&format!("{at}/tree"), &failure.to_string());
            return Ok(());
        }
        None => return Ok(()),
    };
    tree::add(&at, &tree.entries, &tree.left_out, items)?;
    Ok(())
}

/// What stands for a host, by its place in the plan.
fn placeholder(at: usize) -> String {
    format!("host-{}", at + 1)
}

/// Names that are known, each host's the same.
fn table(key: [u8; 32], sources: &Sources<'_>) -> Table {
    let mut table = Table::new(key);
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
    // Names in the plan first: no two of them may have the same placeholder.
    for (at, (name, _)) in sources.hosts.iter().enumerate() {
        table.name(name, &placeholder(at));
    }
    for (at, (name, address)) in sources.hosts.iter().enumerate() {
        let own = sources.contact.facts.get(name).map(|facts| facts.hostname.clone()).unwrap_or_default();
        for name in [name, address, &own] {
            table.name(name, &placeholder(at));
            table.name(&short(name), &placeholder(at));
        }
    }
    for (at, name) in sources.names.iter().enumerate() {
        table.name(name, &format!("name-{}", at + 1));
    }
    table
}

/// The run directory: its records with what must not leave, and everything that is drawn from them.
fn run_directory(
    sources: &Sources<'_>,
    mut anonymiser: Option<&mut Anonymiser>,
    items: &mut Items,
    leave: &mut impl FnMut(&str, &str),
) -> anyhow::Result<()> {
    let journal = sources.run.join(JOURNAL);
    let Ok(bytes) = files::read(&journal) else {
        leave("run/", &sources.end);
        return Ok(());
    };
    let place = tempfile::tempdir().context("no temporary directory")?;
    let replaces = anonymiser.is_some();
    let mut lines = Vec::new();
    let mut withheld = Withheld::new(replaces);
    let mut of = None;
    for bytes in bytes.split_inclusive(|byte| *byte == b'\n') {
        sources.stop.check()?;
        let Numbered { run, n, line } = line::decode(bytes, of.as_deref()).context("the records of the run")?;
        let mut event = line.event;
        withheld.event(&mut event);
        if let Some(anonymiser) = &mut anonymiser {
            let mut value = serde_json::to_value(&event)?;
            anonymiser.document(&mut value);
            event = match border::typed(&value) {
                Ok(event) => event,
                // A name is a word by which records are read, as one of a host called `verbs-rc` is.
                Err(_) => {
                    let mut value = serde_json::to_value(&event)?;
                    anonymiser.texts(&mut value);
                    border::typed(&value).context("the records cannot be read with their names replaced")?
                }
            };
        }
        lines.extend(line::encode(&run, n, &line.at, &event)?);
        of.get_or_insert(run);
    }
    files::write(&place.path().join(JOURNAL), lines).context("cannot write to the temporary directory")?;
    sources.stop.check()?;
    if let Err(error) = report::write(place.path()) {
        bail!("the report cannot be drawn again: {error}");
    }
    for entry in fs::read_dir(place.path())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        items.insert(format!("run/{name}"), Item::File(files::read(&entry.path())?));
    }
    if let Ok(bytes) = files::read(&sources.run.join(FACTS)) {
        let mut facts: Value = serde_json::from_slice(&bytes).context("the facts of the run")?;
        for host in facts.as_object_mut().into_iter().flat_map(|hosts| hosts.values_mut()) {
            let line = host.get("command_line").and_then(Value::as_str).map(command_line);
            host["command_line"] = line.into();
            for xid in host.get_mut("xids").and_then(Value::as_array_mut).into_iter().flatten() {
                let text = xid.get("text").and_then(Value::as_str).map(without_process);
                xid["text"] = text.into();
            }
        }
        if let Some(anonymiser) = &mut anonymiser {
            anonymiser.document(&mut facts);
            // By host.
            if let Value::Object(hosts) = &mut facts {
                *hosts =
                    std::mem::take(hosts).into_iter().map(|(host, facts)| (anonymiser.host(&host), facts)).collect();
            }
        }
        items.insert(format!("run/{FACTS}"), document(&facts)?);
    }
    match (replaces, withheld.has_environment) {
        (true, _) => {
            leave("run/plan.toml", "names in it are folded and free text; the resolved plan is in run/records.jsonl")
        }
        (_, true) => {
            leave("run/plan.toml", "it has an environment; the resolved plan without it is in run/records.jsonl")
        }
        (false, false) => match files::read(&sources.run.join(PLAN)) {
            Ok(bytes) => _ = items.insert(format!("run/{PLAN}"), Item::File(bytes)),
            Err(error) => leave("run/plan.toml", &format!("{}: {error}", path_text(sources.run))),
        },
    }
    leave(&format!("run/{LOG}"), "free text of agents and launchers");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_names_of_folders() {
        let hosts = ["../a", "a/b", "a_b", "ü", ".."].map(|name| (name.to_owned(), String::new()));
        let folders: Vec<String> = folders(&hosts).into_values().collect();
        assert!(folders.iter().all(|folder| !folder.contains('/') && !folder.starts_with('.')), "{folders:?}");
        let distinct: std::collections::BTreeSet<&String> = folders.iter().collect();
        assert_eq!(distinct.len(), 5, "{folders:?}");
    }
}

//! Facts of hosts and a run directory as files of a kit. Texts that may contain secrets are removed or cut here, whether names are replaced
//! or not.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, bail};
use railgauge_frame::Parquet;
use railgauge_model::{
    border,
    directory::{FACTS, JOURNAL, LOG, PLAN},
    files,
    journal::{
        event::Event,
        line::{self, Numbered},
    },
};
use railgauge_report as report;
use serde_json::json;

use super::{
    anonymise::Anonymiser,
    archive::{Item, Items, LeftOut, Manifest, UNSTORABLE, is_storable},
    tree,
    withhold::Withheld,
};
use crate::run::contact::{Contact, HOSTS};

pub(crate) struct Packed {
    pub items: Items,
    pub manifest: Manifest,
    pub names: Option<Anonymiser>,
}

pub(crate) struct Sources<'a> {
    pub contact: &'a Contact,
    pub hosts: &'a [(String, String)],
    pub run: &'a Path,
    pub plan: Vec<String>,
    pub names: Vec<String>,
    pub made_at: String,
}

pub(crate) fn pack(sources: &Sources<'_>, key: Option<[u8; 32]>) -> anyhow::Result<Packed> {
    let mut names = key.map(|key| anonymiser(key, sources)).transpose()?;
    let mut left_out = Vec::new();
    let mut leave = |what: &str, why: &str| left_out.push(LeftOut { what: what.to_owned(), why: why.to_owned() });
    let mut of_hosts = Vec::new();
    for (at, (host, _)) in sources.hosts.iter().enumerate() {
        let folder = if key.is_some() { placeholder(at) } else { folder(at, host) };
        of_hosts.push((host, folder.clone(), of_host(sources.contact, host, &folder, &mut leave)?));
    }
    if let Some(names) = &mut names {
        // Learn every address before any is replaced: digits without colons are then recognised in any order.
        of_hosts.iter().for_each(|(_, _, items)| _ = names.items(items.clone()));
    }
    let mut manifest = Manifest {
        version: 2,
        railgauge: env!("CARGO_PKG_VERSION").to_owned(),
        made_at: sources.made_at.clone(),
        anonymized: key.is_some(),
        ..Manifest::default()
    };
    let mut items: Items = [("README.txt".to_owned(), Item::File(include_bytes!("readme.txt").to_vec()))].into();
    for (host, folder, found) in of_hosts {
        let found = if let Some(names) = &mut names { names.items(found) } else { found };
        for (path, item) in found {
            let item = match item {
                Item::Link(to) => Item::Link(format!("hosts/{folder}/{to}")),
                file => file,
            };
            items.insert(format!("hosts/{folder}/{path}"), item);
        }
        manifest.hosts.insert(if key.is_some() { folder.clone() } else { host.clone() }, folder);
    }
    match run_directory(sources, names.as_mut()) {
        Ok(found) => items.extend(found),
        Err(error) => leave("run/", &format!("{error:#}")),
    }
    leave(&format!("run/{PLAN}"), "the resolved plan is in run/records.jsonl");
    leave(&format!("run/{LOG}"), "free text of agents and launchers");
    // Replaced names may have made a path longer.
    items.retain(|path, item| {
        let fits = is_storable(path, item);
        if !fits {
            leave(path, UNSTORABLE);
        }
        fits
    });
    let mut text = |text: &str| names.as_mut().map_or_else(|| text.to_owned(), |names| names.text(text));
    manifest.plan = sources.plan.iter().map(|note| text(note)).collect();
    manifest.left_out = left_out;
    manifest.left_out.iter_mut().for_each(|left| left.why = text(&left.why));
    Ok(Packed { items, manifest, names })
}

fn folder(at: usize, host: &str) -> String {
    let fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match host.chars().all(fit) && !host.starts_with('.') && host.len() <= 100 {
        true => host.to_owned(),
        false => placeholder(at),
    }
}

fn placeholder(at: usize) -> String {
    format!("host-{}", at + 1)
}

fn of_host(contact: &Contact, host: &str, folder: &str, leave: &mut impl FnMut(&str, &str)) -> anyhow::Result<Items> {
    let mut items = Items::new();
    if let Some(failure) = contact.lost.get(host) {
        leave(&format!("hosts/{folder}"), &failure.to_string());
    }
    let Some(facts) = contact.facts.get(host) else { return Ok(items) };
    items.insert("facts.json".to_owned(), tree::facts(facts)?);
    match contact.trees.get(host) {
        Some(Ok(tree)) => tree::add(&tree.entries, &tree.left_out, &mut items)?,
        Some(Err(failure)) => leave(&format!("hosts/{folder}/tree"), &failure.to_string()),
        None => leave(&format!("hosts/{folder}/tree"), &format!("files are read of the first {HOSTS} hosts")),
    }
    Ok(items)
}

fn anonymiser(key: [u8; 32], sources: &Sources<'_>) -> anyhow::Result<Anonymiser> {
    // Names in the plan first: no two of them may have the same placeholder.
    let mut names: Vec<(String, String)> =
        sources.hosts.iter().enumerate().map(|(at, (name, _))| (name.clone(), placeholder(at))).collect();
    for (at, (name, address)) in sources.hosts.iter().enumerate() {
        let own = sources.contact.facts.get(name).map(|facts| &facts.hostname);
        for name in [name, address].into_iter().chain(own) {
            let short = name.split('.').next().unwrap_or_default();
            names.extend([name.as_str(), short].map(|name| (name.to_owned(), placeholder(at))));
        }
    }
    let others = sources.names.iter().enumerate();
    names.extend(others.map(|(at, name)| (name.clone(), format!("name-{}", at + 1))));
    let names = names.iter().map(|(name, placeholder)| (name.as_str(), placeholder.clone()));
    Anonymiser::new(key, names).context("the names of the hosts cannot be replaced")
}

fn run_directory(sources: &Sources<'_>, mut names: Option<&mut Anonymiser>) -> anyhow::Result<Items> {
    let records = files::read(&sources.run.join(JOURNAL)).context("records are missing")?;
    let place = tempfile::tempdir().context("no temporary directory")?;
    let (mut lines, mut facts, mut of) = (Vec::new(), BTreeMap::new(), None);
    let mut withheld = Withheld::new(names.is_some());
    for bytes in records.split_inclusive(|byte| *byte == b'\n') {
        let Numbered { run, n, line } = line::decode(bytes, of.as_deref()).context("the records")?;
        let mut event = line.event;
        withheld.event(&mut event);
        if let Some(names) = &mut names {
            let mut value = serde_json::to_value(&event)?;
            names.document(&mut value);
            // A host may have a name that is a word of the records, as `verbs-rc` is.
            event = border::typed(&value).context("the records cannot be read once names are replaced")?;
        }
        if let Event::HostUp { host, facts: up, .. } = &event {
            facts.insert(host.clone(), json!(up));
        }
        lines.extend(line::encode(&run, n, &line.at, &event)?);
        of.get_or_insert(run);
    }
    files::write(&place.path().join(JOURNAL), lines).context("cannot write to the temporary directory")?;
    if let Err(error) = report::write(place.path(), &Parquet) {
        bail!("the report cannot be written again: {error}");
    }
    let facts = Item::File(serde_json::to_vec_pretty(&facts)?);
    let mut items: Items = [(format!("run/{FACTS}"), facts)].into();
    for entry in fs::read_dir(place.path())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        items.insert(format!("run/{name}"), Item::File(files::read(&entry.path())?));
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_names_of_folders() {
        let hosts = ["../a", "a/b", "a_b", "ü", ".."];
        let folders: Vec<String> = hosts.iter().enumerate().map(|(at, host)| folder(at, host)).collect();
        assert_eq!(folders, ["host-1", "host-2", "a_b", "host-4", "host-5"]);
    }
}

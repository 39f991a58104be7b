//! A kit's hosts as texts for the agent's tests: `agent/tests/hosts/NAME-HOST.host`, whose format stands in
//! `agent/src/facts/tests/fixture.rs`, with the facts that were recorded beside them (`tests/hosts/NAME-HOST.json`).

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    net::IpAddr,
    path::{Component, Path},
};

use railgauge::kit::archive::{Item, Items, Manifest};
use railgauge_model::border::{self, text::printable};
use railgauge_wire::facts::{HostFacts, Interface};
use serde_json::json;

/// A host of a kit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// Its folder in the kit.
    pub host: String,
    /// The text.
    pub text: String,
    /// What its facts must be when they are read from the text: those that were recorded, without what changes by the second and
    /// what a test cannot repeat.
    pub facts: HostFacts,
    /// Kernel drivers of its RDMA devices.
    pub drivers: Vec<String>,
    /// Files of the tree that the format has no words for.
    pub skipped: Vec<String>,
}

/// Facts as a test can repeat them: without load, traffic, the reasons why something could not be read, the agent's environment,
/// what is written on the parts, whose files are in no kit, and what lldpd heard.
#[must_use]
pub fn repeatable(mut facts: HostFacts) -> HostFacts {
    facts.load = Default::default();
    facts.unreadable.clear();
    facts.parts = Default::default();
    facts.neighbours = None;
    facts.cuda_visible = None;
    facts.interfaces.iter_mut().for_each(|interface| interface.traffic = None);
    facts.rdma.iter_mut().flat_map(|device| &mut device.ports).for_each(|port| port.traffic = None);
    facts
}

/// The hosts of a kit that have files.
///
/// # Errors
/// Facts cannot be read, or no host has files.
pub fn fixtures(manifest: &Manifest, items: &Items) -> Result<Vec<Fixture>, String> {
    let mut made = Vec::new();
    for folder in manifest.hosts.values().filter(|folder| is_folder(folder)) {
        let tree = format!("hosts/{folder}/tree/");
        let files: BTreeMap<&str, &Item> =
            items.range(tree.clone()..).map_while(|(path, item)| Some((path.strip_prefix(&tree)?, item))).collect();
        if files.is_empty() {
            continue;
        }
        let path = format!("hosts/{folder}/facts.json");
        let wrong = |why: String| format!("{path}: {why}");
        let Some(Item::File(bytes)) = items.get(&path) else { return Err(wrong("it is not there".to_owned())) };
        let facts: HostFacts = border::read(bytes).map_err(|error| wrong(error.to_string()))?;
        let remarks = match items.get(&format!("hosts/{folder}/tree.json")) {
            Some(Item::File(bytes)) => border::read(bytes).map_err(|error| wrong(error.to_string()))?,
            _ => Vec::new(),
        };
        made.push(fixture(manifest, folder, &files, &remarks, facts));
    }
    if made.is_empty() { Err("no host of this kit has its files with it".to_owned()) } else { Ok(made) }
}

/// Whether a folder of a host is one as kits have it: it becomes part of a file's name.
fn is_folder(folder: &str) -> bool {
    let fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !folder.is_empty() && folder.len() <= 128 && !folder.starts_with('.') && folder.chars().all(fit)
}

/// Whether a path can stand at the beginning of a line: it is read as a path and as nothing else, and stays below the root.
fn is_writable(path: &str) -> bool {
    let is_directive = path == "include" || path.starts_with(['#', '@', '[']);
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
        && !path.split('/').any(|part| matches!(part, "" | "."))
        && !path.chars().any(|c| c.is_control() || c == '\\');
    is_plain && !is_directive && !path.contains(char::is_whitespace)
}

/// A line of the text. Whatever a stranger's text holds, it stays one line.
fn add(text: &mut String, line: &str) {
    text.push_str(&printable(line));
    text.push('\n');
}

fn fixture(
    manifest: &Manifest,
    folder: &str,
    files: &BTreeMap<&str, &Item>,
    remarks: &[serde_json::Value],
    facts: HostFacts,
) -> Fixture {
    let mut drivers: Vec<String> = facts.rdma.iter().filter_map(|device| device.driver.clone()).collect();
    drivers.sort();
    drivers.dedup();
    let mut text = String::new();
    let mut skipped = Vec::new();
    let names = if manifest.anonymized { "names and addresses replaced" } else { "names and addresses as they are" };
    let named = if drivers.is_empty() { "none".to_owned() } else { drivers.join(", ") };
    add(&mut text, &format!("# From a kit of {} (railgauge {}), {names}.", manifest.made_at, manifest.railgauge));
    add(&mut text, &format!("# Kernel {}; drivers of RDMA devices: {named}.", facts.kernel));
    for (path, item) in files {
        if !is_writable(path) {
            skipped.push((*path).to_owned());
            continue;
        }
        match item {
            Item::Link(to) => {
                // Links of sysfs lead to folders; one to a file would be made a folder here.
                let to = to.splitn(4, '/').nth(3).unwrap_or_default();
                let is_file = matches!(files.get(to), Some(Item::File(_)));
                match is_file || !is_writable(to) {
                    true => skipped.push((*path).to_owned()),
                    false => add(&mut text, &format!("{path} -> {to}")),
                }
            }
            Item::File(bytes) => add(&mut text, &format!("{path}{}", content(bytes))),
        }
    }
    for path in
        remarks.iter().filter(|remark| remark.get("directory").is_some()).filter_map(|remark| remark["path"].as_str())
    {
        let has_more = files.keys().any(|file| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
        let led_to =
            files.values().any(|item| matches!(item, Item::Link(to) if to.ends_with(&format!("/tree/{path}"))));
        let folders = remarks.iter().filter_map(|remark| remark["path"].as_str());
        let has_folders =
            folders.clone().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
        if !is_writable(path) {
            skipped.push(path.to_owned());
        } else if !has_more && !led_to && !has_folders {
            // What is looked at there is only whether it is there.
            add(&mut text, &format!("{path} ="));
        }
    }
    if !files.contains_key("proc/sys/kernel/arch") {
        add(&mut text, &format!("proc/sys/kernel/arch{}", content(facts.architecture.as_bytes())));
    }
    if let Some(xids) = &facts.xids {
        let record = |xid: &railgauge_wire::facts::Xid| {
            format!(
                "4,1,{},-;NVRM: Xid (PCI:{}): {}, {}",
                xid.at.saturating_mul(1_000_000),
                xid.pci,
                xid.code,
                xid.text
            )
        };
        let records = xids.iter().map(record).collect::<Vec<_>>().join("\n");
        add(&mut text, &format!("dev/kmsg{}", content(records.as_bytes())));
    }
    answers(&mut text, &facts);
    Fixture { host: folder.to_owned(), text, facts: repeatable(facts), drivers, skipped }
}

/// What stands behind a path: text, or bytes where the format's text cannot hold them.
fn content(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok().filter(|text| {
        let plain = !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        plain && !text.contains('\\') && !text.contains(" -> ")
    });
    if let Some(text) = text {
        return match text.trim() {
            "" => " =".to_owned(),
            text => format!(" = {}", text.replace('\n', "\\n").replace('\t', "\\t")),
        };
    }
    let mut line = format!(" :{} ", bytes.len());
    for (at, chunk) in bytes.chunks(16).enumerate().filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0)) {
        let digits: String = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = write!(line, "{:x}={digits} ", at * 16);
    }
    line
}

/// What is asked and not read.
fn answers(text: &mut String, facts: &HostFacts) {
    for interface in &facts.interfaces {
        for address in &interface.addresses {
            add(text, &format!("@address {} {address}/{}", interface.name, prefix(interface, address)));
        }
        let Interface { driver, pause, dcb, .. } = interface;
        if driver.is_some() || pause.is_some() || dcb.is_some() {
            let document = json!({ "driver": driver, "pause": pause, "dcb": dcb });
            add(text, &format!("@interface {} {document}", interface.name));
        }
    }
    for (device, port) in facts.rdma.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port))) {
        if let Some(mtu) = port.mtu {
            add(text, &format!("@mtu {} {} {mtu}", device.name, port.number));
        }
    }
    for (name, said) in &facts.libraries {
        match said.contains(' ') {
            true => add(text, &format!("@missing {name} {said}")),
            false => add(text, &format!("@library {name} {said}")),
        }
    }
    for gpu in &facts.gpus {
        add(text, &format!("@gpu {}", json!(gpu)));
    }
    let mut seen: Vec<_> = facts.gpus.iter().filter_map(|gpu| Some((gpu.cuda_device?, gpu.pci.as_deref()?))).collect();
    seen.sort_unstable();
    if !seen.is_empty() {
        let addresses: Vec<&str> = seen.into_iter().map(|(_, pci)| pci).collect();
        add(text, &format!("@cuda {}", addresses.join(" ")));
    }
}

/// Length of the prefix of an address: facts have the network of IPv4 addresses only.
fn prefix(interface: &Interface, address: &str) -> String {
    let Ok(IpAddr::V4(ip)) = address.parse() else { return "64".to_owned() };
    let holds = |network: &&String| {
        let (base, bits) = network.split_once('/')?;
        let (base, bits): (std::net::Ipv4Addr, u32) = (base.parse().ok()?, bits.parse().ok()?);
        let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
        (base.to_bits() == ip.to_bits() & mask).then(|| bits.to_string())
    };
    interface.networks.iter().find_map(|network| holds(&network)).unwrap_or_else(|| "none".to_owned())
}

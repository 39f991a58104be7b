use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
};

use railgauge_wire::{Bytes, Metric};

use super::{
    At, Hosts, Mistake, Section, Table, Topology, Words,
    count::count,
    format::keys,
    grammar::{hostlist::expand, quantity},
    read::{file, texts_of},
};
use crate::{
    border::text::path_text,
    topology::{
        Cable, Device, Fabric, Nic, Plug, Switch, Told, Unread,
        ibnetdiscover::{self, read_routes},
        lldp, nvlink, same_host, slurm,
    },
};

/// Largest file that describes a fabric: the forwarding tables of some 500 switches to 16,000 ports.
const LARGEST: Bytes = Bytes::from_mib(512);

const REMARKS: usize = 10;

const OWN: &str = "the plan";

/// The one key that does not name a source.
const RATE: &str = "link_rate";

pub static TOPOLOGY: Section = Section {
    header: "[topology]",
    about: "What is known of the switches and cables. Sources are joined; what one of them leaves open another may say.",
    keys: keys! {
        "ibnetdiscover": Path, Means("none"),
            "File with the output of ibnetdiscover: switches, cables, widths and speeds of an InfiniBand fabric.";
        "lfts": Path, Means("none: equal paths cannot be distinguished"),
            "File with the output of dump_lfts (dump_fts): the routes of the same fabric.";
        "slurm": Path, Means("none"),
            "Slurm's topology.conf, or the output of `scontrol --oneliner show topology`: which hosts are below which \
             switches, without ports.";
        "lldp": Path, Means("none"),
            "Directory with a file HOST.json for each host, the output of `lldpcli -f json show neighbors` there: at \
             which port of which leaf switch each NIC is. `railgauge discover` writes it.";
        "nvlink": Path, Means("none"),
            "File that `railgauge discover` wrote, as JSON: which hosts have GPUs in which NVLink domain \
             (`clusterUuid`, `cliqueId`).";
        "cables": Pairs, Means("none"),
            "Cables in the plan itself: hosts as `gpu[001-016]` or `gpu001 mlx5_3`, switches as `leaf1`, or `leaf1:7` \
             with the port. A name that is no host of the plan is a switch.";
        RATE: Quantity, Means("not known"),
            "Rate of every link whose source has none: `\"400 Gb/s\"`. Links between two switches without a port, \
             as slurm has them, may be several cables, and keep an unknown rate.";
    },
};

type Reader = fn(&str) -> Result<Told, Unread>;

/// `None` without the table. Mistakes in a file are reported with its line. `hosts` are all that the plan names, also excluded ones.
pub fn read(top: &Table<'_>, hosts: &[String]) -> Option<Topology> {
    top.written("topology")?;
    let table = top.table("topology");
    let mut told = Vec::new();
    for (name, reader) in READERS {
        if let Some(path) = table.path(name) {
            told.extend(from_file(&table, name, &path, *reader));
        }
    }
    if let Some(directory) = table.path("lldp") {
        told.extend(from_directory(&table, &directory, hosts));
    }
    told.extend(cables(&table, hosts));
    let rate = table.parsed(RATE, |text| quantity::limit(text, Metric::Bandwidth).map(|(rate, _)| rate));
    if let Some(rate) = &rate
        && rate.value <= 0.0
    {
        table.wrong(rate.span.clone(), "no link has this rate", "for example link_rate = \"400 Gb/s\"");
    }
    if let Some(rate) = rate {
        told.iter_mut().for_each(|told| give_rates(told, rate.value));
    }
    if TOPOLOGY.keys.iter().all(|key| key.name == RATE || table.written(key.name).is_none()) {
        let help = "for example ibnetdiscover = \"fabric.txt\", or slurm = \"/etc/slurm/topology.conf\"";
        table.wrong(table.span.clone(), "[topology] names no source", help);
    }
    Some(Topology { told })
}

const READERS: &[(&str, Reader)] =
    &[("ibnetdiscover", ibnetdiscover::read), ("lfts", read_routes), ("slurm", slurm::read), ("nvlink", nvlink::read)];

fn from_file(table: &Table<'_>, name: &str, path: &At<PathBuf>, reader: Reader) -> Option<Told> {
    let text = table.book.file(path, &format!("the file of `{name}`"), LARGEST)?;
    match reader(&text) {
        Ok(mut told) => {
            told.source = format!("{name} ({})", path_text(&path.value));
            let file = path_text(&path.value);
            noted(table, path, told.remarks.iter().map(|remark| format!("{file}: {remark}")));
            Some(told)
        }
        Err(why) => {
            let why = if text.trim().is_empty() { "the file is empty".to_owned() } else { why.to_string() };
            table.reject(path.span.clone(), format!("{}: {why}", path_text(&path.value)), written_by(name))
        }
    }
}

fn written_by(source: &str) -> &'static str {
    match source {
        "slurm" => "name Slurm's topology.conf, or a file with the output of `scontrol --oneliner show topology`",
        "nvlink" => "write it again with `railgauge discover PLAN`",
        _ => "give the whole output of the tool, unchanged",
    }
}

fn noted(table: &Table<'_>, path: &At<PathBuf>, mut remarks: impl Iterator<Item = String>) {
    let note = |text: String| {
        table
            .book
            .note(Mistake::at(path.span.clone(), text).help("correct the file, or leave it: the rest of it is used"));
    };
    remarks.by_ref().take(REMARKS).for_each(note);
    let more = remarks.count();
    if more > 0 {
        note(format!("{}: {} of this kind", path_text(&path.value), count(more, "more remark")));
    }
}

fn give_rates(told: &mut Told, rate: f64) {
    for cable in &mut told.cables {
        let coarse =
            [&cable.a, &cable.b].iter().all(|plug| matches!(plug.device, Device::Switch(_)) && plug.port.is_none());
        if !coarse {
            cable.rate_gbps.get_or_insert(rate);
        }
    }
}

fn from_directory(table: &Table<'_>, directory: &At<PathBuf>, hosts: &[String]) -> Option<Told> {
    let mut all = Told { source: format!("lldp ({})", path_text(&directory.value)), ..Told::default() };
    if !directory.value.is_dir() {
        let is = if directory.value.exists() { "is no directory" } else { "is not there" };
        let help =
            "`railgauge discover PLAN` writes this directory; a relative path is relative to the plan's directory";
        table.wrong(directory.span.clone(), format!("{} {is}", path_text(&directory.value)), help);
        return Some(all);
    }
    let mut found = false;
    for host in hosts {
        let path = directory.value.join(format!("{host}.json"));
        if !Path::new(&path).exists() {
            continue;
        }
        found = true;
        let place = At { value: path, span: directory.span.clone(), own: directory.own };
        let Some(told) = read_host(table, &place, host) else { continue };
        all.switches.extend(told.switches);
        all.cables.extend(told.cables);
        all.remarks.extend(told.remarks.into_iter().map(|remark| format!("{host}: {remark}")));
    }
    noted(table, directory, all.remarks.iter().cloned());
    if !found {
        let what = format!("{} has no file HOST.json of a host of the plan", path_text(&directory.value));
        table.wrong(directory.span.clone(), what, "write them with `lldpcli -f json show neighbors` on each host");
    }
    Some(all)
}

fn read_host(table: &Table<'_>, path: &At<PathBuf>, host: &str) -> Option<Told> {
    let wrong = |what: String| {
        let message = format!("{}: {what}", path_text(&path.value));
        table.reject(path.span.clone(), message, format!("write it again on {host}: `lldpcli -f json show neighbors`"))
    };
    match file::read_up_to(&path.value, LARGEST) {
        Err(fault) => wrong(format!("the file {fault}")),
        Ok(text) => lldp::read(&text, host).map_or_else(|why| wrong(why.to_string()), Some),
    }
}

fn cables(table: &Table<'_>, hosts: &[String]) -> Option<Told> {
    let raw = table.raw("cables")?;
    let mut told = Told { source: OWN.into(), ..Told::default() };
    let mut taken: HashSet<Plug> = HashSet::new();
    for pair in raw.value.as_array()? {
        let ends = texts_of(table.book, pair.get_ref(), pair.span());
        let [a, b] = ends.as_slice() else { continue };
        let read = |end: &Words| match plugs(&end.text, hosts) {
            Ok(plugs) => plugs,
            Err(wrong) => {
                table.wrong(end.span.clone(), wrong.to_string(), "for example [\"gpu001 mlx5_3\", \"leaf1:7\"]");
                Vec::new()
            }
        };
        let (from, to) = (read(a), read(b));
        let wrong = |what: String, help: &str| table.wrong(pair.span(), what, help);
        if from.len() > 1 && to.len() > 1 {
            wrong(
                format!("{} and {} are several each: which goes where is not said", a.text, b.text),
                "name one switch",
            );
            continue;
        }
        if from.len() + to.len() > 2 && from.iter().chain(&to).any(|plug| plug.port.is_some()) {
            wrong(
                "several cables cannot be in one port".to_owned(),
                "leave the port out, or write a pair for each cable",
            );
            continue;
        }
        if from == to || matches!((from.as_slice(), to.as_slice()), ([one], [other]) if one.device == other.device) {
            wrong(format!("a cable from {} to itself", a.text), "name two different ends");
            continue;
        }
        let port =
            |plug: &&Plug| plug.port.is_some() || matches!(&plug.device, Device::Nic(nic) if nic.device.is_some());
        if let Some(plug) = from.iter().chain(&to).filter(port).find(|plug| !taken.insert((*plug).clone())) {
            let text = if from.contains(plug) { &a.text } else { &b.text };
            wrong(format!("{text} has another cable already"), "a port has one cable");
            continue;
        }
        let is_nic = |plugs: &[Plug]| plugs.iter().any(|plug| matches!(plug.device, Device::Nic(_)));
        if is_nic(&from) && is_nic(&to) {
            let what = format!("{} and {} are both hosts", a.text, b.text);
            table.wrong(pair.span(), what, "one end of a cable is a switch");
            continue;
        }
        for plug in from.iter().chain(&to) {
            if let Device::Switch(name) = &plug.device {
                told.switches.entry(name.clone()).or_insert_with(|| Switch { name: name.clone(), ..Switch::default() });
            }
        }
        let both = from.iter().flat_map(|a| to.iter().map(move |b| (a.clone(), b.clone())));
        told.cables.extend(both.map(|(a, b)| Cable { a, b, rate_gbps: None, width: None, speed: None }));
    }
    Some(told)
}

fn plugs(text: &str, hosts: &[String]) -> Result<Vec<Plug>, Unread> {
    let (names, device) = text.split_once(' ').map_or((text, None), |(names, device)| (names, Some(device.trim())));
    let (names, port) = names.split_once(':').map_or((names, None), |(names, port)| (names, Some(port)));
    let names = expand(names).map_err(|wrong| Unread::Whole(wrong.message))?;
    if device.is_some_and(str::is_empty) || port.is_some_and(|port| port.is_empty() || port.contains('[')) {
        return Err(Unread::Whole(format!("`{text}` is no end of a cable")));
    }
    // As sources name them: with or without domain, in either case.
    let host = |name: String| hosts.iter().find(|host| same_host(host, &name)).cloned().ok_or(name);
    let plug = |name: String| match (host(name), device, port) {
        (Ok(name), _, Some(_)) => Err(Unread::Whole(format!("{name} is a host: name its NIC as `{name} mlx5_0`"))),
        (Ok(name), device, None) => Ok(Plug {
            device: Device::Nic(Nic { host: Some(name), device: device.map(str::to_owned), ..Nic::default() }),
            port: None,
        }),
        (Err(name), Some(_), _) => {
            Err(Unread::Whole(format!("{name} is no host of the plan, and a switch has ports, not NICs")))
        }
        (Err(name), None, port) => Ok(Plug { device: Device::Switch(name), port: port.map(str::to_owned) }),
    };
    names.into_iter().map(plug).collect()
}

/// Adds groups by the topology: leaf switches, or NVLink domains if no leaf became one. Groups of the plan take precedence.
pub fn groups(hosts: &mut Hosts) {
    if !leaves(hosts) {
        domains(hosts);
    }
}

/// Adds a group for each NVLink domain (a block in Slurm) with some but not all of the hosts.
fn domains(hosts: &mut Hosts) {
    let Some(topology) = &hosts.topology else { return };
    let mut members: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (name, nodes) in topology.told.iter().flat_map(|told| &told.domains) {
        // All names of a host share the first label, so thousands of nodes need not be compared with thousands of hosts.
        let label = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let mut by_label: HashMap<String, Vec<&String>> = HashMap::new();
        nodes.iter().for_each(|node| by_label.entry(label(node)).or_default().push(node));
        let is_in = |own: &str| by_label.get(&label(own)).into_iter().flatten().any(|node| same_host(node, own));
        let those = hosts.list.iter().enumerate().filter(|(_, host)| is_in(&host.name) || is_in(&host.address));
        members.entry(name.clone()).or_default().extend(those.map(|(at, _)| at));
    }
    for (name, members) in members {
        let names = members.iter().map(|at| hosts.list[*at].name.clone()).collect();
        add(hosts, name, names);
    }
}

fn add(hosts: &mut Hosts, name: String, members: Vec<String>) -> bool {
    let tells = !members.is_empty() && members.len() < hosts.list.len();
    let is_new = tells && !hosts.position.contains_key(&name) && !hosts.groups.contains_key(&name);
    if is_new {
        hosts.groups.insert(name, members);
    }
    is_new
}

/// Adds a group for each leaf switch with some but not all of the hosts, if every host is below a leaf. Returns whether there is one now.
fn leaves(hosts: &mut Hosts) -> bool {
    let Some(topology) = &hosts.topology else { return false };
    let fabric = Fabric::join(&topology.told);
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for host in &hosts.list {
        let leaves = fabric.leaves_of(&[&host.name, &host.address]);
        let [leaf] = leaves.as_slice() else { return false };
        members.entry(fabric.switches[*leaf as usize].name.clone()).or_default().push(host.name.clone());
    }
    let mut is_any = false;
    for (name, members) in members {
        is_any |= add(hosts, name, members);
    }
    is_any
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::plan::{Plan, parse};

    fn with_notes(source: &str, file: &str, text: &str, hosts: &str) -> Result<(Plan, String), String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(file), text).unwrap();
        let named = if source == "lldp" { "." } else { file };
        let plan = format!(
            "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = \"n[1-4]\"{hosts} }}\ntopology.{source} = \"{named}\"\n\
             [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n"
        );
        let read = parse("p.toml", &plan, folder.path());
        read.map(|(plan, notes)| (plan, notes.render(false))).map_err(|mistakes| mistakes.render(false))
    }

    fn read(file: &str, text: &str, hosts: &str) -> Result<Plan, String> {
        with_notes("slurm", file, text, hosts).map(|(plan, _)| plan)
    }

    #[test]
    fn what_a_source_says_twice_or_not_at_all_is_noted() {
        let text = "SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=leaf1 Nodes=n3\nSwitchName=spine Switches=leaf[1-2]\n";
        let (_, notes) = with_notes("slurm", "topology.conf", text, "").unwrap();
        for words in ["line 2: switch leaf1 is there already", "line 3: switch leaf2 has no line of its own"] {
            assert!(notes.contains(words), "{words}: {notes}");
        }
        let many: String = (0..60).map(|number| format!("Include {number}\n")).collect();
        let (_, notes) = with_notes("slurm", "topology.conf", &format!("SwitchName=a Nodes=n1\n{many}"), "").unwrap();
        assert!(notes.contains("50 more remarks") && notes.matches("is not used").count() == 10, "{notes}");
        let (_, notes) = with_notes("slurm", "topology.conf", "SwitchName=a Nodes=n1\n", "").unwrap();
        assert!(!notes.contains("topology.conf"), "{notes}");
    }

    #[test]
    fn a_wrong_file_of_lldp_is_told_with_the_command_that_writes_it() {
        let wrong = with_notes("lldp", "n3.json", "{", "").unwrap_err();
        for words in ["n3.json", "lldpcli -f json show neighbors", "on n3"] {
            assert!(wrong.contains(words), "{words}: {wrong}");
        }
    }

    fn groups(plan: &Plan) -> Vec<(&str, &[String])> {
        plan.groups.iter().map(|(name, members)| (name.as_str(), members.as_slice())).collect()
    }

    #[test]
    fn domains_are_groups_as_leaves_are() {
        let blocks = "BlockName=b1 Nodes=n[1-2].cluster\nBlockName=b2 Nodes=n[3-9].cluster\nBlockName=far Nodes=m1\n";
        let plan = read("topology.conf", blocks, "").unwrap();
        let both = |one: &str, other: &str| [one.to_owned(), other.to_owned()];
        assert_eq!(groups(&plan), [("b1", &both("n1", "n2")[..]), ("b2", &both("n3", "n4")[..])]);
        // A group of the plan keeps its name, and one domain of all hosts makes no group.
        let plan = read("topology.conf", blocks, ", groups = { b1 = \"n4\" }").unwrap();
        assert_eq!(plan.groups["b1"], ["n4"]);
        assert!(read("topology.conf", "BlockName=b1 Nodes=n[1-4]\n", "").unwrap().groups.is_empty());
        let tree = format!("{blocks}SwitchName=leaf1 Nodes=n[1-3]\nSwitchName=leaf2 Nodes=n4\n");
        let plan = read("topology.conf", &tree, "").unwrap();
        assert_eq!(plan.groups.keys().collect::<Vec<_>>(), ["leaf1", "leaf2"]);
    }
}

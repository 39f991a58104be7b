//! Slurm's `topology.conf`: a tree of switches with the nodes below them, or blocks of nodes (topology.conf(5)); and the output of
//! `scontrol show topology`, which has the same names.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cable, Device, MOST_CABLES, Nic, Plug, Remarks, Switch, Told, Unread};
use crate::border::{hostlist::expand, text::printable};

/// Reads the file. Blocks are treated as NVLink domains, the purpose of the block plugin.
///
/// # Errors
/// A line is not a list of `Key=Value`, a list of hosts or switches cannot be read, or the file has no switch and no block.
pub fn read(text: &str) -> Result<Told, Unread> {
    let mut told = Told { source: "topology.conf".into(), ..Told::default() };
    let (mut remarks, mut below) = (Remarks::default(), Vec::new());
    for (number, line) in lines(text) {
        let record = Record::read(number, &line)?;
        match record.value("SwitchName").or_else(|| record.value("Switch")) {
            Some(name) => switch(&mut told, &mut remarks, &mut below, &record, name)?,
            None => other(&mut told, &mut remarks, &record)?,
        }
    }
    if told.switches.is_empty() && told.domains.is_empty() {
        return Err(Unread::Whole("the file has no line SwitchName=… or BlockName=…".into()));
    }
    for (line, name) in below {
        if !told.switches.contains_key(&name) {
            remarks.add(format!("line {line}: switch {name} has no line of its own"));
            told.switches.insert(name.clone(), Switch { name, ..Switch::default() });
        }
    }
    if let Some(name) = below_itself(&told) {
        return Err(Unread::Whole(format!("switch {name} is below itself")));
    }
    told.remarks = remarks.list();
    Ok(told)
}

/// A switch in a loop.
fn below_itself(told: &Told) -> Option<String> {
    let mut higher: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for cable in &told.cables {
        if let (Device::Switch(lower), Device::Switch(upper)) = (&cable.a.device, &cable.b.device) {
            higher.entry(lower).or_default().insert(upper);
        }
    }
    // From the top down, until only what is below a loop is left.
    loop {
        let count = higher.len();
        let left: BTreeSet<&str> = higher.keys().copied().collect();
        higher.retain(|_, above| !above.is_disjoint(&left));
        if higher.len() == count {
            break;
        }
    }
    let next = |name: &str| higher.get(name)?.iter().find(|above| higher.contains_key(**above)).copied();
    let first = *higher.keys().next()?;
    (0..higher.len()).try_fold(first, |name, _| next(name)).map(str::to_owned)
}

fn switch(
    told: &mut Told,
    remarks: &mut Remarks,
    below: &mut Vec<(usize, String)>,
    record: &Record,
    name: &str,
) -> Result<(), Unread> {
    let name = printable(name);
    let end = |device| Plug { device, port: None };
    let here = || end(Device::Switch(name.clone()));
    // scontrol lists all nodes below a switch, at every level; those of a higher one are below its lower ones.
    let is_higher = record.value("Level").is_some_and(|level| level != "0");
    let hosts = if is_higher { Vec::new() } else { record.list("Nodes")? };
    let switches = record.list("Switches")?;
    if told.cables.len() + hosts.len() + switches.len() > MOST_CABLES {
        return Err(Unread::line(record.line, format!("more than {MOST_CABLES} nodes below switches")));
    }
    for host in hosts {
        let nic = Nic { host: Some(host), ..Nic::default() };
        told.cables.push(bare(end(Device::Nic(nic)), here()));
    }
    for lower in switches {
        told.cables.push(bare(end(Device::Switch(lower.clone())), here()));
        below.push((record.line, lower));
    }
    if told.switches.insert(name.clone(), Switch { name: name.clone(), ..Switch::default() }).is_some() {
        remarks.add(format!("line {}: switch {name} is there already; what both lines say is joined", record.line));
    }
    Ok(())
}

fn other(told: &mut Told, remarks: &mut Remarks, record: &Record) -> Result<(), Unread> {
    if let Some(name) = record.value("BlockName") {
        let hosts = record.list("Nodes")?;
        if hosts.is_empty() {
            remarks.add(format!("line {}: block {} has no nodes", record.line, printable(name)));
            return Ok(());
        }
        let sum: usize = told.domains.values().map(BTreeSet::len).sum();
        if sum + hosts.len() > MOST_CABLES {
            return Err(Unread::line(record.line, format!("more than {MOST_CABLES} nodes in blocks")));
        }
        told.domains.entry(printable(name)).or_default().extend(hosts);
    } else if record.value("BlockSizes").or_else(|| record.value("AggregatedBlock")).is_none() {
        let first = record.pairs.first().map(|(key, _)| printable(key)).unwrap_or_default();
        remarks.add(format!("line {}: {first}=… is not used", record.line));
    }
    Ok(())
}

/// Reads what slurmctld reports of its cluster: the output of `scontrol --oneliner show topology` (Slurm 22.05 to 25.05). `None` if it is
/// empty, as without a topology plugin.
///
/// # Errors
/// As [`read`].
pub fn running(text: &str) -> Result<Option<Told>, Unread> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    read(text).map(|told| Some(Told { source: "scontrol show topology".into(), ..told }))
}

/// The part of a tree above some hosts: they, and the switches between them and the root. `None` where they are below no switch.
pub fn above(told: &Told, is_wanted: impl Fn(&str) -> bool) -> Option<Told> {
    let is_kept = |device: &Device| match device {
        Device::Nic(nic) => nic.host.as_deref().is_some_and(&is_wanted),
        Device::Switch(_) => false,
    };
    // What is above each device; `a` is the lower end of every cable read here.
    let mut higher: BTreeMap<&Device, Vec<&Cable>> = BTreeMap::new();
    for cable in &told.cables {
        higher.entry(&cable.a.device).or_default().push(cable);
    }
    let mut open: Vec<&Device> = higher.keys().copied().filter(|device| is_kept(device)).collect();
    let mut seen: BTreeSet<&Device> = open.iter().copied().collect();
    let mut part = Told { source: told.source.clone(), remarks: told.remarks.clone(), ..Told::default() };
    while let Some(device) = open.pop() {
        for cable in higher.get(device).into_iter().flatten() {
            part.cables.push((*cable).clone());
            if seen.insert(&cable.b.device) {
                open.push(&cable.b.device);
            }
        }
    }
    part.cables.sort_by(|one, other| (&one.a, &one.b).cmp(&(&other.a, &other.b)));
    let is_seen = |key: &str| seen.contains(&Device::Switch(key.to_owned()));
    part.switches
        .extend(told.switches.iter().filter(|(key, _)| is_seen(key)).map(|(key, one)| (key.clone(), one.clone())));
    (!part.cables.is_empty()).then_some(part)
}

fn bare(a: Plug, b: Plug) -> Cable {
    Cable { a, b, rate_gbps: None, width: None, speed: None }
}

struct Record {
    /// From 1.
    line: usize,
    pairs: Vec<(String, String)>,
}

impl Record {
    fn read(line: usize, text: &str) -> Result<Self, Unread> {
        let mut pairs = Vec::new();
        for word in words(text) {
            // `Include FILE` has no `=`, and is not a topology.
            let Some((key, value)) = word.split_once('=') else {
                if pairs.is_empty() && word.eq_ignore_ascii_case("include") {
                    pairs.push(("Include".into(), String::new()));
                    break;
                }
                return Err(Unread::line(line, format!("`{}` is not Key=Value", printable(&word))));
            };
            pairs.push((key.to_owned(), value.to_owned()));
        }
        Ok(Self { line, pairs })
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
    }

    fn list(&self, key: &str) -> Result<Vec<String>, Unread> {
        let text = self.value(key).unwrap_or_default();
        if text.is_empty() {
            return Ok(Vec::new());
        }
        expand(text).map_err(|wrong| Unread::line(self.line, format!("{key}: {}", printable(&wrong.message))))
    }
}

/// Words between blanks; quotes are removed, and blanks inside them stay.
fn words(text: &str) -> Vec<String> {
    let (mut all, mut word, mut inside) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => inside = !inside,
            c if c.is_whitespace() && !inside => all.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

/// Lines with content and the number of their first line: comments are removed, continued lines are joined.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut continues = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end();
        let (line, goes_on) = line.strip_suffix('\\').map_or((line, false), |line| (line, true));
        let comment = comment(line);
        let said = &line[..comment.unwrap_or(line.len())];
        match all.last_mut() {
            Some((_, last)) if continues => {
                last.push(' ');
                last.push_str(said);
            }
            _ => all.push((number, said.to_owned())),
        }
        continues = goes_on && comment.is_none();
    }
    all.retain(|(_, line)| !line.trim().is_empty());
    all
}

/// Start of a comment: a `#` without a backslash before it.
fn comment(line: &str) -> Option<usize> {
    line.match_indices('#').map(|(at, _)| at).find(|at| !line[..*at].ends_with('\\'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TREE: &str = "# two leaves\nSwitchName=leaf1 Nodes=gpu[001-002],login LinkSpeed=900\n\
        switchname=leaf2 \\\n  nodes=gpu[003-004] # upper rack\n\nSwitchName=spine Switches=leaf[1-2]\n";

    fn pairs(told: &Told) -> Vec<String> {
        let name = |plug: &Plug| match &plug.device {
            Device::Switch(key) => key.clone(),
            Device::Nic(nic) => nic.host.clone().unwrap_or_default(),
        };
        told.cables.iter().map(|cable| format!("{} {}", name(&cable.a), name(&cable.b))).collect()
    }

    #[test]
    fn a_tree_is_read_with_comments_case_and_continued_lines() {
        let told = read(TREE).unwrap();
        let expected = ["gpu001 leaf1", "gpu002 leaf1", "login leaf1", "gpu003 leaf2", "gpu004 leaf2", "leaf1 spine"];
        assert_eq!(pairs(&told)[..6], expected);
        assert_eq!((told.switches.len(), told.cables.len(), told.remarks.len()), (3, 7, 0));
    }

    #[test]
    fn switches_in_a_loop_are_refused_by_name() {
        let loop_of = |lines: &str| read(lines).err().map(|error| error.to_string());
        let of_two = "SwitchName=a Switches=b,leaf\nSwitchName=b Switches=a\nSwitchName=leaf Nodes=n[1-2]\n";
        assert!(loop_of(of_two).is_some_and(|error| error.contains("switch a ") || error.contains("switch b ")));
        assert!(loop_of("SwitchName=a Switches=a Nodes=n1\n").is_some_and(|error| error.contains("switch a ")));
        let diamond = "SwitchName=top Switches=a,b\nSwitchName=a Switches=leaf\nSwitchName=b Switches=leaf\nSwitchName=leaf Nodes=n1\n";
        assert_eq!(loop_of(diamond), None);
    }

    /// Real output of Slurm 22.05.
    const RUNNING: &str = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n1,n2\nSwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n3,n4\n\
        SwitchName=spine Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=leaf1,leaf2\n";

    #[test]
    fn nodes_of_a_running_cluster_are_below_their_leaves_only() {
        let told = running(RUNNING).unwrap().unwrap();
        let expected = ["n1 leaf1", "n2 leaf1", "n3 leaf2", "n4 leaf2", "leaf1 spine", "leaf2 spine"];
        assert_eq!((pairs(&told), told.remarks.len()), (expected.map(str::to_owned).to_vec(), 0));
        assert_eq!((running("").unwrap(), running("\n").unwrap()), (None, None));
        assert!(running("scontrol: odd\n").is_err());
    }

    #[test]
    fn blocks_of_blocks_are_no_domains() {
        // Output of the block plugin in Slurm 25.05.
        let text = "BlockName=b0 BlockIndex=0 Nodes=n1,n2 BlockSize=2\nBlockName=b1 BlockIndex=1 Nodes=n3,n4 BlockSize=2\n\
            AggregatedBlock=b[0-1] BlockIndex=2 Nodes=n1,n2,n3,n4 BlockSize=4\n";
        let told = running(text).unwrap().unwrap();
        assert_eq!((told.domains.len(), told.domains["b1"].len(), told.remarks.len()), (2, 2, 0));
        assert_eq!(above(&told, |_| true), None);
    }

    #[test]
    fn the_part_above_some_hosts_has_their_switches_only() {
        let told = running(RUNNING).unwrap().unwrap();
        let part = above(&told, |host| host == "n3").unwrap();
        assert_eq!(pairs(&part), ["leaf2 spine", "n3 leaf2"]);
        assert_eq!(part.switches.keys().collect::<Vec<_>>(), ["leaf2", "spine"]);
        assert_eq!(above(&told, |host| host == "n5"), None);
    }

    #[test]
    fn blocks_are_domains() {
        let text = "BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\nBlockSizes=4,8\nBlockName=empty\n";
        let told = read(text).unwrap();
        assert_eq!(told.domains["b2"].iter().cloned().collect::<Vec<_>>(), ["n5", "n6", "n7", "n8"]);
        assert_eq!((told.domains.len(), told.remarks.len()), (2, 1));
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        let line = |text: &str| match read(text) {
            Err(Unread::Line { line, .. }) => Some(line),
            _ => None,
        };
        assert_eq!(line("# a\nSwitchName=a Nodes=n[1-\n"), Some(2));
        assert_eq!(line("SwitchName=a Nodes=n1\nnonsense\n"), Some(2));
        let many = format!("{}\n", "SwitchName=a Nodes=n[1-65536]\n".repeat(20));
        assert_eq!(line(&many), Some(17));
        assert!(matches!(read("#nothing\n"), Err(Unread::Whole(_))));
    }

    #[test]
    fn what_is_not_used_is_remarked() {
        let told = read("Include other.conf\nSwitchName=a Switches=b\n").unwrap();
        assert_eq!((told.remarks.len(), told.switches.len()), (2, 2));
    }

    proptest! {
        #[test]
        fn nothing_panics(text: String, cut in 0..TREE.len(), put in "\\PC{0,3}|[\\[\\]\\\\#=\"\n]") {
            let _ = (read(&text), running(&text).map(|told| told.map(|told| above(&told, |_| true))));
            let _ = read(&format!("{}{put}{}", &TREE[..cut], &TREE[cut..]));
            let _ = read(&format!("{}{put}", &TREE[..cut]));
        }
    }
}

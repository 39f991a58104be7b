//! Slurm's `topology.yaml` (Slurm 25.05, topology.yaml(5)): several topologies, each a tree of switches, blocks of nodes, or flat.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::{
    slurm::{Record, collect},
    told::Told,
    unread::Unread,
};
use crate::border::text::printable;

/// Levels of lists and mappings. The format has six.
const DEEPEST: usize = 16;
/// Values in the file: three for each of as many switches as a source may have cables, and their names.
const MOST_VALUES: usize = 1 << 22;

/// Reads the effective topology of the cluster: the one with `cluster_default`, else the first. A remark names the others.
///
/// # Errors
/// The text is not YAML, uses aliases, is not a list of topologies, or the effective one has no switch and no block.
pub fn read(text: &str) -> Result<Told, Unread> {
    let root = document(text)?;
    let all = root.list("a list of topologies")?;
    let mut named = Vec::new();
    for one in all {
        let (_, name) = one.need("topology")?;
        named.push((one, name.text("the name of the topology")?));
    }
    let is_default = |one: &Node| one.get("cluster_default").is_some_and(Node::is_true);
    let chosen = named.iter().position(|(one, _)| is_default(one)).unwrap_or_default();
    let Some((topology, name)) = named.get(chosen) else {
        return Err(Unread::Whole("the file has no topology".into()));
    };
    let mut records = Vec::new();
    let mut remarks = Vec::new();
    for (key, value) in topology.map("a topology")? {
        match key.as_str() {
            "tree" => entries(
                value,
                "switches",
                &[("switch", "SwitchName"), ("children", "Switches"), ("nodes", "Nodes")],
                &mut records,
            )?,
            "block" => entries(value, "blocks", &[("block", "BlockName"), ("nodes", "Nodes")], &mut records)?,
            "topology" | "cluster_default" => {}
            "flat" if value.is_true() => {
                return Err(Unread::line(
                    value.line,
                    format!("topology {} is flat: it has no switches", printable(name)),
                ));
            }
            "flat" => {}
            other => remarks.push(format!("line {}: {} is not used", value.line, printable(other))),
        }
    }
    if records.is_empty() {
        return Err(Unread::line(topology.line, format!("topology {} has no switch and no block", printable(name))));
    }
    let mut told = collect(records.into_iter().map(Ok))?;
    let others = named.iter().enumerate().filter(|(at, _)| *at != chosen);
    let others = others.map(|(_, (one, name))| format!("line {}: topology {} is not used", one.line, printable(name)));
    // The limit of remarks of one source.
    remarks.extend(others.take(100));
    told.remarks.splice(0..0, remarks);
    Ok(told)
}

fn entries(value: &Node, list: &str, names: &[(&str, &str)], records: &mut Vec<Record>) -> Result<(), Unread> {
    for entry in value.need(list)?.1.list(list)? {
        let mut pairs = Vec::new();
        for (key, name) in names {
            match entry.get(key) {
                Some(value) => pairs.push(((*name).to_owned(), value.text(key)?.to_owned())),
                None if *key == names[0].0 => return Err(Unread::line(entry.line, format!("{key} is missing"))),
                None => {}
            }
        }
        records.push(Record { line: entry.line, pairs });
    }
    Ok(())
}

struct Node {
    line: usize,
    value: Value,
}

enum Value {
    Text(String, bool),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn wrong(&self, what: &str) -> Unread {
        Unread::line(self.line, format!("here should be {what}"))
    }

    fn list(&self, what: &str) -> Result<&[Node], Unread> {
        match &self.value {
            Value::List(list) => Ok(list),
            _ => Err(self.wrong(what)),
        }
    }

    fn map(&self, what: &str) -> Result<&[(String, Node)], Unread> {
        match &self.value {
            Value::Map(map) => Ok(map),
            _ => Err(self.wrong(what)),
        }
    }

    fn text(&self, what: &str) -> Result<&str, Unread> {
        match &self.value {
            Value::Text(text, _) => Ok(text),
            _ => Err(self.wrong(what)),
        }
    }

    fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(map) = &self.value else { return None };
        map.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn need(&self, key: &str) -> Result<(usize, &Node), Unread> {
        self.map(&format!("a mapping with {key}"))?;
        let found = self.get(key).map(|value| (value.line, value));
        found.ok_or_else(|| Unread::line(self.line, format!("{key} is missing")))
    }

    fn is_true(&self) -> bool {
        matches!(&self.value, Value::Text(text, true) if text.eq_ignore_ascii_case("true"))
    }
}

fn document(text: &str) -> Result<Node, Unread> {
    let mut open: Vec<(Node, Option<String>)> = Vec::new();
    let (mut root, mut values) = (None, 0_usize);
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|wrong: ScanError| {
            Unread::line(wrong.marker().line(), format!("no YAML: {}", printable(wrong.info())))
        })?;
        let line = span.start.line();
        values += 1;
        if open.len() > DEEPEST || values > MOST_VALUES {
            return Err(Unread::line(line, "more levels or values than a topology has"));
        }
        let done = match event {
            Event::Alias(_) => return Err(Unread::line(line, "aliases are not read: write the value itself")),
            Event::SequenceStart(..) => {
                open.push((Node { line, value: Value::List(Vec::new()) }, None));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Node { line, value: Value::Map(Vec::new()) }, None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|(node, _)| node),
            Event::Scalar(text, style, ..) => {
                Some(Node { line, value: Value::Text(text.into_owned(), style == ScalarStyle::Plain) })
            }
            _ => None,
        };
        let Some(node) = done else { continue };
        let Some((parent, key)) = open.last_mut() else {
            if root.replace(node).is_some() {
                return Err(Unread::line(line, "a second document: a topology.yaml has one"));
            }
            continue;
        };
        match &mut parent.value {
            Value::List(list) => list.push(node),
            Value::Map(map) => match key.take() {
                Some(key) => map.push((key, node)),
                None => {
                    let name = node.text("a key")?.to_owned();
                    if map.iter().any(|(other, _)| *other == name) {
                        return Err(Unread::line(line, format!("{} is there twice", printable(&name))));
                    }
                    *key = Some(name);
                }
            },
            Value::Text(..) => {}
        }
    }
    root.ok_or_else(|| Unread::Whole("the file is empty".into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: &str = "---\n# two plugins\n- topology: racks\n  cluster_default: true\n  tree:\n    switches:\n      \
        - switch: spine\n        children: leaf[1-2]\n      - switch: leaf1\n        nodes: n[1-2]\n      \
        - switch: leaf2\n        nodes: n[3-4]\n- topology: nvl\n  cluster_default: false\n  block:\n    \
        block_sizes:\n      - 2\n      - 4\n    blocks:\n      - block: b1\n        nodes: n[1-2]\n      \
        - {block: b2, nodes: \"n[3-4]\"}\n";

    fn line(text: &str) -> Option<usize> {
        match read(text) {
            Err(Unread::Line { line, .. }) => Some(line),
            _ => None,
        }
    }

    #[test]
    fn the_topology_of_the_cluster_is_read_and_others_are_remarked() {
        let told = read(BOTH).unwrap();
        assert_eq!((told.switches.len(), told.cables.len(), told.domains.len(), told.remarks.len()), (3, 6, 0, 1));
        let other = BOTH.replace("true", "no").replace("false", "true");
        let told = read(&other).unwrap();
        assert_eq!((told.switches.len(), told.domains.len(), told.remarks.len()), (0, 2, 1));
        assert_eq!(told.domains["b2"].iter().collect::<Vec<_>>(), ["n3", "n4"]);
        // Without a default the first counts.
        assert_eq!(read(&BOTH.replace("true", "false")).unwrap().switches.len(), 3);
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        assert_eq!(line(&BOTH.replace("nodes: n[1-2]\n      - switch", "nodes: n[1-\n      - switch")), Some(9));
        assert_eq!(line(&BOTH.replace("- switch: leaf2", "- swich: leaf2")), Some(11));
        assert_eq!(line("- topology: a\n  tree:\n    switches: 7\n"), Some(3));
        assert_eq!(line("- topology: a\n  flat: true\n"), Some(2));
        assert_eq!(line("topology: a\n"), Some(1));
        assert_eq!(line("- topology: a\n  topology: b\n"), Some(2));
        assert_eq!(line("- topology: a\n  tree: [\n"), Some(3));
        assert_eq!(line("- topology: a\n- x: 1\n"), Some(2));
        assert!(matches!(read(""), Err(Unread::Whole(_))));
        assert!(matches!(read("[]"), Err(Unread::Whole(_))));
    }

    #[test]
    fn aliases_and_depth_fill_no_memory() {
        assert_eq!(line("- &a topology: x\n- *a\n"), Some(2));
        assert_eq!(line(&"[".repeat(100_000)), Some(1));
        assert_eq!(line(&"- ".repeat(100_000)), Some(1));
    }

    proptest! {
        #[test]
        fn nothing_panics(text: String, cut in 0..BOTH.len(), put in "\\PC{0,3}|[\\[\\]{}&*:#\"\n -]") {
            let _ = (read(&text), read(&format!("{}{put}{}", &BOTH[..cut], &BOTH[cut..])));
        }
    }
}

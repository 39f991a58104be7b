use railgauge_wire::{HostFacts, RawContent, RawEntry, RawLeftOut};
use serde_json::{Value, json};

use super::archive::{Item, Items, UNSTORABLE, is_storable};

/// Words of a kernel's command line that are kept, by the part before `=` or `.`. Others may hold secrets or names.
const COMMAND_LINE: &[&str] = &[
    "amd_iommu",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle",
    "intel_iommu",
    "intel_pstate",
    "iommu",
    "isolcpus",
    "mitigations",
    "nohz_full",
    "numa_balancing",
    "pci",
    "pcie_acs_override",
    "pcie_aspm",
    "processor",
    "rcu_nocbs",
    "transparent_hugepage",
];
/// The text of an Xid without the number and the name of a process, which are private.
pub(super) fn without_process(text: &str) -> String {
    let of_process = |part: &str| ["pid=", "name="].iter().any(|key| part.trim_start().starts_with(key));
    text.split(',').filter(|part| !of_process(part)).collect::<Vec<_>>().join(",").trim_start().to_owned()
}

pub fn facts(facts: &HostFacts) -> serde_json::Result<Item> {
    let mut facts = facts.clone();
    facts.command_line = facts.command_line.map(|line| command_line(&line));
    facts.xids.iter_mut().flatten().for_each(|xid| xid.text = without_process(&xid.text));
    Ok(Item::File(serde_json::to_vec_pretty(&facts)?))
}

/// Adds the files of a host: the tree itself below `tree/`, and other entries in `tree.json`.
pub fn add(entries: &[RawEntry], left_out: &[RawLeftOut], items: &mut Items) -> serde_json::Result<()> {
    let mut remarks = Vec::new();
    for RawEntry { path, content } in entries {
        let item = match content {
            RawContent::Link { to } => Item::Link(format!("tree/{to}")),
            RawContent::Directory => {
                remarks.push(json!({ "path": path, "directory": true }));
                continue;
            }
            RawContent::Unreadable { why } => {
                remarks.push(json!({ "path": path, "unreadable": why }));
                continue;
            }
            RawContent::File { whole, .. } => {
                let Some(bytes) = content.bytes() else { continue };
                if !whole {
                    remarks.push(json!({ "path": path, "cut_to_bytes": bytes.len() }));
                }
                Item::File(cut_down(path, bytes))
            }
        };
        let at = format!("tree/{path}");
        // An agent is not trusted with paths.
        match is_storable(&at, &item) {
            true => _ = items.insert(at, item),
            false => remarks.push(json!({ "path": path, "left_out": UNSTORABLE })),
        }
    }
    remarks.extend(left_out.iter().map(|left| json!({ "path": left.path, "left_out": left.why })));
    items.insert("tree.json".to_owned(), Item::File(serde_json::to_vec_pretty(&Value::Array(remarks))?));
    // Nothing may be below a file or a link, whatever an agent says.
    let taken = |path: &str| path.match_indices('/').any(|(at, _)| items.contains_key(&path[..at]));
    let below: Vec<String> = items.keys().filter(|path| taken(path)).cloned().collect();
    below.iter().for_each(|path| _ = items.remove(path));
    Ok(())
}

fn cut_down(path: &str, bytes: Vec<u8>) -> Vec<u8> {
    let lines = |keep: &dyn Fn(&str) -> bool| {
        let text = String::from_utf8_lossy(&bytes);
        text.lines().filter(|line| keep(line)).map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    };
    match path {
        "proc/cmdline" => (command_line(&String::from_utf8_lossy(&bytes)) + "\n").into_bytes(),
        "proc/self/status" => lines(&|line| line.starts_with("Cap") || line.starts_with("Cpus_allowed_list")),
        "proc/cpuinfo" => lines(&|line| !line.starts_with("Serial")),
        _ => bytes,
    }
}

pub(super) fn command_line(line: &str) -> String {
    let key = |word: &str| word.split(['=', '.']).next().unwrap_or_default().to_owned();
    let words = line.split_whitespace().filter(|word| COMMAND_LINE.contains(&key(word).as_str()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_keeps_what_says_how_the_kernel_is_set() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=3b7e intel_iommu=on iommu=pt rd.iscsi.password=secret ip=10.0.0.1 pci=realloc";
        assert_eq!(command_line(line), "intel_iommu=on iommu=pt pci=realloc");
        assert_eq!(cut_down("proc/self/status", b"Name:\tx\nCapEff:\t0\nGroups:\t1 2\n".to_vec()), b"CapEff:\t0\n");
        assert_eq!(
            cut_down("proc/self/status", b"Name:\tx\nCpus_allowed_list:\t0-3\n".to_vec()),
            b"Cpus_allowed_list:\t0-3\n"
        );
    }

    #[test]
    fn an_agent_cannot_name_files_outside_of_its_tree() {
        let file = |path: &str| RawEntry { path: path.into(), content: RawContent::of(b"x", true) };
        let link = |path: &str, to: &str| RawEntry { path: path.into(), content: RawContent::Link { to: to.into() } };
        let entries = [
            file("../../run/records.jsonl"),
            file("/etc/passwd"),
            file("sys/a"),
            file("sys/a/b"),
            link("sys/l", "../../../run"),
            link("sys/m", "sys/a"),
        ];
        let mut items = Items::new();
        add(&entries, &[], &mut items).unwrap();
        let paths: Vec<&str> = items.keys().map(String::as_str).collect();
        assert_eq!(paths, ["tree.json", "tree/sys/a", "tree/sys/m"]);
    }

    #[test]
    fn a_path_that_no_archive_can_hold_is_left_out_and_reported() {
        let file = |path: String| RawEntry { path, content: RawContent::of(b"x", true) };
        let (deep, long) = (format!("sys/{}x", "deep/".repeat(200)), format!("sys/{}", "x".repeat(256)));
        let entries = [file(deep.clone()), file(long.clone()), file("sys/a".into())];
        let mut items = Items::new();
        add(&entries, &[], &mut items).unwrap();
        let paths: Vec<&str> = items.keys().map(String::as_str).collect();
        assert_eq!(paths, ["tree.json", "tree/sys/a"]);
        let Item::File(remarks) = &items["tree.json"] else { panic!() };
        let remarks = String::from_utf8(remarks.clone()).unwrap();
        assert!(remarks.contains(&deep) && remarks.contains(&long), "{remarks}");
    }

    #[test]
    fn an_xid_names_no_process() {
        let text = "pid='1234', name=train-llm, Ch 00000008, intr 10000000. MMU Fault";
        assert_eq!(without_process(text), "Ch 00000008, intr 10000000. MMU Fault");
        assert_eq!(without_process("GPU has fallen off the bus."), "GPU has fallen off the bus.");
    }
}

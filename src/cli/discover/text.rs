//! What was read and what was not, for a terminal, and the lines for the plan.

use std::{fmt::Write, path::Path};

use railgauge_model::{
    border::text::path_text,
    plan::{count::count, hostlist},
};

use super::gather::{Gathered, NotRead};

/// Most remarks that are shown.
const REMARKS: usize = 10;

/// The lines of `[topology]` that name what was read; none where nothing was.
pub(super) fn lines(gathered: &Gathered, folder: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    for (key, path) in
        [("lldp", "lldp"), ("ibnetdiscover", "fabric.txt"), ("lfts", "lfts.txt"), ("nvlink", "nvlink.json")]
    {
        if gathered.read.iter().any(|source| source.key == key) {
            // TOML writes such a text as JSON does.
            let path = serde_json::Value::from(path_text(folder.join(path)));
            lines.push(format!("{key} = {path}"));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, "[topology]".to_owned());
    }
    lines
}

/// All of it.
pub(super) fn summary(gathered: &Gathered, lines: &[String], folder: &str) -> String {
    let wanted = gathered.not_read.iter().filter(|one| one.wanted).count();
    let mut out = match gathered.read.len() {
        0 => "nothing was read, and nothing was written\n".to_owned(),
        read => format!("{} read into {folder}, {wanted} could not be read\n", count(read, "source")),
    };
    // Writing to a String cannot fail.
    for source in &gathered.read {
        let file = path_text(&source.file);
        let _ = writeln!(out, "read     {} of {}: {} ({folder}/{file})", source.key, source.host, source.has);
    }
    for (missing, hosts) in folded(&gathered.not_read) {
        let of = if hosts.is_empty() { String::new() } else { format!(" of {}", hostlist::fold(hosts)) };
        let _ = writeln!(out, "not read {}{of}: {}", missing.key, missing.why.clone().unnamed());
    }
    for remark in gathered.remarks.iter().take(REMARKS) {
        let _ = writeln!(out, "remark   {remark}");
    }
    if gathered.remarks.len() > REMARKS {
        let _ = writeln!(out, "remark   {} more", gathered.remarks.len() - REMARKS);
    }
    if !lines.is_empty() {
        let _ = writeln!(out, "\nput into the plan:\n\n{}", lines.join("\n"));
    }
    out
}

/// The same of several hosts once.
fn folded(all: &[NotRead]) -> Vec<(&NotRead, Vec<&str>)> {
    let mut folded: Vec<(&NotRead, Vec<&str>)> = Vec::new();
    for one in all {
        let is_same = |(other, _): &&mut (&NotRead, Vec<&str>)| {
            other.key == one.key && other.why.clone().unnamed() == one.why.clone().unnamed()
        };
        let host = one.why.host.as_deref();
        match folded.iter_mut().find(is_same) {
            Some((_, hosts)) => hosts.extend(host),
            None => folded.push((one, host.into_iter().collect())),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Failure, Kind, Stage};

    use super::{super::gather::Source, *};

    #[test]
    fn hosts_with_the_same_trouble_are_one_line_and_the_plan_gets_its_lines() {
        let missing = |host: &str| NotRead {
            key: "lldp",
            why: Failure::new(Stage::Facts, Kind::Unsupported, "lldpcli is not installed").at(host),
            wanted: true,
        };
        let read =
            Source { key: "lfts", host: "gpu1".into(), file: "lfts.txt".into(), has: "x".into(), text: "".into() };
        let gathered =
            Gathered { read: vec![read], not_read: vec![missing("gpu1"), missing("gpu2")], ..Gathered::default() };
        let lines = lines(&gathered, Path::new("a \"b\""));
        assert_eq!(lines, ["[topology]", r#"lfts = "a \"b\"/lfts.txt""#]);
        let text = summary(&gathered, &lines, "t");
        assert!(text.contains("lldp of gpu[1-2]:") && text.contains("(t/lfts.txt)"), "{text}");
    }
}

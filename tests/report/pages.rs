//! Reports: files, the page, the terminal.

use std::{fs, path::Path};

use railgauge::{
    analysis::journal,
    report::{draw, text, view::View, write},
};

use crate::support::Scenario;

fn view(scenario: &Scenario) -> View {
    let path = Path::new("records.jsonl");
    draw(&journal::parse(scenario.jsonl().as_bytes(), path).unwrap(), path).unwrap().view
}

fn small(scenario: Scenario) -> Scenario {
    Scenario { sizes: vec![65536, 1 << 20], repeats: 1, ..scenario }
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let scenario = small(Scenario::troubled(4, 2));
    for dir in [&one, &two] {
        scenario.write(dir.path());
        write(dir.path()).unwrap();
    }
    // Drawing again replaces, and leaves nothing else behind.
    write(one.path()).unwrap();
    let names = ["junit.xml", "records.jsonl", "records.parquet", "report.html", "verdicts.json"];
    let mut found: Vec<String> =
        fs::read_dir(one.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, names);
    for name in names {
        let read = |dir: &Path| fs::read(dir.join(name)).unwrap();
        assert!(read(one.path()) == read(two.path()), "{name} differs");
    }
}

#[test]
fn the_page_needs_no_network_and_names_every_case_in_trouble() {
    let dir = tempfile::tempdir().unwrap();
    small(Scenario::troubled(4, 2)).write(dir.path());
    let written = write(dir.path()).unwrap();
    let page = fs::read_to_string(written.page).unwrap();
    for foreign in ["http://", "https://", "src=\"/", "@import", "<link", "url("] {
        let hits: Vec<&str> = page
            .match_indices(foreign)
            .map(|(at, _)| &page[at..(at + 40).min(page.len())])
            // The name of SVG's own namespace is no address that anybody visits.
            .filter(|hit| !hit.starts_with("http://www.w3.org/2000/svg") && !hit.starts_with("url(data:"))
            .collect();
        assert!(hits.is_empty(), "{foreign}: {hits:?}");
    }
    for trouble in &written.verdicts.troubles {
        let link = format!("{}:{} → {}:{}", trouble.src_host, trouble.src_rail, trouble.dst_host, trouble.dst_rail);
        assert!(page.contains(&link), "{link}");
    }
}

#[test]
fn names_from_outside_are_escaped() {
    let odd = "<script>alert(1)</script>\"'&";
    let dir = tempfile::tempdir().unwrap();
    small(Scenario { odd_name: Some(odd.into()), ..Scenario::troubled(4, 1) }).write(dir.path());
    let page = fs::read_to_string(write(dir.path()).unwrap().page).unwrap();
    assert!(!page.contains("<script>alert"), "a host name became markup");
    assert!(page.contains("&lt;script&gt;alert"));
    let junit = fs::read_to_string(dir.path().join("junit.xml")).unwrap();
    assert!(!junit.contains("<script>"));
}

#[test]
fn a_report_that_cannot_be_written_leaves_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    small(Scenario::healthy(2, 1)).write(dir.path());
    write(dir.path()).unwrap();
    // A directory in the way of the temporary file, which holds for root too.
    fs::create_dir(dir.path().join(".report.html.new")).unwrap();
    let before = fs::read(dir.path().join("report.html")).unwrap();
    let error = write(dir.path()).unwrap_err().to_string();
    assert!(error.contains("report.html: cannot be written") && error.contains("untouched"), "{error}");
    assert_eq!(fs::read(dir.path().join("report.html")).unwrap(), before);
}

#[test]
fn tcp_is_never_called_rdma_and_soft_roce_never_hardware() {
    let view = view(&small(Scenario { software: true, ..Scenario::healthy(2, 1) }));
    assert_eq!(view.carriers.len(), 2);
    for carrier in &view.carriers {
        assert!(!carrier.words.contains("RDMA"), "{carrier:?}");
        match carrier.words.contains("TCP") {
            true => assert_eq!(carrier.tests, ["tcp-baseline"]),
            false => assert_eq!(carrier.caution, "Soft-RoCE: emulated in software, says nothing about NIC hardware"),
        }
    }
}

#[test]
fn the_terminal_summary_of_a_troubled_run() {
    let view = view(&small(Scenario::troubled(4, 2)));
    insta::assert_snapshot!(text::summary(&view, Path::new("reports/x/report.html"), false));
}

#[test]
fn the_view_of_a_troubled_run() {
    insta::assert_json_snapshot!(view(&small(Scenario::troubled(4, 1))));
}

#[test]
fn junit_of_a_troubled_run() {
    let dir = tempfile::tempdir().unwrap();
    small(Scenario { repeats: 1, sizes: vec![65536], ..Scenario::troubled(3, 1) }).write(dir.path());
    write(dir.path()).unwrap();
    insta::assert_snapshot!(fs::read_to_string(dir.path().join("junit.xml")).unwrap());
}

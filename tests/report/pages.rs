//! Reports: files, the page, the terminal.

use std::{fs, path::Path};

use railgauge_analysis::{
    journal::{self, Journal},
    status::Status,
    verdict::Kind,
};
use railgauge_model::journal::event::Event;
use railgauge_report::text::Screen;
use railgauge_report::{draw, text, view::View};

use crate::kept::write;
use crate::support::{self, Scenario};

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
            // The name of SVG's own namespace is not an address that anybody visits.
            .filter(|hit| !hit.starts_with("http://www.w3.org/2000/svg") && !hit.starts_with("url(data:"))
            .collect();
        assert!(hits.is_empty(), "{foreign}: {hits:?}");
    }
    for trouble in &written.verdicts.troubles {
        assert!(page.contains(&trouble.link), "{}", trouble.link);
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
fn the_page_and_the_verdicts_say_where_a_host_is() {
    let odd = "rack<12>";
    let mut lines = small(Scenario::healthy(2, 1)).lines();
    let mut named = String::new();
    for line in &mut lines {
        match &mut line.event {
            Event::Started { resolved, .. } => {
                named.clone_from(&resolved.hosts[0].name);
                resolved.places = [(named.clone(), odd.to_owned())].into();
            }
            Event::HostUp { host, facts, .. } if *host == named => {
                facts.parts.machine.serial = Some("J1234567".into());
            }
            _ => {}
        }
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("records.jsonl"), support::text(&lines)).unwrap();
    let written = write(dir.path()).unwrap();
    let page = fs::read_to_string(written.page).unwrap();
    assert!(page.contains("rack&lt;12&gt;") && !page.contains(odd) && page.contains("J1234567"));
    assert_eq!(written.verdicts.places[&named], odd);
}

#[test]
fn a_report_that_cannot_be_written_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    small(Scenario::healthy(2, 1)).write(dir.path());
    // A directory in its place, which holds for root too.
    let page = dir.path().join("report.html");
    fs::create_dir(&page).unwrap();
    fs::write(page.join("old"), "old").unwrap();
    let error = write(dir.path()).unwrap_err().to_string();
    assert!(error.contains("report.html: cannot be written") && error.contains("untouched"), "{error}");
    assert_eq!(fs::read_to_string(page.join("old")).unwrap(), "old");
    let leftover = |entry: fs::DirEntry| entry.file_name().to_string_lossy().ends_with(".new");
    assert!(!fs::read_dir(dir.path()).unwrap().flatten().any(leftover), "a temporary file is left");
}

#[test]
fn tcp_is_never_called_rdma_and_soft_roce_never_hardware() {
    let view = view(&small(Scenario { software: true, ..Scenario::healthy(2, 1) }));
    assert_eq!(view.carriers.len(), 2);
    for carrier in &view.carriers {
        assert!(!carrier.words.contains("RDMA"), "{carrier:?}");
        match carrier.words.contains("TCP") {
            true => assert_eq!(carrier.tests, ["tcp-baseline"]),
            false => {
                assert_eq!(carrier.caution, "Soft-RoCE: emulated in software; the results do not apply to NIC hardware")
            }
        }
    }
}

#[test]
fn the_terminal_summary_of_a_troubled_run() {
    let view = view(&small(Scenario::troubled(4, 2)));
    insta::assert_snapshot!(text::summary(&view, Path::new("reports/x/report.html"), &Screen::PLAIN));
}

#[test]
fn the_view_of_a_troubled_run() {
    let mut view = serde_json::to_value(view(&small(Scenario::troubled(4, 1)))).unwrap();
    without_drawings(&mut view);
    insta::assert_json_snapshot!(view);
}

#[test]
fn a_page_has_the_words_of_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    small(Scenario::troubled(4, 1)).write(place.path());
    let written = write(place.path()).unwrap();
    let page = fs::read_to_string(written.page).unwrap();
    let view = serde_json::to_value(written.view).unwrap();
    let findings = view["hosts"]["findings"].as_array().unwrap();
    assert!(!findings.is_empty());
    for finding in findings {
        let remedy = finding["remedy"]["text"].as_str().unwrap();
        assert!(page.contains(&format!("<p class=\"help\">{remedy} [")), "{remedy}");
    }
}

/// Drawings are for the eye: a snapshot keeps only that there is one.
fn without_drawings(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if text.starts_with("<svg") => *text = "<svg>".into(),
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_drawings),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(without_drawings),
        _ => {}
    }
}

#[test]
fn junit_of_a_troubled_run() {
    let dir = tempfile::tempdir().unwrap();
    small(Scenario { repeats: 1, sizes: vec![65536], ..Scenario::troubled(3, 1) }).write(dir.path());
    write(dir.path()).unwrap();
    insta::assert_snapshot!(fs::read_to_string(dir.path().join("junit.xml")).unwrap());
}

/// Names of all test cases of a run's JUnit.
fn names(journal: &Journal) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let started = crate::journals::started(journal);
    let mut lines = small(Scenario::healthy(4, 1)).lines();
    lines[0].event = started;
    fs::write(dir.path().join("records.jsonl"), crate::support::text(&lines)).unwrap();
    write(dir.path()).unwrap();
    let junit = fs::read_to_string(dir.path().join("junit.xml")).unwrap();
    junit.split("<testcase name=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn a_limit_that_changes_leaves_the_names_of_junit_and_is_told_as_the_plan_writes_it() {
    let text = small(Scenario::healthy(4, 1)).jsonl();
    let mut journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let before = names(&journal);
    let plan = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a[1-2]\"] }\n[[test]]\nop = \"write\"\nmetric = \
                \"latency\"\n[[test.expect]]\nmetric = \"latency_p99\"\nat_most = \"1s\"\n";
    let (plan, _) =
        railgauge_model::plan::parse("t.toml", plan, Path::new(".")).unwrap_or_else(|wrong| panic!("{wrong}"));
    let old = &mut journal.plan.tests[1].expect[0];
    (old.limit, old.written) = (plan.tests[0].expect[0].limit, plan.tests[0].expect[0].written.clone());
    assert_eq!(names(&journal), before);
    assert_eq!(
        before.iter().collect::<std::collections::BTreeSet<_>>().len() + 3,
        before.len(),
        "one name for the demand that every test has, and one for parts at the size that two tests share"
    );
    let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
    assert!(view.expectations.iter().any(|one| one.demand == "latency_p99 at most 1 s"), "{:?}", view.expectations);
}

#[test]
fn percentiles_are_shown_where_the_samples_carry_them() {
    // (operations of every window, p99 is shown, p99.9 is shown)
    for (operations, p99, p999) in
        [(173, false, false), (1_000, true, false), (9_999, true, false), (10_000, true, true)]
    {
        let text = small(Scenario::healthy(4, 1)).jsonl();
        let mut journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
        journal.tries.iter_mut().for_each(|one| support::with_operations(one.result.as_mut().unwrap(), operations));
        let view = draw(&journal, Path::new("records.jsonl")).unwrap().view;
        let test = view.tests.iter().find(|test| test.name == "write-lat").unwrap();
        let shown = |name: &str| {
            let at = test.table.columns.iter().position(|column| column.name == name);
            at.is_some_and(|at| test.table.rows.iter().all(|row| row[at] != "–"))
        };
        assert_eq!((shown("p99"), shown("p99.9"), shown("p50")), (p99, p999, true), "{operations} operations");
        assert_eq!(test.remarks.len(), usize::from(!p99) + usize::from(!p999));
        let drawn = test.block("curves").unwrap().figures.iter().any(|figure| figure.title.contains("p99"));
        assert_eq!(drawn, p99, "{operations} operations");
    }
}

/// Draws run directories to look at: `RAILGAUGE_SAMPLES=DIR cargo test --test report -- --ignored samples`.
#[test]
#[ignore = "draws pages for the eye"]
fn by_hand_samples() {
    let dir = std::path::PathBuf::from(std::env::var("RAILGAUGE_SAMPLES").expect("a directory in RAILGAUGE_SAMPLES"));
    let scenarios = [
        ("healthy-4", Scenario::healthy(4, 2)),
        ("troubled-4", Scenario::troubled(4, 2)),
        ("troubled-16", Scenario { dies: Some(3), ..Scenario::troubled(16, 2) }),
        (
            "soft-4",
            Scenario { software: true, sizes: vec![64, 1024, 16384, 65536, 1 << 20], ..Scenario::healthy(4, 1) },
        ),
        ("troubled-128", Scenario { repeats: 1, sizes: vec![65536, 1 << 20, 1 << 24], ..Scenario::troubled(128, 2) }),
    ];
    let only = std::env::var("RAILGAUGE_SAMPLE").ok();
    for (name, scenario) in scenarios.into_iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        let run = dir.join(name);
        scenario.write(&run);
        let start = std::time::Instant::now();
        let written = write(&run).unwrap();
        println!(
            "{name}: {:?}, {} bytes, {}",
            start.elapsed(),
            fs::metadata(&written.page).unwrap().len(),
            written.view.sentence
        );
    }
}

#[test]
fn a_host_without_any_value_is_named_and_no_part_is_said_to_be_good_by_it() {
    let scenario = Scenario { sizes: vec![1 << 20], down: Some(7), ..Scenario::healthy(8, 1) };
    let path = Path::new("records.jsonl");
    let drawn = draw(&journal::parse(scenario.jsonl().as_bytes(), path).unwrap(), path).unwrap();
    let parts = drawn.view.parts.as_ref().unwrap();
    assert!(parts.reasons.concat().join(" ").contains("gpu008"), "{}", parts.reasons.concat().join(" "));
    let summary = text::summary(&drawn.view, path, &Screen::PLAIN);
    assert!(summary.contains("Not tested"), "{summary}");
    for said in [&parts.reasons.concat().join(" "), &summary] {
        assert!(!said.contains("No component stands out") && !said.contains("no outlier"), "{said}");
    }
    for verdict in drawn.verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Parts) {
        assert_eq!(verdict.status, Status::Inconclusive);
        // Over TCP it and its neighbour are a pair of their own.
        let host = if verdict.test == "tcp-baseline" { "gpu[007-008]" } else { "gpu008" };
        assert!(
            verdict.reason.to_string().contains(host) && !verdict.reason.to_string().contains("no outlier"),
            "{}",
            verdict.reason
        );
    }
}

/// What failed, further causes, the next step and counts; then the picture.
#[test]
fn a_banner_has_at_most_four_lines_before_the_picture() {
    let scenarios =
        [Scenario::healthy(8, 2), Scenario::troubled(16, 2), Scenario { slow: Some(2), ..Scenario::healthy(8, 2) }];
    let mut texts: Vec<String> = scenarios.into_iter().map(|scenario| small(scenario).jsonl()).collect();
    texts.push(support::text(&crate::causes::failing(16, 40)));
    let mut folded = 0;
    for text in texts {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("records.jsonl"), text).unwrap();
        let page = fs::read_to_string(write(dir.path()).unwrap().page).unwrap();
        let (banner, behind) =
            page.split_once("<section class=\"verdict ").unwrap().1.split_once("</section>").unwrap();
        let open: String = match banner.split_once("<details>") {
            Some((before, rest)) => format!("{before}<details>{}", rest.split_once("</details>").unwrap().1),
            None => banner.to_owned(),
        };
        folded += open.matches("<details>").count();
        let lines = ["<p class=\"sentence\"", "<details>", "<dl", "<p class=\"quiet\"", "<li", "<ul"];
        let lines: usize = lines.map(|line| open.matches(line).count()).iter().sum();
        assert!((2..=4).contains(&lines), "{open}");
        assert!(!open.contains('`') && !open.contains(" ["), "{open}");
        let until_picture = behind.split_once("<svg").unwrap().0;
        assert!(!until_picture.contains("<li") && until_picture.matches("<section").count() == 1, "{until_picture}");
    }
    assert!(folded > 1, "{folded}");
}

#[test]
fn rows_of_verdicts_do_not_repeat_the_example_of_a_cause() {
    let view = view(&small(Scenario::troubled(16, 2)));
    let failed = view.expectations.iter().filter(|row| row.status != Status::Pass);
    let examples =
        failed.flat_map(|row| row.reasons.iter().filter_map(|reason| Some((&row.test, reason.split_once(": ")?.1))));
    let mut examples: Vec<_> = examples.collect();
    let all = examples.len();
    examples.sort_unstable();
    examples.dedup();
    assert!(all > 4 && examples.len() == all, "{examples:#?}");
}

/// The output that README.md shows is what the terminal prints; with `UPDATE_DOCS=1` it is written.
#[test]
fn the_output_of_the_readme_is_the_products() {
    let scenario = Scenario { slow: Some(5), sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(8, 1) };
    let records = Path::new("records.jsonl");
    let mut journal =
        journal::parse(support::followed::followed_up(&scenario, &scenario).0.as_bytes(), records).unwrap();
    journal.plan.tests.iter_mut().for_each(|test| test.expect.truncate(1));
    let text = text::summary(&draw(&journal, records).unwrap().view, Path::new("report.html"), &Screen::PLAIN);
    let wanted: String = text.lines().take_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
    assert!(wanted.starts_with("FAIL  host gpu006 ") && wanted.contains("\nNext: "), "{wanted}");
    assert!(wanted.lines().count() <= 8, "{wanted}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once("```text\n").unwrap();
    let (shown, after) = rest.split_once("```").unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{before}```text\n{wanted}```{after}")).unwrap();
    } else {
        assert_eq!(shown, wanted, "run the tests with UPDATE_DOCS=1");
    }
}

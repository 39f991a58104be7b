//! Values with too few others to be held against: the run says what is missing, and with which limit to begin.

use std::path::Path;

use railgauge_analysis::{
    journal::Journal,
    results::results,
    rows::rows,
    status::Status,
    verdict::{Kind, Verdict, Verdicts, verdicts},
};
use railgauge_report::text::Screen;
use railgauge_report::{draw, text};

use crate::nodes::{ALL, Cluster, PEERS, is_at};

/// One host of two GPUs, the second of which is slower, with these demands.
fn alone(demands: &str) -> Journal {
    let test = format!("{ALL}hosts = [\"a1\"]\n{demands}");
    Cluster::new(|case| if is_at(case, "a1", 1) { 0.9 } else { 1.0 }).settled(&test)
}

fn judged(journal: &Journal) -> Verdicts {
    let results = results(journal).unwrap();
    verdicts(journal, &results, &rows(journal, &results), Vec::new())
}

/// The verdict on the demand. Other hosts of the plan, which no case measures, have one of their own.
fn demanded(found: &Verdicts) -> &Verdict {
    found.verdicts.iter().find(|verdict| verdict.kind == Kind::Expectation).unwrap()
}

#[test]
fn a_host_alone_is_told_what_it_lacks() {
    let journal = alone(PEERS);
    let found = judged(&journal);
    let verdict = demanded(&found);
    assert_eq!(verdict.status, Status::Inconclusive, "{}", verdict.reason);
    let remedy = verdict.remedy.as_ref().unwrap();
    assert_eq!(remedy.id.as_ref(), "more-peers");

    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    let step = drawn.view.banner.remedy.clone().unwrap();
    assert_eq!((step.about, step.anchor), (format!("all: {}", verdict.demand), "verdicts"));
    assert!(step.text.starts_with("measure more hosts:") && step.text.ends_with("[more-peers]"), "{}", step.text);
    let lines = text::summary(&drawn.view, Path::new("report.html"), &Screen { verbose: true, ..Screen::PLAIN });
    let told = lines.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(&format!("Next: all: {}: {}", verdict.demand, step.text)), "{lines}");
    let document: serde_json::Value = serde_json::from_str(&drawn.verdicts.json().unwrap()).unwrap();
    let told = document["verdicts"].as_array().unwrap().iter().find(|one| one["kind"] == "expectation").unwrap();
    assert_eq!(told["remedy"]["id"], "more-peers");
}

#[test]
fn hosts_enough_have_no_such_remedy() {
    let journal = Cluster::new(|_| 1.0).settled(&format!("{ALL}{PEERS}"));
    let found = judged(&journal);
    assert_eq!(found.status, Status::Pass, "{}", found.sentence);
    assert!(found.verdicts.iter().all(|verdict| verdict.remedy.is_none()));
}

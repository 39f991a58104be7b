//! Failures by cause: one cause is one card, two causes are two, and the banner names the first thing to do.

use std::{collections::BTreeSet, fs, path::Path};

use railgauge_analysis::journal;
use railgauge_model::journal::event::{Event, Line};
use railgauge_report::{draw, view::View};
use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
};

use crate::kept::write;
use crate::support::{self, Scenario};

fn view(lines: &[Line]) -> View {
    let path = Path::new("records.jsonl");
    draw(&journal::parse(support::text(lines).as_bytes(), path).unwrap(), path).unwrap().view
}

/// A run in which the cases that are picked fail; `told` makes a failure of the case's number and its first host.
fn spoiled(hosts: usize, told: impl Fn(u64, &str) -> Option<Failure>) -> Vec<Line> {
    spoiled_of(&Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(hosts, 1) }, told)
}

/// The same of any made-up run.
fn spoiled_of(scenario: &Scenario, told: impl Fn(u64, &str) -> Option<Failure>) -> Vec<Line> {
    let lines = scenario.lines();
    let cases: Vec<_> = lines
        .iter()
        .flat_map(|line| if let Event::Planned { cases } = &line.event { cases.clone() } else { Vec::new() })
        .collect();
    let spoil = |line: Line| {
        let Event::Outcome(mut outcome) = line.event else { return line };
        let case = cases.iter().find(|case| case.id == outcome.case).unwrap();
        if let Some(failure) = told(case.id, &case.flow.from.host) {
            outcome.result = Err(failure);
        }
        Line { event: Event::Outcome(outcome), ..line }
    };
    lines.into_iter().map(spoil).collect()
}

fn refused(case: u64, host: &str) -> Failure {
    let cause =
        format!("{host}:{} cannot reach 10.0.0.{}: connection refused after {case} ms", 18515 + case, case % 250);
    Failure::new(Stage::Join, Kind::Configuration, cause).at(host).remedy(remedy::CHECK_FIREWALL)
}

/// A run of which so many cases fail for one cause.
pub fn failing(hosts: usize, cases: u64) -> Vec<Line> {
    spoiled(hosts, |case, host| (case < cases).then(|| refused(case, host)))
}

#[test]
fn failures_of_one_cause_are_one_card_with_its_hosts_folded() {
    let view = view(&failing(64, 302));
    let [group] = view.troubles.as_slice() else { panic!("{} cards", view.troubles.len()) };
    assert_eq!((group.cases, group.named, group.example), (302, true, true));
    assert!(group.hosts.starts_with("gpu[0") && group.hosts.len() < 200, "{}", group.hosts);
    let of_cases: Vec<&String> = view.banner.causes.iter().filter(|cause| cause.contains("302 of ")).collect();
    assert_eq!(of_cases.len(), 1, "{:?}", view.banner);
    // One of them stands there word for word.
    let words: BTreeSet<String> = (0..302)
        .flat_map(|case| {
            (1..=64).map(move |host| {
                // The remedy is told by itself.
                Failure { remedy: None, ..refused(case, &format!("gpu{host:03}")) }.to_string()
            })
        })
        .collect();
    assert!(words.contains(&group.error), "{}", group.error);
    assert_eq!(group.links.len() + group.links_more, group.links.len());
}

#[test]
fn two_causes_are_two_cards_whatever_tells_them_apart() {
    let plain = |stage, kind, cause: &str| Failure::new(stage, kind, cause);
    let (stage, kind) = (Stage::Join, Kind::Configuration);
    let pairs = [
        (plain(stage, kind, "connection refused"), plain(Stage::Open, kind, "connection refused")),
        (plain(stage, kind, "connection refused"), plain(stage, Kind::Fabric, "connection refused")),
        (plain(stage, kind, "connection refused"), plain(stage, kind, "no route to host")),
        (plain(stage, kind, "refused").remedy(remedy::RAISE_LOCKED_MEMORY), plain(stage, kind, "refused")),
    ];
    for (one, other) in pairs {
        let lines = spoiled(6, |case, host| Some(if case % 2 == 0 { &one } else { &other }.clone().at(host)));
        assert_eq!(view(&lines).troubles.len(), 2, "{one} | {other}");
        let same = spoiled(6, |_, host| Some(one.clone().at(host)));
        assert_eq!(view(&same).troubles.len(), 1, "{one}");
    }
}

#[test]
fn the_banner_names_the_first_step_and_what_it_is_for() {
    let failing = spoiled(6, |_, host| {
        Some(
            Failure::new(Stage::Open, Kind::Configuration, "cannot register memory")
                .at(host)
                .remedy(remedy::RAISE_LOCKED_MEMORY),
        )
    });
    let view = view(&failing);
    let first = view.banner.remedy.as_ref().unwrap();
    assert!(first.text.ends_with("[raise-locked-memory]") && first.about.contains("gpu[001-006]"), "{first:?}");
    assert_eq!(first.anchor, "troubles");
}

#[test]
fn a_healthy_run_has_nothing_to_do_and_a_bad_host_is_in_the_banner() {
    let scenario = Scenario { sizes: vec![1 << 20], ..Scenario::healthy(8, 1) };
    let healthy = view(&scenario.lines());
    assert_eq!((healthy.banner.causes.len(), &healthy.banner.remedy), (1, &None));
    let slow = view(&Scenario { slow: Some(3), ..scenario.clone() }.lines());
    assert!(slow.banner.causes[0].contains("gpu004"), "{:?}", slow.banner);
    // A host of which nothing is known is not called good.
    let down = view(&Scenario { down: Some(7), ..scenario }.lines());
    assert!(down.banner.causes[0].contains("gpu008"), "{:?}", down.banner);
}

/// What was not compared is told wherever it is said that nothing stands out: in the banner, in the section and on the terminal.
#[test]
fn nothing_stands_out_only_among_what_was_measured() {
    let no_answer =
        |case: u64, host: &str| (case == 3).then(|| Failure::new(Stage::Join, Kind::Fabric, "no answer").at(host));
    let of_healthy = view(&spoiled(8, no_answer));
    let parts = of_healthy.parts.as_ref().unwrap();
    assert!(parts.named.is_empty(), "{}", parts.reasons.concat().join(" "));
    assert!(
        parts.reasons.concat().join(" ").contains("not tested: 1 case")
            && parts.reasons.concat().join(" ").contains("write-bw"),
        "{}",
        parts.reasons.concat().join(" ")
    );
    // And where something does: behind it.
    let slow = Scenario { sizes: vec![1 << 20], repeats: 1, slow: Some(6), ..Scenario::healthy(8, 1) };
    let parts = view(&spoiled_of(&slow, no_answer)).parts.unwrap();
    assert!(
        parts.reasons.concat().join(" ").contains("host gpu007") && parts.reasons.concat().join(" ").contains("1 case"),
        "{}",
        parts.reasons.concat().join(" ")
    );
}

/// Every link within a page leads somewhere, and no section is empty.
#[test]
fn links_lead_somewhere_and_no_heading_stands_alone() {
    for scenario in [
        Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(2, 1) },
        Scenario { sizes: vec![65536, 1 << 20], ..Scenario::troubled(6, 2) },
    ] {
        let dir = tempfile::tempdir().unwrap();
        scenario.write(dir.path());
        let page = fs::read_to_string(write(dir.path()).unwrap().page).unwrap();
        let after = |mark: &'static str| page.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap());
        let ids: Vec<&str> = after(" id=\"").collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id stands twice");
        let links: Vec<&str> = after("href=\"#").collect();
        assert!(links.len() > 6, "{links:?}");
        assert!(links.iter().all(|link| ids.contains(link)), "{links:?} {ids:?}");
        for heading in ["</h2>\n</section>", "<tbody>\n</tbody>", "<ul class=\"quiet\"></ul>"] {
            assert!(!page.contains(heading), "{heading}");
        }
    }
}

//! No two places of a report disagree: whatever a run came to, the list of parts, links that stand out, tables, colours, the
//! banner and the terminal say the same.

use std::{collections::BTreeSet, path::Path};

use proptest::prelude::*;
use railgauge_analysis::{
    case::State,
    journal::{Journal, parse},
    localise::{Standing, further, localise},
    outliers::{Look, OfTest, Outliers, outliers},
    results::results,
    rows::rows,
    status::Status,
};
use railgauge_report::text::Screen;
use railgauge_report::{
    Drawn, draw, text,
    view::{PartView, TestView},
};
use railgauge_wire::terms::Better;

use crate::support::{self, Scenario};

fn read(text: &str) -> Journal {
    parse(text.as_bytes(), Path::new("records.jsonl")).unwrap()
}

/// Clusters of two to nine hosts with any mixture of troubles.
fn scenarios() -> impl Strategy<Value = Scenario> {
    let hosts = 2..=9_usize;
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let who = (prop::option::of(0..9_usize), prop::option::of(0..9_usize), prop::option::of((0..9_usize, 0..9_usize)));
    (hosts, 1..=2_u32, 1..=3_u32, 1..=3_usize, who, prop::option::weighted(0.2, 0..9_usize), flags, 0..1_000_u64)
        .prop_map(
            |(
                hosts,
                rails,
                repeats,
                sizes,
                (slow, down, path),
                dies,
                (wrong, contaminated, software, interrupted),
                seed,
            )| {
                let fold = |host: usize| host % hosts;
                Scenario {
                    repeats,
                    sizes: [1 << 20, 4096, 65536][..sizes].to_vec(),
                    slow: slow.map(fold),
                    down: down.map(fold),
                    dies: dies.map(fold),
                    bad_path: path.map(|(a, b)| (fold(a), fold(b), vec![49153])).filter(|(a, b, _)| a != b),
                    wrong,
                    contaminated,
                    software,
                    interrupted,
                    seed,
                    ..Scenario::healthy(hosts, rails)
                }
            },
        )
}

/// The journal of a run whose suspects were measured again on a cluster that is still so, or well again.
fn journals() -> impl Strategy<Value = String> {
    (scenarios(), prop::option::of(any::<bool>())).prop_map(|(scenario, again)| {
        let mut text = scenario.jsonl();
        let Some(still) = again.filter(|_| !scenario.interrupted) else { return text };
        let after = if still { scenario } else { Scenario { slow: None, bad_path: None, ..scenario } };
        // As often as a run asks for more: confirmed paths are measured queue pair by queue pair at last.
        for _ in 0..6 {
            let journal = read(&text);
            let results = results(&journal).unwrap();
            let cases = further(&journal, &results, &rows(&journal, &results));
            if cases.is_empty() {
                break;
            }
            text = support::continued(&text, &after.further(&cases));
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_place_says_the_same(text in journals()) {
        let journal = read(&text);
        prop_assert_eq!(&journal.contradictions, &[]);
        let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
        let results = results(&journal).unwrap();
        let rows = rows(&journal, &results);
        let found = localise(&journal, &results, &rows);
        let model = outliers(&journal, &results, &rows, &found);
        for (test, view) in model.tests.iter().zip(&drawn.view.tests) {
            links(test);
            drawn_as_decided(&model, test, view);
        }
        parts(&model, &drawn);
        banner(&drawn);
        numbers(&serde_json::to_value(&drawn.view).unwrap());
        terminal(&model, &drawn);
    }
}

/// What stands out is worse, in the metric's own direction, and by more than what does not.
fn links(test: &OfTest<'_>) {
    for link in &test.links {
        let Some((value, level)) = link.value.zip(link.level) else {
            assert!(!link.look.stands_out(), "{link:?}");
            continue;
        };
        let ratio = if test.metric.better() == Better::Higher { value / level.centre } else { level.centre / value };
        let deviation = ratio.ln();
        assert!((deviation - link.deviation.unwrap()).abs() < 1e-9);
        let doubtful = matches!(link.look, Look::Doubtful | Look::Missing);
        assert_eq!(link.look.stands_out(), !doubtful && deviation < -level.threshold, "{link:?}");
        assert!(!link.look.stands_out() || link.stands_out);
    }
    let depths: Vec<f64> = test.standing_out().map(|link| link.depth()).collect();
    assert!(depths.is_sorted_by(|a, b| a <= b), "the worst first: {depths:?}");
    assert_eq!(depths.len(), test.links.iter().filter(|link| link.stands_out).count());
}

/// Matrix, legend and tables of a test.
fn drawn_as_decided(model: &Outliers<'_>, test: &OfTest<'_>, view: &TestView) {
    let Some(map) = view.map() else { return };
    for (link, cell) in test.links.iter().zip(&map.cells) {
        let case = link.result.case.id;
        assert_eq!((cell.case, cell.look), (case, link.look));
        let speaks = model.parts.iter().any(|part| part.is_bad() && part.speaks(test.test, case));
        assert!(!speaks || cell.outlined, "case {case} speaks for a part and is not outlined");
        assert!(
            !speaks || !matches!(cell.look, Look::Usual | Look::Better),
            "case {case} speaks for a part and is grey"
        );
    }
    let used: BTreeSet<Look> = map.cells.iter().map(|cell| cell.look).collect();
    let told: BTreeSet<&String> = map.legend.iter().map(|(class, _)| class).collect();
    assert_eq!(told.len(), map.legend.len());
    assert!(told.len() >= used.len(), "a colour without a meaning: {used:?} {told:?}");
    let flows = test.flows();
    let listed = map.links.as_ref().map_or(0, |table| table.rows.len());
    assert_eq!(listed + map.links_more, flows.len());
    if let (Some(table), Some((worst, sizes))) = (&map.links, flows.first()) {
        assert_eq!(table.rows[0][0], worst.result.link_name());
        assert!(table.rows[0][5].starts_with(&format!("{sizes} of ")));
        assert!(map.sentence.contains(&format!("{} at {}", table.rows[0][0], table.rows[0][1])), "{}", map.sentence);
    }
}

/// The names of the parts that a view of them is about: `hosts gpu[001-004], sending` is about four.
fn each(part: &PartView) -> Vec<String> {
    let Some(hosts) = part.name.strip_prefix("hosts ") else { return vec![part.name.clone()] };
    let way = [", sending", ", receiving"].into_iter().find(|way| hosts.ends_with(way)).unwrap_or_default();
    part.hosts.iter().map(|host| format!("host {host}{way}")).collect()
}

/// The name under which a part is told.
fn shown<'d>(name: &str, drawn: &'d Drawn) -> &'d str {
    let mut views = drawn.view.parts.iter().flat_map(|parts| &parts.named);
    &views.find(|part| each(part).iter().any(|one| one == name)).unwrap_or_else(|| panic!("{name}")).name
}

/// The list of parts and its sentence.
fn parts(model: &Outliers<'_>, drawn: &Drawn) {
    let Some(parts) = &drawn.view.parts else {
        assert!(!model.any());
        return;
    };
    // Hosts that stand out alike are told together.
    let names: Vec<(String, String)> =
        parts.named.iter().flat_map(|part| each(part).into_iter().map(|name| (name, part.standing.clone()))).collect();
    let known: Vec<(String, String)> = model.parts.iter().map(|part| (part.name.to_owned(), part.state())).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), known.iter().collect::<BTreeSet<_>>());
    assert_eq!((names.len(), names.first()), (known.len(), known.first()));
    assert_eq!(names.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len(), names.len(), "a part has one state");
    for part in &model.parts {
        assert!(part.evidence.iter().any(|one| one.named.standing == part.standing));
    }
    // Every link that stands out in any matrix belongs to a named part or is counted here.
    for test in &model.tests {
        for link in test.standing_out() {
            let counted = model.beside().iter().any(|(_, other, _)| other.result.case.flow == link.result.case.flow);
            assert!(model.part_of(link).is_some() || counted, "{}", link.result.link_name());
        }
    }
}

/// No difference reads as a percentage of several hundred: that is a factor.
fn numbers(view: &serde_json::Value) {
    match view {
        // The axis of a drawing counts in percent and has no value in front.
        serde_json::Value::String(text) if !text.starts_with("<svg") => {
            for (at, _) in text.match_indices(" %") {
                let number = text[..at].rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or_default();
                assert!(number.is_empty() || number.parse::<f64>().is_ok_and(|value| value <= 200.0), "{text}");
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(numbers),
        serde_json::Value::Object(fields) => fields.values().for_each(numbers),
        _ => {}
    }
}

/// The sentence on top.
fn banner(drawn: &Drawn) {
    let (view, cases) = (&drawn.view, drawn.verdicts.cases);
    assert_eq!((view.status, &view.sentence), (drawn.verdicts.status, &drawn.verdicts.sentence));
    if cases.failed > 0 {
        assert_ne!(view.status, Status::Pass);
        assert!(!view.sentence.to_lowercase().contains("nothing failed"), "{}", view.sentence);
        if view.status == Status::Inconclusive {
            let cause = &drawn
                .verdicts
                .troubles
                .iter()
                .find(|trouble| trouble.state == State::Failed)
                .unwrap()
                .against
                .to_string();
            let causes = view.banner.causes.join("\n");
            assert!(causes.contains(&format!("{} of ", cases.failed)) && causes.contains(cause), "{causes}");
        }
    }
}

/// The terminal names what is bad, leaves nothing out without a word, and fits.
fn terminal(model: &Outliers<'_>, drawn: &Drawn) {
    for all in [true, false] {
        let screen = Screen { verbose: all, ..Screen::PLAIN };
        let text = text::summary(&drawn.view, Path::new("report.html"), &screen);
        // A word that is longer than a line is not broken.
        let long = text.lines().find(|line| line.chars().count() > screen.width && line.trim().contains(' '));
        assert!(long.is_none(), "{long:?}");
        if !all {
            assert!(text.lines().count() <= text::ROWS, "{text}");
            continue;
        }
        let whole: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in model.parts.iter().filter(|part| part.standing != Standing::Cleared) {
            assert!(whole.contains(shown(part.name, drawn)), "{} is not in\n{text}", part.name);
        }
        drawn.view.expectations.iter().for_each(|one| assert!(whole.contains(&one.demand)));
    }
}

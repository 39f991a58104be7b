//! What is said of parts where results scatter so much that no bad part would show.

use std::path::Path;

use railgauge_analysis::{
    journal::{Journal, parse},
    reason::Id,
    results::results,
    rows::rows,
    status::Status,
    verdict::{Judged, Kind, Verdict, Verdicts, verdicts},
};
use railgauge_model::{
    journal::event::{Event, Sample},
    plan::model::Waiver,
};
use railgauge_report::text::Screen;
use railgauge_report::{Drawn, draw, text};

use crate::kept::write;
use crate::support::{self, Dice, Scenario};

/// By what a pair is slower or faster than the others.
pub(crate) type Factor<'f> = &'f dyn Fn(&mut Dice) -> f64;

/// The bandwidth test of a healthy cluster, without expectations.
pub(crate) fn healthy(hosts: usize) -> Journal {
    let scenario = Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(hosts, 1) };
    let mut journal = parse(scenario.jsonl().as_bytes(), Path::new("records.jsonl")).unwrap();
    journal.plan.tests.retain(|test| test.name == "write-bw");
    journal.plan.tests[0].expect.clear();
    journal.cases.retain(|case| &*case.test == "write-bw");
    let last = journal.cases.len() as u64;
    journal.tries.retain(|tried| tried.case < last);
    journal
}

/// The same at a third of its rate, each of its pairs slower or faster by a factor.
pub(crate) fn noisy(healthy: &Journal, seed: u64, factor: Factor<'_>) -> Journal {
    let (mut journal, mut dice) = (healthy.clone(), Dice(seed));
    for tried in &mut journal.tries {
        scale(tried.result.as_mut().unwrap(), factor(&mut dice));
    }
    journal
}

fn scale(sample: &mut Sample, factor: f64) {
    let factor = (0.3 * factor).min(1.0);
    let times = |value: &mut u64| *value = (*value as f64 * factor) as u64;
    let measured = &mut sample.initiator;
    [&mut measured.bytes.0, &mut measured.operations].into_iter().for_each(times);
    measured.slices.iter_mut().for_each(|slice| times(&mut slice.0));
    measured.lanes.iter_mut().for_each(|lane| times(&mut lane.bytes.0));
}

/// A factor from three to ten tenths.
pub(crate) fn wide(dice: &mut Dice) -> f64 {
    0.3 + 0.7 * dice.uniform()
}

fn judge(journal: &Journal) -> Verdicts {
    let results = results(journal).unwrap();
    let rows = rows(journal, &results);
    verdicts(journal, &results, &rows, Vec::new())
}

fn of_parts(verdicts: &Verdicts) -> &Verdict {
    verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Parts).unwrap()
}

/// Noise hides a bad host and blames none.
#[test]
fn noise_changes_no_state() {
    let healthy = healthy(8);
    for (journal, state) in [(healthy.clone(), Some(Judged::Good)), (noisy(&healthy, 0, &wide), None)] {
        let verdicts = judge(&journal);
        let of_test = verdicts.components.iter().find(|of| of.test == "write-bw").unwrap();
        let hosts: Vec<_> = of_test.components.iter().filter(|one| one.kind == "host").collect();
        assert!(hosts.len() == 8 && hosts.iter().all(|one| one.state == state), "{state:?}: {hosts:#?}");
    }
}

#[test]
fn noise_that_hides_a_part_at_half_the_rate_is_no_pass() {
    let kinds: [(&str, Factor<'_>); 4] = [
        ("30 to 100 % of the best", &wide),
        ("30 %", &|dice| (0.3 * dice.normal()).exp()),
        ("60 %", &|dice| (0.6 * dice.normal()).exp()),
        ("100 %", &|dice| dice.normal().exp()),
    ];
    for (what, factor) in kinds {
        for healthy in [&healthy(4), &healthy(8), &healthy(16)] {
            let hosts = healthy.hosts.len();
            for seed in 0..5 {
                let verdicts = judge(&noisy(healthy, seed, factor));
                let parts = of_parts(&verdicts);
                assert_eq!(parts.status, Status::Inconclusive, "{what}, {hosts} hosts, {seed}: {}", parts.reason);
                assert_eq!(verdicts.exit_code, 3, "{what}");
            }
        }
    }
}

#[test]
fn ordinary_noise_is_a_pass() {
    let healthy = healthy(8);
    for noise in [0.01, 0.05, 0.08] {
        let mut passed = 0;
        for seed in 1..=20 {
            let verdicts = judge(&noisy(&healthy, seed * 7919, &|dice| (noise * dice.normal()).exp()));
            let parts = of_parts(&verdicts);
            assert!(parts.reason.iter().all(|reason| reason.id != Id::TooNoisy), "{noise}, {seed}: {}", parts.reason);
            passed += usize::from(parts.status == Status::Pass);
        }
        // What stands out by chance is measured again in a run; here it stays a suspect.
        assert!(passed >= 15, "{noise}: {passed} of 20");
    }
}

#[test]
fn too_noisy_to_tell_is_said_wherever_parts_are_spoken_of() {
    let journal = noisy(&healthy(8), 1, &wide);
    let Drawn { verdicts, view, .. } = draw(&journal, Path::new("records.jsonl")).unwrap();
    let parts = of_parts(&verdicts);
    assert!(parts.reason.to_string().starts_with("values scatter too much: "), "{}", parts.reason);
    assert!(verdicts.sentence.contains("scatter too much"), "{}", verdicts.sentence);
    let shown = view.parts.as_ref().unwrap();
    assert!(shown.reasons.concat().join(" ").contains("scatter too much"), "{}", shown.reasons.concat().join(" "));
    let first = view.banner.remedy.as_ref().unwrap();
    assert!(first.about.starts_with("write-bw: values scatter too much"), "{first:?}");
    assert!(first.text.ends_with("[measure-again]"), "{first:?}");
    let json = verdicts.json().unwrap();
    assert!(json.contains("\"too_noisy\": {"), "{json}");
    let page = Path::new("report.html");
    let printed = text::summary(&view, page, &Screen::PLAIN);
    assert!(printed.contains("scatter too much"), "{printed}");
}

#[test]
fn the_plan_can_waive_noise_as_it_can_waive_parts() {
    let mut journal = noisy(&healthy(8), 1, &wide);
    journal.plan.localise.waive = vec![Waiver::Host("gpu001".into())];
    assert_eq!(judge(&journal).exit_code, 3);
    journal.plan.localise.waive = vec![Waiver::All];
    let verdicts = judge(&journal);
    let parts = of_parts(&verdicts);
    assert_eq!((parts.status, parts.waived, verdicts.exit_code), (Status::Inconclusive, true, 0), "{}", parts.reason);
}

#[test]
fn page_and_junit_say_it_too() {
    let mut lines = Scenario { sizes: vec![1 << 20], repeats: 1, ..Scenario::healthy(8, 1) }.lines();
    let mut dice = Dice(1);
    for line in &mut lines {
        if let Event::Outcome(outcome) = &mut line.event
            && let Ok(sample) = &mut outcome.result
            && sample.initiator.latency.is_none()
            && sample.responder.is_none()
        {
            scale(sample, wide(&mut dice));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("records.jsonl"), support::text(&lines)).unwrap();
    write(dir.path()).unwrap();
    let xml = std::fs::read_to_string(dir.path().join("junit.xml")).unwrap();
    assert!(xml.contains("values scatter too much"), "{xml}");
    let page = std::fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("values scatter too much"));
}

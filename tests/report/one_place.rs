//! What is bad is decided in one place, whatever kind of test shows it: verdicts, exit code, JUnit, banner, colours, `status` and `drain`
//! say the same.

use std::{collections::BTreeSet, fs, path::Path};

use jiff::{SignedDuration, Timestamp};
use railgauge::night::{self, Lists, Nights, Scheduler, State};
use railgauge_analysis::{
    journal::{Journal, parse},
    localise::{Standing, localise},
    outliers::{Look, Part, outliers},
    results::results,
    rows::judged_rows,
    status::Status,
    sums::Sums,
    verdict::{Kind, Verdicts},
};
use railgauge_model::{
    directory::{JOURNAL, VERDICTS},
    journal::line,
};
use railgauge_report::{Drawn, draw, junit_document};

use crate::{
    bisect, nodes,
    support::{Scenario, followed::followed_up},
    views,
};

/// Runs of each kind of test, with the name of what is bad and how sure that is.
fn runs() -> Vec<(Journal, Option<(&'static str, Standing)>)> {
    let pairs = |before: &Scenario, after: &Scenario| {
        parse(followed_up(before, after).0.as_bytes(), Path::new("records.jsonl")).unwrap()
    };
    let healthy = Scenario { sizes: vec![1 << 24], repeats: 1, ..Scenario::healthy(8, 1) };
    let slow = Scenario { slow: Some(4), ..healthy.clone() };
    let mut cluster = bisect::Cluster::new(&[&["a08"]]);
    let mut group = bisect::run(&mut cluster, bisect::FLOOR);
    bisect::search(&mut cluster, &mut group);
    let one_gpu =
        nodes::Cluster::new(|case| if *case.flow.to.host == *"a2" && case.flow.to.rail == 1 { 0.7 } else { 1.0 })
            .settled(nodes::EACH);
    let one_host = nodes::Cluster::new(|case| if *case.flow.to.host == *"a2" { 0.7 } else { 1.0 }).settled(nodes::EACH);
    vec![
        (pairs(&healthy, &healthy), None),
        (pairs(&slow, &slow), Some(("host gpu005", Standing::Confirmed))),
        (pairs(&slow, &healthy), Some(("host gpu005", Standing::Cleared))),
        (group, Some(("host a08", Standing::Confirmed))),
        (one_gpu, Some(("GPU 1 of a2", Standing::Confirmed))),
        (one_host, Some(("host a2", Standing::Confirmed))),
        (views::a_long_tail_at_a_host(), Some(("host a03", Standing::Suspect))),
    ]
}

fn is_sure(part: &Part<'_>) -> bool {
    matches!(part.standing, Standing::Confirmed | Standing::Intermittent)
}

/// The directory of a run with these verdicts, and a time soon after it. Nothing but its first record and the verdicts are read.
fn kept(journal: &Journal, verdicts: &Verdicts, run: &Path) -> (Nights, Timestamp) {
    let started = crate::journals::started(journal);
    let (began, path) = (&journal.time.0, run.join(JOURNAL));
    fs::write(&path, line::encode(&journal.run_id, 1, began, &started).unwrap()).unwrap();
    let sums = Sums { journal: Sums::of_file(&path).unwrap(), frame: String::new(), whole: true };
    let verdicts = Verdicts { sums: Some(sums), ..verdicts.clone() };
    fs::write(run.join(VERDICTS), verdicts.json().unwrap()).unwrap();
    let now = began.parse::<Timestamp>().unwrap() + SignedDuration::from_hours(1);
    (Nights::of(run.to_str().unwrap(), None, now).unwrap(), now)
}

#[test]
fn every_kind_of_test_is_judged_in_one_place() {
    for (journal, wanted) in runs() {
        let results = results(&journal).unwrap();
        let rows = judged_rows(&journal, &results);
        let found = localise(&journal, &results, &rows);
        let model = outliers(&journal, &results, &rows, &found);
        let named: Vec<(&str, Standing)> = model.parts.iter().map(|part| (part.name, part.standing)).collect();
        assert_eq!(named, Vec::from_iter(wanted));
        let Drawn { verdicts, view } = draw(&journal, Path::new("records.jsonl")).unwrap();

        let of_parts = || verdicts.verdicts.iter().filter(|verdict| verdict.kind == Kind::Parts);
        let with = |status: Status| -> BTreeSet<&str> {
            let parts = of_parts().flat_map(|verdict| verdict.parts.iter().filter(move |part| part.status == status));
            parts.map(|part| part.name.as_str()).collect()
        };
        let names = |sure: bool| -> BTreeSet<&str> {
            model.parts.iter().filter(|part| part.is_bad() && is_sure(part) == sure).map(|part| part.name).collect()
        };
        assert_eq!((with(Status::Fail), with(Status::Inconclusive)), (names(true), names(false)), "{wanted:?}");
        let expected = match wanted {
            Some((_, Standing::Confirmed)) => Status::Fail,
            Some((_, Standing::Suspect)) => Status::Inconclusive,
            _ => Status::Pass,
        };
        assert_eq!(of_parts().map(|verdict| verdict.status).max(), Some(expected), "{wanted:?}");

        // JUnit fails the verdicts that fail, by name, and no two cases of a test have one name.
        let document = junit_document(&journal, &verdicts, &view).unwrap();
        let cases: Vec<&str> = document.split("<testcase ").skip(1).collect();
        assert!(cases.iter().all(|case| !case.split('"').nth(1).unwrap().contains(" #")), "{document}");
        let failed = cases.iter().filter(|case| case.contains("<failure")).count();
        assert_eq!(failed, verdicts.with(Status::Fail), "{document}");
        names(true).iter().for_each(|name| {
            assert!(cases.iter().any(|case| case.contains("<failure") && case.contains(name)), "{name}");
        });

        // The banner, and the colours.
        let confirmed = |cause: &&String| cause.ends_with("(confirmed)");
        let (bad, others): (Vec<&String>, Vec<&String>) = view.banner.causes.iter().partition(confirmed);
        let said = |causes: &[&String], name: &str| causes.iter().any(|cause| cause.contains(name));
        assert!(names(true).iter().all(|name| said(&bad, name)), "{bad:?}");
        assert_eq!(bad.is_empty(), names(true).is_empty());
        assert!(names(false).iter().all(|name| said(&others, name)), "{others:?}");
        for test in &model.tests {
            for link in &test.links {
                let speaks =
                    model.parts.iter().any(|part| part.is_bad() && part.speaks(test.test, link.result.case.id));
                assert!(!speaks || !matches!(link.look, Look::Usual | Look::Better), "{wanted:?}: {link:?}");
            }
        }

        // The state, and the hosts to take out of service: those that a sure part is, or whose NIC it is.
        let place = tempfile::tempdir().unwrap();
        let (nights, now) = kept(&journal, &verdicts, place.path());
        let standing = night::Standing::of(&nights, SignedDuration::from_hours(26), now);
        let state = match verdicts.status {
            Status::Pass => State::Ok,
            Status::Fail => State::Critical,
            Status::Inconclusive | Status::NotRun => State::Warning,
        };
        assert_eq!((standing.state, verdicts.exit_code), (state, verdicts.status.exit_code()), "{}", standing.text);
        let drained = Lists::of(&nights, &standing, Scheduler::Slurm).hosts;
        let drained: BTreeSet<&str> = drained.iter().flat_map(|one| &one.hosts).map(String::as_str).collect();
        let own = model.parts.iter().filter(|part| is_sure(part)).flat_map(Part::ends).map(|(host, _)| host);
        assert_eq!(drained, own.collect(), "{wanted:?}");
    }
}

//! Times in which a host looked at no port although there was traffic: whatever was longer than allowed may have been then.

use std::path::Path;

use railgauge_analysis::{journal::Journal, reason::Id, status::Status};
use railgauge_report::{draw, signoff};
use railgauge_wire::{unit::Nanoseconds, watch::Gap};
use serde_json::{Value, json};

use super::made::{Made, at, judged, status};

/// A soak of ten minutes in which a host does not look at its ports for a time, from its fifth minute on.
fn hung(milliseconds: u64, longest: u64) -> Journal {
    let mut journal = Made::healthy().longest(longest).journal();
    let seen = journal.watched.iter_mut().find(|seen| seen.host == "gpu002" && seen.seen.from == at(300_000)).unwrap();
    for port in &mut seen.seen.ports {
        port.gaps.push(Gap { from: at(310_000), until: at(310_000 + milliseconds) });
        port.longest_gap = Nanoseconds::from_millis(milliseconds);
    }
    journal
}

/// What a sign-off says that it does not vouch for.
#[test]
fn what_is_not_known_of_a_soak_stands_in_the_sign_off() {
    let untested = |longest| {
        let journal = hung(5_000, longest);
        signoff::view(&journal, &judged(&journal).1, &[], Vec::new()).untested
    };
    let told = |lines: Vec<String>| lines.into_iter().filter(|line| line.contains("not watched for 5.00 s")).count();
    assert_eq!((told(untested(0)), told(untested(6_000))), (1, 0));
}

#[test]
fn of_a_time_without_a_look_no_section_says_that_all_was_well() {
    let sentence = |journal: &Journal| draw(journal, Path::new("records.jsonl")).unwrap().view.soak.unwrap().sentence;
    assert!(sentence(&Made::healthy().journal()).contains("No outage and no stall."));
    let hung = sentence(&hung(5_000, 6_000));
    assert!(hung.contains("No outage and no stall was seen."), "{hung}");
}

#[test]
fn a_hole_that_may_hide_too_long_an_outage_is_no_pass() {
    for (hole, longest, expected) in [
        (5_000, 0, Status::Inconclusive),
        (5_000, 4_000, Status::Inconclusive),
        (5_000, 6_000, Status::Pass),
        // As long as a pause of a flow that does not show.
        (1_500, 0, Status::Pass),
    ] {
        let (found, all) = judged(&hung(hole, longest));
        // It is less than a hundredth of the soak.
        assert_eq!((found.holes.len(), status(&all, "watched").0), (1, Status::Pass));
        let outages = all.verdicts.iter().find(|verdict| verdict.key.as_deref() == Some("longest_outage")).unwrap();
        assert_eq!(outages.status, expected, "{hole} {longest}: {}", outages.reason);
        // What is not known is told, and nothing is claimed of it.
        let of = |id, field| outages.reason.iter().filter(|one| one.id == id).map(|one| one.json(field)).collect();
        let (holes, unseen): (Vec<Value>, Vec<Value>) = (of(Id::SoakHole, "length"), of(Id::SoakNoOutage, "unseen"));
        let is_known = expected == Status::Pass;
        let unknown = (!is_known).then(|| json!(Nanoseconds::from_millis(hole)));
        assert_eq!((holes, unseen), (Vec::from_iter(unknown), vec![json!(!is_known)]), "{}", outages.reason);
    }
}

/// Between two processes there is no traffic either.
#[test]
fn a_pause_of_the_traffic_hides_nothing() {
    let (found, all) = Made { spans: vec![(0, 300_000), (400_000, 700_000)], ..Made::healthy() }.found();
    assert_eq!(found.counts.pauses, 1);
    assert_eq!(status(&all, "longest_outage").0, Status::Pass);
}

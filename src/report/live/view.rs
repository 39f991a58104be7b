//! How far a run is, in words.

use std::time::Duration;

use jiff::Timestamp;
use railgauge_model::plan::{
    count::{count, lasting},
    hostlist,
};
use serde::Serialize;

use crate::{
    analysis::{
        underway::{Basis, Doing, Left, TimeLeft, Underway},
        words::{number, were},
    },
    report::view::{Table, number_column, text_column},
};

/// Version of the JSON.
const VERSION: u32 = 1;

/// Causes of failures that are listed.
const LISTED: usize = 20;

/// How far a run is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveView {
    /// Version of this document.
    pub version: u32,
    /// Name of the plan; empty before the first line of the records is read.
    pub plan: String,
    /// Identity of the run.
    pub run_id: String,
    /// When it began, UTC; empty before the first line is read.
    pub started: String,
    /// When this was told, UTC.
    pub told: String,
    /// Seconds after which the page asks again.
    pub every: u64,
    /// What it does right now: `preparing`, `tests`, `confirming`, `soak`, `finished`, `interrupted`, `prevented`.
    pub doing: &'static str,
    /// The same in a sentence.
    pub sentence: String,
    /// Whether the run itself has ended.
    pub over: bool,
    /// Rounds of the tests that are over, and all of them; each repeat counts.
    pub rounds: (u64, u64),
    /// Cases of the tests that have an outcome, and all of them; each repeat counts.
    pub cases: (u64, u64),
    /// The round that runs.
    pub current: String,
    /// The time that is left.
    pub left: String,
    /// What that is reckoned from.
    pub reckoned: String,
    /// Cases that failed so far.
    pub failed: u64,
    /// What else went wrong, a sentence each.
    pub troubles: Vec<String>,
    /// Tests: rounds, cases, rates and time left.
    pub tests: Table,
    /// Failed cases by cause.
    pub causes: Table,
    /// Causes that are not listed.
    pub more: usize,
    /// Hosts that answer and hosts of the plan.
    pub hosts: (usize, usize),
    /// Hosts that were lost, and why.
    pub lost: Table,
    /// What a reader should know of this page.
    pub remarks: Vec<String>,
}

fn basis(left: &Left) -> String {
    match left.basis {
        Basis::Rounds(1) => "the one round that is over".to_owned(),
        Basis::Rounds(n) => format!("median of {n} rounds that are over"),
        Basis::Plan if left.all.at_most.is_none() => {
            "the plan gives a number of messages and no time; known when a round is over".to_owned()
        }
        Basis::Plan => "windows and warm-ups of the plan, and the pace of the rounds that are over".to_owned(),
    }
}

/// How far a run is at a moment.
pub fn view(run: &Underway, now: Timestamp, every: u64) -> LiveView {
    let left = run.left(now);
    let sum = |each: &dyn Fn(&crate::analysis::underway::TestRounds) -> (u64, u64)| {
        run.tests.iter().map(each).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    };
    let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string();
    let listed = run.failures.by_cause();
    let (told, reckoned) = time_left(run, left.as_ref());
    LiveView {
        version: VERSION,
        plan: run.plan.as_ref().map_or_else(String::new, |plan| plan.name.clone()),
        run_id: run.run_id.clone(),
        started: run.began.map_or_else(String::new, time),
        told: time(now),
        every,
        doing: word(run.doing()),
        sentence: sentence(run),
        over: run.is_over(),
        rounds: sum(&|test| test.done()),
        cases: sum(&|test| test.cases()),
        current: current(run, now),
        left: told,
        reckoned,
        failed: run.failures.cases(),
        troubles: troubles(run),
        tests: tests(run, left.as_ref()),
        more: listed.len().saturating_sub(LISTED),
        causes: causes(run),
        hosts: (run.up.len(), run.plan.as_ref().map_or(0, |plan| plan.hosts.len())),
        lost: lost(run),
        remarks: remarks(run),
    }
}

const fn word(doing: Doing) -> &'static str {
    match doing {
        Doing::Preparing => "preparing",
        Doing::Tests => "tests",
        Doing::Confirming => "confirming",
        Doing::Soak => "soak",
        Doing::Finished => "finished",
        Doing::Interrupted => "interrupted",
        Doing::Prevented => "prevented",
    }
}

fn sentence(run: &Underway) -> String {
    match run.doing() {
        Doing::Preparing => "Hosts are contacted, and the cases are planned.".to_owned(),
        Doing::Tests => "The tests are running. Nothing is judged before the end.".to_owned(),
        Doing::Confirming => {
            let (asked, had) = run.further;
            format!("What stood out is measured again: {had} of {}. Nothing is judged before the end.", count_of(asked))
        }
        Doing::Soak => "The soak is running. Nothing is judged before the end.".to_owned(),
        Doing::Finished => "All is measured. The report is being written; this page ends with the run.".to_owned(),
        Doing::Interrupted => {
            "The run was interrupted. Its report is being written; this page ends with the run.".to_owned()
        }
        Doing::Prevented => {
            "The run cannot go on. Its report is being written; this page ends with the run.".to_owned()
        }
    }
}

fn count_of(n: u64) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), "further case")
}

fn current(run: &Underway, now: Timestamp) -> String {
    let Some(current) = &run.current else { return String::new() };
    let Some(test) = run.tests.get(current.test) else { return String::new() };
    let for_so_long = Duration::try_from(now.duration_since(current.began)).unwrap_or_default();
    if current.further {
        // Further rounds have numbers of their own, and how many there will be is not known.
        return format!("{}, suspects are measured again, for {}", test.name, lasting(for_so_long));
    }
    format!(
        "{}, round {} of {}, repeat {} of {}, for {}",
        test.name,
        current.round + 1,
        test.rounds(),
        current.repeat + 1,
        test.repeats(),
        lasting(for_so_long)
    )
}

/// The time that is left, and what it is reckoned from.
fn time_left(run: &Underway, left: Option<&TimeLeft>) -> (String, String) {
    let Some(left) = left else {
        return match run.is_over() {
            true => ("none".to_owned(), String::new()),
            false => ("unknown".to_owned(), "nothing is planned yet".to_owned()),
        };
    };
    let mut from: Vec<String> = Vec::new();
    if left.tests.iter().any(Option::is_some) {
        from.push("from the tests below".to_owned());
    }
    if !left.soak.is_zero() {
        from.push(format!("soak: {} of the plan's time", lasting(left.soak)));
    }
    let again = match run.doing() {
        Doing::Confirming => {
            from.push("from the further cases that were asked for; more may follow".to_owned());
            None
        }
        _ => run.plan.as_ref().filter(|_| left.confirms).map(|plan| plan.then_suspects()),
    };
    (format!("about {}{}", left.all, again.unwrap_or_default()), from.join("; "))
}

fn tests(run: &Underway, left: Option<&TimeLeft>) -> Table {
    let columns = vec![
        text_column("test"),
        text_column("rounds"),
        text_column("cases"),
        number_column("failed", ""),
        text_column("worst"),
        text_column("median"),
        text_column("best"),
        text_column("per round"),
        text_column("time left"),
        text_column("reckoned from"),
    ];
    let none = || "–".to_owned();
    let row = |(index, test): (usize, &crate::analysis::underway::TestRounds)| {
        let (done, all) = test.done();
        let (had, planned) = test.cases();
        let rates = run.rates.get(index);
        let unit = rates.map_or("", |rates| rates.metric.unit());
        let [worst, median, best] = rates
            .and_then(|rates| rates.span())
            .map_or_else(|| [none(), none(), none()], |span| span.map(|value| format!("{} {unit}", number(value))));
        let of = left.and_then(|left| left.tests.get(index).copied().flatten());
        let per_round = of.and_then(|left| left.round.or(left.current)).map_or_else(none, |time| time.to_string());
        let is_over = all > 0 && done == all;
        vec![
            test.name.clone(),
            format!("{done} of {all}"),
            format!("{had} of {planned}"),
            test.failed().to_string(),
            worst,
            median,
            best,
            per_round,
            of.map_or_else(|| if is_over { "over".to_owned() } else { none() }, |left| left.all.to_string()),
            of.as_ref().map_or_else(String::new, basis),
        ]
    };
    Table { columns, rows: run.tests.iter().enumerate().map(row).collect() }
}

fn causes(run: &Underway) -> Table {
    let columns = vec![number_column("cases", ""), text_column("hosts"), text_column("cause"), text_column("help")];
    let fold = |hosts: &std::collections::BTreeSet<String>| hostlist::fold(hosts.iter().map(String::as_str));
    let rows =
        run.failures.by_cause().into_iter().take(LISTED).map(|failed| {
            vec![failed.cases.to_string(), fold(&failed.hosts), failed.cause.clone(), failed.remedy.clone()]
        });
    Table { columns, rows: rows.collect() }
}

fn lost(run: &Underway) -> Table {
    let mut by_cause: Vec<(&str, Vec<&str>)> = Vec::new();
    for (host, why) in &run.lost {
        match by_cause.iter_mut().find(|(cause, _)| cause == why) {
            Some((_, hosts)) => hosts.push(host),
            None => by_cause.push((why, vec![host])),
        }
    }
    let rows = by_cause.into_iter().map(|(why, hosts)| vec![hostlist::fold(hosts.into_iter()), why.to_owned()]);
    Table { columns: vec![text_column("hosts"), text_column("why")], rows: rows.collect() }
}

fn troubles(run: &Underway) -> Vec<String> {
    let failures = &run.failures;
    let told = [
        (failures.wrong, "measurement", "delivered wrong bytes"),
        (failures.doubtful, "measurement", "may not be trusted as it is: the report says why"),
        (failures.windows, "window", "of the soak failed"),
        (failures.others, "case", "failed for causes that are not listed"),
    ];
    let told = told.into_iter().filter(|(n, ..)| *n > 0);
    let told = told.map(|(n, noun, what)| format!("{} {what}.", count(usize::try_from(n).unwrap_or(usize::MAX), noun)));
    let lost = hostlist::fold(run.lost.keys().map(String::as_str));
    let lost = (!lost.is_empty()).then(|| format!("{} lost: {lost}.", were(run.lost.len(), "host")));
    let back = hostlist::fold(run.came_back.iter().map(String::as_str));
    let back = (!back.is_empty()).then(|| format!("{} lost and came back: {back}.", were(run.came_back.len(), "host")));
    lost.into_iter().chain(back).chain(told).collect()
}

fn remarks(run: &Underway) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(subset) = run.plan.as_ref().and_then(|plan| plan.subset.as_ref()) {
        remarks.push(format!("Only a part of the plan is run: {}.", subset.words()));
    }
    if run.resumed > 0 {
        remarks
            .push("The run was taken up again: what failed before is measured again and no longer counted.".to_owned());
    }
    if run.unread > 0 {
        let lines = count(usize::try_from(run.unread).unwrap_or(usize::MAX), "line");
        remarks.push(format!("{lines} of the records could not be read: what they say is missing here."));
    }
    remarks.push(
        "Rates are of each test's largest size, as they came in: nothing is left out and nothing is judged.".to_owned(),
    );
    remarks
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::path::Path;

    use jiff::SignedDuration;
    use railgauge_model::{
        journal::event::Event,
        plan::{self, subset::Subset},
    };

    use super::*;

    #[test]
    fn a_round_of_suspects_has_no_number_of_its_test_and_a_part_of_a_plan_is_told() {
        let text = "name = \"t\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"h[1-4]\"] }\n[[test]]\nname = \"a\"\n\
                    op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n";
        let mut plan = plan::parse("t.toml", text, Path::new("")).unwrap().0;
        let repeats = Some(2);
        plan.subset =
            Some(Subset { hosts: None, of_hosts: 4, tests: None, of_tests: 1, repeats, left_out: Vec::new() });
        let at = |seconds| Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        let mut run = Underway::default();
        let of = |text: &str| text.to_owned();
        run.event(
            at(0),
            Event::Started {
                run_id: of("r"),
                plan: of("t"),
                plan_hash: String::new(),
                resolved: Box::new(plan),
                version: String::new(),
                controller: String::new(),
                launcher: String::new(),
            },
        );
        let round = || Event::Round { test: of("a"), round: 3, repeat: 0 };
        run.event(at(1), round());
        assert!(current(&run, at(2)).starts_with("a, round 4 of "));
        run.event(at(3), Event::Confirming { cases: Vec::new(), links: false });
        run.event(at(4), round());
        assert_eq!(current(&run, at(5)), "a, suspects are measured again, for 1 s");
        assert_eq!(remarks(&run)[0], "Only a part of the plan is run: 2 repeats.");
    }
}

//! What was demanded and whether it was met. Nothing passes that was not measured.
//!
//! | status | when |
//! | --- | --- |
//! | fail | a measured value breaks the demand, or wrong bytes arrived |
//! | inconclusive | nothing breaks it, but something in its scope is missing, disturbed or cannot be judged |
//! | not-run | nothing in its scope was even tried |
//! | pass | everything in its scope was measured, may be trusted, and keeps the demand |
//!
//! Every test has two implicit verdicts: that all its cases were measured and verified, and, with enough of them to
//! compare, that no part is worse than its peers. So has every value in `[preflight]`, and a run that did not finish or
//! whose records are damaged. A soak has several.

mod causes;
mod components;
mod demand;
mod every_case;
mod flows;
mod links;
mod named;
mod offender;
mod parts;
mod places;
mod preflight;
mod scope;
mod shared;
mod soak;
mod soak_events;
mod soak_gpus;
mod soak_levels;
mod trouble;
mod types;
mod untested;
mod whole;

pub use components::{ANSWERS, LISTED};
pub use demand::{Applied, applied};
pub use links::{loading, searched};
pub use offender::{OFFENDERS, Offender, Tally};
pub use preflight::{ESCALATED, NAME as PREFLIGHT};
pub use scope::Scope;
pub use shared::only_shared;
pub use soak_events::NAME as SOAK;
pub use trouble::{Failed, Trouble};
pub use types::{Cases, Component, Judged, Kind, Measured, Part, VERSION, Verdict, Verdicts};
pub use untested::{Lack, Untested, not_tested};
pub use whole::NAME as RUN;

use super::{
    case::{CaseResult, State},
    collisions::collisions,
    compare::Interleaved,
    costs::costs,
    journal::Journal,
    limits::of_test,
    localise::{Localisation, localise},
    outliers::{Link, Outliers, outliers},
    proven, results,
    row::Row,
    soak::soaking,
    status::Status,
    switches::switches,
    together,
};

/// `rows` are those of `results`.
pub fn verdicts(
    journal: &Journal,
    results: &[CaseResult<'_>],
    rows: &[Row],
    interleaved: Vec<Interleaved>,
) -> Verdicts {
    let localisation = localise(journal, results, rows);
    let outliers = outliers(journal, results, rows, &localisation);
    verdicts_of(journal, results, rows, interleaved, &outliers)
}

pub fn verdicts_of(
    journal: &Journal,
    results: &[CaseResult<'_>],
    rows: &[Row],
    interleaved: Vec<Interleaved>,
    model: &Outliers<'_>,
) -> Verdicts {
    let localisation = model.found.to_vec();
    let beside = model.beside();
    let more = results::further(journal);
    let corrupt: Vec<&CaseResult<'_>> = more.iter().filter(|result| result.state == State::Wrong).collect();
    let switches = switches(journal, (results, rows), &more);
    let untested = untested::untested(journal, results, model);
    let mut verdicts = whole::judge(journal);
    verdicts.extend(preflight::judge(journal));
    for test in &journal.plan.tests {
        let (results, rows) = of_test(test, results, rows);
        let wanted = demand::expectations(test, &rows);
        verdicts.extend(wanted.iter().map(|wanted| demand::judge(journal, test, wanted, &results, &rows)));
        let corrupt: Vec<&CaseResult<'_>> =
            corrupt.iter().copied().filter(|one| *one.case.test == *test.name).collect();
        let found = localisation.iter().filter(|found| found.test == test.name);
        let lossy: Vec<String> = found.clone().flat_map(|found| &found.lossy).map(|part| part.name.clone()).collect();
        verdicts.push(every_case::judge(test, &results, &corrupt, lossy));
        let beside: Vec<&Link<'_>> =
            beside.iter().filter(|(of, ..)| of.test == test.name).map(|(_, link, _)| *link).collect();
        // Groups that stand out are searched for smaller ones; of several views of pairs the first has them.
        let beside = |found: &Localisation| if found.counted == "pair" && !found.is_extra { &beside[..] } else { &[] };
        verdicts.extend(found.filter_map(|found| parts::judge(found, beside(found), &untested, &journal.plan)));
        verdicts.extend(links::judge_suspects(test, switches.as_ref()));
        verdicts.extend(links::judge(test, switches.as_ref()));
        verdicts.extend(model.of(&test.name).and_then(|of| flows::judge(test, of, &untested, &journal.plan)));
    }
    let soak = soaking(journal);
    if let (Some(wanted), Some(found)) = (&journal.plan.soak, &soak) {
        verdicts.extend(soak::judge(wanted, found, &journal.end));
    }
    for verdict in verdicts.iter_mut().filter(|verdict| verdict.status != Status::Pass && verdict.remedy.is_none()) {
        verdict.remedy = verdict.reason.step().map(|(_, remedy)| remedy.clone());
    }
    verdicts.iter_mut().for_each(|verdict| places::say(verdict, &journal.plan.places, &localisation));
    let counts = verdicts.iter().filter(|verdict| !verdict.waived);
    let status = counts.map(|verdict| verdict.status).max().unwrap_or(Status::NotRun);
    let troubles: Vec<Trouble> = results.iter().chain(corrupt).filter_map(Trouble::of).collect();
    let components = components::components(journal, model, &verdicts, soak.as_ref());
    let mut all = Verdicts {
        version: VERSION,
        run_id: journal.run_id.clone(),
        plan: journal.plan.name.clone(),
        status,
        exit_code: status.exit_code(),
        run_exit_code: whole::exit_code(journal, status),
        sentence: String::new(),
        causes: Vec::new(),
        cases: tally(results),
        verdicts,
        troubles,
        localisation,
        switches,
        beside: together::beside(&results.iter().collect::<Vec<_>>()),
        costs: costs(&journal.plan.tests, results),
        collisions: collisions(&journal.plan.tests, results, rows),
        soak,
        interleaved,
        lost: journal.lost.values().chain(&journal.unconfigured).cloned().collect(),
        subset: journal.plan.subset.clone(),
        places: journal.plan.places.clone(),
        drivers_never_run: proven::never_run(journal, results),
        untested,
        components,
        sums: None,
    };
    all.causes = all.cause_lines();
    let part = journal.plan.subset.as_ref().map(|part| format!(" (part of the plan: {})", part.words()));
    all.sentence = all.causes.first().cloned().unwrap_or_default() + &part.unwrap_or_default();
    all
}

fn tally(results: &[CaseResult<'_>]) -> Cases {
    let mut cases = Cases { planned: results.len(), ..Cases::default() };
    for result in results {
        *match result.state {
            State::Measured => &mut cases.measured,
            State::Short => &mut cases.short,
            State::Unverified => &mut cases.unverified,
            State::Contaminated => &mut cases.contaminated,
            State::Impossible => &mut cases.impossible,
            State::NoValue => &mut cases.no_value,
            State::Failed => &mut cases.failed,
            State::NotRun => &mut cases.not_run,
            State::Wrong => &mut cases.wrong,
        } += 1;
    }
    cases
}

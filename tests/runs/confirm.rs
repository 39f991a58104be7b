//! Further cases in a run: asked for after the tests, measured once, kept within their time, taken up again.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use railgauge::{
    cluster::AgentBinary,
    run::{
        confirm::{Asked, FollowUp},
        execute::{self, Past, execute},
        progress::Progress,
        spine::Spine,
    },
};
use railgauge_analysis::{
    case::State,
    journal::{self, Journal as Read, JournalEnd},
    results::{further, results},
};
use railgauge_model::{
    directory::Directory,
    journal::{
        event::{Case, Event},
        line::Tail,
    },
    plan::{Plan, parse},
    schedule::{Flow, Inventory, Port, schedule},
};

const PLAN: &str = r#"
name = "confirm"
[launch]
via = "local"
[hosts]
names = ["a", "b", "c"]
[[test]]
op = "send"
metric = "bandwidth"
transport = "tcp"
sizes = "4KiB"
pattern = "pairs"
pairs = [["a", "b"]]
measure = "200ms"
warm_up = "0s"
"#;

/// The agent as `./test` or the build of the workspace leaves it.
fn agent() -> AgentBinary {
    let here = Path::new(env!("CARGO_BIN_EXE_railgauge")).parent().unwrap();
    let built: Vec<PathBuf> = vec![here.join("railgauge-agent"), here.with_file_name("agent").join("railgauge-agent")];
    let file = built.iter().find(|file| file.is_file());
    AgentBinary::open(file.expect("no agent: cargo build --profile agent -p railgauge-agent")).unwrap()
}

fn plan() -> Plan {
    parse("plan.toml", PLAN, Path::new("")).unwrap().0
}

/// The planned case, and two further ones in a round each.
fn cases(plan: &Plan) -> (Vec<Case>, Vec<Case>) {
    let schedule = schedule(plan, &Inventory::of_plan(plan)).unwrap();
    let place = schedule.cases().next().unwrap();
    let (round, flow, cell) = schedule.resolve(place).unwrap();
    let test = plan.tests[0].name.clone();
    let planned = Case { id: 0, test: test.into(), round: round.number, flow: flow.clone(), cell: cell.clone().into() };
    let port = |host: &str| Port::new(host, 0);
    let again =
        |id: u64, to: &str| Case { id, round: id as u32 - 1, flow: Flow::pair(port("c"), port(to)), ..planned.clone() };
    let further = vec![again(1, "a"), again(2, "b")];
    (vec![planned], further)
}

/// Runs a plan and answers with how it ended, how often further cases were asked for, and the journal.
fn run(plan: Plan, past: Past, answers: Vec<Vec<Case>>) -> (execute::RunEnd, usize, Read) {
    let place = tempfile::tempdir().unwrap();
    let (directory, claim) = Directory::create(&place.path().join("run")).unwrap();
    let journal = claim.go_on(Tail::before("r".into()), &directory.reserve()).unwrap();
    let spine = Spine::new(journal, &directory.log(), Progress::new(true, false)).unwrap();
    spine.emit(Event::Started {
        run_id: "run".into(),
        plan: plan.name.clone(),
        plan_hash: String::new(),
        resolved: Box::new(plan.clone()),
        version: String::new(),
        controller: String::new(),
        launcher: String::new(),
    });
    if !past.cases.is_empty() {
        spine.emit(Event::Planned { cases: past.cases.clone() });
        spine.emit(Event::Confirming { cases: past.further.clone(), links: false });
        spine.emit(Event::Resumed { unread: Vec::new() });
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let follow_up: FollowUp = Arc::new(move || {
        let cases = answers.get(count.fetch_add(1, Ordering::Relaxed)).cloned().unwrap_or_default();
        Ok(Asked { cases, links: false })
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (end, farewell) = runtime.block_on(execute(Arc::new(plan), &directory, past, agent(), follow_up, &spine));
    runtime.block_on(farewell.said());
    (end, asked.load(Ordering::Relaxed), journal::read(&directory.journal()).unwrap())
}

fn states(journal: &Read) -> (Vec<State>, Vec<State>) {
    let states =
        |all: Vec<_>| all.iter().map(|result: &railgauge_analysis::case::CaseResult<'_>| result.state).collect();
    (states(results(journal).unwrap()), states(further(journal)))
}

#[test]
fn what_is_asked_for_after_the_tests_is_measured_until_nothing_is_asked_for() {
    let (_, more) = cases(&plan());
    let answers = more.iter().map(|case| vec![case.clone()]).collect();
    let (end, asked, journal) = run(plan(), Past::default(), answers);
    assert_eq!((end, asked, &journal.end), (execute::RunEnd::Complete, 3, &JournalEnd::Finished));
    assert_eq!(journal.further, more);
    assert_eq!(states(&journal), (vec![State::Measured], vec![State::Measured; 2]), "{:?}", journal.tries);
    assert_eq!(journal.tries.iter().map(|tried| tried.case).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_resumed_run_measures_the_further_cases_that_are_missing_under_their_numbers() {
    let (planned, more) = cases(&plan());
    let done = HashSet::from([(0, 0), (1, 0)]);
    let past = Past { cases: planned, further: more, done, configured: None, soaked: Duration::ZERO };
    let (end, asked, journal) = run(plan(), past, Vec::new());
    assert_eq!((end, asked), (execute::RunEnd::Complete, 1));
    assert_eq!(journal.tries.iter().map(|tried| tried.case).collect::<Vec<_>>(), [2]);
    assert_eq!(states(&journal).1, [State::NotRun, State::Measured]);
}

#[test]
fn no_round_begins_after_its_time_and_none_at_all_where_the_plan_says_so() {
    let mut late = plan();
    late.localise.at_most = Duration::ZERO;
    let (_, more) = cases(&late);
    let (end, _, journal) = run(late, Past::default(), vec![more.clone()]);
    assert_eq!((end, states(&journal).1), (execute::RunEnd::Complete, vec![State::NotRun; 2]));
    assert!(journal.notes.iter().any(|(_, text)| text.contains("[localise] at_most")), "{:?}", journal.notes);

    let mut never = plan();
    never.localise.confirm = false;
    let (end, asked, journal) = run(never, Past::default(), vec![more]);
    assert_eq!((end, asked, journal.further.len()), (execute::RunEnd::Complete, 0, 0));
}

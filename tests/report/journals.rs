//! What a journal reader reads around, what it refuses, and that no damage passes.

use std::{path::Path, sync::LazyLock};

use proptest::prelude::*;
use railgauge_analysis::{
    journal::{Journal, JournalEnd, JournalError, parse},
    row::Row,
    status::Status,
    verdict::{Kind, Verdict},
};
use railgauge_model::{
    journal::{
        event::{Event, Line},
        line::{self, Tail},
        writer::Claim,
    },
    plan::model::{Pattern, Test},
};
use railgauge_report::{draw, frame_rows};
use railgauge_wire::unit::Bytes;

use crate::support::{self, Scenario};

fn small() -> Scenario {
    Scenario { sizes: vec![4096, 65536], repeats: 1, ..Scenario::healthy(3, 1) }
}

fn read(text: &str) -> Result<Journal, JournalError> {
    parse(text.as_bytes(), Path::new("records.jsonl"))
}

/// A line of a run's journal as text, without its newline.
fn written(run: &str, n: u64, event: Event) -> String {
    String::from_utf8(line::encode(run, n, "2026-11-21T03:00:00.000Z", &event).unwrap()).unwrap().trim_end().to_owned()
}

/// A journal whose line at `place`, from 0, was changed.
fn with_line(text: &str, place: usize, change: impl Fn(&str) -> String) -> String {
    text.lines().enumerate().map(|(at, line)| if at == place { change(line) } else { line.to_owned() } + "\n").collect()
}

/// The place of the last outcome.
fn last_outcome(text: &str) -> usize {
    text.lines().collect::<Vec<_>>().iter().rposition(|line| line.contains("\"Outcome\"")).unwrap()
}

#[test]
fn a_whole_journal_is_read() {
    let text = small().jsonl();
    let journal = read(&text).unwrap();
    assert_eq!(journal.run_id, "acceptance-20261121T020000Z");
    assert_eq!((journal.hosts.len(), journal.cases.len(), journal.tries.len()), (3, 22, 22));
    assert_eq!((journal.end, journal.damage), (JournalEnd::Finished, vec![]));
    assert_eq!((journal.tail.length, journal.tail.unended), (Bytes::of(text.len()), false));
    assert_eq!(journal.tail.next, text.lines().count() as u64 + 1);
}

#[test]
fn a_torn_last_line_is_left_out_and_noted() {
    let text = small().jsonl();
    let lines = text.lines().count();
    // Cut into the last outcome, wherever: what is left of it is no event.
    let whole = text.rfind("{\"v\"").unwrap();
    let before = text[..whole].rfind("{\"v\"").unwrap();
    for cut in [before + 1, before + 40, whole - 2] {
        let journal = read(&text[..cut]).unwrap();
        assert_eq!(journal.tries.len(), 21, "{cut}");
        assert_eq!((&journal.end, &journal.damage), (&JournalEnd::Broken, &vec![]));
        assert_eq!((journal.tail.length, journal.tail.next), (Bytes::of(before), lines as u64 - 1));
        let note = format!("line {} of the journal was cut off by a crash", lines - 1);
        assert!(journal.notes.last().unwrap().1.starts_with(&note), "{:?}", journal.notes);
    }
}

#[test]
fn a_whole_last_line_without_its_newline_counts() {
    let text = small().jsonl();
    let whole = text.rfind("{\"v\"").unwrap();
    let journal = read(&text[..whole - 1]).unwrap();
    assert_eq!(journal.tries.len(), 22);
    assert_eq!((journal.tail.length, journal.tail.unended), (Bytes::of(whole - 1), true));
}

#[test]
fn a_damaged_line_is_read_around_and_nothing_passes() {
    let text = small().jsonl();
    let place = last_outcome(&text);
    let path = Path::new("records.jsonl");
    let damaged = with_line(&text, place, |line| line.replacen("\"case\":", "\"case\": ", 1));
    let gone: String = text.lines().enumerate().filter(|(at, _)| *at != place).map(|(_, l)| format!("{l}\n")).collect();
    let twice = with_line(&text, place, |line| format!("{line}\n{line}"));
    let strange = with_line(&text, place, |line| format!("hello\n{line}"));
    for (changed, tries) in [(damaged, 21), (gone, 21), (twice, 22), (strange, 22)] {
        let journal = read(&changed).unwrap();
        assert_eq!((journal.tries.len(), journal.damage.len()), (tries, 1), "{:?}", journal.damage);
        let verdicts = draw(&journal, path).unwrap().verdicts;
        let verdict = verdicts.verdicts.iter().find(|verdict| verdict.kind == Kind::Records).unwrap();
        assert_eq!((verdict.status, verdicts.status), (Status::Inconclusive, Status::Inconclusive));
        assert!(verdict.reason.to_string().contains(&format!("line {}", journal.damage[0].line)), "{}", verdict.reason);
        assert!(journal.notes.iter().any(|(_, text)| text.contains("is damaged")), "{:?}", journal.notes);
    }
}

/// The journal as a run writes it: links stand in lines of their own.
fn as_a_run_writes(text: &str) -> String {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("records.jsonl");
    let claim = Claim::create(&path).unwrap();
    let mut journal = claim.go_on(Tail::before("r".into()), &place.path().join(".reserve")).unwrap();
    let run = support::run_of(text);
    for text in text.lines() {
        journal.append(&line::decode(text.as_bytes(), Some(&run)).unwrap().line).unwrap();
    }
    drop(journal);
    std::fs::read_to_string(&path).unwrap()
}

#[test]
fn links_in_lines_of_their_own_are_those_of_the_outcomes() {
    let text = small().jsonl();
    let whole = read(&text).unwrap();
    let written = as_a_run_writes(&text);
    assert!(written.len() < text.len() && !written.contains("\"link\":{"));
    let journal = read(&written).unwrap();
    assert!(whole.tries.iter().all(|one| one.link.is_some()));
    assert_eq!((&journal.tries, &journal.cases, &journal.damage), (&whole.tries, &whole.cases, &vec![]));
    // Each different link stands there once.
    let different: std::collections::BTreeSet<String> =
        whole.tries.iter().map(|one| serde_json::to_string(one.link.as_deref().unwrap()).unwrap()).collect();
    assert_eq!(written.matches("\"Link\"").count(), different.len());
}

/// Nobody knows over what such a result was measured: it is measured again, as if its own line were lost.
#[test]
fn results_of_a_lost_link_are_lost() {
    let text = as_a_run_writes(&small().jsonl());
    let place = text.lines().position(|line| line.contains("\"Link\"")).unwrap();
    let of_link = format!("\"link_line\":{},", place + 1);
    let lost = text.matches(&of_link).count();
    assert!(lost > 0);
    let journal = read(&with_line(&text, place, |line| line.replacen("mtu", "mtv", 1))).unwrap();
    let lines: u64 = journal.damage.iter().filter_map(|one| one.numbers).map(|(first, last)| last - first + 1).sum();
    assert_eq!((journal.tries.len(), lines as usize), (22 - lost, 1 + lost), "{:?}", journal.damage);
    assert!(journal.damage.len() <= 1 + lost);
    let verdicts = draw(&journal, Path::new("records.jsonl")).unwrap().verdicts;
    assert_eq!(verdicts.status, Status::Inconclusive);
    // A process that takes the run up knows of all these lines.
    let unread: Vec<(u64, u64)> = journal.damage.iter().map(|damage| damage.numbers.unwrap()).collect();
    let mut resumed = with_line(&text, place, |line| line.replacen("mtu", "mtv", 1));
    resumed += &written("r", journal.tail.next, Event::Resumed { unread });
    assert_eq!(read(&(resumed + "\n")).unwrap().unhealed().count(), 0);
}

#[test]
fn a_link_that_no_line_tells_is_an_error_with_its_place() {
    let text = small().jsonl();
    let place = last_outcome(&text);
    let wrong = with_line(&text, place, |line| {
        let read = line::decode(line.as_bytes(), Some(&support::run_of(&text))).unwrap();
        let Event::Outcome(mut outcome) = read.line.event else { unreachable!() };
        (outcome.link, outcome.link_line) = (None, Some(3));
        written(&read.run, read.n, Event::Outcome(outcome))
    });
    match read(&wrong) {
        Err(JournalError::Foreign { line, cause, .. }) => {
            assert_eq!(line, place + 1);
            assert!(cause.contains("line 3"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_lost_before_a_resumption_that_knew_of_it_is_healed() {
    let text = small().jsonl();
    let place = last_outcome(&text);
    let lost: String = text.lines().take(place).map(|l| format!("{l}\n")).collect::<String>() + "damaged\n";
    let journal = read(&lost).unwrap();
    let (run, next) = (&journal.tail.run, journal.tail.next);
    let unread = vec![journal.damage[0].numbers.unwrap()];
    assert_eq!(next, place as u64 + 2);
    let again = read(&text).unwrap();
    let last = again.tries.last().unwrap();
    let outcome = Event::Outcome(Box::new(railgauge_model::journal::event::Outcome {
        case: last.case,
        repeat: last.repeat,
        started_at: last.started_at.clone(),
        link: last.link.as_deref().cloned(),
        link_line: None,
        result: last.result.clone(),
    }));
    let resumed = |unread: Vec<(u64, u64)>| {
        let lines = [Event::Resumed { unread }, outcome.clone(), Event::Finished];
        lost.clone() + &(next..).zip(lines).map(|(n, event)| written(run, n, event) + "\n").collect::<String>()
    };
    let healed = read(&resumed(unread)).unwrap();
    assert_eq!((healed.tries.len(), healed.end.clone()), (22, JournalEnd::Finished));
    assert!(healed.damage[0].healed && healed.unhealed().next().is_none(), "{:?}", healed.damage);
    // A process that did not know of the damage did not make good for it.
    assert_eq!(read(&resumed(Vec::new())).unwrap().unhealed().count(), 1);
}

#[test]
fn a_line_of_another_run_in_the_place_of_one_of_this_is_damage() {
    let (text, other) = (small().jsonl(), Scenario { day: 1, ..small() }.jsonl());
    let place = last_outcome(&text);
    let foreign = other.lines().nth(place).unwrap().to_owned();
    let journal = read(&with_line(&text, place, |_| foreign.clone())).unwrap();
    let [damage] = journal.damage.as_slice() else { panic!("{:?}", journal.damage) };
    assert_eq!((damage.line, damage.numbers), (place + 1, Some((place as u64 + 1, place as u64 + 1))));
    assert_eq!(journal.tries.len() + 1, read(&text).unwrap().tries.len());
}

#[test]
fn results_of_a_lost_plan_are_left_out() {
    let text = small().jsonl();
    let place = text.lines().position(|line| line.contains("\"Planned\"")).unwrap();
    let journal = read(&with_line(&text, place, |_| "x".into())).unwrap();
    assert_eq!((journal.cases.len(), journal.tries.len()), (0, 0));
    let drawn = draw(&journal, Path::new("records.jsonl")).unwrap();
    assert_eq!(drawn.verdicts.status, Status::Inconclusive);
}

#[test]
fn a_whole_line_that_says_something_unknown_is_an_error_with_its_place() {
    let text = small().jsonl();
    let body = r#"{"v":6,"n":5,"run":"r","at":"x","event":{"Something":{"new":1}}"#;
    let unknown = format!("{body},\"sum\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()));
    let error = read(&with_line(&text, 4, |_| unknown.clone())).unwrap_err().to_string();
    assert!(error.starts_with("records.jsonl:5: not a line of a railgauge journal: "), "{error}");
}

#[test]
fn another_version_is_refused_by_name() {
    let old = r#"{"v":1,"at":"2026-11-21T03:00:00.000Z","event":"Finished"}"#;
    let body = r#"{"v":9,"n":1,"what":{}"#;
    let newer = format!("{body},\"sum\":\"{:08x}\"}}", crc32fast::hash(body.as_bytes()));
    for (line, version) in [(old, 1), (newer.as_str(), 9)] {
        let error = read(&format!("{line}\n")).unwrap_err();
        assert!(matches!(error, JournalError::Version { line: 1, found, .. } if found == version), "{error}");
    }
}

#[test]
fn nothing_and_a_journal_without_its_start_are_errors() {
    assert!(matches!(read(""), Err(JournalError::Empty { .. })));
    assert!(matches!(read("{\"v\":6,\"n\":1,\"run\""), Err(JournalError::Empty { .. })));
    let text = small().jsonl();
    let rest = text.split_once('\n').unwrap().1;
    assert!(matches!(read(rest), Err(JournalError::Headless { .. })));
    assert!(matches!(read(&with_line(&text, 0, |line| line.replace('a', "b"))), Err(JournalError::Headless { .. })));
    // Another run behind this one: its lines begin again with 1.
    let journal = read(&format!("{text}{text}")).unwrap();
    assert_eq!(journal.damage.len(), text.lines().count());
    let second = Line { at: "x".into(), event: read_started(&text) };
    assert!(read(&support::behind(&text, &[second])).unwrap_err().to_string().contains("two runs in one file"));
}

fn read_started(text: &str) -> Event {
    line::decode(text.lines().next().unwrap().as_bytes(), None).unwrap().line.event
}

proptest! {
    /// Whatever is done to the file: the frame is what it was, or the run is inconclusive. `PROPTEST_CASES=10000` for
    /// more of them.
    #[test]
    fn no_mutation_changes_the_frame_and_may_pass(
        seed in any::<u64>(), kind in 0u8..7, at in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()
    ) {
        let (text, before) = &*PLAIN;
        let mutated = mutated(text, kind, at.index(text.len()), to.index(text.len()), seed);
        if let Some((after, doubted)) = rows_and_doubt(&mutated) {
            prop_assert!(after == *before || doubted, "kind {} may pass with another frame", kind);
        }
    }
}

/// A journal, and its rows.
static PLAIN: LazyLock<(Vec<u8>, Vec<Row>)> = LazyLock::new(|| {
    let text = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(2, 1) }.jsonl().into_bytes();
    let (rows, doubted) = rows_and_doubt(&text).unwrap();
    assert!(!doubted);
    (text, rows)
});

/// The rows of a journal, and whether the run as a whole is inconclusive; `None` where there is no report.
fn rows_and_doubt(bytes: &[u8]) -> Option<(Vec<Row>, bool)> {
    let path = Path::new("records.jsonl");
    let journal = parse(bytes, path).ok()?;
    let drawn = draw(&journal, path).ok()?;
    let doubts = |verdict: &Verdict| matches!(verdict.kind, Kind::Run | Kind::Records);
    let doubted = drawn.verdicts.verdicts.iter().any(|one| doubts(one) && one.status == Status::Inconclusive);
    Some((frame_rows(&journal, path).unwrap(), doubted))
}

/// The bytes with one change: a bit, a byte, a piece cut out, doubled, moved, the end cut off, or two lines exchanged.
fn mutated(text: &[u8], kind: u8, at: usize, to: usize, seed: u64) -> Vec<u8> {
    let (a, b) = (at.min(to), at.max(to));
    let mut bytes = text.to_vec();
    match kind {
        0 => bytes[at] ^= 1 << (seed % 8),
        1 => bytes[at] = seed as u8,
        2 => drop(bytes.drain(a..b)),
        3 => drop(bytes.splice(b..b, text[a..b].to_vec())),
        4 => bytes.rotate_left(at),
        5 => bytes.truncate(at),
        _ => {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            let (a, b) = (at % lines.len(), to % lines.len());
            lines.swap(a, b);
            bytes = lines.concat();
        }
    }
    bytes
}

/// Who wrote a journal must not choose how much time and memory a report takes.
#[test]
fn a_plan_or_a_host_that_cannot_be_is_refused_before_anything_is_made_of_it() {
    let refused = |change: &dyn Fn(&mut Event)| {
        let mut lines = small().lines();
        lines.iter_mut().for_each(|line| change(&mut line.event));
        read(&support::text(&lines)).unwrap_err().to_string()
    };
    let of_plan = |change: &dyn Fn(&mut Test)| {
        refused(&|event| {
            if let Event::Started { resolved, .. } = event {
                change(&mut resolved.tests[0]);
            }
        })
    };
    for (words, change) in [
        ("299999 sizes", (|test| test.sizes = (1..300_000).map(Bytes).collect()) as fn(&mut Test)),
        ("2999 numbers of queue pairs", |test| test.qps = (1..3_000).collect()),
        ("4000000000 repeats", |test| test.repeats = 4_000_000_000),
        ("100000 threads", |test| test.threads = 100_000),
        ("4000000000 rounds", |test| test.pattern = Pattern::Random(4_000_000_000)),
        ("measurements", |test| {
            test.sizes = (1..=1000).map(Bytes).collect();
            test.repeats = 1000;
            test.qps = (1..=100).collect();
        }),
    ] {
        let error = of_plan(&change);
        assert!(error.contains(words) && error.starts_with("records.jsonl:1:"), "{words}: {error}");
    }
    let error = refused(&|event| {
        if let Event::HostUp { facts, .. } = event {
            let port = facts.rdma[0].ports[0].clone();
            facts.rdma[0].ports = vec![port; 3000];
        }
    });
    assert!(error.contains("RDMA ports") && error.starts_with("records.jsonl:2:"), "{error}");
}

/// The first event of a run as its journal has it.
pub fn started(journal: &Journal) -> Event {
    Event::Started {
        run_id: journal.run_id.clone(),
        plan: journal.plan.name.clone(),
        plan_hash: journal.plan_hash.clone(),
        resolved: Box::new(journal.plan.clone()),
        version: journal.version.clone(),
        controller: journal.controller.clone(),
        launcher: journal.launcher.clone(),
    }
}

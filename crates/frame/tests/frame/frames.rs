//! The frame's contract: columns, a row for every case, values, and Parquet there and back.

use std::{fs::File, iter, path::Path};

use polars::prelude::{DataFrame, DataType, ParquetReader, ParquetWriter, SerReader};
use railgauge_analysis::{
    frames::{FrameError, FrameFile},
    journal::{self, Journal, JournalEnd},
    results::results,
    row::Row,
    rows::{judged_rows, rows},
    status::Status,
    verdict::verdicts,
};
use railgauge_frame::{self as frame, Parquet};
use railgauge_model::journal::event::{Event, Line, Outcome, VERSION};
use railgauge_wire::{Failure, Kind, Measurement, Metric, Nanoseconds, NanosecondsI64, Stage};

use crate::support::{self, Scenario};

fn rows_of(text: &str) -> Vec<Row> {
    let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    rows(&journal, &results(&journal).unwrap())
}

/// What the frame has besides them decides nothing: rows of millions of cases are not kept for it.
#[test]
fn the_rows_that_are_judged_say_what_all_rows_say() {
    let lab = crate::repository("reports/sample-lab/records.jsonl");
    let made = [
        Scenario::healthy(8, 2),
        Scenario { slow: Some(2), sizes: vec![65536, 1 << 20], ..Scenario::healthy(8, 1) },
        Scenario { dies: Some(0), interrupted: true, ..Scenario::troubled(6, 2) },
        Scenario { in_turn: Some(0.9), ..Scenario::healthy(4, 1) },
    ];
    let texts = made.iter().map(Scenario::jsonl).chain([std::fs::read_to_string(lab).unwrap()]);
    for text in texts {
        let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
        let results = results(&journal).unwrap();
        let (all, judged) = (rows(&journal, &results), judged_rows(&journal, &results));
        assert!(judged.len() < all.len() && judged.iter().all(|row| all.contains(row)));
        let of = |rows: &[Row]| verdicts(&journal, &results, rows, Vec::new());
        assert!(of(&judged) == of(&all), "{}", journal.run_id);
    }
}

#[test]
fn every_planned_case_has_its_rows() {
    let scenario = Scenario { dies: Some(0), interrupted: true, ..Scenario::troubled(6, 2) };
    let text = scenario.jsonl();
    let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let rows = rows_of(&text);
    for case in &journal.cases {
        let metrics: Vec<Metric> = rows.iter().filter(|row| row.case == case.id).map(|row| row.metric).collect();
        assert!(metrics.len() >= 3, "case {}: {metrics:?}", case.id);
    }
    for row in &rows {
        assert!(row.value.is_some() || row.error.is_some(), "{row:?}");
        assert_eq!(row.value.is_some(), row.n > 0);
    }
    let error_of = |test: fn(&&Row) -> bool| rows.iter().find(test).and_then(|row| row.error.clone()).unwrap();
    let down = error_of(|row| &*row.dst_host == "gpu006" || &*row.src_host == "gpu006");
    assert!(down.starts_with("gpu006: connect: ssh: connect to host: No route to host (4 tries)"), "{down}");
    let died = error_of(|row| &*row.src_host == "gpu001" && row.value.is_none() && !row.dst_host.contains("006"));
    assert!(died.starts_with("gpu001: "), "{died}");
}

#[test]
fn the_value_is_the_median_of_the_repeats() {
    let scenario = Scenario { sizes: vec![65536], ..Scenario::healthy(2, 1) };
    let text = scenario.jsonl();
    let journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let mut values: Vec<f64> = journal
        .tries
        .iter()
        .filter(|attempt| attempt.case == 0)
        .map(|attempt| attempt.result.as_ref().unwrap())
        .map(|sample| sample.initiator.bytes.bits() / sample.initiator.elapsed.as_f64())
        .collect();
    values.sort_by(f64::total_cmp);
    let row = &rows_of(&text)[0];
    assert_eq!((row.value, row.n, row.unit()), (Some(values[1]), 3, "Gb/s"));
    assert_eq!((row.verified_bytes, row.wrong), (3 * 2 * 65536, 0));
    // 64 KiB over 200 Gb/s of RoCE v2 with a path MTU of 4096, as docs/methods.md works it by hand.
    let ceiling = 200.0 * 65536.0 / (65536.0 + 16.0 * 82.0 + 16.0);
    assert!(row.ceiling.is_some_and(|found| (found - ceiling).abs() < 1e-9), "{:?}, not {ceiling}", row.ceiling);
}

#[test]
fn a_later_outcome_replaces_an_earlier_failure_and_no_measurement_is_lost() {
    let scenario = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(2, 1) };
    let whole = scenario.lines();
    let failure = Failure::new(Stage::Measure, Kind::Deadline, "did not answer in 10 s").at("gpu002");
    let (case, repeat, started_at) = (0, 0, "x".into());
    let failed = Event::Outcome(Box::new(Outcome {
        case,
        repeat,
        started_at,
        link: None,
        link_line: None,
        result: Err(failure),
    }));
    let first = whole.iter().position(|line| matches!(line.event, Event::Outcome(_))).unwrap();
    let with = |at: usize, events: [Event; 2]| {
        let mut lines = whole.clone();
        lines.splice(at..at, events.map(|event| Line { at: "x".into(), event }));
        support::text(&lines)
    };
    let resumed = || Event::Resumed { unread: Vec::new() };
    let before = with(first, [failed.clone(), resumed()]);
    let after = with(whole.len(), [resumed(), failed.clone()]);
    let healthy = rows_of(&scenario.jsonl());
    assert_eq!(rows_of(&before)[0].value, healthy[0].value);
    assert_eq!(rows_of(&after)[0].value, healthy[0].value);
    assert_eq!(rows_of(&before)[0].error, None);
}

#[test]
fn both_directions_are_laid_over_each_other_by_the_clocks_of_their_own_pass() {
    let text = Scenario { sizes: vec![65536], repeats: 1, ..Scenario::healthy(2, 1) }.jsonl();
    let mut journal = journal::parse(text.as_bytes(), Path::new("records.jsonl")).unwrap();
    let one_way = rows_of(&text)[0].value.unwrap();
    let apart = 7_000_000_000;
    let attempt = journal.tries.iter_mut().find(|attempt| attempt.case == 0).unwrap();
    let sample = attempt.result.as_mut().unwrap();
    let started = sample.initiator.started + Nanoseconds(apart);
    sample.responder = Some(Box::new(Measurement { started, ..sample.initiator.clone() }));
    sample.offset = i64::try_from(apart).ok().map(|apart| Box::new(NanosecondsI64(apart)));
    journal.plan.tests[0].bidirectional = true;
    let value = |journal: &Journal| {
        let row = rows(journal, &results(journal).unwrap()).remove(0);
        (row.value, row.error.unwrap_or_default())
    };
    let (both, error) = value(&journal);
    assert!((both.unwrap() / one_way - 2.0).abs() < 1e-9, "{both:?} {error}");
    // The run was resumed, and the responder's host had been restarted: its clock counts from there.
    let responder = journal.cases[0].flow.to.host.to_string();
    journal.hosts.get_mut(&responder).unwrap().clock =
        Some((NanosecondsI64(-900_000_000_000_000), Nanoseconds(50_000)));
    assert_eq!(value(&journal).0, both);
    // Clocks that were not compared are no ground for a number.
    journal.tries.iter_mut().filter_map(|attempt| attempt.result.as_mut().ok()).for_each(|sample| sample.offset = None);
    let (none, error) = value(&journal);
    assert!(none.is_none() && error.contains("clocks were not compared"), "{none:?} {error}");
}

fn read_parquet(path: &Path) -> Result<DataFrame, FrameError> {
    frame::read_parquet(path, &frame::COLUMNS.map(|(name, _)| name))
}

#[test]
fn columns_and_types_are_the_contract() {
    let frame = frame::frame(&rows_of(&Scenario::troubled(4, 2).jsonl())).unwrap();
    let columns: Vec<(String, String)> =
        frame.schema().iter().map(|(name, kind)| (name.to_string(), kind.to_string())).collect();
    let wanted: Vec<(String, String)> =
        frame::COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), kind.to_string())).collect();
    assert_eq!(columns, wanted);
}

#[test]
fn parquet_comes_back_as_it_was_written_and_twice_the_same() {
    let rows = rows_of(&Scenario::troubled(4, 2).jsonl());
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a.parquet"), dir.path().join("b.parquet"));
    for path in [&first, &second] {
        let file = File::create(path).unwrap();
        Parquet.write(&mut iter::once(rows.clone()), &file, path).unwrap();
    }
    assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    assert!(read_parquet(&first).unwrap().equals_missing(&frame::frame(&rows).unwrap()));
}

#[test]
fn the_spread_of_the_repeats_stands_beside_their_median() {
    let rows = rows_of(&Scenario::troubled(4, 2).jsonl());
    for row in &rows {
        let of_value = [row.value_min.get(), row.value, row.value_max.get()];
        match row.n {
            0 => assert_eq!(of_value, [None; 3]),
            n => {
                let [low, value, high] = of_value.map(Option::unwrap);
                assert!(low <= value && value <= high && (n > 1 || low == high), "{row:?}");
            }
        }
    }
    assert!(rows.iter().any(|row| row.value_min.get() < row.value && row.value < row.value_max.get()));
}

#[test]
fn the_file_says_the_version_of_its_columns() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let rows = rows_of(&Scenario::healthy(2, 1).jsonl());
    Parquet.write(&mut iter::once(rows), &File::create(&path).unwrap(), &path).unwrap();
    let mut reader = ParquetReader::new(File::open(&path).unwrap());
    let metadata = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
    let version = metadata.iter().find(|one| one.key == frame::VERSION_KEY).and_then(|one| one.value.clone());
    assert_eq!(version, Some(frame::VERSION.to_string()));
}

/// The table of columns in docs/formats.md: name, type, and that unit and meaning are told.
#[test]
fn the_docs_list_every_column_with_its_type() {
    let docs = std::fs::read_to_string(crate::repository("docs/formats.md")).unwrap();
    let begin = docs.find("### Columns").unwrap();
    let of_row = |line: &str| -> Option<(String, String)> {
        let mut cells = line.strip_prefix("| `")?.trim_end_matches(" |").split(" | ");
        let (name, kind, about) = (cells.next()?.trim_end_matches('`'), cells.next()?, cells.next()?);
        assert!(!about.is_empty(), "{line}");
        Some((name.to_owned(), kind.to_owned()))
    };
    let lines = docs[begin..].lines().skip(1).take_while(|line| !line.starts_with('#'));
    let told: Vec<(String, String)> = lines.filter_map(of_row).collect();
    let word = |kind: &DataType| match kind {
        DataType::String => "text",
        DataType::UInt64 => "whole, 64 bit",
        DataType::UInt32 => "whole, 32 bit",
        DataType::Float64 => "real, 64 bit",
        DataType::Datetime(..) => "time, µs, UTC",
        other => panic!("{other}"),
    };
    let is: Vec<(String, String)> =
        frame::COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), word(kind).to_owned())).collect();
    assert_eq!(told, is);
}

/// The journal that docs/formats.md gives to whoever writes one: whole, of this version, with a value and a limit that it keeps.
#[test]
fn the_sample_of_the_docs_is_a_journal_of_this_version() {
    let path = crate::repository("docs/sample.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let version = format!("{{\"v\":{VERSION},");
    assert!(text.lines().all(|line| line.starts_with(&version)));
    let journal = journal::parse(text.as_bytes(), &path).unwrap();
    assert_eq!((journal.end.clone(), journal.damage.len(), journal.contradictions.len()), (JournalEnd::Finished, 0, 0));
    let results = results(&journal).unwrap();
    let rows = rows(&journal, &results);
    assert_eq!(rows.iter().find(|row| row.metric == Metric::Bandwidth).unwrap().value, Some(194.615_705_6));
    let verdicts = verdicts(&journal, &results, &rows, Vec::new());
    assert_eq!((verdicts.status, verdicts.verdicts.len()), (Status::Pass, 3));
}

#[test]
fn a_parquet_of_somebody_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.parquet");
    std::fs::write(&path, "not parquet").unwrap();
    let error = read_parquet(&path).unwrap_err().to_string();
    assert!(error.contains("x.parquet"), "{error}");
    let mut foreign = frame::frame(&rows_of(&Scenario::healthy(2, 1).jsonl())).unwrap();
    let _ = foreign.drop_in_place("wrong").unwrap();
    ParquetWriter::new(File::create(&path).unwrap()).finish(&mut foreign).unwrap();
    let error = read_parquet(&path).unwrap_err().to_string();
    assert!(error.ends_with("not a frame of railgauge: column `wrong` is missing"), "{error}");
}

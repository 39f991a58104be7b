#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use made::frame;

use super::{filter, like::like};

/// A frame of two runs' worth of rows, without a journal.
mod made {
    use crate::analysis::frame::Frame;
    use crate::analysis::row::{self, CaseColumns, CellColumns, Phase, Row};

    fn row(case: u64, host: &str, value: Option<f64>, started: &str) -> Row {
        let row = row::made(case);
        let of = CaseColumns {
            src_host: host.into(),
            started_at: started.parse().ok().into(),
            of: CellColumns {
                dst_gpu: (case == 2).then_some(1),
                phase: if case == 3 { Phase::Confirmation } else { Phase::Test },
                ..(*row.of.of).clone()
            }
            .into(),
            ..(*row.of).clone()
        };
        Row {
            of: of.into(),
            value,
            value_min: value.into(),
            value_max: value.map(|value| value + 2.0).into(),
            ceiling: row.ceiling.filter(|_| case != 3),
            error: value.is_none().then(|| "gpu03: measure: it's gone".into()),
            ..row
        }
    }

    pub(super) fn frame() -> Frame {
        let rows = [
            row(0, "gpu01", Some(390.0), "2026-11-25T03:00:00Z"),
            row(1, "gpu02", Some(350.0), "2026-11-26T03:00:00Z"),
            row(2, "gpu03", None, "never"),
            row(3, "login", Some(100.0), "2026-11-27T03:00:00Z"),
        ];
        crate::analysis::frame::frame(&rows).unwrap()
    }
}

/// The cases that a filter keeps.
fn kept(text: &str) -> Vec<usize> {
    let filter = filter(text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let keeps = filter.keeps(&frame()).unwrap();
    (0..keeps.len()).filter(|row| keeps[*row]).collect()
}

#[test]
fn filters_keep_the_rows_they_are_true_of() {
    for (text, wanted) in [
        ("value < 380", &[1, 3][..]),
        ("value <= 350 or value > 380", &[0, 1, 3]),
        ("test = \"write-bw\" and src_host = 'gpu02' and value < 380", &[1]),
        ("src_host != 'gpu01'", &[1, 2, 3]),
        ("src_host <> 'gpu01' AND NOT phase = 'confirmation'", &[1, 2]),
        ("value < 0.9 * ceiling", &[1]),
        ("(value - 10) / ceiling >= 0.95", &[0]),
        ("value_max - value_min = 2 and (value > 380 or value < 200)", &[0, 3]),
        ("-value < -380", &[0]),
        ("(value) > 380", &[0]),
        ("((value > 380))", &[0]),
        ("size_bytes >= 128KiB and size_bytes < 1MiB", &[1, 2, 3]),
        ("case_id in (0, 2, 7)", &[0, 2]),
        ("case_id not in (0, 2)", &[1, 3]),
        ("src_host in ('gpu01', 'login')", &[0, 3]),
        ("src_host like 'gpu0_'", &[0, 1, 2]),
        ("src_host not like 'gpu%'", &[3]),
        ("value is null", &[2]),
        ("value is not null and error is null", &[0, 1, 3]),
        ("error like '%it''s gone'", &[2]),
        ("src_host < 'gpu02'", &[0]),
        ("src_host = dst_host", &[]),
        ("started_at >= '2026-11-26'", &[1, 3]),
        ("'2026-11-26T00:00:00Z' > started_at", &[0]),
        ("value = 3.5e2", &[1]),
        ("1 = 1", &[0, 1, 2, 3]),
        ("dst_gpu = 1", &[2]),
    ] {
        assert_eq!(kept(text), wanted, "{text}");
    }
}

#[test]
fn what_is_null_is_neither_true_nor_false() {
    for (text, wanted) in [
        ("not value < 380", &[0][..]),
        ("value < 380 or src_host = 'gpu03'", &[1, 2, 3]),
        ("not (value < 380 and src_host = 'gpu03')", &[0, 1, 3]),
        ("value / (value - value) > 0", &[]),
        ("not dst_gpu = 1", &[]),
    ] {
        assert_eq!(kept(text), wanted, "{text}");
    }
}

#[test]
fn mistakes_are_told_at_their_place() {
    for (text, at, told) in [
        ("valu < 3", 0..4, "did you mean `value`?"),
        ("value < 3 and hots = 'a'", 14..18, "there is no column `hots`"),
        ("case = 1", 0..4, "did you mean `case_id`?"),
        ("src_host = 3", 0..12, "cannot be compared"),
        ("value = 'a'", 0..11, "cannot be compared"),
        ("value <", 7..7, "is missing"),
        ("value 3", 6..7, "a comparison is missing"),
        ("(value < 3", 10..10, "`)` is missing"),
        ("value < 3)", 9..10, "ends before this"),
        ("src_host = 'gpu", 11..15, "without an end"),
        ("value < 3kb", 9..11, "no unit"),
        ("value like '3%'", 0..5, "no text"),
        ("src_host in (1)", 13..14, "is text"),
        ("value in ('a')", 10..13, "is a number"),
        ("value in ()", 10..11, "is a number"),
        ("started_at > 'yesterday'", 13..24, "no time"),
        ("metric = 'bandwith'", 9..19, "did you mean 'bandwidth'?"),
        ("op in ('wirte')", 7..14, "did you mean 'write'?"),
        ("value ; 3", 6..7, "no part of a filter"),
        ("value is 3", 9..10, "`null` is missing"),
        ("", 0..0, "is missing"),
        ("src_host + 1 = 2", 9..10, "no comparison"),
    ] {
        let wrong = filter(text).unwrap_err();
        let words = wrong.to_string();
        assert_eq!(wrong.wrong.at, at, "{text}: {words}");
        assert!(words.contains(told), "{text}: {words}");
    }
}

#[test]
fn nothing_that_is_written_overflows_or_panics() {
    for text in ["(".repeat(100_000), "not ".repeat(100_000), "-".repeat(100_000), "1+".repeat(100_000)] {
        assert!(filter(&text).is_err());
    }
    assert!(filter(&format!("{}1 = 1{}", "(".repeat(60), ")".repeat(60))).is_ok());
    assert!(filter(&format!("value < 3{}", " and value < 3".repeat(400))).is_ok());
    for text in ["ä = 1", "value = 1e", "value = .", "value = 1.", "'", "\"", "value < 1e999", "über like 'x'", "é"]
    {
        let _ = filter(text).map_err(|wrong| wrong.to_string());
    }
}

#[test]
fn patterns() {
    for (text, pattern, is) in [
        ("gpu01", "gpu%", true),
        ("gpu01", "%01", true),
        ("gpu01", "g%0_", true),
        ("gpu01", "gpu", false),
        ("gpu01", "gpu01%", true),
        ("", "%", true),
        ("", "", true),
        ("", "_", false),
        ("aXbXc", "%X_", true),
        ("aXbX", "%X_", false),
        ("ää", "__", true),
        ("GPU", "gpu", false),
        (&"a".repeat(2_000), &"%a".repeat(500), true),
        (&"a".repeat(2_000), &("%a".repeat(500) + "b"), false),
    ] {
        assert_eq!(like(text, pattern), is, "{text} like {pattern}");
    }
}

//! No text makes the reader panic, and no short text makes it work long.

use std::{fs, path::Path};

use proptest::prelude::*;
use railgauge_model::plan::parse;

const START: &str = "name = \"limits\"\nlaunch = { via = \"local\" }\n";

fn read(text: &str) -> Result<railgauge_model::plan::Plan, String> {
    parse("plan.toml", text, Path::new("")).map(|(plan, _)| plan).map_err(|mistakes| mistakes.to_string())
}

/// Processor time of this thread in hundredths of a second: fields 14 and 15 of proc(5).
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
}

/// Within 20 s of processor time: generous for an unoptimised reader, and however busy the machine is.
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let before = ticks();
    let result = work();
    let took = ticks() - before;
    assert!(took < 2_000, "took {took} hundredths of a second");
    result
}

#[test]
fn ten_thousand_hosts_are_read_soon() {
    let names: Vec<String> = (1..=10_000).map(|index| format!("\"gpu{index:05}\"")).collect();
    let text = format!(
        "{START}[hosts]\nnames = [{}]\ngroups = {{ half = \"gpu[00001-05000]\" }}\n\
         [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\npattern = \"random\"\nrounds = 6\n\
         [[test]]\nop = \"write\"\nmetric = \"latency\"\npattern = \"ring\"\nhosts = \"half\"\n",
        names.join(", ")
    );
    let plan = soon(|| read(&text)).unwrap();
    assert_eq!((plan.hosts.len(), plan.tests[1].hosts.len()), (10_000, 5_000));
}

#[test]
fn bombs_are_refused_soon() {
    let test = "[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n";
    let groups: String = (0..3_000).map(|index| format!("g{index} = \"a[1-60000]\"\n")).collect();
    let words = "\"all\", ".repeat(50_000);
    let bombs = [
        (format!("{START}[hosts]\nnames = [{}]\n{test}", "\"a[1-60000]\",".repeat(1000)), "listed twice"),
        (format!("{START}[hosts]\nnames = \"a[1-60000]\"\n[hosts.groups]\n{groups}{test}"), "too long"),
        (
            format!("{START}[hosts]\nnames = \"a[1-60000]\"\ngroups.all = \"a[1-60000]\"\n{test}hosts = [{words}]\n"),
            "too long",
        ),
        (format!("{START}[hosts]\nnames = \"a[1-60000]\"\n{}", test.repeat(900)), "too long"),
        (format!("{START}[hosts]\nnames = \"a[1-9]\"\n{}", test.repeat(1001)), "1001 tests"),
        (format!("{START}[hosts]\nnames = \"a[1-9]\"\n{test}sizes = [{}]\n", "\"1..999 +1\",".repeat(9_000)), "twice"),
        (format!("a = {}", "[".repeat(100_000)), "recurs"),
    ];
    for (text, expected) in bombs {
        let said = soon(|| read(&text)).unwrap_err();
        assert!(said.contains(expected), "{expected}: {}", &said[..said.len().min(2000)]);
        assert!(said.len() < 2_000_000, "{} bytes of mistakes", said.len());
    }
}

/// Pieces of plans, right and wrong, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let keys = prop::sample::select(vec![
        "name", "seed", "via", "names", "groups", "op", "metric", "sizes", "qps", "measure", "rails", "pattern",
        "pairs", "between", "hosts", "expect", "knobs", "at_least", "match", "file", "env", "command", "zzz",
    ]);
    let values = prop::sample::select(vec![
        "\"a[1-3]\"",
        "\"write\"",
        "\"64..8MiB x2\"",
        "[]",
        "{}",
        "1",
        "-1",
        "1.5",
        "true",
        "[[\"a1\", \"a2\"]]",
        "\"\"",
        "{ a = \"a[1-2]\" }",
        "\"ssh\"",
        "\"bandwidth\"",
        "[\"a1\", 2]",
        "1979-05-27",
        "'''x\ny'''",
        "\"\\u00e9\"",
        "{ confidence = \"2%\" }",
        "\"between\"",
        "[0, 1]",
        "99999999999999999999999999",
    ]);
    let headers = prop::sample::select(vec![
        "[launch]",
        "[hosts]",
        "[hosts.groups]",
        "[[hosts.override]]",
        "[defaults]",
        "[[test]]",
        "[[test.expect]]",
        "[test.knobs]",
        "[launch.ssh]",
        "[test]",
    ]);
    prop_oneof![
        (keys, values).prop_map(|(key, value)| format!("{key} = {value}\n")),
        headers.prop_map(|h| format!("{h}\n"))
    ]
}

#[test]
fn what_defaults_must_not_hold_is_refused_and_not_inherited() {
    let text =
        format!("{START}hosts.names = \"a[1-4]\"\n[defaults]\nop = \"write\"\n[[test]]\nmetric = \"bandwidth\"\n");
    let said = read(&text).unwrap_err();
    assert!(said.contains("unknown key `op` in [defaults]") && said.contains("`op` is missing in [[test]]"), "{said}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_panic(text in ".{0,300}") {
        let _ = read(&text);
    }

    #[test]
    fn any_pieces_are_read_or_refused_without_panic(pieces in prop::collection::vec(pieces(), 0..30)) {
        let text = pieces.concat();
        let said = read(&text);
        prop_assert!(said.is_ok() || said.unwrap_err().contains("error: "));
    }

    #[test]
    fn any_value_of_a_key_is_read_or_refused_without_panic(
        key in prop::sample::select(vec!["sizes", "measure", "hosts", "pattern", "warm_up", "from", "rails"]),
        value in "[\\PC]{0,30}",
    ) {
        let value = toml::Value::String(value);
        let text = format!(
            "{START}hosts.names = \"a[1-4]\"\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n{key} = {value}\n"
        );
        let _ = read(&text);
    }
}

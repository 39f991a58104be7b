//! What the command shows, kept as snapshots under `snapshots/`.

use std::path::Path;

use railgauge_model::{
    plan::{self, Plan},
    schedule::{Inventory, schedule},
};
use railgauge_wire::{GigabitsPerSecond, Transport};

use super::{
    preview::{Preview, Seconds},
    rate,
    text::text,
};

/// Small enough to be checked by hand.
const SMALL: &str = r#"
name = "small"
seed = 7

[launch]
via = "local"

[hosts]
names = "a,b,c,d"
devices = ["mlx5_0", "mlx5_1"]

[[test]]
name = "bandwidth"
op = "write"
metric = "bandwidth"
transport = "verbs"
pattern = "tournament"
sizes = "64KiB..1MiB x4"
qps = [1, 4]
measure = "2s"
warm_up = "500ms"
repeats = 2

[[test]]
name = "counted"
op = "send"
metric = "latency"
transport = "tcp"
pattern = "many-to-one"
to = "b"
sizes = [64]
measure = "1000 iterations"
warm_up = "0s"
"#;

const LARGE: &str = r#"
name = "large"

[launch]
via = "ssh"

[hosts]
names = "gpu[0001-1024]"

[[test]]
name = "screen"
op = "write"
metric = "bandwidth"
transport = "verbs"
pattern = "tournament"
sizes = [1048576]
measure = "1s"
"#;

const COLLECTIVES: &str = r#"
name = "collectives"
launch = { via = "local" }
hosts = { names = "a,b,c,d", groups = { left = "a,b" } }

[[test]]
name = "all"
op = "all_reduce"
metric = "bandwidth"
transport = "nccl"
ranks_per_host = 8
sizes = "1MiB..64MiB x4"
datatype = ["f32", "bf16"]
env = { NCCL_ALGO = ["Ring", "Tree"] }

[[test]]
name = "halves"
op = "all_reduce"
metric = "bandwidth"
transport = "tcp"
groups = "halves"
sizes = "1MiB"
algorithm = ["ring", "auto"]

[[test]]
name = "pair"
op = "write"
metric = "bandwidth"
transport = "tcp"
pattern = "pairs"
pairs = [["a", "b"]]
measure = "10 iterations"
sizes = "64KiB"
"#;

fn parsed(source: &str) -> Plan {
    match plan::parse("plan.toml", source, Path::new("")) {
        Ok((plan, _)) => plan,
        Err(mistakes) => panic!("{}", mistakes.render(false)),
    }
}

fn with_preview<T>(source: &str, link_rate: Option<GigabitsPerSecond>, see: impl FnOnce(&Preview<'_>) -> T) -> T {
    let plan = parsed(source);
    let inventory = Inventory::of_plan(&plan);
    let schedule = schedule(&plan, &inventory).unwrap();
    see(&Preview::new(&plan, &inventory, &schedule, link_rate))
}

#[test]
fn text_of_a_small_plan() {
    insta::assert_snapshot!(with_preview(SMALL, Some(GigabitsPerSecond(100.0)), |preview| text(preview, true)));
}

#[test]
fn text_without_a_link_rate() {
    insta::assert_snapshot!(with_preview(SMALL, None, |preview| text(preview, false)));
}

#[test]
fn groups_of_collectives_are_no_pairs() {
    // Whatever the rate: what the hosts of a group send is not known, and must not look like nothing.
    insta::assert_snapshot!(with_preview(COLLECTIVES, Some(GigabitsPerSecond(100.0)), |preview| text(preview, true)));
}

#[test]
fn text_of_a_large_plan_is_cut() {
    let text = with_preview(LARGE, None, |preview| text(preview, true));
    assert!(text.lines().count() < 60, "{} lines", text.lines().count());
    insta::assert_snapshot!(text);
}

#[test]
fn every_time_without_a_link_rate_is_a_lower_bound() {
    // A test of 1 GiB took thirty times its windows.
    let many = LARGE.replace("1024", "0256");
    let adaptive = many.replace("\"1s\"", "{ confidence = \"2%\", at_least = \"1s\", at_most = \"10s\" }");
    for plan in [SMALL, &many, COLLECTIVES, &adaptive] {
        with_preview(plan, None, |preview| {
            // NCCL's own messages are in no estimate, whatever the rate.
            let linked = preview.tests.iter().filter(|test| test.test.transport != Transport::Nccl);
            let times: Vec<&Seconds> = linked.map(|test| &test.seconds).chain([&preview.seconds]).collect();
            assert!(times.len() > 1);
            let is_bound = |time: &&Seconds| time.longest_windows.is_none() && time.words.starts_with("at least ");
            assert!(times.iter().all(is_bound), "{times:#?}");
        });
    }
    with_preview(&adaptive, Some(GigabitsPerSecond(100.0)), |preview| {
        assert!(preview.seconds.longest_windows.is_some_and(|longest| longest > preview.seconds.at_least));
    });
}

#[test]
fn json_of_a_small_plan() {
    insta::assert_json_snapshot!(with_preview(SMALL, Some(GigabitsPerSecond(100.0)), |preview| serde_json::to_value(
        preview
    )
    .unwrap()));
}

#[test]
fn json_is_complete() {
    // More than the text has room for.
    with_preview(&LARGE.replace("1024", "0256"), None, |preview| {
        let json = serde_json::to_value(preview).unwrap();
        let rounds = json["tests"][0]["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 255);
        assert!(rounds.iter().all(|round| round["flows"].as_array().unwrap().len() == 128));
        assert_eq!(json["hosts"].as_array().unwrap().len(), 256);
        assert_eq!(json["cases"], 255 * 128);
    });
}

#[test]
fn link_rates() {
    assert_eq!(rate("100"), Ok(GigabitsPerSecond(100.0)));
    for wrong in ["0", "-1", "nan", "inf", "fast", "100 Gb/s"] {
        assert!(rate(wrong).is_err(), "{wrong}");
    }
}

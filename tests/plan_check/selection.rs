//! `--hosts`, `--test`, `--repeats`: what is left of a plan.

use std::path::PathBuf;

use railgauge_model::plan::{
    Loaded, Selection, load,
    model::{Pattern, Plan},
    subset::Subset,
};

const PLAN: &str = r##"
name = "part"
[launch]
via = "local"
[hosts]
names = "a[1-8]"
[hosts.groups]
left = "a[1-4]"
right = "a[5-8]"
[[hosts.override]]
match = "a8"
tcp = ["lo"]
[localise]
waive = ["a8", "right"]

[[test]]
name = "rounds"
op = "write"
metric = "bandwidth"
transport = "tcp"
pattern = "random"
rounds = 5
sizes = [4096]
measure = "20ms"
[[test.expect]]
metric = "bandwidth"
at_least = "1 Gbit/s"
group = "right"
[[test.expect]]
metric = "bandwidth"
at_least = "0.001 Gbit/s"

[[test]]
name = "to-the-last"
op = "write"
metric = "bandwidth"
transport = "tcp"
pattern = "many-to-one"
to = "a8"
sizes = [4096]
measure = "20ms"

[[test]]
name = "listed"
op = "write"
metric = "bandwidth"
transport = "tcp"
pattern = "pairs"
pairs = [["a1", "a2"], ["a2", "a8"]]
sizes = [4096]
measure = "20ms"

[[test]]
name = "sum"
op = "all_reduce"
metric = "latency"
transport = "tcp"
groups = "halves"
sizes = [4096]
measure = "20ms"
"##;

/// The plan in a file, so that it can be read again.
fn loaded(text: &str) -> (tempfile::TempDir, Loaded) {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("plan.toml");
    std::fs::write(&path, text).unwrap();
    let loaded = load(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    (directory, loaded)
}

fn words(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn selection(hosts: &[&str], tests: &[&str], repeats: Option<u32>) -> Selection {
    Selection { hosts: words(hosts), tests: words(tests), repeats }
}

fn subset(hosts: &[&str], tests: &[&str], repeats: Option<u32>) -> Result<Plan, String> {
    let (_directory, loaded) = loaded(PLAN);
    let narrowed = loaded.narrowed(&selection(hosts, tests, repeats)).map_err(|error| error.to_string())?;
    Ok(narrowed.plan)
}

fn said(plan: &Plan) -> (String, Vec<String>) {
    let subset = plan.subset.as_ref().expect("a part is recorded");
    (subset.words(), subset.left_out().collect())
}

#[test]
fn nothing_chosen_is_the_plan_itself() {
    let (_directory, whole) = loaded(PLAN);
    let plan = whole.plan.clone();
    assert_eq!(whole.narrowed(&Selection::default()).unwrap().plan, plan);
    assert_eq!(plan.subset, None);
}

#[test]
fn hosts_are_left_and_what_needs_others_is_left_out() {
    let plan = subset(&["a[1-3]"], &[], None).unwrap();
    let names: Vec<&str> = plan.hosts.iter().map(|host| host.name.as_str()).collect();
    assert_eq!(names, ["a1", "a2", "a3"]);
    let tests: Vec<&str> = plan.tests.iter().map(|test| test.name.as_str()).collect();
    assert_eq!(tests, ["rounds", "listed"]);
    // More rounds than three hosts have: all they have.
    assert_eq!(plan.tests[0].pattern, Pattern::Tournament);
    // Nothing of the group is there to be judged; the other demand stays.
    assert_eq!(plan.tests[0].expect.len(), 1);
    assert_eq!(plan.tests[1].pattern, Pattern::Pairs(vec![("a1".into(), "a2".into())]));
    assert_eq!(plan.groups.keys().collect::<Vec<_>>(), ["left"]);
    // What is known to be bad remains so, whichever hosts a night measures.
    assert_eq!(plan.localise.waive, loaded(PLAN).1.plan.localise.waive);
    let (words, left_out) = said(&plan);
    assert_eq!(words, "3 of 8 hosts (a[1-3])");
    assert_eq!(left_out.len(), 4, "{left_out:?}");
    assert!(left_out[0].starts_with("of test rounds is left out: the expectation on line "), "{left_out:?}");
    assert!(left_out[1].starts_with("test to-the-last is left out: a8 "), "{left_out:?}");
    assert_eq!(left_out[2], "of test listed is left out: 1 of its 2 pairs");
    assert!(left_out[3].starts_with("test sum is left out: 3 hosts "), "{left_out:?}");
}

#[test]
fn groups_tests_and_repeats() {
    let plan = subset(&["right", "a1"], &["sum", "rounds"], Some(7)).unwrap();
    assert_eq!(plan.hosts.len(), 5);
    assert_eq!(plan.tests.iter().map(|test| (test.name.as_str(), test.repeats)).collect::<Vec<_>>(), [("rounds", 7)]);
    let subset = plan.subset.unwrap();
    assert_eq!(subset.words(), "5 of 8 hosts (a[1,5-8]), 2 of 4 tests (rounds, sum), 7 repeats");
    assert_eq!(subset.left_out.len(), 1);
}

#[test]
fn what_is_not_there_is_said() {
    let wrong = |hosts: &[&str], tests: &[&str]| subset(hosts, tests, None).unwrap_err();
    assert_eq!(wrong(&["a9"], &[]).split(':').next(), Some("--hosts a9"));
    assert!(wrong(&["lefd"], &[]).contains("did you mean left?"));
    assert!(wrong(&["a[1-"], &[]).starts_with("--hosts a[1-: "));
    assert!(wrong(&[], &["round"]).contains("did you mean rounds?"));
    let nothing = wrong(&["a1"], &[]);
    for test in ["rounds", "to-the-last", "listed", "sum"] {
        assert!(nothing.contains(&format!("test {test} is left out")), "{nothing}");
    }
}

#[test]
fn interleaved_tests_keep_their_blocks_and_stand_alone_without_each_other() {
    let one = |name: &str, depth: u32| {
        format!(
            "[[test]]\nname = \"{name}\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"verbs\"\n\
             pattern = \"ring\"\nsizes = [4096]\nmeasure = \"20ms\"\nknobs = {{ depth = {depth} }}\n"
        )
    };
    let text = format!(
        "name = \"ab\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = \"a[1-3]\"\n{}{}\
         [[interleave]]\na = \"a\"\nb = \"b\"\nblocks = 6\n",
        one("a", 16),
        one("b", 32)
    );
    let (_directory, both) = loaded(&text);
    let both = both.narrowed(&selection(&["a[1-2]"], &[], Some(3))).unwrap().plan;
    assert_eq!((both.interleave.len(), both.tests[0].repeats), (1, 12));
    let (_directory, alone) = loaded(&text);
    let alone = alone.narrowed(&selection(&[], &["b"], Some(3))).unwrap().plan;
    assert_eq!((alone.interleave.len(), alone.tests.len(), alone.tests[0].repeats), (0, 1, 3));
}

#[test]
fn a_soak_goes_with_its_test() {
    let one =
        |name: &str, metric: &str| format!("[[test]]\nname = \"{name}\"\nop = \"write\"\nmetric = \"{metric}\"\n");
    let text = format!(
        "name = \"s\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = \"a[1-3]\"\n{}{}[soak]\nfor = \"1h\"\n",
        one("ping", "latency"),
        one("write", "bandwidth")
    );
    let soaks = |test: &str| {
        let (_directory, all) = loaded(&text);
        all.narrowed(&selection(&[], &[test], None)).unwrap().plan.soak.is_some()
    };
    assert_eq!((soaks("write"), soaks("ping")), (true, false));
}

#[test]
fn a_part_survives_the_journal() {
    let plan = subset(&["a[1-4]"], &["rounds"], Some(2)).unwrap();
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    let subset: Subset = serde_json::from_value(serde_json::to_value(plan.subset.unwrap()).unwrap()).unwrap();
    assert_eq!(subset.of_hosts, 8);
}

//! `railgauge bundle` with local agents: what is in the file, and what is not.

use std::{fs, path::Path, process::Output};

use crate::{
    fixture_of_kit::fixtures,
    railgauge::{Scene, program},
    read_kit::read,
};
use railgauge::kit::archive::{Item, Items, Manifest};
use serde_json::Value;

const TEST: &str = "[[test]]\nname = \"tcp\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                    sizes = \"4KiB..1MiB x4\"\nmeasure = \"5s\"\nrepeats = 3\n";

/// A collective with a secret in its environment, which no host without GPUs can do.
const COLLECTIVE: &str = "[[test]]\nname = \"nccl\"\nop = \"all_reduce\"\nmetric = \"bandwidth\"\ntransport = \"nccl\"\n\
                          sizes = \"1MiB\"\nenv = { NCCL_ALGO = [\"Ring\", \"Tree\"], TOKEN = [\"hunter3secret\", \"hunter4secret\"] }\n";

/// A plan with secrets in its environments, on hosts with telling names.
fn plan(scene: &Scene) -> std::path::PathBuf {
    let text = format!(
        "name = \"first-contact\"\ndescription = \"cluster of kungfu-lab\"\n[launch]\nvia = \"local\"\n[launch.env]\n\
         TOKEN = \"hunter2secret\"\n[hosts]\nnames = [\"tellurium[01-02]\"]\n{TEST}{COLLECTIVE}"
    );
    scene.write("plan.toml", &text)
}

fn kit(scene: &Scene, more: &[&str]) -> Output {
    let mut command = program();
    command.arg("bundle").arg(plan(scene)).arg("-o").arg(scene.path("x.tar.gz")).args(more);
    command.output().unwrap()
}

fn unpacked(path: &Path) -> (Manifest, Items) {
    read(fs::File::open(path).unwrap()).unwrap()
}

fn document(items: &Items, path: &str) -> Value {
    let Some(Item::File(bytes)) = items.get(path) else { panic!("{path} of {:?}", items.keys()) };
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn a_kit_has_facts_files_counters_and_a_run() {
    let scene = Scene::new();
    let output = kit(&scene, &["--json"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("Nothing is uploaded") && said.contains("does not read SSH keys"), "{said}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["hosts"], &answer["anonymized"]), (&2.into(), &false.into()), "{answer}");
    let (manifest, items) = unpacked(&scene.path("x.tar.gz"));
    assert_eq!(manifest.hosts.len(), 2);
    for file in [
        "README.txt",
        "run/records.jsonl",
        "run/records.parquet",
        "run/report.html",
        "run/facts.json",
        "hosts/tellurium01/facts.json",
        "hosts/tellurium02/tree/proc/sys/kernel/osrelease",
        "hosts/tellurium02/tree/sys/class/net/lo",
    ] {
        assert!(items.contains_key(file), "{file} of {:?}", items.keys().collect::<Vec<_>>());
    }
    // Short, and reported.
    assert!(manifest.plan.iter().any(|note| note.contains("every test once")), "{:?}", manifest.plan);
    assert_eq!(fixtures(&manifest, &items).unwrap().len(), 2);
    // TCP alone has no driver of RDMA that could be unknown to us.
    assert!(document(&items, "run/verdicts.json").get("drivers_never_run").is_none());
    // The environment of the plan is nobody's business, whatever else is.
    for (path, item) in &items {
        if let Item::File(bytes) = item {
            for secret in ["hunter2secret", "hunter3secret", "hunter4secret"] {
                assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret} in {path}");
            }
        }
    }
    assert!(manifest.left_out.iter().any(|left| left.what == "run/plan.toml"));
    // Environments that differ still do, and what sets NCCL is kept.
    let Item::File(records) = &items["run/records.jsonl"] else { panic!() };
    let records = String::from_utf8_lossy(records);
    for word in ["(left out 1)", "(left out 2)", "Ring", "Tree"] {
        assert!(records.contains(word), "{word}");
    }
    // A file that is there is not replaced.
    let again = kit(&scene, &[]);
    assert_eq!(again.status.code(), Some(2), "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn an_anonymized_kit_names_no_host_and_no_address() {
    let scene = Scene::new();
    let output = kit(&scene, &["--anonymize"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (manifest, items) = unpacked(&scene.path("x.tar.gz"));
    assert!(manifest.anonymized);
    assert_eq!(manifest.hosts.keys().collect::<Vec<_>>(), ["host-1", "host-2"]);
    // What must not be there: names, and every address and MAC address of this machine.
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut originals: Vec<String> =
        ["tellurium", "kungfu", "hunter2secret", "hunter3secret", "hunter4secret"].map(str::to_owned).into();
    let hostname = read("/proc/sys/kernel/hostname").trim().to_owned();
    originals.extend((hostname.len() > 5 && hostname != "localhost").then_some(hostname));
    for entry in fs::read_dir("/sys/class/net").unwrap().flatten() {
        let mac = read(entry.path().join("address").to_str().unwrap()).trim().to_owned();
        originals.extend((!mac.is_empty() && mac != "00:00:00:00:00:00").then_some(mac));
    }
    // The file itself, its paths and its manifest as well: it is unpacked by another program.
    let folder = scene.path("unpacked");
    fs::create_dir(&folder).unwrap();
    let tar = std::process::Command::new("tar").arg("xzf").arg(scene.path("x.tar.gz")).arg("-C").arg(&folder).status();
    assert!(tar.unwrap().success());
    let mut found = Vec::new();
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let content = match (kind.is_symlink(), kind.is_dir()) {
                (true, _) => fs::read_link(&path).unwrap().to_string_lossy().into_owned(),
                (_, true) => {
                    folders.push(path.clone());
                    String::new()
                }
                _ => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            };
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.extend(
                originals
                    .iter()
                    .filter(|one| content.contains(*one) || name.contains(*one))
                    .map(|one| format!("{one} in {path:?}")),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
    // Nobody but its owner reads the kit, and the table beside it.
    let mode =
        |path: &Path| std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions()) & 0o777;
    let table = scene.path("x.tar.gz.names.tsv");
    assert_eq!((mode(&scene.path("x.tar.gz")), mode(&table)), (0o600, 0o600));
    assert!(fs::read_to_string(&table).unwrap().contains("name\ttellurium01\thost-1\n"));
    assert!(!items.keys().any(|path| path.ends_with(".tsv")));
    assert_eq!(fixtures(&manifest, &items).unwrap().len(), 2);
}

#[test]
fn a_folder_that_is_not_there_is_said_before_any_host_is_contacted() {
    let scene = Scene::new();
    let mut command = program();
    command.arg("bundle").arg(plan(&scene)).arg("-o").arg(scene.path("gone/x.tar.gz"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("gone") && said.contains("choose another file with -o"), "{said}");
    assert!(!said.contains("kit reads from each host"), "{said}");
}

/// The records cannot be read once such names are replaced: they are left out, and the name leaks nowhere.
#[test]
fn records_are_left_out_if_a_host_has_a_name_that_is_a_word_of_theirs() {
    let scene = Scene::new();
    let text = format!("name = \"words\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"write\", \"host\"]\n{TEST}");
    let path = scene.write("words.toml", &text);
    let mut command = program();
    command.arg("bundle").arg(path).arg("-o").arg(scene.path("x.tar.gz")).arg("--anonymize");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let (manifest, items) = unpacked(&scene.path("x.tar.gz"));
    assert_eq!(manifest.hosts.keys().collect::<Vec<_>>(), ["host-1", "host-2"]);
    assert!(items.contains_key("hosts/host-1/facts.json") && items.contains_key("hosts/host-2/tree.json"));
    assert!(manifest.left_out.iter().any(|left| left.what == "run/"), "{manifest:?}");
    assert!(!items.keys().any(|path| path.starts_with("run/")));
}

/// A host that is called by a word which no record has as a key or a kind.
#[test]
fn hosts_may_have_names_that_are_words() {
    let scene = Scene::new();
    let text = format!("name = \"words\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"storage\", \"a\"]\n{TEST}");
    let path = scene.write("words.toml", &text);
    let mut command = program();
    command.arg("bundle").arg(path).arg("-o").arg(scene.path("x.tar.gz")).arg("--anonymize");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, items) = unpacked(&scene.path("x.tar.gz"));
    let Item::File(records) = &items["run/records.jsonl"] else { panic!() };
    let records = String::from_utf8_lossy(records);
    assert!(records.contains("\"host\":\"host-1\"") && !records.contains("storage"), "{records}");
    let facts = document(&items, "run/facts.json");
    assert_eq!(facts.as_object().unwrap().keys().collect::<Vec<_>>(), ["host-1", "host-2"]);
}

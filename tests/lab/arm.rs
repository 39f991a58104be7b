//! Hosts of two architectures in one run: two of x86_64 and an emulated Arm host, with Soft-RoCE between them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    lab::{self, Shape, borrow_shaped, text},
    railgauge::{self, Scene},
};

/// Exit code of `./dist --agent` where something for it cannot be fetched.
const UNAVAILABLE: i32 = 77;
/// The Arm host; the lab's others are x86.
const ARM: u32 = 3;
/// From whom to whom, of two architectures in both directions and of one.
const PAIRS: [[&str; 2]; 5] =
    [["lab1", "lab3"], ["lab3", "lab1"], ["lab2", "lab3"], ["lab3", "lab2"], ["lab1", "lab2"]];

/// A folder with the agents of both architectures, as a release has them, and the file of the first. `None`, said and noted,
/// where what the agent for aarch64 is built with cannot be fetched.
fn agents(scene: &Scene) -> Option<PathBuf> {
    let folder = scene.path("bin");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut dist = Command::new(root.join("dist"));
    // Libraries of this test are none of the compiler's.
    dist.args(["--agent", "aarch64", "-o"]).arg(&folder).env_remove("LD_LIBRARY_PATH");
    let built = dist.output().unwrap();
    let said = text(&built.stderr);
    if built.status.code() == Some(UNAVAILABLE) {
        lab::skipped(said.lines().last().unwrap_or("no agent for aarch64"));
        return None;
    }
    assert!(built.status.success(), "{said}");
    let beside = Path::new(env!("CARGO_BIN_EXE_railgauge")).with_file_name("railgauge-agent");
    let shipped = beside.with_file_name("../agent/railgauge-agent");
    let file = folder.join("railgauge-agent");
    fs::copy(if shipped.exists() { shipped } else { beside }, &file).unwrap();
    Some(file)
}

fn test(name: &str, op: &str, metric: &str, sizes: &str, window: &str) -> String {
    format!(
        "[[test]]\nname = {name:?}\nop = {op:?}\nmetric = {metric:?}\nsizes = {sizes}\nmeasure = \
         {window:?}\npattern = \"pairs\"\npairs = {PAIRS:?}\n"
    )
}

#[test]
#[ignore = "slow: an emulated Arm host, and an agent that is built for it"]
fn one_run_measures_hosts_of_both_architectures_with_the_agent_of_each() {
    lab::sound(|| {
        let scene = Scene::new();
        let Some(agent) = agents(&scene) else { return };
        let shape = Shape { hosts: 3, nics: 1, arm: Some(ARM), kernel: None };
        let Some(lab) = borrow_shaped(shape) else { return };
        let operations = ["write", "read", "send"];
        let bandwidth = operations.map(|op| test(op, op, "bandwidth", "[\"4KiB\", \"64KiB\"]", "200ms"));
        let latency = operations.map(|op| test(&format!("{op}-latency"), op, "latency", "8", "20 iterations"));
        // Here the processor looks at the memory that the other host writes to, of which each architecture has its own rules.
        let polled = test("polled", "write", "latency", "8", "20 iterations") + "knobs = { completion = \"poll\" }\n";
        let plan = format!(
            r#"
            name = "two-architectures"
            [launch]
            via = "ssh"
            timeout = "60s"
            [launch.ssh]
            config = "{}"
            [hosts]
            names = ["lab[1-3]"]
            devices = ["rxe0"]
            [localise]
            waive = ["all"]
            [defaults]
            warm_up = "1ms"
            deadline = "60s"
            [defaults.knobs]
            completion = "events"
            timeout = 20
            {}{}{polled}
            "#,
            lab.ssh_config().display(),
            bandwidth.concat(),
            latency.concat()
        );
        let mut command = railgauge::program();
        command.env("RAILGAUGE_AGENT", agent).args(["run", "-o"]).arg(scene.run_directory());
        command.arg(scene.write("plan.toml", &plan));
        scene.spawn(command, "run").end().expect(0);

        let (results, rows) = (scene.results(), scene.results().rows());
        // Three operations, with two sizes of bandwidth and one of latency, and one latency more.
        let cases = PAIRS.len() * (3 * 3 + 1);
        assert_eq!((results.planned().len(), results.measured().len()), (cases, cases));
        for row in &rows {
            assert!(row.value.is_some_and(f64::is_finite) && row.error.is_none(), "{row:?}");
            assert!(row.verified > 0 && row.wrong == 0, "{row:?}");
            assert_eq!((row.transport.as_str(), row.link_layer.as_str()), ("verbs-rc", "roce-v2"), "{row:?}");
        }
        let seen: BTreeSet<_> =
            rows.iter().map(|row| (row.test.as_str(), row.src.as_str(), row.dst.as_str())).collect();
        assert_eq!(seen.len(), PAIRS.len() * 7, "{seen:?}");
        let verified: BTreeSet<_> = rows.iter().map(|row| row.case).collect();
        assert_eq!(verified, results.planned());

        let facts: Value = serde_json::from_str(&lab::read(&results.path("facts.json"))).unwrap();
        for (host, architecture) in [("lab1", "x86_64"), ("lab2", "x86_64"), ("lab3", "aarch64")] {
            assert_eq!(facts[host]["architecture"], architecture, "{:#}", facts[host]);
        }
        assert!(results.outcomes().iter().all(|outcome| outcome["link"]["software"] == true));
    });
}

/// What the lab takes for the kernel in a file of these bytes, as a word: `same` as the Image made here, or the error.
const KERNELS: &str = r#"
import gzip, lzma, struct
from railgauge_lab.architecture import ARM
from railgauge_lab.boot import bootable
from railgauge_lab.errors import LabError
image = bytes(56) + b"ARM\x64" + bytes(range(256)) * 40
def efi(packed):
    return b"MZ\0\0zimg" + struct.pack("<II", 512, len(packed)) + bytes(496) + packed + b"the rest of the program"
for file in [image, gzip.compress(image), efi(gzip.compress(image)), efi(lzma.compress(image)), bytes(4096),
             gzip.compress(bytes(4096))]:
    try:
        print("same" if bootable(file, ARM) == image else "another")
    except LabError as error:
        print(type(error).__name__)
"#;

#[test]
fn the_kernel_of_an_arm_host_is_found_however_it_is_packed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new("python3");
    python.args(["-c", KERNELS]).env("PYTHONPATH", root.join("lab")).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = python.output().unwrap();
    let words: Vec<_> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(words, ["same", "same", "same", "same", "LabError", "LabError"], "{}", text(&output.stderr));
}

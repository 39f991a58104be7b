//! The three guides as a reader follows them: every block that is to be copied is given to a shell, in order, on hosts that are
//! processes of this machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::railgauge::{self, Scene};

/// Hosts of the guides, and those of this machine in their place: even in number, so that pairs leave nobody out. One run a side in
/// place of four: the test is about the commands.
const HOSTS: [(&str, &str); 4] = [
    ("for n in 1 2 3 4;", "for n in 1;"),
    ("'gpu[001-016]'", "--via local 'node[1-4]'"),
    ("'gpu[001-004]'", "--via local 'node[1-4]'"),
    ("--hosts 'gpu[005-008]'", "--hosts 'node[1-4]'"),
];

/// The blocks of a guide; what follows as a reference is not copied in order.
fn blocks(guide: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(format!("{guide}.md"));
    let text = fs::read_to_string(path).unwrap();
    let steps = text.split("\n## Reference\n").next().unwrap_or_default();
    let (mut blocks, mut block) = (Vec::new(), None::<String>);
    for line in steps.lines().map(str::trim_start) {
        match (&mut block, line) {
            (None, "```sh") => block = Some(String::new()),
            (Some(lines), "```") => {
                blocks.push(std::mem::take(lines));
                block = None;
            }
            (Some(lines), line) => *lines += &format!("{line}\n"),
            (None, _) => {}
        }
    }
    blocks
}

/// A folder in which a reader works, with railgauge on the PATH.
struct Reader {
    scene: Scene,
    path: String,
}

impl Reader {
    fn new() -> Self {
        let scene = Scene::new();
        let programs: PathBuf = scene.path("bin");
        fs::create_dir(&programs).unwrap();
        let program = railgauge::program();
        let agent = program.get_envs().find(|(name, _)| *name == "RAILGAUGE_AGENT").and_then(|(_, value)| value);
        let set =
            agent.map(|path| format!("export RAILGAUGE_AGENT='{}'\n", path.to_str().unwrap())).unwrap_or_default();
        let script = format!("#!/bin/sh\n{set}exec '{}' \"$@\"\n", program.get_program().to_str().unwrap());
        let file = programs.join("railgauge");
        fs::write(&file, script).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&file).status().unwrap().success());
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        Self { scene, path }
    }

    /// Gives a block to a shell. Its exit code, and what it said.
    fn follow(&self, block: &str) -> (i32, String) {
        let here = HOSTS.iter().fold(block.to_owned(), |block, (theirs, ours)| block.replace(theirs, ours));
        // All lines are followed, whatever one of them says of the hosts; the gravest code counts.
        let lines = here.lines().map(|line| format!("{line} || code=$((code > $? ? code : $?))\n")).collect::<String>();
        let output = Command::new("bash")
            .args(["-c", &format!("code=0\n{lines}exit $code")])
            .current_dir(self.scene.path(""))
            .env("PATH", &self.path)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code().unwrap_or(-1), format!("$ {here}{said}"))
    }

    /// Follows a whole guide. A command that measures or judges may find something (1) or too little (3) on a busy machine: it is never
    /// misunderstood, and never unable.
    #[track_caller]
    fn guide(&self, name: &str) -> String {
        let mut all = String::new();
        let blocks = blocks(name);
        assert!(blocks.len() >= 3, "{name} has {} blocks", blocks.len());
        for block in blocks {
            let (code, said) = self.follow(&block);
            let judges = ["run ", "trend ", "compare ", "status ", "signoff "].iter().any(|verb| block.contains(verb));
            assert!(code == 0 || judges && [1, 3].contains(&code), "{name}: exit code {code}\n{said}");
            all += &said;
        }
        all
    }

    #[track_caller]
    fn has(&self, file: &str) {
        let path = self.scene.path(file);
        assert!(fs::metadata(&path).is_ok_and(|data| data.len() > 0), "{file} was not written");
    }
}

#[test]
fn a_cluster_is_accepted_and_a_change_of_it_compared() {
    let reader = Reader::new();
    reader.guide("accept");
    reader.has("runs/acceptance/report.html");
    reader.has("acceptance.html");
    // The second part of the other guide measures the plan of this one.
    let said = reader.guide("compare");
    reader.has("runs/tuning/report.html");
    let answers = ["improved", "equivalent", "regressed", "undecided", "too noisy"];
    assert!(answers.iter().any(|answer| said.contains(answer)), "{said}");
}

#[test]
fn a_cluster_is_watched() {
    let reader = Reader::new();
    let said = reader.guide("watch");
    reader.has("baseline.json");
    reader.has("runs/nightly/20261126/verdicts.json");
    reader.has("runs/nightly/20261127-repaired/verdicts.json");
    reader.has("runs/nightly/index.html");
    // One night is no history, and that is said.
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |behind: &str| {
        let before = words.split_once(behind).unwrap_or_else(|| panic!("no {behind:?} in {said}")).0;
        before.rsplit(' ').next().unwrap().parse::<usize>().unwrap()
    };
    assert_eq!(number(" series monitored"), number(" are too young") + number(" are of single pairs"), "{said}");
}

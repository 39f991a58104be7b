//! railgauge as its users have it: the program, run to its end or watched while it runs, and what it leaves behind.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use polars::prelude::{AnyValue, DataFrame, ParquetReader, SerReader};
use serde_json::{Value, json};

/// A folder for one test: its plan, its run directory, what railgauge said.
pub struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn run_directory(&self) -> PathBuf {
        self.path("run")
    }

    /// Writes a file into the folder and returns its path.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Starts `railgauge run PLAN -o RUN`.
    pub fn start(&self, plan: &Path) -> Running {
        let mut command = program();
        command.args(["run", "-o"]).arg(self.run_directory()).arg(plan);
        self.spawn(command, "run")
    }

    /// Starts `railgauge run --resume RUN`.
    pub fn resume(&self) -> Running {
        let mut command = program();
        command.args(["run", "--resume"]).arg(self.run_directory());
        self.spawn(command, "resume")
    }

    /// Starts any command that writes into the run directory; what it says goes to files called `name`.
    pub fn spawn(&self, mut command: Command, name: &str) -> Running {
        let (out, err) = (self.path(&format!("{name}.out")), self.path(&format!("{name}.err")));
        command.stdin(Stdio::null()).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Running { child: command.spawn().unwrap(), out, err, results: Results { directory: self.run_directory() } }
    }

    pub fn results(&self) -> Results {
        Results { directory: self.run_directory() }
    }
}

/// The program under test.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_railgauge"));
    command.env("NO_COLOR", "1");
    // Where no agent was built for hosts, the one of this build serves those of this machine.
    let built = Path::new(env!("CARGO_BIN_EXE_railgauge")).with_file_name("railgauge-agent");
    let shipped = built.with_file_name("../agent/railgauge-agent");
    if std::env::var_os("RAILGAUGE_AGENT").is_none() && !shipped.exists() && built.exists() {
        command.env("RAILGAUGE_AGENT", built);
    }
    command
}

/// A run under way.
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
    results: Results,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The numbers of its children, whichever of its threads started them.
    pub fn children(&self) -> Vec<u32> {
        let listed = Command::new("pgrep").args(["-P", &self.pid().to_string()]).output().unwrap().stdout;
        String::from_utf8(listed).unwrap().lines().map(|pid| pid.parse().unwrap()).collect()
    }

    /// Waits until so many cases have an outcome in the journal.
    pub fn wait_for_outcomes(&mut self, count: usize) {
        self.wait_for("outcomes", |run| run.results.outcomes().len() >= count);
    }

    /// Waits until a round of a test has begun.
    pub fn wait_for_round(&mut self, test: &str) {
        self.wait_for(test, |run| run.results.journal().iter().any(|line| line["event"]["Round"]["test"] == test));
    }

    /// Waits until it has said these words.
    pub fn wait_for_words(&mut self, words: &str) {
        self.wait_for(words, |run| run.said().contains(words));
    }

    /// Waits until something is so, which it is before the end.
    fn wait_for(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is_so(self) {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("the run ended ({status}) before {what}:\n{}", self.said());
            }
            assert!(Instant::now() < deadline, "no {what} within two minutes:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Sends it a signal.
    pub fn send(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.pid().to_string()]).status().unwrap().success());
    }

    /// Sends it a signal again and again until it ends: one that comes before the one before was heard counts for nothing.
    pub fn send_until_end(mut self, signal: &str) -> Ended {
        while self.child.try_wait().unwrap().is_none() {
            self.send(signal);
            std::thread::sleep(Duration::from_millis(100));
        }
        self.end()
    }

    /// Ends it as nothing can prevent.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> Ended {
        let deadline = Instant::now() + Duration::from_secs(600);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                panic!("the run does not end:\n{}", self.said());
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        Ended { status, said: self.said() }
    }

    fn said(&self) -> String {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        format!("--- stdout\n{}\n--- stderr\n{}", read(&self.out), read(&self.err))
    }
}

/// A run that ended.
pub struct Ended {
    pub status: ExitStatus,
    pub said: String,
}

impl Ended {
    /// Demands an exit code; shows what was said if it is another.
    #[track_caller]
    pub fn expect(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "exit code\n{}", self.said);
    }

    /// Demands words on stdout or stderr.
    #[track_caller]
    pub fn says(&self, words: &str) {
        assert!(self.said.contains(words), "nothing is said of `{words}`\n{}", self.said);
    }
}

/// A run directory.
pub struct Results {
    directory: PathBuf,
}

/// A row of the frame, with the columns that tests look at.
#[derive(Debug, Clone)]
pub struct Row {
    pub test: String,
    pub case: u64,
    pub metric: String,
    pub value: Option<f64>,
    pub size: u64,
    pub qps: u64,
    pub transport: String,
    pub link_layer: String,
    pub gpu_path: String,
    pub src: String,
    pub dst: String,
    pub src_device: String,
    pub dst_device: String,
    /// Memory of each end, with the number of its GPU.
    pub memory: [(String, Option<u64>); 2],
    pub verified: u64,
    pub wrong: u64,
    pub error: Option<String>,
    pub phase: String,
    pub env: String,
    pub ceiling: Option<f64>,
}

impl Row {
    pub fn touches(&self, host: &str) -> bool {
        self.src == host || self.dst == host
    }
}

impl Results {
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Complete lines of the journal, with whole cases in place of tables and with each outcome's link in it.
    pub fn journal(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("records.jsonl")).unwrap_or_default();
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut links: BTreeMap<u64, Value> = BTreeMap::new();
        let whole = |text: &str| {
            let mut line: Value = serde_json::from_str(text).unwrap();
            let number = line["n"].as_u64().unwrap();
            for (kind, event) in line["event"].as_object_mut().into_iter().flatten() {
                match kind.as_str() {
                    "Planned" | "Confirming" => event["cases"] = whole_cases(&event["cases"]),
                    "Link" => _ = links.insert(number, event.clone()),
                    "Outcome" => {
                        with_zeros(event);
                        let told = event["link_line"].as_u64().and_then(|line| links.get(&line).cloned());
                        event["link"] = told.unwrap_or_default();
                    }
                    _ => {}
                }
            }
            line
        };
        complete.lines().map(whole).collect()
    }

    /// Every outcome of the journal, in order.
    pub fn outcomes(&self) -> Vec<Value> {
        self.journal().iter().filter_map(|line| line["event"].get("Outcome").cloned()).collect()
    }

    /// Numbers of the planned cases that were measured, and how often. Further cases that confirm a suspect are left out:
    /// whether hosts that share two cores are suspect is chance.
    pub fn measured(&self) -> BTreeMap<u64, usize> {
        let planned = self.planned();
        let mut count = BTreeMap::new();
        for outcome in self.outcomes().iter().filter(|outcome| outcome["result"].get("Ok").is_some()) {
            *count.entry(outcome["case"].as_u64().unwrap()).or_insert(0) += 1;
        }
        count.retain(|case, _| planned.contains(case));
        count
    }

    /// Numbers of the cases that were planned.
    pub fn planned(&self) -> BTreeSet<u64> {
        self.planned_cases().into_keys().collect()
    }

    /// The cases that were planned, by their number.
    pub fn planned_cases(&self) -> BTreeMap<u64, Value> {
        let journal = self.journal();
        let planned = journal.iter().find_map(|line| line["event"].get("Planned")).expect("nothing was planned");
        let cases = planned["cases"].as_array().unwrap().iter();
        cases.map(|case| (case["id"].as_u64().unwrap(), case.clone())).collect()
    }

    /// The frame, read from its file by polars and not by railgauge.
    pub fn rows(&self) -> Vec<Row> {
        let file = File::open(self.path("records.parquet")).unwrap();
        let frame = ParquetReader::new(file).finish().unwrap();
        (0..frame.height()).map(|at| row(&frame, at)).collect()
    }

    /// verdicts.json.
    pub fn verdicts(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path("verdicts.json")).unwrap()).unwrap()
    }

    /// Cases that nothing speaks against but segments that TCP sent again, as it may on busy hosts: their number, or the bytes
    /// that passed the interface twice.
    pub fn sent_again(&self) -> BTreeSet<u64> {
        let verdicts = self.verdicts();
        let troubles = verdicts["troubles"].as_array().unwrap().iter();
        let again = |trouble: &&Value| {
            let [against, counters] =
                ["against", "counters"].map(|list| trouble[list].as_array().cloned().unwrap_or_default());
            let segments = |one: &Value| one["doubt"] == "loss" && one["counter"] == "tcp/RetransSegs";
            let explained = |one: &Value| segments(one) || one["doubt"] == "foreign-bytes";
            counters.iter().any(|one| one[1] == "tcp/RetransSegs") && against.iter().all(explained)
        };
        troubles.filter(again).map(|trouble| trouble["case"].as_u64().unwrap()).collect()
    }

    /// report.html.
    pub fn report(&self) -> String {
        fs::read_to_string(self.path("report.html")).unwrap()
    }
}

/// An outcome with the zeros that a journal leaves out.
fn with_zeros(outcome: &mut Value) {
    let object = outcome.as_object_mut().unwrap();
    object.entry("repeat").or_insert(0.into());
    let Some(sample) = outcome.pointer_mut("/result/Ok") else { return };
    let zero = |checked: &mut Value| _ = checked.as_object_mut().unwrap().entry("wrong").or_insert(0.into());
    zero(&mut sample["checked"]);
    for rank in sample["ranks"].as_array_mut().into_iter().flatten() {
        rank.get_mut("checked").map(zero);
    }
}

/// A table of cases as a list of them.
fn whole_cases(table: &Value) -> Value {
    let place = |list: &str, at: &Value| table[list][at.as_u64().unwrap() as usize].clone();
    let case = |(id, row): (u64, &Value)| {
        let row = row.as_array().unwrap();
        let members: Vec<Value> = row[5..].iter().map(|member| place("ports", member)).collect();
        let flow = json!({ "from": place("ports", &row[3]), "to": place("ports", &row[4]), "members": members });
        let [test, cell] = [place("tests", &row[0]), place("cells", &row[2])];
        json!({ "id": id, "test": test, "round": row[1], "cell": cell, "flow": flow })
    };
    (table["first"].as_u64().unwrap()..).zip(table["rows"].as_array().unwrap()).map(case).collect()
}

fn row(frame: &DataFrame, at: usize) -> Row {
    let cell = |column: &str| frame.column(column).unwrap().get(at).unwrap();
    let text = |column: &str| cell(column).get_str().unwrap_or_default().to_owned();
    let number = |column: &str| cell(column).extract::<u64>().unwrap();
    let some = |column: &str| (!matches!(cell(column), AnyValue::Null)).then(|| cell(column));
    Row {
        test: text("test"),
        case: number("case_id"),
        metric: text("metric"),
        value: some("value").map(|value| value.extract::<f64>().unwrap()),
        size: number("size_bytes"),
        qps: number("qps"),
        transport: text("transport"),
        link_layer: text("link_layer"),
        gpu_path: text("gpu_path"),
        src: text("src_host"),
        dst: text("dst_host"),
        src_device: text("src_device"),
        dst_device: text("dst_device"),
        memory: ["src", "dst"].map(|end| {
            let gpu = some(&format!("{end}_gpu")).map(|gpu| gpu.extract().unwrap());
            (text(&format!("{end}_memory")), gpu)
        }),
        verified: number("verified_bytes"),
        wrong: number("wrong"),
        error: some("error").map(|_| text("error")),
        phase: text("phase"),
        env: text("env"),
        ceiling: some("ceiling").map(|value| value.extract::<f64>().unwrap()),
    }
}

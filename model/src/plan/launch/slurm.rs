use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::way::Way;
use crate::plan::{
    Key, Section, Table,
    format::{key, keys},
};

static SLURM: Section = Section {
    header: "[launch.slurm]",
    about: "What `railgauge submit` requests; inside an allocation nothing of it is used. Only with `via = \"slurm\"`.",
    keys: keys! {
        "partition": Text, Means("Slurm's"), "Partition (`sbatch --partition`).";
        "account": Text, Means("Slurm's"), "Account that is charged (`sbatch --account`).";
        "time": Time("1min", "720h"), Means("that of the partition"),
            "Time limit of the job (`sbatch --time`). A minute or two before it the run ends as if interrupted, and \
             can be resumed; a limit up to two minutes ends it itself.";
        "deadline": Text, Means("none"),
            "When the job must have ended (`sbatch --deadline`), as Slurm writes it: `06:00`, `now+4hours`.";
        "exclusive": Flag, Is("true"),
            "Whether no other job may run on the nodes (`sbatch --exclusive`), and all of their memory is requested.";
        "gres": Text, Means("none"),
            "GPUs and other resources of every node (`sbatch --gres`), such as `gpu:8`: steps see only GPUs that \
             were requested, even with `exclusive`.";
        "options": Texts, Means("none"),
            "Further options of sbatch, each one word: `[\"--qos=high\", \"--reservation=nightly\"]`. Those that \
             conflict with railgauge are refused.";
    },
};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Slurm {
    pub partition: Option<String>,
    /// That of the user if `None`.
    pub account: Option<String>,
    /// That of the partition if `None`.
    pub time: Option<Duration>,
    pub deadline: Option<String>,
    pub exclusive: bool,
    pub gres: Option<String>,
    pub options: Vec<String>,
}

impl Slurm {
    pub(super) const KEY: Key = key!(
        "slurm": Table(&SLURM), Means("what Slurm sets"),
            "What `railgauge submit` requests; only with `via = \"slurm\"`."
    );

    pub(super) fn read(launch: &Table<'_>) -> Self {
        let table = &launch.table(Self::KEY.name);
        for name in ["partition", "account", "deadline", "gres"] {
            if let Some(text) = table.text(name).filter(|text| !is_word(&text.value) || text.value.starts_with('-')) {
                let help = "it must be one word without quotes, `#`, `$` and `\\`, and must not start with `-`";
                table.wrong(text.span, format!("\"{}\" cannot be passed to sbatch", text.value), help);
            }
        }
        let exclusive = table.flag("exclusive").is_some_and(|at| at.value);
        for option in table.texts("options").into_iter().flat_map(|list| list.value) {
            if !is_word(&option.text) || !option.text.starts_with("--") {
                let message = format!("\"{}\" is not an option of sbatch", option.text);
                table.wrong(option.span, message, "each is one word: \"--qos=high\"");
            } else if let Some((name, instead)) = refused(&option.text, exclusive) {
                let message = format!("`--{name}` cannot be an option of a plan that is submitted");
                table.wrong(option.span, message, instead);
            }
        }
        table.settings(|_| true)
    }
}

/// Options that railgauge sets itself, or that keep it from following a submitted run to its end; each with an alternative. sbatch(1) of
/// Slurm 22.05 to 24.11.
const REFUSED: &[(&str, &str)] = &[
    ("nodes", "the hosts of the plan say how many: hosts = { slurm = { nodes = 32 } }"),
    ("nodelist", "name the hosts in [hosts]"),
    ("nodefile", "name the hosts in [hosts], or list them in its `file`"),
    ("ntasks", "railgauge runs one task on each node"),
    ("ntasks-per-node", "railgauge runs one task on each node"),
    ("partition", "use the key `partition`"),
    ("account", "use the key `account`"),
    ("time", "use the key `time`"),
    ("deadline", "use the key `deadline`"),
    ("exclusive", "use the key `exclusive`"),
    ("gres", "use the key `gres`"),
    ("mem", "with `exclusive` all memory is asked for; set exclusive = false to ask for less"),
    ("job-name", "the job has the name of the plan"),
    ("output", "the output is next to the run directory, where `railgauge submit` reads it: use its option --output"),
    ("error", "the errors go with the output, where `railgauge submit` reads them"),
    ("signal", "railgauge requests a signal before the time limit"),
    ("no-kill", "railgauge sets it: a node that fails is a result of the run, and must not end it"),
    ("requeue", "a run that begins again would find its own run directory: use `railgauge submit --resume`"),
    ("no-requeue", "railgauge sets it"),
    ("array", "one run is one job; submit the plan several times"),
    ("clusters", "`railgauge submit` follows jobs of this cluster only: submit on that one"),
    ("wait", "`railgauge submit` waits by itself, unless given --no-wait"),
    ("wrap", "railgauge writes the script"),
    ("parsable", "railgauge sets it"),
    ("quiet", "railgauge reads what sbatch says"),
    ("test-only", "use `railgauge submit --print` and sbatch"),
    ("help", "see sbatch(1)"),
    ("usage", "see sbatch(1)"),
    ("version", "see sbatch(1)"),
];

/// The refused option for a word, and the alternative. sbatch also accepts unambiguous abbreviations (getopt_long(3)).
fn refused(option: &str, exclusive: bool) -> Option<(&'static str, &'static str)> {
    let name = option.trim_start_matches('-').split('=').next().unwrap_or_default();
    let applies = |known: &str| known != "mem" || exclusive;
    // An exact name has precedence over a prefix.
    let exact = REFUSED.iter().find(|(known, _)| *known == name);
    exact
        .or_else(|| REFUSED.iter().find(|(known, _)| known.starts_with(name)))
        .copied()
        .filter(|(known, _)| applies(known))
}

fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'\\#`$".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

pub fn way(_: &Slurm) -> Way {
    Way { words: "steps of a Slurm allocation (srun)".into(), is_found_by_address: true, ..Way::default() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::refused;
    use crate::plan::parse;

    fn told(table: &str) -> String {
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"slurm\", slurm = {table} }}\nhosts = {{ slurm = {{ nodes = 2 }} }}\n[[test]]\nop = \
             \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n"
        );
        parse("p.toml", &text, Path::new("")).err().map(|mistakes| mistakes.render(false)).unwrap_or_default()
    }

    #[test]
    fn options_that_break_a_submission_are_refused_with_what_to_do_instead() {
        for (option, instead) in [
            ("--nodes=4", "hosts = { slurm = { nodes = 32 } }"),
            ("--array=1-4", "one run is one job"),
            ("--clusters=other", "jobs of this cluster only"),
            ("--wait", "--no-wait"),
            ("--requeue", "railgauge submit --resume"),
            ("--output=x.log", "next to the run directory"),
            ("--mem=8G", "exclusive = false"),
            ("--clus=other", "jobs of this cluster only"),
            ("--arr=1-4", "one run is one job"),
        ] {
            let said = told(&format!("{{ options = [\"{option}\"] }}"));
            assert!(said.contains("cannot be an option of a plan that is submitted"), "{option}: {said}");
            assert!(said.contains(instead), "{option}: {said}");
        }
    }

    #[test]
    fn all_others_pass() {
        let options = [
            "--qos=high",
            "--reservation=nightly",
            "--constraint=h100",
            "--exclude=n7",
            "--gpus-per-node=8",
            "--gres-flags=disable-binding",
            "--mem-per-cpu=2G",
            "--time-min=10",
            "--wait-all-nodes=1",
            "--mail-type=END",
            "--comment=a",
            "--dependency=singleton",
            "--export=ALL",
            "--switches=1",
            "--hold",
            "--nice=100",
            "--cpus-per-task=8",
        ];
        for option in options {
            assert_eq!(refused(option, true), None, "{option}");
        }
        assert_eq!(refused("--mem=8G", false), None);
        let list = options.map(|option| format!("\"{option}\"")).join(", ");
        assert_eq!(told(&format!("{{ options = [{list}] }}")), "");
    }
}

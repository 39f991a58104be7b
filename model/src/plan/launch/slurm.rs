//! `via = "slurm"`, and `[launch.slurm]`: what `railgauge submit` asks Slurm for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Way;
use crate::plan::{
    format::{Key, Preset, Section, Shape, key},
    mistakes::Mistake,
    read::Table,
};

/// Keys of `[launch.slurm]`.
static SLURM: Section = Section {
    header: "[launch.slurm]",
    about: "What `railgauge submit` asks Slurm for; inside an allocation nothing of it is used. Only with `via = \"slurm\"`.",
    keys: &[
        key("partition", Shape::Text, Preset::Words("Slurm's"), "Partition (`sbatch --partition`)."),
        key("account", Shape::Text, Preset::Words("Slurm's"), "Account that is charged (`sbatch --account`)."),
        key(
            "time",
            Shape::Time("1min", "720h"),
            Preset::Words("that of the partition"),
            "Time limit of the job (`sbatch --time`). A minute before it the run ends as if it was interrupted, and can be resumed.",
        ),
        key(
            "deadline",
            Shape::Text,
            Preset::Words("none"),
            "When the job must have ended (`sbatch --deadline`), as Slurm writes it: `06:00`, `now+4hours`.",
        ),
        key(
            "exclusive",
            Shape::Flag,
            Preset::Value("true"),
            "Whether no other job may run on the nodes (`sbatch --exclusive`), and all of their memory is asked for.",
        ),
        key(
            "gres",
            Shape::Text,
            Preset::Words("none"),
            "GPUs and other resources of every node (`sbatch --gres`), such as `gpu:8`: steps see no GPU that was not asked \
             for, also with `exclusive`.",
        ),
        key(
            "options",
            Shape::Texts,
            Preset::Words("none"),
            "Further options of sbatch, each one word: `[\"--qos=high\", \"--reservation=nightly\"]`.",
        ),
    ],
};

/// What is asked of Slurm.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Slurm {
    /// Partition; Slurm's own choice if `None`.
    pub partition: Option<String>,
    /// Account; that of the user if `None`.
    pub account: Option<String>,
    /// Time limit of the job; that of the partition if `None`.
    pub time: Option<Duration>,
    /// When the job must have ended, in Slurm's words.
    pub deadline: Option<String>,
    /// Whether no other job may run on the nodes.
    pub exclusive: bool,
    /// Resources of every node.
    pub gres: Option<String>,
    /// Further options of sbatch.
    pub options: Vec<String>,
}

impl Slurm {
    /// Its key in `[launch]`.
    pub(super) const KEY: Key = key(
        "slurm",
        Shape::Table(&SLURM),
        Preset::Words("what Slurm presets"),
        "What `railgauge submit` asks Slurm for; only with `via = \"slurm\"`.",
    );

    /// Reads the table.
    pub(super) fn read(launch: &Table<'_>) -> Self {
        let table = &launch.table(Self::KEY.name);
        let word = |name: &str| {
            let text = table.text(name)?;
            if is_word(&text.value) && !text.value.starts_with('-') {
                return Some(text.value);
            }
            table.book.add(no_word(&text.value, text.span));
            None
        };
        let options = table.texts("options").map(|list| list.value).unwrap_or_default();
        for option in &options {
            if !is_word(&option.text) || !option.text.starts_with("--") {
                let mistake =
                    Mistake::at(option.span.clone(), format!("\"{}\" is not an option of sbatch", option.text));
                table.book.add(mistake.help("each is one word: \"--qos=high\""));
            }
        }
        Self {
            partition: word("partition"),
            account: word("account"),
            time: table.time("time").map(|at| at.value.into()),
            deadline: word("deadline"),
            exclusive: table.flag("exclusive").is_some_and(|at| at.value),
            gres: word("gres"),
            options: options.into_iter().map(|option| option.text).collect(),
        }
    }
}

/// Whether a text is one word of a line `#SBATCH`, in which quotes and `#` have a meaning.
fn is_word(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && !"\"'\\#`$".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

fn no_word(text: &str, span: std::ops::Range<usize>) -> Mistake {
    Mistake::at(span, format!("\"{text}\" cannot be passed to sbatch"))
        .help("it must be one word without quotes, `#`, `$` and `\\`, and must not start with `-`")
}

/// What the plan says of it.
pub fn way(slurm: &Slurm) -> &dyn Way {
    slurm
}

impl Way for Slurm {
    fn words(&self) -> String {
        "steps of a Slurm allocation (srun)".into()
    }

    fn is_found_by_address(&self) -> bool {
        true
    }

    fn uses(&self, _key: &str) -> bool {
        false
    }
}

//! The batch script.

use std::{fmt::Write, path::PathBuf};

use railgauge_model::plan::{Plan, allocation::PLACEHOLDER, hostlist, model::Launcher};
use railgauge_wire::shell::quoted;

use crate::cli::Misuse;

/// Seconds before the time limit at which Slurm signals the run to end: time for reports and goodbyes.
const WARNING: u64 = 60;
/// Seconds by which Slurm may do so earlier (sbatch(1), `--signal`).
const EARLIER: u64 = 60;

/// What is submitted.
pub(super) struct Work {
    pub plan: Plan,
    /// Words of the run after `railgauge run`.
    pub run: Vec<String>,
    pub directory: PathBuf,
    pub log: PathBuf,
}

impl Work {
    /// Whether the plan's hosts are names, and not only a number.
    fn is_named(&self) -> bool {
        !self.plan.hosts.iter().all(|host| host.name.starts_with(PLACEHOLDER))
    }
}

/// The name of the job.
pub(super) fn job_name(plan: &Plan) -> String {
    format!("railgauge-{}", plan.name)
}

/// The script that runs a plan.
///
/// # Errors
/// A path cannot be written into it.
pub(super) fn script(work: &Work) -> anyhow::Result<String> {
    let Launcher::Slurm(slurm) = &work.plan.launch.via else {
        return Err(Misuse("only a plan with via = \"slurm\" can be submitted".into()).into());
    };
    let hosts = &work.plan.hosts;
    let mut options = vec![
        format!("--job-name={}", job_name(&work.plan)),
        format!("--nodes={}", hosts.len()),
        "--ntasks-per-node=1".into(),
    ];
    if work.is_named() {
        options.push(format!("--nodelist={}", hostlist::fold(hosts.iter().map(|host| host.address.as_str()))));
    }
    let optional = [
        ("partition", &slurm.partition),
        ("account", &slurm.account),
        ("deadline", &slurm.deadline),
        ("gres", &slurm.gres),
    ];
    options.extend(optional.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value.as_ref()?))));
    let limit = slurm.time.map(|time| time.as_secs());
    let minutes = limit.map(|seconds| seconds.div_ceil(60));
    options.extend(minutes.map(|minutes| format!("--time={minutes}")));
    if slurm.exclusive {
        options.extend(["--exclusive".into(), "--mem=0".into()]);
    }
    // A node that fails is a result of the run, and not the end of it.
    options.extend(["--no-kill".into(), "--no-requeue".into()]);
    // To the script's own process, which is the run. A job that is short would be signalled as soon as it begins, or be left with little
    // of its time: there the limit itself ends the run, and steps that end with it say why.
    if minutes.is_none_or(|minutes| minutes * 60 > WARNING + EARLIER) {
        options.push(format!("--signal=B:TERM@{WARNING}"));
    }
    options.extend(slurm.options.iter().cloned());
    let log = in_script(&work.log.to_string_lossy())?;
    options.push(format!("--output={log}"));
    let mut script = String::from("#!/bin/sh\n");
    // Writing to a String cannot fail.
    let _ = options.iter().try_for_each(|option| writeln!(script, "#SBATCH {option}"));
    let program = std::env::current_exe()?;
    let words = [program.to_string_lossy().into_owned(), "run".into()].into_iter().chain(work.run.iter().cloned());
    let words: Vec<String> = words.map(|word| quoted(&word)).collect();
    let _ = writeln!(script, "exec {}", words.join(" "));
    Ok(script)
}

/// A path for a line `#SBATCH`, in which `%` inserts a value of the job and spaces separate.
fn in_script(path: &str) -> Result<String, Misuse> {
    let fits = path.chars().all(|c| c.is_ascii_graphic() && !"\"'\\#`$%".contains(c));
    let unfit =
        || format!("the path {path} cannot be given to sbatch: use one of plain ASCII without spaces, quotes and `%`");
    if fits { Ok(path.to_owned()) } else { Err(Misuse(unfit())) }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use railgauge_model::plan::parse;

    use super::*;

    fn of(hosts: &str, slurm: &str, directory: &str) -> anyhow::Result<String> {
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"slurm\", slurm = {slurm} }}\nhosts = {hosts}\n[[test]]\nop = \"write\"\nmetric = \
             \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1KiB\"\n"
        );
        let (plan, _) = parse("p.toml", &text, Path::new("")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let directory = PathBuf::from(directory);
        script(&Work { plan, run: vec!["/my plans/p.toml".into()], log: super::super::beside(&directory), directory })
    }

    #[test]
    fn keys_of_the_plan_become_options() {
        let keys = "{ partition = \"gpu\", account = \"hw\", time = \"90s\", deadline = \"06:00\", gres = \"gpu:8\", options = \
                    [\"--qos=high\"] }";
        let told = of("{ slurm = { nodes = 32 } }", keys, "/r/p-1").unwrap();
        let lines: Vec<&str> = told.lines().collect();
        let expected = [
            "#!/bin/sh",
            "#SBATCH --job-name=railgauge-p",
            "#SBATCH --nodes=32",
            "#SBATCH --ntasks-per-node=1",
            "#SBATCH --partition=gpu",
            "#SBATCH --account=hw",
            "#SBATCH --deadline=06:00",
            "#SBATCH --gres=gpu:8",
            "#SBATCH --time=2",
            "#SBATCH --exclusive",
            "#SBATCH --mem=0",
            "#SBATCH --no-kill",
            "#SBATCH --no-requeue",
            "#SBATCH --qos=high",
            "#SBATCH --output=/r/p-1.slurm.log",
        ];
        assert_eq!(lines[..expected.len()], expected);
        assert!(
            lines[expected.len()].starts_with("exec ") && lines[expected.len()].ends_with(" run '/my plans/p.toml'")
        );
    }

    #[test]
    fn a_run_is_told_of_its_limit_only_where_it_has_time_before() {
        for (time, expected) in [("1min", false), ("90s", false), ("2min", false), ("121s", true), ("2h", true)] {
            let told = of("{ slurm = { nodes = 2 } }", &format!("{{ time = \"{time}\" }}"), "/r/p").unwrap();
            assert_eq!(told.contains("--signal=B:TERM@60\n"), expected, "{time}: {told}");
        }
        assert!(of("{ slurm = { nodes = 2 } }", "{}", "/r/p").unwrap().contains("--signal=B:TERM@60\n"));
    }

    #[test]
    fn named_hosts_are_asked_for_by_name() {
        let told = of("{ names = [\"n[1-3]\", \"n5\"] }", "{ exclusive = false }", "/r/p").unwrap();
        assert!(told.contains("#SBATCH --nodes=4\n") && told.contains("#SBATCH --nodelist=n[1-3,5]\n"), "{told}");
        assert!(!told.contains("--exclusive") && !told.contains("--mem"), "{told}");
    }

    #[test]
    fn paths_that_would_mean_something_else_are_refused() {
        for bad in ["/a b/r", "/r%j", "/r#"] {
            assert!(of("{ slurm = { nodes = 2 } }", "{}", bad).is_err(), "{bad}");
        }
    }
}

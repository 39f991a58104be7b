//! `railgauge check PLAN`: every mistake in a plan, with its place.

use std::path::PathBuf;

use railgauge_model::{
    plan::{self, Mistake, Mistakes, Plan},
    schedule::{Inventory, schedule},
};

use crate::{
    cli::{Common, Exit, print},
    cluster,
};

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan, a TOML file
    plan: PathBuf,
    /// Print the mistakes as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Reads the plan; mistakes go to stderr, or as JSON to stdout.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    if args.json {
        let (found, exit) = match plan::load_in(&args.plan, cluster::allocation().as_ref()) {
            Ok(loaded) => {
                let mut notes = loaded.notes;
                let more = planned(&loaded.plan, &notes);
                notes.list.extend(more.list);
                (notes, Exit::Passed)
            }
            Err(mistakes) => (mistakes, Exit::Wrong),
        };
        print(&format!("{:#}\n", found.json()))?;
        return Ok(exit);
    }
    let Some(loaded) = common.plan(&args.plan) else { return Ok(Exit::Wrong) };
    let unplanned = planned(&loaded.plan, &loaded.notes).render(common.colour());
    if !unplanned.trim().is_empty() {
        common.say(unplanned.trim_end());
    }
    if !common.quiet {
        print(&format!("{}\n", loaded.summary()))?;
    }
    Ok(Exit::Passed)
}

/// Tests of which nothing would be measured, and why. Notes and no mistakes: hosts that answer may know more than the plan.
fn planned(plan: &Plan, read: &Mistakes) -> Mistakes {
    let name = |index: usize| plan.tests.get(index).map_or("", |test| test.name.as_str());
    let scheduled = schedule(plan, &Inventory::of_plan(plan));
    let help = match scheduled {
        Ok(_) => "a run measures it only if the hosts themselves tell more than the plan and its files",
        Err(_) => "`run` refuses the plan with these words",
    };
    let texts: Vec<String> = match scheduled {
        Err(error) => vec![error.to_string()],
        Ok(schedule) => (0..plan.tests.len())
            .filter(|test| !schedule.rounds.iter().any(|round| round.test == *test && !round.flows.is_empty()))
            .flat_map(|test| {
                let notes = schedule.notes.iter().filter(|note| note.test == test).map(|note| note.text.clone());
                let notes: Vec<String> = notes.collect();
                if notes.is_empty() { vec![format!("test `{}` plans no case", name(test))] } else { notes }
            })
            .collect(),
    };
    let note =
        |message| Mistake { place: None, message, label: String::new(), help: Some(help.into()), also: Vec::new() };
    Mistakes { sources: read.sources.clone(), list: texts.into_iter().map(note).collect(), harmless: true }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn noted(hosts: &str, cables: &str) -> String {
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"local\" }}\nhosts = {{ names = [{hosts}] }}\n[topology]\ncables = [{cables}]\n\
             [[test]]\nname = \"across\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"64KiB\"\n\
             pattern = \"cross-leaf\"\n"
        );
        match plan::parse("p.toml", &text, Path::new(".")) {
            Ok((plan, notes)) => planned(&plan, &notes).render(false),
            Err(mistakes) => panic!("{mistakes}"),
        }
    }

    #[test]
    fn a_test_that_plans_no_case_is_told_with_the_reason() {
        let good = r#"["a", "leaf1:1"], ["b", "leaf2:1"], ["leaf1:31", "spine:1"], ["leaf2:31", "spine:2"]"#;
        assert_eq!(noted("\"a\", \"b\"", good), "");
        // The cable of `b` is written for `bb`.
        let text = noted("\"a\", \"b\"", &good.replace("\"b\"", "\"bb\""));
        assert!(text.contains("across") && text.contains("nothing of it is measured"), "{text}");
    }
}

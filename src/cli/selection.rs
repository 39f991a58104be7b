//! `--hosts`, `--test`, `--repeats`: a part of a plan, for whoever looks for one fault.

use std::path::Path;

use railgauge_model::plan::{self, Loaded, limits};

use super::{Common, Misuse};

/// Which part of the plan.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Selection {
    /// Use only these hosts or groups of the plan, such as gpu[001-004] or rack1; may be repeated
    #[arg(long, value_name = "HOSTS")]
    hosts: Vec<String>,
    /// Use only this test of the plan; may be repeated
    #[arg(long = "test", value_name = "NAME")]
    tests: Vec<String>,
    /// Measure every test this often, whatever the plan says; interleaved tests keep their blocks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=limits::REPEATS as i64))]
    repeats: Option<u32>,
}

impl Selection {
    /// The part of the plan in a file, after what is worth knowing of it; `None` after every error in it.
    ///
    /// # Errors
    /// The plan has no such hosts or tests, or no test can be run with the hosts.
    pub(super) fn load(&self, path: &Path, common: &Common) -> anyhow::Result<Option<Loaded>> {
        self.narrowed(common.plan(path), common)
    }

    /// [`Selection::load`] for a command that contacts the hosts.
    ///
    /// # Errors
    /// As [`Selection::load`], and pods in place of names cannot be listed.
    pub(super) fn load_of_hosts(&self, path: &Path, common: &Common) -> anyhow::Result<Option<Loaded>> {
        self.narrowed(common.plan_of_hosts(path)?, common)
    }

    fn narrowed(&self, loaded: Option<Loaded>, common: &Common) -> anyhow::Result<Option<Loaded>> {
        let wanted = plan::Selection { hosts: self.hosts.clone(), tests: self.tests.clone(), repeats: self.repeats };
        let Some(loaded) = loaded else { return Ok(None) };
        let loaded = loaded.narrowed(&wanted).map_err(|error| Misuse(error.to_string()))?;
        if let Some(subset) = &loaded.plan.subset {
            common.say(format_args!("only a part of the plan: {}", subset.words()));
            subset.left_out().for_each(|text| common.say(text));
        }
        Ok(Some(loaded))
    }
}

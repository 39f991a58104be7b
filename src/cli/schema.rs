//! `railgauge schema`: the plan format for editors and machines.

use railgauge_model::plan::format::{reference, schema};

use crate::cli::{Common, Exit, print};

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print the key tables of docs/plan-format.md instead
    #[arg(long)]
    markdown: bool,
}

/// Prints the schema.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn run(args: Args, _: &Common) -> anyhow::Result<Exit> {
    if args.markdown {
        print(&reference::markdown())?;
    } else {
        print(&format!("{:#}\n", schema::schema()))?;
    }
    Ok(Exit::Passed)
}

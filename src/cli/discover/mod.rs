//! `railgauge discover PLAN`: asks the hosts which switches are next to them, and writes files that a plan can name.

mod gather;
mod text;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use railgauge_model::{border::text::path_text, files};
use serde_json::json;

use self::gather::{Gathered, Source};
use super::{Common, Exit, Misuse, runtime};
use crate::{
    cluster::AgentBinary,
    run::{
        hosts,
        spine::{self, Spine},
    },
};

/// Version of the JSON document.
const VERSION: u32 = 1;

/// Arguments of `discover`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan
    plan: PathBuf,
    /// The folder to write; it must be empty or not there [default: topology, next to the plan]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print what was read, and what was not, as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Reads the topology of a plan's hosts.
///
/// # Errors
/// There is no agent to send, the folder is not empty, or it cannot be written.
pub(super) fn run(args: Args, common: &Common) -> anyhow::Result<Exit> {
    let Some(loaded) = common.plan_of_hosts(&args.plan)? else { return Ok(Exit::Wrong) };
    let beside = args.plan.parent().unwrap_or(Path::new("")).to_owned();
    let folder = args.output.unwrap_or_else(|| beside.join("topology"));
    only_empty(&folder)?;
    let binary = AgentBinary::find()?;
    let runtime = runtime()?;
    let run_id = format!("discover-{}-{}", std::process::id(), spine::now());
    let gathered = runtime.block_on(async {
        let spine = Spine::unrecorded(common.quiet, common.verbose);
        let mut met = hosts::bring_up(&loaded.plan, &run_id, binary, &spine).await;
        let gathered = gather::gather(&loaded.plan, &met).await;
        met.close().await;
        gathered
    });
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    for source in &gathered.read {
        write(&folder, source)?;
    }
    let lines = text::lines(&gathered, &from_plan(&beside, &folder)?);
    let document = json!({
        "version": VERSION,
        "folder": path_text(&folder), "read": gathered.read, "not_read": gathered.not_read, "remarks": gathered.remarks,
        "topology": lines,
    });
    common.answer(args.json, &document, |_| text::summary(&gathered, &lines, &path_text(&folder)))?;
    Ok(gathered.exit())
}

/// Refuses a folder with something in it: files of hosts that are gone since would be read as if they were new.
fn only_empty(folder: &Path) -> anyhow::Result<()> {
    let misuse = |why: &str| Err(Misuse(format!("{} {why}; name another folder with -o", path_text(folder))).into());
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => misuse("is not empty"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => misuse("is not a folder"),
        Err(error) => Err(error).with_context(|| format!("cannot look into {}", path_text(folder))),
    }
}

fn write(folder: &Path, source: &Source) -> anyhow::Result<()> {
    let path = folder.join(&source.file);
    let written =
        path.parent().map_or(Ok(()), files::make_directories).and_then(|()| files::write(&path, &source.text));
    written.with_context(|| format!("cannot write {}", path_text(&path)))
}

/// The folder as the plan names it: relative to the plan if it is below the plan's own folder.
fn from_plan(beside: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let own = if beside.as_os_str().is_empty() { Path::new(".") } else { beside };
    let whole = |path: &Path| std::path::absolute(path).with_context(|| format!("cannot find {}", path_text(path)));
    let (own, folder) = (whole(own)?, whole(folder)?);
    Ok(folder.strip_prefix(&own).map(Path::to_owned).unwrap_or(folder))
}

impl Gathered {
    /// What the command comes to: a host that was not read is no success.
    fn exit(&self) -> Exit {
        match () {
            () if self.read.is_empty() => Exit::Unable,
            () if self.not_read.iter().any(|one| one.wanted) => Exit::Inconclusive,
            () => Exit::Passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_folder_is_written() {
        let place = tempfile::tempdir().unwrap();
        assert!(only_empty(place.path()).is_ok() && only_empty(&place.path().join("new")).is_ok());
        fs::write(place.path().join("a"), "").unwrap();
        assert!(only_empty(place.path()).is_err() && only_empty(&place.path().join("a")).is_err());
    }

    #[test]
    fn the_plan_names_a_folder_below_it_by_a_relative_path() {
        for (beside, folder, expected) in
            [("", "topology", "topology"), ("/p", "/p/t", "t"), ("a", "a/b/t", "b/t"), ("/p", "/q/t", "/q/t")]
        {
            assert_eq!(from_plan(Path::new(beside), Path::new(folder)).unwrap(), Path::new(expected));
        }
    }
}

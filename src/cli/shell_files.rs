//! `railgauge shell-files`: completions for shells and manual pages, for packages and for people.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Command;
use clap_complete::{Shell, generate_to};
use railgauge_model::border::text::path_text;

use super::{Common, Exit};

/// Arguments of `shell-files`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Directory to write to; made if it is not there
    directory: PathBuf,
}

/// Writes `bash/railgauge`, `zsh/_railgauge`, `fish/railgauge.fish`, and in `man1` a manual page for every command.
///
/// # Errors
/// A file cannot be written.
pub(super) fn run(args: Args, _: &Common, line: Command) -> anyhow::Result<Exit> {
    write(&args.directory, line).with_context(|| format!("cannot write to {}", path_text(&args.directory)))?;
    Ok(Exit::Passed)
}

fn write(directory: &Path, mut line: Command) -> std::io::Result<()> {
    let folder = |part: &str| {
        let folder = directory.join(part);
        fs::create_dir_all(&folder).map(|()| folder)
    };
    let name = line.get_name().to_owned();
    for (shell, part) in [(Shell::Bash, "bash"), (Shell::Zsh, "zsh"), (Shell::Fish, "fish")] {
        let folder = folder(part)?;
        let written = generate_to(shell, &mut line, &name, &folder)?;
        if shell == Shell::Bash {
            // bash-completion looks for a file called as the command.
            fs::rename(written, folder.join(&name))?;
        }
    }
    clap_mangen::generate_to(line, folder("man1")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Command {
        let run = Command::new("run").about("Measure").arg(clap::arg!(<PLAN> "The plan"));
        Command::new("railgauge").version("1.2.3").about("Tests clusters").subcommand(run)
    }

    #[test]
    fn every_command_has_completions_and_a_page() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("made/here");
        write(&below, line()).unwrap();
        let text = |file: &str| fs::read_to_string(below.join(file)).unwrap();
        for file in ["bash/railgauge", "zsh/_railgauge", "fish/railgauge.fish", "man1/railgauge.1"] {
            assert!(text(file).contains("run"), "{file}");
        }
        assert!(text("man1/railgauge-run.1").contains("The plan"));
        assert!(text("man1/railgauge.1").contains("1.2.3"));
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(write(&file, line()).is_err());
    }
}

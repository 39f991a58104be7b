//! What every command understands, and the two streams: data on stdout, everything else on stderr.

use std::io::{self, IsTerminal, Write};

use anyhow::Context;

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Common {
    /// Say only what is wrong
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Common {
    /// Whether text on stderr may be coloured: a terminal is there to show it, and `NO_COLOR` is not set.
    pub fn colour(&self) -> bool {
        let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        !forbidden && !dumb && io::stderr().is_terminal()
    }

    /// A line for people, on stderr; nothing with `-q`.
    pub fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }
}

/// Writes data to stdout. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// stdout cannot be written, for example because a disk is full.
pub fn print(data: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(data.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

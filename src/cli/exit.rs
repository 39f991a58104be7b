//! Exit codes: the only place that knows the numbers.

use std::process::ExitCode;

/// How a command ended. Scripts hold on to the codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything passed, or the question was answered.
    Passed,
    /// A verdict failed.
    Failed,
    /// The plan or the command line is wrong; no host was touched.
    Wrong,
    /// Something could not be judged or was not run; nothing failed.
    Inconclusive,
    /// The cluster, or this machine, did not let it happen.
    Unable,
    /// Interrupted by the user.
    Interrupted,
    /// `railgauge status` as a monitoring plugin or a node health check, whose codes have a meaning of their own.
    Plugin(u8),
}

impl Exit {
    /// The end that has this exit code.
    pub fn of_code(code: u8) -> Option<Self> {
        let all = [Self::Passed, Self::Failed, Self::Wrong, Self::Inconclusive, Self::Unable, Self::Interrupted];
        all.into_iter().find(|exit| exit.code() == code)
    }

    /// The process exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Wrong => 2,
            Self::Inconclusive => 3,
            Self::Unable => 4,
            Self::Interrupted => 130,
            Self::Plugin(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// An error that is the caller's: the command names something that does not exist or makes no sense.
/// A command that returns it ends with [`Exit::Wrong`]; every other error ends with [`Exit::Unable`].
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_documented_in_the_help() {
        let help = crate::cli::ending("railgauge");
        for exit in [Exit::Passed, Exit::Failed, Exit::Wrong, Exit::Inconclusive, Exit::Unable, Exit::Interrupted] {
            let start = format!("{:>5}  ", exit.code());
            assert!(help.lines().any(|line| line.starts_with(&start)), "{exit:?} is not in --help");
        }
    }
}

//! Foreign words turned into a cause and a next step: how agents end, and why they do not start.

use railgauge_wire::failure::{Failure, Kind, Stage};

use super::{
    gone::{Gone, Why},
    launch::Way,
    pipe::{End, Output},
    trouble::Trouble,
};
use crate::border::text;

/// What to do about an agent that is not the controller's own.
pub(crate) const REBUILD: &str =
    "rebuild both from one source: `cargo build && cargo build -p railgauge-agent --profile agent`";

/// The failure of an agent that is gone.
pub(crate) fn lost(gone: &Gone) -> Failure {
    let cause = told("the agent is gone", gone);
    Failure::new(Stage::Converse, Kind::Lost, cause).help(match gone.end {
        Some(End::Signal(Some(9) | None)) => {
            "somebody or the kernel's out-of-memory killer ended it: see `dmesg` on the host"
        }
        Some(End::Unknown(_)) => "see whether the host is up and reachable",
        _ => "log.txt holds everything it wrote",
    })
}

/// How it ended, in words.
fn told(what: &str, Gone { why, end, last }: &Gone) -> String {
    let mut cause = what.to_owned();
    match end {
        Some(end) => cause += &format!(": {end}"),
        None if *why == Why::Closed => cause += &format!(": {why}"),
        None => {}
    }
    if *why != Why::Closed {
        cause += &format!("; {why}");
    }
    if !last.is_empty() {
        cause += &format!("; its last words: {}", shortened(last));
    }
    cause
}

/// Signs of a known cause in the words of loaders and shells: all parts occur, ignoring case.
struct Sign {
    parts: &'static [&'static str],
    passing: bool,
    help: &'static str,
}

/// The first sign that fits.
fn sign<'a>(signs: &'a [Sign], words: &str) -> Option<&'a Sign> {
    let words = words.to_lowercase();
    signs.iter().find(|sign| sign.parts.iter().all(|part| words.contains(part)))
}

/// Why a started process is no agent. The first match counts.
const START: &[Sign] = &[
    Sign {
        parts: &["version `glibc", "not found"],
        passing: false,
        help: "the host's C library is older than the one the agent was built for: build the agent against the oldest \
               one of the cluster",
    },
    Sign {
        parts: &["error while loading shared libraries"],
        passing: false,
        help: "install the library it names on the host",
    },
    Sign {
        parts: &["exec format error"],
        passing: false,
        help: "the agent was built for another processor: build it for this host's",
    },
    Sign {
        parts: &["cannot execute binary file"],
        passing: false,
        help: "the agent was built for another processor: build it for this host's",
    },
    Sign { parts: &["text file busy"], passing: true, help: "another process still writes the agent's file" },
    Sign { parts: &["permission denied"], passing: false, help: NO_PROGRAMS },
];

/// The status with which a script of ours gives up what may go well another time (`EX_TEMPFAIL` of sysexits.h).
const TAKEN: i32 = 75;
/// The status of a shell for a program that it may not run.
const REFUSED: i32 = 126;
const NO_PROGRAMS: &str =
    "the agent's directory does not allow programs (mounted noexec?): name another in launch.agent_dir";

/// The failure of an agent that never greeted, with a next step where the words of the host's loader or shell, or what came in
/// place of the greeting, are known.
pub(crate) fn start(gone: &Gone) -> Trouble {
    let cause = told("the agent did not start", gone);
    let known = |help: &str| Failure::new(Stage::Start, Kind::Configuration, cause.clone()).help(help);
    if let Some(sign) = sign(START, &gone.last) {
        return Trouble { failure: known(sign.help), passing: sign.passing };
    }
    match gone.end {
        Some(End::Code(TAKEN)) => {
            let help = "another run on the host took the agent's file away in this moment, or the host cannot make links \
                        or copies in the agent's directory";
            return Trouble { failure: known(help), passing: true };
        }
        Some(End::Code(REFUSED)) => return Trouble { failure: known(NO_PROGRAMS), passing: false },
        _ => {}
    }
    let failure = match gone.why {
        Why::NotProtocol(_) => known(REBUILD),
        Why::OtherText(_) => known(
            "something that is not the agent writes to its standard output: see log.txt and the start-up files of the \
             login shell",
        ),
        _ => Failure { stage: Stage::Start, cause, ..lost(gone) },
    };
    Trouble { failure, passing: false }
}

/// Why a script on a host failed. The first match counts.
const SCRIPT: &[Sign] = &[
    Sign {
        parts: &["no space left on device"],
        passing: false,
        help: "free some space there, or name a directory on another file system in launch.agent_dir",
    },
    Sign {
        parts: &["quota exceeded"],
        passing: false,
        help: "free some space there, or name a directory on another file system in launch.agent_dir",
    },
    Sign { parts: &["read-only file system"], passing: false, help: "name a writable directory in launch.agent_dir" },
    Sign { parts: &["sha256sum", "not found"], passing: false, help: "the host needs the core utilities (sha256sum)" },
    Sign { parts: &["permission denied"], passing: false, help: "name a directory of yours in launch.agent_dir" },
    Sign { parts: &["not a directory"], passing: false, help: "name another directory in launch.agent_dir" },
];

/// The failure of a script on a host: what was tried, how the script ended, the last lines it wrote. What helps depends on the
/// way to the host: there is no sshd behind a command.
pub(crate) fn script(output: &Output, what: &str, way: &Way) -> Trouble {
    let words: Vec<String> = output.stderr.split(|byte| *byte == b'\n').map(text::line).collect();
    let words: Vec<&str> = words.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let last = shortened(&words[words.len().saturating_sub(3)..].join(" / "));
    let mut cause = what.to_owned();
    if output.end != End::Code(0) {
        cause += &format!(": {}", output.end);
    }
    if !last.is_empty() {
        cause += &format!(": {last}");
    }
    if matches!(output.end, End::Unknown(_)) {
        let help = "the way to the host broke: see whether it is up";
        return Trouble::passing(Stage::Deploy, Kind::Lost, cause).help(help);
    }
    let sign = sign(SCRIPT, &cause);
    let trouble = Trouble::lasting(Stage::Deploy, Kind::Configuration, cause);
    match sign {
        Some(sign) => trouble.help(sign.help),
        None if output.end == End::Code(127) => trouble.help(way.not_found()),
        None if last.is_empty() => trouble.help(way.silence()),
        None => trouble,
    }
}

/// At most 400 characters of a text: a shell repeats a whole script in its errors.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_agent_tells_its_end_and_its_last_words() {
        let end = Some(End::Signal(Some(9)));
        let failure = lost(&Gone { why: Why::Closed, end, last: "reading counters".into() });
        assert_eq!(failure.cause, "the agent is gone: killed by signal 9 (SIGKILL); its last words: reading counters");
        assert_eq!(failure.kind, Kind::Lost);
        assert!(failure.help.contains("dmesg"));
    }

    #[test]
    fn a_status_of_our_scripts_tells_what_to_do() {
        let gone = |code| Gone { why: Why::ClosedEarly, end: Some(End::Code(code)), last: String::new() };
        let taken = start(&gone(TAKEN));
        assert!(taken.passing && taken.failure.kind == Kind::Configuration, "{taken:?}");
        let refused = start(&gone(REFUSED));
        assert!(!refused.passing && refused.failure.help.contains("agent_dir"), "{refused:?}");
        assert_eq!(start(&gone(1)).failure.kind, Kind::Lost);
    }

    #[test]
    fn loaders_are_understood() {
        let words =
            "railgauge-agent: error while loading shared libraries: libfoo.so.1: cannot open shared object file";
        let gone = |code, last: &str| Gone { why: Why::ClosedEarly, end: Some(End::Code(code)), last: last.into() };
        let trouble = start(&gone(127, words));
        assert_eq!(trouble.failure.stage, Stage::Start);
        assert!(trouble.failure.cause.starts_with("the agent did not start: exit status 127"), "{trouble:?}");
        assert!(trouble.failure.help.contains("install the library"), "{trouble:?}");
        let words = "./agent: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./agent)";
        let trouble = start(&gone(1, words));
        assert!(trouble.failure.help.contains("oldest"), "{trouble:?}");
        assert!(!trouble.passing);
        let noise = start(&Gone { why: Why::OtherText(65_536), ..gone(0, "Welcome") });
        assert_eq!((noise.failure.kind, noise.passing), (Kind::Configuration, false));
        assert!(noise.failure.help.contains("login shell"), "{noise:?}");
        let foreign = start(&Gone { why: Why::NotProtocol("EOF".into()), ..gone(0, "") });
        assert_eq!(foreign.failure.help, REBUILD);
    }
}

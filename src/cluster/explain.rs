//! Turns output of other programs into a cause and a next step: how agents end, and why they do not start.

use railgauge_model::border::text;
use railgauge_wire::{
    Failure, Kind, Stage,
    remedy::{self, Entry},
};

use super::{Connection, Gone, Output, ProcessEnd, Trouble, Why};

pub(crate) fn lost(gone: &Gone) -> Failure {
    let cause = told("the agent is gone", gone);
    if let Some(known) = &gone.known {
        let cause = format!("{}; {cause}", known.failure.cause);
        return Failure { stage: Stage::Converse, cause, ..known.failure.clone() };
    }
    Failure::new(Stage::Converse, Kind::Lost, cause).remedy(match gone.end {
        _ if is_ended_by_us(&gone.why) => remedy::CHECK_WHO_WRITES,
        _ if matches!(gone.why, Why::Silent(_)) => remedy::CHECK_HOST_UP,
        Some(ProcessEnd::Signal(Some(9) | None)) => remedy::FIND_KILLER,
        Some(ProcessEnd::Unknown(_)) => remedy::CHECK_HOST_UP,
        _ => remedy::READ_LOG,
    })
}

/// Whether we ended the process because of its output: its exit status then means nothing.
const fn is_ended_by_us(why: &Why) -> bool {
    matches!(why, Why::NotProtocol(_) | Why::OtherText(_) | Why::Unasked(_))
}

fn told(what: &str, Gone { why, end, last, .. }: &Gone) -> String {
    let mut cause = what.to_owned();
    match end {
        Some(end) if !is_ended_by_us(why) => cause += &format!(": {end}"),
        Some(_) => {}
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

/// Known words of loaders and shells, and what to do. The first match counts.
const START: [(&str, Entry); 8] = [
    ("version `glibc", remedy::BUILD_FOR_OLDEST_GLIBC),
    // bash before 5.2, and bash since.
    ("bad elf interpreter", remedy::USE_GLIBC_HOST),
    ("required file not found", remedy::USE_GLIBC_HOST),
    ("error while loading shared libraries", remedy::INSTALL_LOADED_LIBRARY),
    ("exec format error", remedy::BUILD_FOR_PROCESSOR),
    ("cannot execute binary file", remedy::BUILD_FOR_PROCESSOR),
    ("text file busy", remedy::RETRY_BUSY_FILE),
    ("permission denied", remedy::AGENT_DIR_EXEC),
];

fn find(known: &[(&str, Entry)], words: &str) -> Option<Entry> {
    let words = words.to_lowercase();
    known.iter().find(|(part, _)| words.contains(part)).map(|(_, remedy)| *remedy)
}

/// The status with which a script of ours reports a passing problem (`EX_TEMPFAIL` of sysexits.h).
const TAKEN: i32 = 75;
/// The status of a shell for a program that it may not run.
const REFUSED: i32 = 126;
/// The status of a shell for a missing program. The script has just read the agent's file, so the missing file is the loader named in it
/// (ELF's PT_INTERP; execve(2), ENOENT).
const MISSING: i32 = 127;

/// The newest version of glibc that a loader missed: it names each as ``version `GLIBC_2.34' not found``.
fn missed_glibc(words: &str) -> Option<(u32, u32)> {
    let versions = words.split("GLIBC_").skip(1).filter_map(|rest| {
        let number = rest.split(|other: char| !other.is_ascii_digit() && other != '.').next()?;
        let (major, minor) = number.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    });
    versions.max()
}

fn in_words(remedy: Entry, last: &str) -> String {
    if remedy == remedy::USE_GLIBC_HOST {
        return "the host has no loader for the agent (it is a system without glibc, such as Alpine, or without the libraries \
                of this architecture); "
            .to_owned();
    }
    match missed_glibc(last) {
        Some((major, minor)) if remedy == remedy::BUILD_FOR_OLDEST_GLIBC => {
            format!("the host's C library is too old: this agent needs glibc {major}.{minor}; ")
        }
        _ => String::new(),
    }
}

pub(crate) fn start(gone: &Gone) -> Trouble {
    let cause = told("the agent did not start", gone);
    if let Some(known) = &gone.known {
        let cause = format!("{}; {cause}", known.failure.cause);
        return Trouble { failure: Failure { stage: Stage::Start, cause, ..known.failure.clone() }, ..**known };
    }
    let known = |remedy: Entry| {
        let cause = in_words(remedy, &gone.last) + &cause;
        Failure::new(Stage::Start, Kind::Configuration, cause).remedy(remedy)
    };
    if let Some(remedy) = find(&START, &gone.last) {
        return Trouble { failure: known(remedy), passing: remedy == remedy::RETRY_BUSY_FILE };
    }
    match gone.end {
        Some(ProcessEnd::Code(TAKEN)) => return Trouble { failure: known(remedy::RETRY_TAKEN_FILE), passing: true },
        Some(ProcessEnd::Code(REFUSED)) => return Trouble { failure: known(remedy::AGENT_DIR_EXEC), passing: false },
        Some(ProcessEnd::Code(MISSING)) => return Trouble { failure: known(remedy::USE_GLIBC_HOST), passing: false },
        _ => {}
    }
    let failure = match gone.why {
        Why::NotProtocol(_) => known(remedy::REBUILD_BOTH),
        Why::OtherText(_) => known(remedy::QUIET_LOGIN_SHELL),
        _ => Failure { stage: Stage::Start, cause, ..lost(gone) },
    };
    Trouble { failure, passing: false }
}

/// Why a script on a host failed. The first match counts.
const SCRIPT: [(&str, Entry); 8] = [
    ("no space left on device", remedy::AGENT_DIR_SPACE),
    ("quota exceeded", remedy::AGENT_DIR_SPACE),
    ("read-only file system", remedy::AGENT_DIR),
    ("sha256sum: not found", remedy::INSTALL_COREUTILS),
    ("sha256sum: command not found", remedy::INSTALL_COREUTILS),
    ("permission denied", remedy::AGENT_DIR),
    ("not a directory", remedy::AGENT_DIR),
    ("mkdir: ", remedy::AGENT_DIR),
];

/// The failure of a script on a host: what was tried, how the script ended, the last lines it wrote. The remedy depends on the way to the
/// host: there is no sshd behind a command.
pub(crate) fn script(output: &Output, what: &str, way: &dyn Connection) -> Trouble {
    let words: Vec<String> = output.stderr.split(|byte| *byte == b'\n').map(text::line).collect();
    let words: Vec<&str> = words.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
    let last = shortened(&words[words.len().saturating_sub(3)..].join(" / "));
    let mut cause = what.to_owned();
    if output.end != ProcessEnd::Code(0) {
        cause += &format!(": {}", output.end);
    }
    if !last.is_empty() {
        cause += &format!(": {last}");
    }
    if let Some(known) = &output.known {
        let cause = format!("{}; {cause}", known.failure.cause);
        return Trouble { failure: Failure { stage: Stage::Deploy, cause, ..known.failure.clone() }, ..*known };
    }
    if matches!(output.end, ProcessEnd::Unknown(_)) {
        return Trouble::passing(Stage::Deploy, Kind::Lost, cause).remedy(remedy::CHECK_HOST_UP);
    }
    let remedy = find(&SCRIPT, &cause);
    let trouble = Trouble::lasting(Stage::Deploy, Kind::Configuration, cause);
    let trouble = remedy.map_or(trouble.clone(), |remedy| trouble.remedy(remedy));
    way.explain(trouble, &output.end, &last)
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

    fn remedy(failure: &Failure) -> &str {
        failure.remedy.as_ref().map_or("none", |remedy| &remedy.id)
    }

    #[test]
    fn a_lost_agent_tells_its_end_and_its_last_words() {
        let end = Some(ProcessEnd::Signal(Some(9)));
        let failure = lost(&Gone { why: Why::Closed, end, last: "reading counters".into(), known: None });
        assert_eq!(failure.cause, "the agent is gone: killed by signal 9 (SIGKILL); its last words: reading counters");
        assert_eq!(failure.kind, Kind::Lost);
        assert_eq!(remedy(&failure), "find-killer");
    }

    #[test]
    fn an_agent_that_was_ended_for_what_it_said_was_not_killed_by_somebody() {
        let (end, last) = (Some(ProcessEnd::Signal(Some(9))), String::new());
        for why in [Why::NotProtocol("a frame of 1 GB".into()), Why::OtherText(65_536), Why::Unasked(7)] {
            let failure = lost(&Gone { why, end: end.clone(), last: last.clone(), known: None });
            assert_eq!(remedy(&failure), "check-who-writes");
            assert!(!failure.cause.contains("signal"), "{failure}");
        }
    }

    #[test]
    fn a_status_of_our_scripts_tells_what_to_do() {
        let gone = |code| Gone { why: Why::ClosedEarly, end: Some(ProcessEnd::Code(code)), ..Gone::default() };
        let taken = start(&gone(TAKEN));
        assert!(taken.passing && taken.failure.kind == Kind::Configuration, "{taken:?}");
        let refused = start(&gone(REFUSED));
        assert!(!refused.passing && remedy(&refused.failure) == "agent-dir-exec", "{refused:?}");
        assert_eq!(start(&gone(1)).failure.kind, Kind::Lost);
    }

    #[test]
    fn a_missing_loader_is_told_by_every_shell() {
        for (code, words) in [
            (127, "railgauge: 1: exec: /root/.cache/railgauge/use-1: not found"),
            (127, "railgauge: exec: line 0: /root/.cache/railgauge/use-1: not found"),
            (127, "railgauge: line 1: /root/use-1: cannot execute: required file not found"),
            (
                126,
                "railgauge: line 0: /root/use-1: /lib64/ld-linux-x86-64.so.2: bad ELF interpreter: No such file or directory",
            ),
            (127, ""),
        ] {
            let end = Some(ProcessEnd::Code(code));
            let trouble = start(&Gone { why: Why::ClosedEarly, end, last: words.into(), ..Gone::default() });
            assert_eq!((remedy(&trouble.failure), trouble.passing), ("use-glibc-host", false), "{words}");
            assert_eq!(trouble.failure.kind, Kind::Configuration);
            assert!(trouble.failure.cause.starts_with("the host has no loader for the agent"), "{trouble:?}");
        }
    }

    #[test]
    fn loaders_are_understood() {
        let words =
            "railgauge-agent: error while loading shared libraries: libfoo.so.1: cannot open shared object file";
        let gone = |code, last: &str| Gone {
            why: Why::ClosedEarly,
            end: Some(ProcessEnd::Code(code)),
            last: last.into(),
            known: None,
        };
        let trouble = start(&gone(127, words));
        assert_eq!(trouble.failure.stage, Stage::Start);
        assert!(trouble.failure.cause.starts_with("the agent did not start: exit status 127"), "{trouble:?}");
        assert_eq!(remedy(&trouble.failure), "install-loaded-library");
        let words = "./agent: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./agent)";
        let trouble = start(&gone(1, words));
        assert_eq!(remedy(&trouble.failure), "build-for-oldest-glibc");
        assert!(!trouble.passing);
        let several =
            "a: version `GLIBC_2.4' not found / a: version `GLIBC_2.34' not found / a: version `GLIBC_2.32' not found";
        let trouble = start(&gone(1, several));
        let beginning =
            "the host's C library is too old: this agent needs glibc 2.34; the agent did not start: exit status 1";
        assert!(trouble.failure.cause.starts_with(beginning), "{trouble:?}");
        let noise = start(&Gone { why: Why::OtherText(65_536), ..gone(0, "Welcome") });
        assert_eq!((noise.failure.kind, noise.passing), (Kind::Configuration, false));
        assert_eq!(remedy(&noise.failure), "quiet-login-shell");
        let foreign = start(&Gone { why: Why::NotProtocol("EOF".into()), ..gone(0, "") });
        assert_eq!(remedy(&foreign.failure), "rebuild-both");
    }

    /// A script of ours that reports an error ends with status 0, and so does a client whose stream was cut.
    #[tokio::test]
    async fn a_full_disk_in_a_container_is_lasting_and_a_stream_that_was_cut_is_not() {
        use railgauge_model::plan::model::{Host, Kubectl, Launch, Launcher};
        let host = Host { name: "a".into(), address: "a".into(), user: None, port: None, devices: vec![], tcp: vec![] };
        for via in [Launcher::Kubectl(Kubectl::default()), Launcher::Podman, Launcher::Docker] {
            let launch = Launch {
                via,
                in_flight: 1,
                retries: 0,
                timeout: std::time::Duration::from_secs(20),
                keep_agent: false,
                agent_dir: None,
                env: std::collections::BTreeMap::new(),
                send_env: Vec::new(),
            };
            let launcher = crate::cluster::launcher::prepare(&launch).unwrap();
            let way = launcher.open(&host).await.unwrap();
            let told = |words: &str| {
                let stderr = words.as_bytes().to_vec();
                let output = Output { stderr, end: ProcessEnd::Code(0), known: None };
                script(&output, "the agent could not be written to /x", &*way)
            };
            let full = told("cat: write error: No space left on device");
            assert_eq!((remedy(&full.failure), full.passing), ("agent-dir-space", false), "{:?}", launch.via);
            assert!(told("").passing, "{:?}", launch.via);
        }
    }
}

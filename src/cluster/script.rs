//! What is run on hosts around the agent: small scripts for `sh -c`, with their values as arguments.
//!
//! ssh hands a command to the login shell as one text, quoted for it. So the scripts are one line each and hold no
//! single quote, no backslash and no exclamation mark: sh, bash, zsh, csh and fish then read the same. They need
//! nothing but POSIX sh, the core utilities (or busybox) and `sha256sum`.
//!
//! Files in the agent's directory, all of them written by these scripts:
//!
//! | name | is |
//! | --- | --- |
//! | `agent-HASH` | the agent, complete and checked: it gets this name only after its hash was right |
//! | `use-HASH-NODE-PID` | a hard link (or copy) from which process PID of machine NODE runs the agent |
//! | `new-HASH-NODE-PID` | an upload under way |
//!
//! Every agent runs from a name of its own, so nothing that happens to `agent-HASH` (replaced by an equal one, removed
//! by another run) touches a running agent, also where a home directory is shared by all hosts over NFS. A name whose
//! process is gone is swept by the next run on the same machine; the last user of `agent-HASH` takes it along.

/// First word of a line of a script's answer; other lines are a login shell's chatter.
pub(crate) const MARK: &str = "@railgauge ";

/// Sweeps names of this machine (`$n`) whose process is gone or is process `$q`.
macro_rules! sweep {
    () => {
        "for f in use-*-\"$n\"-* new-*-\"$n\"-*; do p=${f##*-}; \
         case $p in \"$q\") rm -f \"$f\";; *) kill -0 \"$p\" 2>/dev/null || rm -f \"$f\";; esac; done; "
    };
}

/// Tells of the first path above `$from` whose owner is neither root nor the user, or to which others may write: who
/// can rename a directory above decides what is started below. A directory with the sticky bit (/tmp) lets nobody rename
/// what is not his (sshd's StrictModes allows none); a group that is the user's own, with his name, is himself, as many
/// systems have it with umask 002.
macro_rules! above {
    ($then:literal) => {
        above!("$(pwd -P)", $then)
    };
    ($from:literal, $then:literal) => {
        concat!(
            "u=$(id -u); g=; [ \"$(id -gn)\" = \"$(id -un)\" ] && g=$(id -g); p=",
            $from,
            "; ",
            "while [ -n \"$p\" ]; do p=${p%/*}; set -- $(ls -ldn \"${p:-/}\"); ",
            "case $3 in 0|\"$u\") ;; *) ",
            $then,
            "; esac; ",
            "case $1 in d????????[tT]*) ;; ????????w*) ",
            $then,
            ";; ",
            "?????w*) [ \"$4\" = \"$g\" ] || { ",
            $then,
            "; };; esac; done; "
        )
    };
}

/// Looks at a host. Arguments: `two words`, the agent's directory or nothing, then `MACHINE=HASH=FILE` for every
/// agent there is; FILE, if not empty, is tried in place first, if it and the directories above belong to root or the user and
/// nobody else may write to them.
/// Answers: `mangled` | `machine M` · `in-place` | `homeless` | `open MODE` | `foreign UID` | `above D MODE UID` |
/// `directory D` · `have` or `missing`.
pub(crate) const PROBE: &str = concat!(
    "[ \"$1\" = \"two words\" ] || { echo \"@railgauge mangled\"; exit 0; }; ",
    "d=$2; shift 2; m=$(uname -m); n=$(uname -n); q=; echo \"@railgauge machine $m\"; h=; ",
    "for a in \"$@\"; do case $a in \"$m\"=*) h=${a#*=}; f=${h#*=}; h=${h%%=*};; esac; done; ",
    "[ -n \"$h\" ] || exit 0; ",
    "if [ -n \"$f\" ] && [ -f \"$f\" ] && [ -x \"$f\" ] && s=$(sha256sum < \"$f\") && [ \"${s%% *}\" = \"$h\" ] ",
    // Where others may exchange the file between the look and the start, the agent is sent.
    "&& ( cd \"${f%/*}\" || exit 1; ",
    // The first path above what stands below the file is the file.
    above!("$(pwd -P)/${f##*/}/x", "exit 1"),
    "exit 0 ); then echo \"@railgauge in-place\"; exit 0; fi; ",
    "[ -n \"$d$XDG_CACHE_HOME$HOME\" ] || { echo \"@railgauge homeless\"; exit 0; }; ",
    "[ -n \"$d\" ] || d=${XDG_CACHE_HOME:-$HOME/.cache}/railgauge; ",
    "umask 077; mkdir -p \"$d\" && cd \"$d\" || exit 1; ",
    "set -- $(ls -ldn .); ",
    "case $1 in d????-??-*) ;; *) echo \"@railgauge open $1\"; exit 0;; esac; ",
    "[ \"$3\" = \"$(id -u)\" ] || { echo \"@railgauge foreign $3\"; exit 0; }; ",
    above!("echo \"@railgauge above ${p:-/} (mode $1, uid $3)\"; exit 0"),
    "echo \"@railgauge directory $(pwd -P)\"; ",
    sweep!(),
    "if [ -f \"agent-$h\" ] && s=$(sha256sum < \"agent-$h\") && [ \"${s%% *}\" = \"$h\" ]; ",
    // A command that joins its words for a shell adds the arguments here: they must not be a syntax error there, so
    // that the first line above is reached and says what is wrong.
    "then echo \"@railgauge have\"; else echo \"@railgauge missing\"; fi; :"
);

/// Takes the agent from standard input. Arguments: directory, hash. Answers: `stored` | `short` | `differs BYTES`.
pub(crate) const STORE: &str = "umask 077; cd \"$1\" || exit 1; h=$2; t=new-$h-$(uname -n)-$$; \
     cat > \"$t\" || { rm -f \"$t\"; echo \"@railgauge short\"; exit 0; }; \
     s=$(sha256sum < \"$t\"); if [ \"${s%% *}\" = \"$h\" ]; \
     then chmod 700 \"$t\" && mv -f \"$t\" \"agent-$h\" && echo \"@railgauge stored\"; \
     else set -- $(wc -c < \"$t\"); rm -f \"$t\"; echo \"@railgauge differs $1\"; fi";

/// Reads so many lines of standard input into the environment: what stands on a command line everybody on the host can read.
macro_rules! environment {
    () => {
        "while [ \"$e\" -gt 0 ]; do IFS= read -r v || exit 75; export \"$v\"; e=$((e-1)); done; "
    };
}

/// Becomes the agent. Arguments: directory, hash, how many lines `NAME=VALUE` for its environment come first on standard
/// input. Tells its process number on standard error, so that it can be ended if it never greets. The process keeps its number,
/// which is in the name it runs from. Ends with status 75 (EX_TEMPFAIL of sysexits.h) if there is no file to start, or if
/// what lies under its name has another hash: what is started is what was looked at.
pub(crate) const START: &str = concat!(
    "d=$1; h=$2; e=$3; u=$d/use-$h-$(uname -n)-$$; ",
    "ln \"$d/agent-$h\" \"$u\" 2>/dev/null || cp -p \"$d/agent-$h\" \"$u\" || exit 75; ",
    "s=$(sha256sum < \"$u\"); [ \"${s%% *}\" = \"$h\" ] || { rm -f \"$u\"; exit 75; }; ",
    "echo \"@railgauge pid $$\" >&2; ",
    environment!(),
    "exec \"$u\""
);

/// Becomes the agent where it lies, as [`START`]. Arguments: its file, its hash, lines of its environment. Ends with status 75
/// if the file has another hash.
pub(crate) const START_IN_PLACE: &str = concat!(
    "u=$1; h=$2; e=$3; s=$(sha256sum < \"$u\"); [ \"${s%% *}\" = \"$h\" ] || exit 75; ",
    "echo \"@railgauge pid $$\" >&2; ",
    environment!(),
    "exec \"$u\""
);

/// The process number in a line of [`START`]'s standard error.
pub(crate) fn told_pid(line: &str) -> Option<u32> {
    line.strip_prefix(MARK)?.strip_prefix("pid ")?.parse().ok()
}

/// Ends an agent that did not end when it was asked to, also if it is stopped. Arguments: its process number and its hash. A
/// process that runs anything else is left alone: the number may be another's by now, or never have been the agent's.
pub(crate) const END: &str = "s=$(sha256sum < \"/proc/$1/exe\") && [ \"${s%% *}\" = \"$2\" ] && kill -KILL \"$1\"";

/// Takes an agent's file away. Arguments: directory, hash, the ended process, and `keep` if the file is to stay.
pub(crate) const CLEAR: &str = concat!(
    "cd \"$1\" || exit 1; n=$(uname -n); h=$2; q=$3; k=$4; ",
    sweep!(),
    "[ \"$k\" = keep ] && exit 0; ",
    "set -- use-\"$h\"-*; [ -e \"$1\" ] || rm -f \"agent-$h\""
);

/// The words that run a script with its arguments.
pub(crate) fn sh<'a>(script: &str, arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = ["sh", "-c", script, "railgauge"].map(str::to_owned).into();
    words.extend(arguments.into_iter().map(str::to_owned));
    words
}

/// The marked lines of a script's answer, without their mark. A line without an end is a part of one: the stream was cut.
pub(crate) fn answers(stdout: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(stdout);
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().filter_map(|line| Some(line.split_once(MARK)?.1.trim_end().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_read_the_same_in_every_login_shell() {
        for script in [PROBE, STORE, START, START_IN_PLACE, END, CLEAR] {
            assert!(!script.contains(['\'', '\\', '!', '\n']), "{script}");
        }
    }

    #[test]
    fn what_was_changed_after_the_look_is_not_started() {
        let place = tempfile::tempdir().unwrap();
        let (agent, mark) = (place.path().join("agent-x"), place.path().join("started"));
        std::fs::write(&agent, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
        std::fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let sum = std::process::Command::new("sha256sum").arg(&agent).output().unwrap().stdout;
        let right = String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned();
        let code =
            |words: Vec<String>| std::process::Command::new(&words[0]).args(&words[1..]).status().unwrap().code();
        let (directory, path) = (place.path().to_str().unwrap(), agent.to_str().unwrap());
        for words in [sh(START, [directory, "x", "0"]), sh(START_IN_PLACE, [path, "x", "0"])] {
            assert_eq!(code(words), Some(75));
            assert!(!mark.exists(), "a file with another hash was started");
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "a name of the agent is left");
        assert_eq!(code(sh(START_IN_PLACE, [path, &right, "0"])), Some(0));
        assert!(mark.exists());
    }

    #[test]
    fn an_agent_that_others_may_exchange_does_not_run_in_place() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("shared");
        std::fs::create_dir(&directory).unwrap();
        let agent = directory.join("agent");
        std::fs::copy("/bin/true", &agent).unwrap();
        let sum = std::process::Command::new("sha256sum").arg(&agent).output().unwrap().stdout;
        let hash = String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned();
        let allow = |path: &std::path::Path, mode| {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        let in_place = || {
            let image = format!("{}={hash}={}", std::env::consts::ARCH, agent.display());
            let words = sh(PROBE, ["two words", place.path().join("own").to_str().unwrap(), &image]);
            let output = std::process::Command::new(&words[0]).args(&words[1..]).output().unwrap();
            answers(&output.stdout).contains(&"in-place".to_owned())
        };
        for (above, own, expected) in [
            (0o755, 0o755, true),
            (0o777, 0o755, false),
            (0o755, 0o757, false),
            // On a file the sticky bit keeps nobody from writing.
            (0o755, 0o1757, false),
        ] {
            allow(&directory, above);
            allow(&agent, own);
            assert_eq!(in_place(), expected, "{above:o} {own:o}");
        }
        allow(&agent, 0o755);
        // The directory in which a link ends is not looked at.
        let real = directory.join("real");
        std::fs::rename(&agent, &real).unwrap();
        std::os::unix::fs::symlink(&real, &agent).unwrap();
        assert!(!in_place());
        std::fs::rename(&real, &agent).unwrap();
        // The owner may write whatever the mode says. Only root can make somebody else the owner, or the group.
        let (foreign_group, foreign) = ((None, Some(65_534)), (Some(65_534), None));
        for ((owner, group), mode, expected) in
            [(foreign_group, 0o755, true), (foreign_group, 0o775, false), (foreign, 0o755, false)]
        {
            if std::os::unix::fs::chown(&agent, owner, group).is_ok() {
                allow(&agent, mode);
                assert_eq!(in_place(), expected, "{owner:?} {group:?} {mode:o}");
            }
        }
    }

    #[test]
    fn only_a_process_of_the_agent_is_ended() {
        let place = tempfile::tempdir().unwrap();
        let agent = place.path().join("agent-x");
        std::fs::copy("/bin/sleep", &agent).unwrap();
        let sum = std::process::Command::new("sha256sum").arg(&agent).output().unwrap().stdout;
        let hash = String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned();
        let mut other = std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let mut own = std::process::Command::new(&agent).arg("600").spawn().unwrap();
        // The file of a running agent may have been swept.
        std::fs::remove_file(&agent).unwrap();
        for (process, ends) in [(&mut other, false), (&mut own, true)] {
            let words = sh(END, [process.id().to_string().as_str(), hash.as_str()]);
            let ended = std::process::Command::new(&words[0]).args(&words[1..]).status().unwrap().success();
            assert_eq!(ended, ends);
            if !ends {
                assert!(process.try_wait().unwrap().is_none(), "another process was ended");
                process.kill().unwrap();
            }
            process.wait().unwrap();
        }
    }

    #[test]
    fn chatter_is_not_an_answer() {
        let text = b"Welcome!\n@railgauge machine x86_64\r\nno newline @railgauge have\n";
        assert_eq!(answers(text), ["machine x86_64", "have"]);
    }

    #[test]
    fn a_part_of_a_line_is_not_an_answer() {
        assert_eq!(answers(b"@railgauge machine x86_64\n@railgauge directory /root/.cac"), ["machine x86_64"]);
    }
}

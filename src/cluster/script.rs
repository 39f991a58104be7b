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
//! | `use-HASH-NODE-PID` | a hard link (or copy) from which the agent runs that process PID of machine NODE waits for |
//! | `new-HASH-NODE-PID` | an upload under way |
//!
//! Every agent runs from a name of its own, so nothing that happens to `agent-HASH` (replaced by an equal one, removed
//! by another run) touches a running agent, also where a home directory is shared by all hosts over NFS. PID is the shell of
//! [`RAISE`], which takes the name away when its agent has ended. A name whose process is gone is swept by the next run on the
//! same machine; the last user of `agent-HASH` takes it along.

/// First word of a line of a script's answer; other lines are a login shell's chatter.
pub(crate) const MARK: &str = "@railgauge ";

/// Sweeps names of this machine (`$n`) whose process is gone or is process `$q`. The pattern also finds names of machine `gpu-1`
/// for machine `gpu`; a hash has no dash, so what stands behind it is compared.
macro_rules! sweep {
    () => {
        "for f in use-*-\"$n\"-* new-*-\"$n\"-*; do [ -e \"$f\" ] || continue; p=${f##*-}; \
         [ \"${f#*-*-}\" = \"$n-$p\" ] || continue; \
         case $p in \"$q\") rm -f \"$f\";; *) kill -0 \"$p\" 2>/dev/null || rm -f \"$f\";; esac; done; "
    };
}

/// Takes `agent-$h` away unless somebody still uses it.
macro_rules! last {
    () => {
        "set -- use-\"$h\"-*; [ -e \"$1\" ] || rm -f \"agent-$h\"; "
    };
}

/// Looks at a path and at all directories above it, and ends with a status other than 0 at the first one whose owner is neither
/// root nor the user, or to which others may write: who can rename a directory above decides what is started below. A
/// directory with the sticky bit (/tmp) lets nobody rename what is not his (sshd's StrictModes allows none); a group that is the
/// user's own, with his name, is himself, as many systems have it with umask 002. `$last` judges the path itself, and says
/// `exit 0` for a good one; an empty one has it judged like those above.
macro_rules! trusted {
    ($path:literal, $last:literal, $bad:literal) => {
        concat!(
            "i=$(id -u); p=",
            $path,
            "; set --; ",
            "while [ -n \"$p\" ]; do set -- \"$p\" \"$@\"; p=${p%/*}; done; set -- / \"$@\"; ",
            // One ls for all of them. The C locale sorts each before what is below it.
            "LC_ALL=C ls -ldn -- \"$@\" | while [ $# -gt 0 ]; do m=; o=; g=; read -r m l o g r; [ -n \"$m\" ] || { ",
            $bad,
            "; }; ",
            $last,
            "case $o in 0|\"$i\") ;; *) ",
            $bad,
            "; esac; ",
            "case $m in d????????[tT]*) ;; ????????w*) ",
            $bad,
            ";; ",
            "?????w*) [ \"$(id -gn)\" = \"$(id -un)\" ] && [ \"$g\" = \"$(id -g)\" ] || { ",
            $bad,
            "; };; esac; shift; done"
        )
    };
}

/// Brings the agent up in one login: looks at the host, takes the agent from standard input if it is not there, starts it, waits for
/// its end, and takes its file away. Arguments: `two words`, [`START`], the agent's directory or nothing, how many lines
/// `NAME=VALUE` for the agent's environment [`START`] reads, `keep` if the file is to stay, then `MACHINE=HASH=SIZE=FILE` for every
/// agent there is, with its size in bytes; FILE, if not empty, is tried in place first, if it and the directories above belong to
/// root or the user and nobody else may write to them.
///
/// Answers: `mangled` | `machine M` · `in-place` | `homeless` | `open MODE` | `foreign UID` | `above D MODE UID` |
/// `directory D` · `have` or `missing` (so many bytes are read then) · `stored` · `have` | `short` | `differs BYTES`. After
/// `in-place` and `have` the streams are the agent's. What is started is what was looked at: the hash is that of the very file.
/// Ends as the agent did; a signal that ended the agent ends the script too. Tells on standard error when all is taken away.
pub(crate) const RAISE: &str = concat!(
    "[ \"$1\" = \"two words\" ] || { echo \"@railgauge mangled\"; exit 0; }; ",
    "b=$2; d=$3; e=$4; k=$5; shift 5; x=$(uname -nm); n=${x%% *}; x=${x##* }; w=$(pwd); c=$(umask); q=; h=; ",
    "echo \"@railgauge machine $x\"; ",
    "for a in \"$@\"; do case $a in \"$x\"=*) h=${a#*=}; z=${h#*=}; h=${h%%=*}; f=${z#*=}; z=${z%%=*};; esac; done; ",
    "[ -n \"$h\" ] || exit 0; ",
    "if [ -n \"$f\" ] && [ -f \"$f\" ] && [ -x \"$f\" ] && s=$(sha256sum < \"$f\") && [ \"${s%% *}\" = \"$h\" ] ",
    // Where others may exchange the file between the look and the start, the agent is sent.
    "&& ( cd \"${f%/*}\" || exit 1; ",
    trusted!("$(pwd -P)/${f##*/}", "", "exit 1"),
    " ); then echo \"@railgauge in-place\"; exec sh -c \"$b\" railgauge \"$f\" \"$e\" \"$w\" \"$c\"; fi; ",
    "[ -n \"$d$XDG_CACHE_HOME$HOME\" ] || { echo \"@railgauge homeless\"; exit 0; }; ",
    "[ -n \"$d\" ] || d=${XDG_CACHE_HOME:-$HOME/.cache}/railgauge; ",
    "umask 077; [ -d \"$d\" ] || mkdir -p \"$d\" || exit 1; cd \"$d\" || exit 1; d=$(pwd -P); ( ",
    trusted!(
        "$d",
        "[ $# -gt 1 ] || { case $m in d????-??-*) ;; *) echo \"@railgauge open $m\"; exit 1;; esac; \
         [ \"$o\" = \"$i\" ] || { echo \"@railgauge foreign $o\"; exit 1; }; exit 0; }; ",
        "echo \"@railgauge above $1 (mode $m, uid $o)\"; exit 1"
    ),
    " ) || exit 0; echo \"@railgauge directory $d\"; ",
    sweep!(),
    "t=new-$h-$n-$$; u=use-$h-$n-$$; ",
    "[ -f \"agent-$h\" ] && { ln \"agent-$h\" \"$u\" 2>/dev/null || cp -p \"agent-$h\" \"$u\" 2>/dev/null; } ",
    "&& s=$(sha256sum < \"$u\") && [ \"${s%% *}\" = \"$h\" ] || { ",
    "rm -f \"$u\"; echo \"@railgauge missing\"; ",
    "head -c \"$z\" > \"$t\" || { rm -f \"$t\"; echo \"@railgauge short\"; exit 0; }; ",
    "s=$(sha256sum < \"$t\"); [ \"${s%% *}\" = \"$h\" ] || ",
    "{ set -- $(wc -c < \"$t\"); rm -f \"$t\"; echo \"@railgauge differs $1\"; exit 0; }; ",
    "chmod 700 \"$t\" && { ln \"$t\" \"$u\" 2>/dev/null || cp -p \"$t\" \"$u\"; } && mv -f \"$t\" \"agent-$h\" ",
    "|| { rm -f \"$t\" \"$u\"; exit 1; }; echo \"@railgauge stored\"; }; ",
    "echo \"@railgauge have\"; ",
    // What a shell says of a child that a signal ended is no word of the agent.
    "exec 4>&2 2>/dev/null; sh -c \"$b\" railgauge \"$d/$u\" \"$e\" \"$w\" \"$c\" 2>&4 4>&-; s=$?; exec 2>&4 4>&-; q=$$; ",
    sweep!(),
    "[ \"$k\" = keep ] || { ",
    last!(),
    "}; echo \"@railgauge cleared\" >&2; ",
    "[ \"$s\" -gt 128 ] && { ulimit -c 0; kill -\"$((s-128))\" $$; }; exit \"$s\"; ",
    // A command that joins its words for a shell adds the arguments here: they must not be a syntax error there, so
    // that the first line above is reached and says what is wrong.
    ":"
);

/// Becomes the agent. Arguments: its file, how many lines `NAME=VALUE` for its environment come first on standard input (what
/// stands on a command line everybody on the host can read), the directory to start in, and the umask. Tells on standard error
/// its process number, so that it can be ended if it never greets, and its parent's, which is in the name of its file. Ends with
/// status 75 (EX_TEMPFAIL of sysexits.h) if the lines do not come.
pub(crate) const START: &str = concat!(
    "cd \"$3\" || cd /; umask \"$4\"; e=$2; echo \"@railgauge pid $$ $PPID\" >&2; ",
    "while [ \"$e\" -gt 0 ]; do IFS= read -r v || exit 75; export \"$v\"; e=$((e-1)); done; ",
    "exec \"$1\""
);

/// What a script tells on standard error beside the words of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aside {
    /// The agent's process, and the one that waits for it and is in the name of its file.
    Started { agent: u32, keeper: u32 },
    /// The agent has ended, and its file is taken away.
    Cleared,
}

/// What [`RAISE`] and [`START`] tell in a line of standard error.
pub(crate) fn aside(line: &str) -> Option<Aside> {
    let mut words = line.strip_prefix(MARK)?.split(' ');
    match words.next()? {
        "cleared" => Some(Aside::Cleared),
        "pid" => {
            let mut number = || words.next()?.parse().ok();
            Some(Aside::Started { agent: number()?, keeper: number()? })
        }
        _ => None,
    }
}

/// Ends an agent that did not end when it was asked to, also if it is stopped. Arguments: its process number and its hash. A
/// process that runs anything else is left alone: the number may be another's by now, or never have been the agent's.
pub(crate) const END: &str = "s=$(sha256sum < \"/proc/$1/exe\") && [ \"${s%% *}\" = \"$2\" ] && kill -KILL \"$1\"";

/// Takes an agent's file away where [`RAISE`] could not. Arguments: directory, hash, the process in the name of the file, and
/// `keep` if the file is to stay.
pub(crate) const CLEAR: &str = concat!(
    "cd \"$1\" || exit 1; n=$(uname -n); h=$2; q=$3; k=$4; ",
    sweep!(),
    "[ \"$k\" = keep ] && exit 0; ",
    last!(),
);

/// The words that run a script with its arguments.
pub(crate) fn sh<'a>(script: &str, arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = ["sh", "-c", script, "railgauge"].map(str::to_owned).into();
    words.extend(arguments.into_iter().map(str::to_owned));
    words
}

/// What a line of a script's output answers, and the chatter in front of it; `None` for a line that is all chatter.
pub(crate) fn answer(line: &str) -> Option<(&str, &str)> {
    let (chatter, answer) = line.split_once(MARK)?;
    Some((chatter, answer.trim_end()))
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        path::Path,
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn scripts_read_the_same_in_every_login_shell() {
        for script in [RAISE, START, END, CLEAR] {
            assert!(!script.contains(['\'', '\\', '!', '\n']), "{script}");
        }
    }

    fn hash_of(file: &Path) -> String {
        let sum = Command::new("sha256sum").arg(file).output().unwrap().stdout;
        String::from_utf8(sum).unwrap().split_whitespace().next().unwrap().to_owned()
    }

    /// A file that everybody may run.
    fn program(file: &Path, text: &str) {
        std::fs::write(file, text).unwrap();
        allow(file, 0o700);
    }

    fn allow(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    }

    /// What [`RAISE`] comes to with this agent, and so many bytes of standard input.
    fn raised(directory: &Path, keep: &str, image: &str, input: &[u8]) -> std::process::Output {
        let words = sh(RAISE, ["two words", START, directory.to_str().unwrap(), "0", keep, image]);
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A script that reads nothing may have ended.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// The words of the answers, without what follows them.
    fn answers(output: &std::process::Output) -> Vec<String> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter_map(answer).map(|(_, words)| words.split(' ').next().unwrap().to_owned()).collect()
    }

    fn left(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    const HERE: &str = std::env::consts::ARCH;

    #[test]
    fn an_agent_is_stored_started_and_taken_away_in_one_go() {
        let place = tempfile::tempdir().unwrap();
        let (agent, agents) = (place.path().join("agent"), place.path().join("agents"));
        let text = "#!/bin/sh\necho \"agent in $(pwd)\"; umask; exit 3\n";
        program(&agent, text);
        let image = format!("{HERE}={}={}=", hash_of(&agent), text.len());
        let output = raised(&agents, "", &image, text.as_bytes());
        assert_eq!(answers(&output), ["machine", "directory", "missing", "stored", "have"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let here = std::env::current_dir().unwrap();
        assert!(said.contains(&format!("agent in {}\n", here.display())), "{said}");
        // The script's own umask is for its files alone.
        let own = Command::new("sh").args(["-c", "umask"]).output().unwrap().stdout;
        assert!(output.stdout.ends_with(&own), "{said}");
        assert_eq!(output.status.code(), Some(3));
        let asides: Vec<Aside> = String::from_utf8_lossy(&output.stderr).lines().filter_map(aside).collect();
        assert!(
            matches!(asides[..], [Aside::Started { agent, keeper }, Aside::Cleared] if agent != keeper),
            "{asides:?}"
        );
        assert_eq!(left(&agents), 0);
        // Kept, it is not sent again.
        let output = raised(&agents, "keep", &image, text.as_bytes());
        assert_eq!(answers(&output), ["machine", "directory", "missing", "stored", "have"]);
        let output = raised(&agents, "keep", &image, b"");
        assert_eq!(answers(&output), ["machine", "directory", "have"]);
        assert_eq!(left(&agents), 1);
    }

    #[test]
    fn a_signal_that_ends_the_agent_ends_its_script_and_nothing_is_left() {
        use std::os::unix::process::ExitStatusExt;
        let place = tempfile::tempdir().unwrap();
        let (agent, agents) = (place.path().join("agent"), place.path().join("agents"));
        let text = "#!/bin/sh\nkill -KILL $$\n";
        program(&agent, text);
        let image = format!("{HERE}={}={}=", hash_of(&agent), text.len());
        let output = raised(&agents, "", &image, text.as_bytes());
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        assert_eq!(left(&agents), 0);
    }

    #[test]
    fn only_names_of_this_machine_are_swept() {
        let place = tempfile::tempdir().unwrap();
        let (agent, agents) = (place.path().join("agent"), place.path().join("agents"));
        let text = "#!/bin/sh\n:\n";
        program(&agent, text);
        std::fs::create_dir(&agents).unwrap();
        allow(&agents, 0o700);
        let node = Command::new("uname").arg("-n").output().unwrap().stdout;
        let node = String::from_utf8(node).unwrap().trim().to_owned();
        // No process has this number: it is above the largest that Linux gives (2²²).
        let names = ["", "-1", "a-"].map(|other| match other.strip_suffix('-') {
            Some(before) => format!("use-x-{before}-{node}-9999999"),
            None => format!("use-x-{node}{other}-9999999"),
        });
        names.iter().for_each(|name| program(&agents.join(name), text));
        let image = format!("{HERE}={}={}=", hash_of(&agent), text.len());
        raised(&agents, "", &image, text.as_bytes());
        assert_eq!(names.map(|name| agents.join(name).exists()), [false, true, true]);
    }

    #[test]
    fn what_has_another_hash_is_not_started() {
        let place = tempfile::tempdir().unwrap();
        let (agents, mark) = (place.path().join("agents"), place.path().join("started"));
        let text = format!("#!/bin/sh\ntouch {}\n", mark.display());
        std::fs::create_dir(&agents).unwrap();
        allow(&agents, 0o700);
        let (other, stored) = (place.path().join("other"), agents.join("agent-x"));
        program(&other, &text);
        program(&stored, &text);
        // Under the agent's name in its directory, in place, and as it arrives: whole, cut off, not at all.
        for (file, input) in
            [("", &b""[..]), (other.to_str().unwrap(), b""), ("", text.as_bytes()), ("", b"#!/bin/sh\n")]
        {
            let output = raised(&agents, "", &format!("{HERE}=x={}={file}", text.len()), input);
            assert_eq!(answers(&output), ["machine", "directory", "missing", "differs"], "{output:?}");
            assert!(!mark.exists(), "a file with another hash was started");
            assert_eq!(left(&agents), 1, "more than what was there is left");
        }
        let right = hash_of(&other);
        let output = raised(&agents, "", &format!("{HERE}={right}={}={}", text.len(), other.display()), b"");
        assert_eq!(answers(&output), ["machine", "in-place"]);
        assert!(mark.exists());
    }

    #[test]
    fn an_agent_that_others_may_exchange_does_not_run_in_place() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("shared");
        std::fs::create_dir(&directory).unwrap();
        let agent = directory.join("agent");
        std::fs::copy("/bin/true", &agent).unwrap();
        let hash = hash_of(&agent);
        let in_place = || {
            let image = format!("{HERE}={hash}=1={}", agent.display());
            answers(&raised(&place.path().join("own"), "", &image, b"")).contains(&"in-place".to_owned())
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
        let hash = hash_of(&agent);
        let mut other = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
        let mut own = Command::new(&agent).arg("600").spawn().unwrap();
        // The file of a running agent may have been swept.
        std::fs::remove_file(&agent).unwrap();
        for (process, ends) in [(&mut other, false), (&mut own, true)] {
            let words = sh(END, [process.id().to_string().as_str(), hash.as_str()]);
            let ended = Command::new(&words[0]).args(&words[1..]).status().unwrap().success();
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
        assert_eq!(answer("Welcome!"), None);
        assert_eq!(answer("@railgauge machine x86_64\r"), Some(("", "machine x86_64")));
        assert_eq!(answer("no newline @railgauge have"), Some(("no newline ", "have")));
        assert_eq!(aside("@railgauge pid 7 6"), Some(Aside::Started { agent: 7, keeper: 6 }));
        assert_eq!(aside("@railgauge cleared"), Some(Aside::Cleared));
        assert_eq!((aside("the agent says cleared"), aside("@railgauge pid 7")), (None, None));
    }
}

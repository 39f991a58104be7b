//! Scripts on hosts around the agent, for `sh -c`, with their values as arguments.
//!
//! ssh hands a command to the login shell as one text, quoted for it. So the scripts are one line each and hold no single quote, no
//! backslash and no exclamation mark: sh, bash, zsh, csh and fish then read the same. They need nothing but POSIX sh, the core utilities
//! (or busybox) and `sha256sum`. Between a pod and its client the end of a stream may be lost: what is read before the agent runs is read
//! by `timeout`, where the host has one, so that no script waits forever.
//!
//! Files in the agent's directory, all of them written by these scripts:
//!
//! | name | is |
//! | --- | --- |
//! | `agent-HASH` | the agent, complete and checked: it gets this name only after its hash was right |
//! | `use-HASH-NODE-PID` | a hard link (or copy) from which the agent runs that process PID of machine NODE waits for; a process in a PID namespace of its own is NAMESPACE.PID, by the number of the namespace |
//! | `new-HASH-NODE-PID` | an upload under way |
//!
//! Every agent runs from a name of its own, so nothing that happens to `agent-HASH` (replaced by an equal one, removed by another run)
//! touches a running agent, also where a home directory is shared by all hosts over NFS. PID is the shell of [`RAISE`], which takes the
//! name away when its agent has ended. A name whose process is gone is swept by the next run on the same machine and in the same namespace;
//! the last user of `agent-HASH` takes it along. Whether a process of another namespace lives cannot be seen (pods of one node that share a
//! home): its name is swept after a day.

use std::collections::BTreeMap;

/// First word of a line of a script's answer; other lines are output of the login shell.
pub(crate) const MARK: &str = "@railgauge ";

/// Sets `$y` to the prefix of process numbers in names: empty in the first PID namespace of a machine (its number is `PROC_PID_INIT_INO` of
/// Linux' proc_ns.h, 0xEFFFFFFC), or where the namespace is unknown.
macro_rules! namespace {
    () => {
        "y=$(readlink /proc/self/ns/pid 2> /dev/null); y=${y#*:?}; y=${y%?}; \
         case $y in \"\"|4026531836) y=;; *) y=$y.;; esac; "
    };
}

/// Sweeps names of this machine (`$n`) whose process is gone or is process `$q`, and those of other PID namespaces than `$y` without a new
/// link for a day. The pattern for machine `gpu` also matches `gpu-1`; a hash has no dash, so the rest after it is compared.
macro_rules! sweep {
    () => {
        "for f in use-*-\"$n\"-* new-*-\"$n\"-*; do [ -e \"$f\" ] || continue; p=${f##*-}; \
         [ \"${f#*-*-}\" = \"$n-$p\" ] || continue; \
         case $p in \"$q\") rm -f \"$f\"; continue;; \"$y\"*) p=${p#\"$y\"};; *) p=.;; esac; \
         case $p in *.*) find \"$f\" -ctime +0 -exec rm -f {} + 2> /dev/null;; \
         *) kill -0 \"$p\" 2> /dev/null || rm -f \"$f\";; esac; done; "
    };
}

/// Removes `agent-$h` unless it is still used.
macro_rules! last {
    () => {
        "set -- use-\"$h\"-*; [ -e \"$1\" ] || rm -f \"agent-$h\"; "
    };
}

/// Checks a path and all directories above it, and ends with a status other than 0 at the first one whose owner is neither root nor the
/// user, or that others may write to: a user who can rename a directory above decides what is started below. In a directory with the sticky
/// bit (/tmp) users can rename only their own files (sshd's StrictModes allows none); a group with the user's own name counts as the user,
/// as many systems have it with umask 002. `$last` judges the path itself, and says `exit 0` for a good one; if empty, the path is judged
/// like those above.
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

/// Brings the agent up in one login: checks the host, reads the agent from standard input if it is missing, starts it, waits for its end,
/// and removes its file. Arguments: `two words`, [`START`], the agent's directory or nothing, how many bytes of environment [`START`]
/// reads, `keep` if the file is to stay, the most seconds to wait for each of the agent and its environment, then `MACHINE=HASH=FILE` for
/// every agent available; FILE, if not empty, is tried in place first, if it and the directories above belong to root or the user and no
/// others may write to them.
///
/// Answers: `mangled` | `machine M` · `in-place` | `homeless` | `open MODE` | `foreign UID` | `above D MODE UID` | `directory D` · `have`
/// or `missing gzip` or `missing` ([`upload`] is read then, of a gzip file if `gzip` can unpack it here) · `stored` · `have` | `short` |
/// `differs BYTES`. After `in-place` and `have` the streams are the agent's. The hash is that of the very file that is started. Ends as the
/// agent did; a signal that ended the agent ends the script too. Reports on standard error when everything is removed.
pub(crate) const RAISE: &str = concat!(
    "[ \"$1\" = \"two words\" ] || { echo \"@railgauge mangled\"; exit 0; }; ",
    "b=$2; d=$3; e=$4; k=$5; l=$6; shift 6; x=$(uname -nm); n=${x%% *}; x=${x##* }; w=$(pwd); c=$(umask); q=; h=; ",
    namespace!(),
    // Old ones of busybox have another syntax for seconds, and small images have none.
    "j=; timeout \"$l\" true > /dev/null 2>&1 && j=\"timeout $l\"; ",
    "echo \"@railgauge machine $x\"; ",
    "for a in \"$@\"; do case $a in \"$x\"=*) h=${a#*=}; f=${h#*=}; h=${h%%=*};; esac; done; ",
    "[ -n \"$h\" ] || exit 0; ",
    "if [ -n \"$f\" ] && [ -f \"$f\" ] && [ -x \"$f\" ] && s=$(sha256sum < \"$f\") && [ \"${s%% *}\" = \"$h\" ] ",
    // Where others may exchange the file between the check and the start, the agent is sent.
    "&& ( cd \"${f%/*}\" || exit 1; ",
    trusted!("$(pwd -P)/${f##*/}", "", "exit 1"),
    " ); then echo \"@railgauge in-place\"; exec sh -c \"$b\" railgauge \"$f\" \"$e\" \"$w\" \"$c\" \"$j\"; fi; ",
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
    "t=new-$h-$n-$y$$; u=use-$h-$n-$y$$; ",
    "[ -f \"agent-$h\" ] && { ln \"agent-$h\" \"$u\" 2>/dev/null || cp -p \"agent-$h\" \"$u\" 2>/dev/null; } ",
    "&& s=$(sha256sum < \"$u\") && [ \"${s%% *}\" = \"$h\" ] || { ",
    "rm -f \"$u\"; g=cat; m=missing; command -v gzip > /dev/null && { g=\"gzip -dc\"; m=\"missing gzip\"; }; ",
    // head of busybox reads more than requested.
    "echo \"@railgauge $m\"; z=$($j dd bs=1 count=12 2> /dev/null); ",
    // cat reports a full disk; head of busybox calls that an I/O error.
    "$j head -c ${z:-0} | $g | cat > \"$t\" || { rm -f \"$t\"; echo \"@railgauge short\"; exit 0; }; ",
    "s=$(sha256sum < \"$t\"); [ \"${s%% *}\" = \"$h\" ] || ",
    "{ set -- $(wc -c < \"$t\"); rm -f \"$t\"; echo \"@railgauge differs $1\"; exit 0; }; ",
    "chmod 700 \"$t\" && { ln \"$t\" \"$u\" 2>/dev/null || cp -p \"$t\" \"$u\"; } && mv -f \"$t\" \"agent-$h\" ",
    "|| { rm -f \"$t\" \"$u\"; exit 1; }; echo \"@railgauge stored\"; }; ",
    "echo \"@railgauge have\"; ",
    // A shell's message about a killed child is not the agent's.
    "exec 4>&2 2>/dev/null; sh -c \"$b\" railgauge \"$d/$u\" \"$e\" \"$w\" \"$c\" \"$j\" 2>&4 4>&-; s=$?; exec 2>&4 4>&-; q=$y$$; ",
    sweep!(),
    "[ \"$k\" = keep ] || { ",
    last!(),
    "}; echo \"@railgauge cleared\" >&2; ",
    "[ \"$s\" -gt 128 ] && { ulimit -c 0; kill -\"$((s-128))\" $$; }; exit \"$s\"; ",
    // A command that joins its words for a shell adds the arguments here: they must not be a syntax error there, so that the first line
    // above runs and reports the problem.
    ":"
);

/// What [`RAISE`] reads of a missing agent: the number of bytes, as twelve characters, and the bytes.
pub(crate) fn upload(bytes: &[u8]) -> Vec<u8> {
    let mut all = format!("{:>12}", bytes.len()).into_bytes();
    all.extend(bytes);
    all
}

/// Becomes the agent. Arguments: its file, how many bytes of [`environment`] come first on standard input (command lines are readable to
/// all users of the host), the directory to start in, the umask, and the words that limit the wait for them. Reports its process number on
/// standard error, so that it can be ended if it never greets, and its parent's, which is in the name of its file. Ends with status 75
/// (EX_TEMPFAIL of sysexits.h) if the environment is incomplete.
pub(crate) const START: &str = concat!(
    "cd \"$3\" || cd /; umask \"$4\"; echo \"@railgauge pid $$ $PPID\" >&2; ",
    "if [ \"$2\" -gt 0 ]; then v=$($5 head -c \"$2\"); n=$(echo; echo .); n=${n%.}; ",
    "case $v in *\"$n.\") ;; *) exit 75;; esac; ",
    "set -f; IFS=$n; set -- $v \"$1\"; unset v n IFS; until [ \"$1\" = . ]; do export \"$1\"; shift; done; shift; fi; ",
    "exec \"$1\""
);

/// What [`START`] reads for these variables: lines `NAME=VALUE`, and a final dot that marks completeness; empty for none.
pub(crate) fn environment(variables: &BTreeMap<String, String>) -> String {
    let mut text: String = variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    if !text.is_empty() {
        text.push_str(".\n");
    }
    text
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aside {
    /// The agent's process, and the one that waits for it and is in the name of its file.
    Started { agent: u32, keeper: u32 },
    /// The agent has ended, and its file is removed.
    Cleared,
}

/// Parses a line of standard error by [`RAISE`] or [`START`].
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

/// Ends an agent that did not end when asked, even if it is stopped. Arguments: its process number and its hash. A process that runs
/// anything else is left alone: the number may have been reused, or never have been the agent's.
pub(crate) const END: &str = "s=$(sha256sum < \"/proc/$1/exe\") && [ \"${s%% *}\" = \"$2\" ] && kill -KILL \"$1\"";

/// Removes an agent's file where [`RAISE`] could not. Arguments: directory, hash, the process in the name of the file, and `keep` if the
/// file is to stay.
pub(crate) const CLEAR: &str = concat!(
    "cd \"$1\" || exit 1; n=$(uname -n); h=$2; k=$4; ",
    namespace!(),
    "q=$y$3; ",
    sweep!(),
    "[ \"$k\" = keep ] && exit 0; ",
    last!(),
);

pub(crate) fn sh<'a>(script: &str, arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut words: Vec<String> = ["sh", "-c", script, "railgauge"].map(str::to_owned).into();
    words.extend(arguments.into_iter().map(str::to_owned));
    words
}

/// The answer in a line of a script's output, and the text before it; `None` for a line without an answer.
pub(crate) fn answer(line: &str) -> Option<(&str, &str)> {
    let (chatter, answer) = line.split_once(MARK)?;
    Some((chatter, answer.trim_end()))
}

#[cfg(test)]
mod tests;

//! The scripts, each run by this machine's `sh`.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

#[path = "../../../tests/support/skip.rs"]
#[allow(unreachable_pub, reason = "programs of tests use it too")]
mod skip;

use super::*;
use crate::cluster::binary::packed;

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

fn program(file: &Path, text: &str) {
    std::fs::write(file, text).unwrap();
    allow(file, 0o700);
}

fn allow(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

/// [`RAISE`] behind these words, with so many bytes of environment and so many seconds for what is read.
fn raising(behind: &[&str], directory: &Path, env: usize, keep: &str, limit: &str, image: &str) -> Child {
    let arguments = ["two words", START, directory.to_str().unwrap(), &env.to_string(), keep, limit, image];
    let words: Vec<String> = behind.iter().map(|&word| word.to_owned()).chain(sh(RAISE, arguments)).collect();
    Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Result of [`RAISE`] with this agent, and so many bytes of standard input.
fn raised(directory: &Path, keep: &str, image: &str, input: &[u8]) -> std::process::Output {
    let mut child = raising(&[], directory, 0, keep, "60", image);
    // A script that reads nothing may have ended.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// What is sent of an agent to this machine.
fn sent(agent: &[u8]) -> Vec<u8> {
    upload(&packed(agent).unwrap())
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

/// An agent that is a shell script, and a directory for agents, which is not there yet.
struct Staged {
    _place: tempfile::TempDir,
    text: &'static str,
    /// It, as [`RAISE`] takes it.
    image: String,
    agents: PathBuf,
}

impl Staged {
    fn new(text: &'static str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let (agent, agents) = (place.path().join("agent"), place.path().join("agents"));
        program(&agent, text);
        let image = format!("{HERE}={}=", hash_of(&agent));
        Self { _place: place, text, image, agents }
    }

    fn with_directory(self) -> Self {
        own_directory(&self.agents);
        self
    }

    /// What comes of it if the agent is sent.
    fn raised(&self, keep: &str) -> std::process::Output {
        raised(&self.agents, keep, &self.image, &sent(self.text.as_bytes()))
    }
}

fn own_directory(directory: &Path) {
    std::fs::create_dir(directory).unwrap();
    allow(directory, 0o700);
}

fn node() -> String {
    let node = Command::new("uname").arg("-n").output().unwrap().stdout;
    String::from_utf8(node).unwrap().trim().to_owned()
}

/// Whether `unshare` may do this here; if not, that is said and noted.
fn may_unshare(apart: &[&str]) -> bool {
    let tried = Command::new(apart[0]).args(&apart[1..]).arg("true").status();
    let may = tried.is_ok_and(|status| status.success());
    if !may {
        let reason = format!("scripts of the agent's start: `{}` is not allowed here", apart[..2].join(" "));
        skip::skipped(&reason);
    }
    may
}

#[test]
fn an_agent_is_stored_started_and_taken_away_in_one_go() {
    let staged = Staged::new("#!/bin/sh\necho \"agent in $(pwd)\"; umask; exit 3\n");
    let Staged { image, agents, .. } = &staged;
    let output = staged.raised("");
    assert_eq!(answers(&output), ["machine", "directory", "missing", "stored", "have"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let here = std::env::current_dir().unwrap();
    assert!(said.contains(&format!("agent in {}\n", here.display())), "{said}");
    // The script's own umask is for its files alone.
    let own = Command::new("sh").args(["-c", "umask"]).output().unwrap().stdout;
    assert!(output.stdout.ends_with(&own), "{said}");
    assert_eq!(output.status.code(), Some(3));
    let asides: Vec<Aside> = String::from_utf8_lossy(&output.stderr).lines().filter_map(aside).collect();
    assert!(matches!(asides[..], [Aside::Started { agent, keeper }, Aside::Cleared] if agent != keeper), "{asides:?}");
    assert_eq!(left(agents), 0);
    // Kept, it is not sent again.
    let output = staged.raised("keep");
    assert_eq!(answers(&output), ["machine", "directory", "missing", "stored", "have"]);
    let output = raised(agents, "keep", image, b"");
    assert_eq!(answers(&output), ["machine", "directory", "have"]);
    assert_eq!(left(agents), 1);
}

/// A small image need not have gzip.
#[test]
fn a_host_without_gzip_is_sent_the_agent_as_it_is() {
    let staged = Staged::new("#!/bin/sh\necho started\n");
    let place = tempfile::tempdir().unwrap();
    for directory in ["/bin", "/usr/bin"] {
        for tool in std::fs::read_dir(directory).unwrap().flatten().filter(|tool| tool.file_name() != "gzip") {
            let _ = std::os::unix::fs::symlink(tool.path(), place.path().join(tool.file_name()));
        }
    }
    let path = format!("PATH={}", place.path().display());
    let behind = ["env", &path];
    let mut child = raising(&behind, &staged.agents, 0, "", "60", &staged.image);
    child.stdin.take().unwrap().write_all(&upload(staged.text.as_bytes())).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains("@railgauge missing\n") && said.ends_with("@railgauge have\nstarted\n"), "{said}");
}

#[test]
fn a_signal_that_ends_the_agent_ends_its_script_and_nothing_is_left() {
    use std::os::unix::process::ExitStatusExt;
    let staged = Staged::new("#!/bin/sh\nkill -KILL $$\n");
    let Staged { agents, .. } = &staged;
    let output = staged.raised("");
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    assert_eq!(left(agents), 0);
}

/// Waits for the end of a script whose input is never closed.
#[track_caller]
fn ends(mut child: Child) -> std::process::Output {
    let stdin = child.stdin.take();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(90) {
            child.kill().unwrap();
            panic!("the script waits for what does not come");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(stdin);
    child.wait_with_output().unwrap()
}

/// As when the client of a pod is gone, and the input of the process there is not closed.
#[test]
fn an_agent_or_an_environment_of_which_the_rest_never_comes_is_not_waited_for_for_ever() {
    let staged = Staged::new("#!/bin/sh\n:\n");
    let Staged { text, image, agents, .. } = &staged;
    let mut child = raising(&[], agents, 0, "", "1", image);
    child.stdin.as_mut().unwrap().write_all(&sent(text.as_bytes())[..20]).unwrap();
    let output = ends(child);
    assert_eq!(answers(&output), ["machine", "directory", "missing", "differs"], "{output:?}");
    assert_eq!(left(agents), 0);
    let env = environment(&[("A".to_owned(), "1".to_owned())].into());
    // Long enough for what is there to be read on a busy machine.
    let mut child = raising(&[], agents, env.len(), "", "8", image);
    child.stdin.as_mut().unwrap().write_all(&sent(text.as_bytes())).unwrap();
    child.stdin.as_mut().unwrap().write_all(&env.as_bytes()[..3]).unwrap();
    let output = ends(child);
    assert_eq!(output.status.code(), Some(75), "{output:?}");
    assert_eq!(left(agents), 0);
}

#[test]
fn a_full_disk_is_told_in_the_systems_words() {
    let place = tempfile::tempdir().unwrap();
    let (agents, small) = (place.path().join("agents"), place.path().join("small"));
    own_directory(&agents);
    std::fs::create_dir(&small).unwrap();
    for name in ["head", "cat", "cp", "rm", "sha256sum"] {
        std::os::unix::fs::symlink("/bin/busybox", small.join(name)).unwrap();
    }
    let full = format!("mount -t tmpfs -o size=16k,mode=700 tmpfs {} && exec \"$@\"", agents.display());
    let apart = ["unshare", "--mount", "sh", "-c", &full, "sh"];
    if !may_unshare(&apart) {
        return;
    }
    let mut paths = vec![std::env::var("PATH").unwrap()];
    if Path::new("/bin/busybox").exists() {
        paths.push(format!("{}:{}", small.display(), paths[0]));
    }
    for path in paths {
        let path = format!("PATH={path}");
        let behind = [&apart[..], &["env", &path]].concat();
        let mut child = raising(&behind, &agents, 0, "", "60", &format!("{HERE}=x="));
        // The script stops to read when the disk is full.
        let _ = child.stdin.take().unwrap().write_all(&sent(&vec![7; 1_000_000]));
        let output = child.wait_with_output().unwrap();
        assert_eq!(answers(&output), ["machine", "directory", "missing", "short"], "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No space left on device"), "{output:?}");
    }
}

#[test]
fn the_environment_arrives_as_it_is() {
    let staged = Staged::new("#!/bin/sh\nprintf '%s|' \"$A\" \"$B\" \"$v\"\ncat\n");
    let Staged { text, image, agents, .. } = &staged;
    let values = [("A", " two  words *\t"), ("B", ""), ("v", ".")];
    let env = environment(&values.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    let mut child = raising(&[], agents, env.len(), "", "60", image);
    let input = [sent(text.as_bytes()), format!("{env}the agent's").into_bytes()].concat();
    child.stdin.take().unwrap().write_all(&input).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.ends_with("@railgauge have\n two  words *\t||.|the agent's"), "{said:?}");
}

/// Two pods of a node that share a home directory may have processes of one number.
#[test]
fn names_of_another_pid_namespace_are_left_alone() {
    let staged = Staged::new("#!/bin/sh\n:\n").with_directory();
    let Staged { text, image, agents, .. } = &staged;
    let node = node();
    // No process has this number in any namespace.
    let other = agents.join(format!("use-x-{node}-4026599999.9999999"));
    program(&other, text);
    staged.raised("");
    assert!(other.exists());
    // Inside, the script is process 1; so is somebody here.
    let one = agents.join(format!("use-x-{node}-1"));
    program(&one, text);
    let apart = ["unshare", "--pid", "--fork", "--mount-proc"];
    if !may_unshare(&apart) {
        return;
    }
    let mut child = raising(&apart, agents, 0, "", "60", image);
    child.stdin.take().unwrap().write_all(&sent(text.as_bytes())).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(answers(&output), ["machine", "directory", "missing", "stored", "have"], "{output:?}");
    assert!(one.exists() && other.exists(), "{output:?}");
    assert_eq!(left(agents), 2);
}

#[test]
fn only_names_of_this_machine_are_swept() {
    let staged = Staged::new("#!/bin/sh\n:\n").with_directory();
    let Staged { text, agents, .. } = &staged;
    let node = node();
    // No process has this number: it is above the largest that Linux gives (2²²).
    let names = ["", "-1", "a-"].map(|other| match other.strip_suffix('-') {
        Some(before) => format!("use-x-{before}-{node}-9999999"),
        None => format!("use-x-{node}{other}-9999999"),
    });
    names.iter().for_each(|name| program(&agents.join(name), text));
    staged.raised("");
    assert_eq!(names.map(|name| agents.join(name).exists()), [false, true, true]);
}

#[test]
fn what_has_another_hash_is_not_started() {
    let place = tempfile::tempdir().unwrap();
    let (agents, mark) = (place.path().join("agents"), place.path().join("started"));
    let text = format!("#!/bin/sh\ntouch {}\n", mark.display());
    own_directory(&agents);
    let (other, stored) = (place.path().join("other"), agents.join("agent-x"));
    program(&other, &text);
    program(&stored, &text);
    // Under the agent's name in its directory, in place, and as it arrives: whole, shorter, cut off, not packed, not at all.
    let (whole, shorter) = (sent(text.as_bytes()), sent(b"#!/bin/sh\n"));
    let raw = upload(text.as_bytes());
    for (file, input) in [
        ("", &b""[..]),
        (other.to_str().unwrap(), b""),
        ("", &whole),
        ("", &shorter),
        ("", &whole[..whole.len() - 9]),
        ("", &raw),
    ] {
        let output = raised(&agents, "", &format!("{HERE}=x={file}"), input);
        assert_eq!(answers(&output), ["machine", "directory", "missing", "differs"], "{output:?}");
        assert!(!mark.exists(), "a file with another hash was started");
        assert_eq!(left(&agents), 1, "more than what was there is left");
    }
    let right = hash_of(&other);
    let output = raised(&agents, "", &format!("{HERE}={right}={}", other.display()), b"");
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
        let image = format!("{HERE}={hash}={}", agent.display());
        answers(&raised(&place.path().join("own"), "", &image, b"")).contains(&"in-place".to_owned())
    };
    for (above, own, expected) in [
        (0o755, 0o755, true),
        (0o777, 0o755, false),
        (0o755, 0o757, false),
        // On a file the sticky bit stops no writer.
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

//! Where `railgauge init` has its hosts from: the command line, a file, an ssh_config, a Slurm allocation, or a person.

use std::{
    collections::BTreeSet,
    env, fs,
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
};

use railgauge_model::{
    border::text::path_text,
    plan::{self, FileFault, hostlist},
};

use super::Args;
use crate::cli::{Misuse, common::hostname};

/// Variables in which Slurm tells a job its nodes (sbatch(1), salloc(1)); the second is the older name.
const NODES: [&str; 2] = ["SLURM_JOB_NODELIST", "SLURM_NODELIST"];
/// Files of an ssh_config that include each other, at most.
const INCLUDES: usize = 16;

/// The names of the hosts, each once, in their order.
///
/// # Errors
/// There are none, or they cannot be read.
pub(super) fn hosts(args: &Args) -> Result<Vec<String>, Misuse> {
    let mut names = match (&args.names, &args.hosts_file, &args.ssh_config) {
        (names, ..) if !names.is_empty() => expand(&joined(names.iter().map(String::as_str)), "")?,
        (_, Some(path), _) => of_file(path)?,
        _ if args.slurm => of_allocation()?,
        (.., Some(path)) => of_ssh(path)?,
        _ if args.via.as_deref() == Some("local") => vec![hostname().unwrap_or_else(|| "localhost".to_owned())],
        _ => typed()?,
    };
    let without: BTreeSet<String> = match &args.exclude {
        Some(list) => expand(list, "--exclude: ")?.into_iter().collect(),
        None => BTreeSet::new(),
    };
    let mut known = BTreeSet::new();
    names.retain(|name| !without.contains(name) && known.insert(name.clone()));
    if names.is_empty() {
        return Err(Misuse("no host is left to plan for".to_owned()));
    }
    Ok(names)
}

/// Words as one hostlist, whether commas, blanks or both separate them.
fn joined<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words = words.map(|word| word.trim_matches([',', ' '])).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(",")
}

fn expand(list: &str, place: &str) -> Result<Vec<String>, Misuse> {
    hostlist::expand(list).map_err(|wrong| Misuse(format!("{place}`{list}`: {wrong}")))
}

/// One hostlist on each line, `#` begins a comment: as a plan's `file`.
fn of_file(path: &Path) -> Result<Vec<String>, Misuse> {
    let shown = path_text(path);
    let text = plan::text_of(path).map_err(|fault| {
        let help = match fault {
            FileFault::Io(_) => "check the path",
            _ => "name a text file with one hostlist on each line",
        };
        Misuse(format!("the host file {shown} {fault}; {help}"))
    })?;
    let mut names = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let list = line.split('#').next().unwrap_or_default().trim();
        if !list.is_empty() {
            names.extend(expand(list, &format!("{shown}, line {number}: "))?);
        }
    }
    if names.is_empty() {
        return Err(Misuse(format!("{shown} lists no hosts; write one hostlist on each line, such as gpu[001-016]")));
    }
    Ok(names)
}

fn of_allocation() -> Result<Vec<String>, Misuse> {
    let found = NODES.iter().find_map(|name| env::var(name).ok()).filter(|list| !list.trim().is_empty());
    match found {
        Some(list) => expand(&list, "the nodes of the Slurm allocation: "),
        None => Err(Misuse(format!(
            "--slurm: {} is not set, so this is not inside an allocation; begin one with salloc, or name the hosts",
            NODES[0]
        ))),
    }
}

/// The hosts of an ssh_config: `Host` entries without patterns, but for those that others jump through.
fn of_ssh(path: &Path) -> Result<Vec<String>, Misuse> {
    let mut config = SshConfig::default();
    config.read(path, INCLUDES).map_err(|error| Misuse(format!("cannot read {}: {error}", path_text(path))))?;
    let SshConfig { mut names, jumps } = config;
    names.retain(|name| !jumps.contains(name));
    if names.is_empty() {
        let shown = path_text(path);
        return Err(Misuse(format!("{shown} has no Host entry that names a host (entries with * and ? are patterns)")));
    }
    Ok(names)
}

/// What an ssh_config tells of hosts (ssh_config(5)).
#[derive(Default)]
struct SshConfig {
    names: Vec<String>,
    jumps: BTreeSet<String>,
}

impl SshConfig {
    fn read(&mut self, path: &Path, depth: usize) -> io::Result<()> {
        for line in fs::read_to_string(path)?.lines() {
            let mut words = words(line).into_iter();
            let Some(keyword) = words.next() else { continue };
            match keyword.to_ascii_lowercase().as_str() {
                "host" => self.names.extend(words.filter(|word| is_host(word))),
                "proxyjump" => {
                    let hops = words.flat_map(|list| list.split(',').map(hop).collect::<Vec<_>>());
                    self.jumps.extend(hops);
                }
                "include" if depth > 0 => {
                    for pattern in words {
                        // An include that leads nowhere is no error to ssh either.
                        included(&pattern).iter().for_each(|file| _ = self.read(file, depth - 1));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The words of a line: keyword, `=` or blanks, values that may be quoted.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in line.trim().chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' if word.is_empty() && !is_quoted => break,
            c if !is_quoted && (c.is_whitespace() || (c == '=' && words.len() <= 1)) => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a word of `Host` is the name of one host, and no pattern.
fn is_host(word: &str) -> bool {
    !word.contains(['*', '?', '!']) && hostlist::expand(word).is_ok_and(|names| names == [word])
}

/// The host of `[user@]host[:port]`.
fn hop(text: &str) -> String {
    let host = text.trim().rsplit_once('@').map_or(text.trim(), |(_, host)| host);
    host.split_once(':').map_or(host, |(host, _)| host).to_owned()
}

/// Files of an `Include`: relative to ~/.ssh, as ssh(1) takes it, `*` in the last part of the path.
fn included(pattern: &str) -> Vec<PathBuf> {
    let home = PathBuf::from(env::var_os("HOME").unwrap_or_default());
    let path = match pattern.split_once('/') {
        Some(("~", rest)) => home.join(rest),
        _ => home.join(".ssh").join(pattern),
    };
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some((start, end)) = name.split_once('*') else { return vec![path] };
    let Some(folder) = path.parent() else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let mut files: Vec<PathBuf> = entries.filter(fits).collect();
    files.sort();
    files
}

/// Asks the person at the terminal.
fn typed() -> Result<Vec<String>, Misuse> {
    let nobody = || {
        Misuse(
            "no hosts are given; name them (railgauge init 'gpu[001-016]'), or use --hosts-file, --ssh-config or --slurm"
                .to_owned(),
        )
    };
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(nobody());
    }
    let mut err = io::stderr();
    let _ = write!(err, "Hosts, separated by commas, ranges in brackets, such as gpu[001-016],login: ");
    let _ = err.flush();
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    match read {
        Ok(1..) if !line.trim().is_empty() => expand(&joined(line.split_whitespace()), ""),
        _ => Err(nobody()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("config");
        fs::write(&path, text).unwrap();
        of_ssh(&path).map_err(|error| error.0).unwrap_or_else(|error| vec![error])
    }

    #[test]
    fn hosts_of_an_ssh_config_are_its_concrete_entries() {
        let text = "# gpus\nHost gpu1 gpu2\n  User root\nHOST=gpu3\nHost \"gpu4\" gpu* !gpu9\nHost *\n  ProxyJump me@bastion:22\n\
                    Host bastion\n  HostName 10.0.0.1\nMatch host gpu7\n  Port 23\n";
        assert_eq!(told(text), ["gpu1", "gpu2", "gpu3", "gpu4"]);
        assert!(told("Host *\n")[0].contains("has no Host entry"));
    }

    #[test]
    fn includes_are_followed_but_not_for_ever() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("a.conf"), "Host one\n").unwrap();
        fs::write(path("b.conf"), format!("Host two\nInclude {}\n", path("config").display())).unwrap();
        fs::write(path("config"), format!("Include {}\nHost three\n", path("*.conf").display())).unwrap();
        let names = of_ssh(&path("config")).unwrap();
        let once: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(once, ["one", "two", "three"].into());
    }
}

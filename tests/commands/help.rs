//! The help of every command, as a terminal shows it.

use std::process::Command;

fn help(words: &[&str], columns: usize) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_railgauge"));
    let output = command.args(words).arg("--help").env("COLUMNS", columns.to_string()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands of the help by group, in its order.
fn groups(help: &str) -> Vec<(&str, Vec<&str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in help.lines() {
        match line.strip_prefix("  ") {
            None if line.ends_with(':') => groups.push((line.trim_end_matches(':'), Vec::new())),
            Some(row) if !row.starts_with([' ', '-']) => groups.last_mut().unwrap().1.extend(row.split(' ').next()),
            _ => {}
        }
    }
    groups
}

#[test]
fn the_help_has_five_groups_of_commands() {
    let help = help(&[], 80);
    let groups = groups(&help);
    let expected = [
        ("Plan", &["init", "check", "schema"][..]),
        ("Run", &["run", "preflight", "submit"]),
        ("Results", &["report", "compare", "trend", "runs", "signoff"]),
        ("Operate", &["status", "drain", "discover", "bundle"]),
        ("Other", &["help"]),
    ];
    let found: Vec<(&str, &[&str])> =
        groups.iter().map(|(title, names)| (*title, &names[..])).take(expected.len()).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_command_has_help_that_fits_the_terminal() {
    let (all, of_runs) = (help(&[], 80), help(&["runs"], 80));
    let names = groups(&all).into_iter().take_while(|(title, _)| *title != "Other").flat_map(|(_, names)| names);
    let below = groups(&of_runs).into_iter().filter(|(title, _)| *title == "Commands").flat_map(|(_, names)| names);
    let below = below.filter(|name| *name != "help").map(|name| vec!["runs", name]);
    let commands: Vec<Vec<&str>> = [vec![]].into_iter().chain(names.map(|name| vec![name])).chain(below).collect();
    assert_eq!(commands.len(), 1 + 15 + 5, "{commands:?}");
    let mut text = String::new();
    // clap does not wrap the line of usage.
    for words in &commands {
        text += &format!("\n=== railgauge {}\n{}", words.join(" "), help(words, 80));
        let long = help(words, 80)
            .lines()
            .find(|line| line.chars().count() > 80 && !line.starts_with("Usage: "))
            .map(str::to_owned);
        assert_eq!(long, None, "{words:?}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_version_says_what_was_built_and_which_agents_it_sends() {
    let output = Command::new(env!("CARGO_BIN_EXE_railgauge")).arg("--version").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("railgauge {} for ", env!("CARGO_PKG_VERSION"))), "{text}");
    for word in ["\ncommit ", "\nprotocol ", "journal ", "\nagent "] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn help_of_help_is_the_help() {
    let output = Command::new(env!("CARGO_BIN_EXE_railgauge")).arg("help").env("COLUMNS", "80").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), help(&["help"], 80));
}

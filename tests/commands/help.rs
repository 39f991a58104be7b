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

/// All commands but `help`, with those of `runs`.
fn every() -> Vec<Vec<String>> {
    let words = |of: &[&str], section: fn(&str) -> bool| {
        let help = help(of, 80);
        let groups = groups(&help);
        let names = groups.iter().filter(|(title, _)| section(title)).flat_map(|(_, names)| names);
        let names = names.filter(|name| **name != "help");
        names.map(|name| of.iter().copied().chain([*name]).map(str::to_owned).collect()).collect::<Vec<Vec<String>>>()
    };
    let mut all = words(&[], |title| !["Other", "Options", "Exit codes"].contains(&title));
    all.extend(words(&["runs"], |title| title == "Commands"));
    all
}

#[test]
fn every_command_has_help_that_fits_the_terminal() {
    let mut text = help(&[], 80);
    let all = every();
    assert_eq!(all.len(), 15 + 5, "{all:?}");
    for command in &all {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        text += &format!("\n=== {}\n{}", command.join(" "), help(&words, 80));
        let narrow = [60, 80].map(|columns| (columns, help(&words, columns)));
        for (columns, text) in narrow {
            let long = text.lines().find(|line| line.chars().count() > columns && line.contains("  "));
            assert_eq!(long, None, "{words:?} at {columns}");
        }
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

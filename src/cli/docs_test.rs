//! Every command that the documents show is one of the command line's.

use std::{fs, path::Path};

use clap::{CommandFactory, error::ErrorKind};
use railgauge_model::border::text::path_text;

use super::{CommandLine, ended};

/// Words of a shell's line as far as documents use them: quotes, comments, and what goes elsewhere.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(mark), _) if mark == letter => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, '>' | '|' | ';' | '&') => break,
            (None, ' ') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// A command that a document shows, and where.
struct Shown {
    place: String,
    words: Vec<String>,
    /// Whether it is in a block to be copied, and not only in a sentence.
    whole: bool,
}

/// All commands of a document that begin with `railgauge`.
fn shown(path: &Path) -> Vec<Shown> {
    let text = fs::read_to_string(path).unwrap();
    let (mut all, mut in_shell, mut in_block) = (Vec::new(), false, false);
    let mut add = |number: usize, line: &str, whole: bool| {
        let words = words(line);
        if words.first().is_some_and(|word| word == "railgauge") && words.len() > 1 {
            all.push(Shown { place: format!("{}:{}", path_text(path), number + 1), words, whole });
        }
    };
    for (number, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            (in_block, in_shell) = (!in_block, !in_block && language == "sh");
        } else if in_shell {
            add(number, line.trim_start(), true);
        } else if !in_block {
            // Every second part is code. `[-o FILE]` and `a|b` mean several commands.
            line.split('`')
                .skip(1)
                .step_by(2)
                .filter(|code| !code.contains(['[', '|']) || code.contains('\''))
                .for_each(|code| add(number, code, false));
        }
    }
    all
}

#[test]
fn every_command_of_the_documents_is_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("README.md")];
    for folder in ["docs", "docs/dev"] {
        let files = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(files.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    let all: Vec<Shown> = paths.iter().flat_map(|path| shown(path)).collect();
    assert!(all.iter().filter(|shown| shown.whole).count() > 20, "the documents are not where they were");
    let mut wrong = Vec::new();
    for Shown { place, words, whole } in all {
        let Err(error) = CommandLine::command().try_get_matches_from(&words) else { continue };
        let is_fine = match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
            // `railgauge status` in a sentence; N for a number.
            ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !whole,
            ErrorKind::ValueValidation | ErrorKind::InvalidValue => !whole,
            _ => false,
        };
        if !is_fine {
            wrong.push(format!("{place}: {}\n{error}", words.join(" ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The examples of a command and of those below it, each with the name of its command.
fn examples(command: &clap::Command) -> Vec<(String, Vec<String>)> {
    let below = command.get_subcommands().flat_map(examples);
    let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let own = end
        .lines()
        .map(|line| words(line.trim()))
        .filter(|words| words.first().is_some_and(|word| word == "railgauge"));
    let own = own.map(|words| (command.get_name().to_owned(), words));
    below.chain(own).collect()
}

#[test]
fn every_command_has_two_examples_that_are_understood() {
    let line = ended(CommandLine::command());
    let all = examples(&line);
    for (name, words) in &all {
        let parsed = line.clone().try_get_matches_from(words);
        assert!(parsed.is_ok(), "{name}: {words:?}: {parsed:?}");
        assert!(words.contains(name), "{words:?} is no example of {name}");
        assert_eq!(all.iter().filter(|(other, _)| other == name).count(), 2, "{name}");
    }
    fn count(command: &clap::Command) -> usize {
        command.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| 1 + count(command)).sum()
    }
    assert_eq!(all.len(), 2 * (1 + count(&line)));
}

#[test]
fn lines_are_read_as_a_shell_reads_them() {
    assert_eq!(words("railgauge init 'gpu[1-2]' -o x  # why"), ["railgauge", "init", "gpu[1-2]", "-o", "x"]);
    assert_eq!(words("railgauge schema > plan.json"), ["railgauge", "schema"]);
    assert_eq!(words("a \"b c\"d ''"), ["a", "b cd", ""]);
}

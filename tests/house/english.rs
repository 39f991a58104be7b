//! Counts of the words that readers stumble over: each may fall, and none may rise.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// What to write, and the words of the fault, with `!`: any word but this one.
const FAULTS: &[(&str, &str)] = &[
    ("report, show, list", "tell|tells|told|telling"),
    ("is, appears", "stand !out|stands !out|stood !out"),
    ("whose; an active clause", "of which|of whose|of whom"),
    ("is not a", "is no !longer|are no !longer|was no !longer|were no !longer"),
    ("unknown, a passive", "nobody"),
    ("result in, finish", "come to|comes to|came to|coming to"),
    ("compared with, evidence for", "held against|speaks for|speaks against|speak for|speak against"),
    ("alongside, background", "beside"),
    ("peers", "fellow|fellows|its like|their like|its kind|their kind"),
    ("AMD GPUs", "of amd|of nvidia|of kubernetes"),
    ("continue, resume", "go on|goes on|went on|going on"),
    ("the start", "the begin|a begin|begin or|begin and"),
    ("estimate", "reckon|reckons|reckoned|reckoning"),
    ("repair, again, default", "mend|mends|mended|mending|anew|preset|presets"),
    ("error", "mistake|mistakes"),
];

/// The most that are allowed: in documents, in texts of the program, in its comments. Lower these as the counts fall.
/// Commit a214d4ac had 806, 454 and 2,931.
const MOST: [usize; 3] = [25, 25, 152];

/// The most words of all documents, README.md and those for developers included, and of those for users.
const WORDS: [usize; 2] = [40_000, 34_500];

/// What must be read for a decision, in `docs/` after README.md, and the most words of that.
const PATHS: &[(&[&str], usize)] =
    &[(&["accept.md", "reading-the-report.md"], 3_000), (&["watch.md"], 2_500), (&["compare.md"], 2_000)];

/// Files with one of the endings in a folder and below it, or the file itself.
fn files(path: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.for_each(|entry| files(&entry, endings, found));
    } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
        found.push(path.to_owned());
    }
}

fn texts(places: &[&str], endings: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    places.iter().for_each(|place| files(&root.join(place), endings, &mut found));
    found.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

fn is_comment(line: &&str) -> bool {
    line.trim_start().starts_with("//")
}

/// The literals of four words or more in code without comments.
fn literals(code: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find('"') {
        let (before, behind) = (&rest[..at], &rest[at + 1..]);
        let escaped = |end: usize| behind[..end].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        let end = match before.ends_with("r#") {
            true => behind.find("\"#"),
            false => behind.match_indices('"').map(|(end, _)| end).find(|end| !escaped(*end)),
        };
        let is_character = before.ends_with(['\'', '\\']) && behind.starts_with('\'');
        let end = if is_character { 0 } else { end.unwrap_or(behind.len()) };
        found.extend(Some(&behind[..end]).filter(|literal| literal.split_whitespace().count() > 3));
        rest = behind.get(end + usize::from(!is_character)..).unwrap_or("");
    }
    found
}

/// How often each fault is in a text.
fn counts(text: &str) -> Vec<usize> {
    let lower = text.to_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let is = |word: &str, pattern: &str| match pattern.strip_prefix('!') {
        Some(other) => word != other && word != "more",
        None => word == pattern,
    };
    let found = |phrase: &str| {
        let pattern: Vec<&str> = phrase.split(' ').collect();
        words.windows(pattern.len()).filter(|seen| seen.iter().zip(&pattern).all(|(word, part)| is(word, part))).count()
    };
    FAULTS.iter().map(|(_, phrases)| phrases.split('|').map(found).sum()).collect()
}

#[test]
fn words_that_readers_stumble_over_do_not_become_more() {
    let documents = texts(&["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "lab/README.md"], &["md"]).concat();
    let code = texts(&["src", "crates", "agent/src", "model/src", "stats/src", "wire/src"], &["rs"]);
    let lines = |comments: bool| {
        let product = code.iter().map(|text| text.split("\n#[cfg(test)]\nmod").next().unwrap_or(text));
        let kept =
            product.map(|text| text.lines().filter(|line| is_comment(line) == comments).collect::<Vec<_>>().join("\n"));
        kept.collect::<Vec<_>>()
    };
    let mut messages = texts(&["templates", "plans"], &["html", "toml", "txt", "md"]);
    messages.extend(lines(false).iter().flat_map(|code| literals(code)).map(str::to_owned));
    let all = [documents, messages.join("\n"), lines(true).join("\n")].map(|text| counts(&text));
    let sums = all.clone().map(|counts| counts.iter().sum::<usize>());
    let listed = |at: usize| {
        format!("{:>5} {:>5} {:>5}  {} → {}", all[0][at], all[1][at], all[2][at], FAULTS[at].1, FAULTS[at].0)
    };
    let table = (0..FAULTS.len()).map(listed).collect::<Vec<_>>().join("\n");
    println!("{table}\n{sums:?}");
    assert!(
        sums.iter().zip(MOST).all(|(count, most)| *count <= most),
        "documents, texts, comments: {sums:?} > {MOST:?}\n{table}"
    );
}

#[test]
fn documents_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
    };
    let (readme, docs) = (root.join("README.md"), root.join("docs"));
    let mut all = vec![readme.clone()];
    files(&docs, &["md"], &mut all);
    let counted: Vec<(&PathBuf, usize)> = all.iter().map(|path| (path, words(path))).collect();
    let is_page = |path: &Path| path.parent() == Some(docs.as_path()) && !path.ends_with("README.md");
    let pages: Vec<usize> = counted.iter().filter(|(path, _)| is_page(path)).map(|(_, words)| *words).collect();
    let sums = [counted.iter().map(|(_, words)| words).sum::<usize>(), pages.iter().sum()];
    assert!(pages.len() <= 15, "{} pages besides the index", pages.len());
    assert!(sums.iter().zip(WORDS).all(|(sum, most)| *sum <= most), "{sums:?} > {WORDS:?}: {counted:#?}");
    for (path, most) in PATHS {
        let sum = words(&readme) + path.iter().map(|page| words(&docs.join(page))).sum::<usize>();
        assert!(sum <= *most, "README.md and {path:?}: {sum} > {most}");
    }
}

#[test]
fn literals_are_separate_from_code() {
    let code =
        "let a = '\"'; let b = '\\\"'; f(\"one two\", \"a \\\" is no quote, here\", r#\"it \"stands\" in the text\"#);";
    assert_eq!(literals(code), ["a \\\" is no quote, here", "it \"stands\" in the text"]);
    assert_eq!(counts("It stands out; it stands. It is no longer so, and is no answer.").iter().sum::<usize>(), 2);
}

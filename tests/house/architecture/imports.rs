//! Which file of a crate imports which: by `use`, and by paths in code. A name that a file re-exports belongs to the file that it is from.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

/// The path of a module below its crate; empty for the crate itself.
pub type Module = Vec<String>;
pub type Arrows = BTreeMap<Module, BTreeSet<Module>>;

#[derive(Default)]
struct File {
    used: Vec<Module>,
    exports: BTreeMap<String, Module>,
}

/// The arrows between the files of a crate, from their names below its root and their texts. Tests are left out.
pub fn arrows(texts: impl IntoIterator<Item = (String, String)>) -> Arrows {
    let [silent, seen, tests, imports, children, paths] = [
        r##"//[^\n]*|'\\?"'|r#"(?s:.*?)"#|"(?s:\\.|[^"\\])*""##,
        r"\bpub\((?:in )?[\w:]+\)",
        r"(?s)\n#\[cfg\(test\)\]\n(?:pub )?mod \w+ \{.*",
        r"(?:\b(pub) )?\buse\s+([^;]+);",
        r"\bmod \w+;",
        r"(?:^|[^:\w])(\w+(?:::\w+)+)",
    ]
    .map(|pattern| Regex::new(pattern).unwrap());
    let is_tests = |file: &str| {
        file.split('/').any(|part| part == "tests") || file.ends_with("tests.rs") || file.ends_with("_test.rs")
    };
    let cut = |text: &str| {
        let text = silent.replace_all(text, "");
        tests.replace(&seen.replace_all(&text, "pub"), "").into_owned()
    };
    let texts: BTreeMap<Module, String> =
        texts.into_iter().filter(|(file, _)| !is_tests(file)).map(|(file, text)| (module(&file), cut(&text))).collect();
    let read = |(of, text): (&Module, &String)| {
        let mut file = File::default();
        let rest = imports.replace_all(text, "");
        let rest = children.replace_all(&rest, "");
        let full = |path: &[&str]| absolute(of, path, |module| texts.contains_key(module));
        for found in imports.captures_iter(text) {
            let dense: String = found[2].split_whitespace().collect::<Vec<_>>().join(" ");
            // Of a macro's variables nothing is known.
            for (path, name) in leaves(&dense).into_iter().filter(|(path, _)| !path.contains('$')) {
                let path: Vec<&str> = path.split("::").collect();
                let Some(target) = full(&path) else { continue };
                // What a file only passes on, others import from where it is.
                if found.get(1).is_none() || name == "*" || uses(&rest, &name) {
                    file.used.push(target.clone());
                }
                if found.get(1).is_some() {
                    file.exports.insert(name, target);
                }
            }
        }
        let named = paths.captures_iter(&rest).filter_map(|found| full(&found[1].split("::").collect::<Vec<_>>()));
        file.used.extend(named);
        (of.clone(), file)
    };
    let files: BTreeMap<Module, File> = texts.iter().map(read).collect();
    let targets = |of: &Module, file: &File| -> BTreeSet<Module> {
        file.used.iter().map(|path| resolved(&files, path, 0)).filter(|target| target != of).collect()
    };
    files.iter().map(|(of, file)| (of.clone(), targets(of, file))).collect()
}

/// Whether a text has a name, other than as a field or as a part of a path.
fn uses(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let is_field = before.ends_with('.') || (after.starts_with(':') && !after.starts_with("::"));
        !(is_field || before.ends_with(is_part) || before.ends_with(':') || after.starts_with(is_part))
    })
}

fn module(file: &str) -> Module {
    let mut parts: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] {
        parts.pop();
    }
    parts
}

/// The paths of a `use`, and the name that each gets.
fn leaves(tree: &str) -> Vec<(String, String)> {
    let Some((start, inside)) = tree.split_once('{') else {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap_or(tree)));
        return vec![(path.trim().trim_start_matches("::").to_owned(), name.trim().to_owned())];
    };
    let inside = &inside[..inside.rfind('}').unwrap_or(inside.len())];
    let mut depth = 0;
    let parts = inside.split(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    let parts = parts.filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| leaves(&format!("{}{}", start.trim(), part.trim()))).collect()
}

/// A path from the crate's root; `None` if it leads to another crate, or is a name of the file itself.
fn absolute(of: &Module, path: &[&str], is_file: impl Fn(&Module) -> bool) -> Option<Module> {
    let up = path.iter().take_while(|part| **part == "super").count();
    let (base, rest): (&[String], &[&str]) = match path[0] {
        "crate" => (&[], &path[1..]),
        "self" => (of, &path[1..]),
        "super" => (&of[..of.len().saturating_sub(up)], &path[up..]),
        child => {
            let child = of.iter().cloned().chain([child.to_owned()]).collect();
            return is_file(&child)
                .then(|| of.iter().cloned().chain(path.iter().map(|part| (*part).to_owned())).collect());
        }
    };
    Some(
        base.iter()
            .cloned()
            .chain(rest.iter().filter(|part| **part != "self").map(|part| (*part).to_owned()))
            .collect(),
    )
}

/// The file that a path leads to, through at most eight re-exports.
fn resolved(files: &BTreeMap<Module, File>, path: &Module, depth: usize) -> Module {
    let length = (0..=path.len()).rev().find(|length| files.contains_key(&path[..*length])).unwrap_or_default();
    let next = path.get(length).and_then(|name| files.get(&path[..length])?.exports.get(name));
    match next {
        Some(next) if depth < 8 && next != path => {
            resolved(files, &next.iter().chain(&path[length + 1..]).cloned().collect(), depth + 1)
        }
        _ => path[..length].to_vec(),
    }
}

/// The arrows that are in a cycle, or lead from one to another.
pub fn cycles(arrows: &Arrows) -> Vec<(String, String)> {
    let mut left = arrows.clone();
    loop {
        let before = left.len();
        let aims: BTreeSet<Module> = left.values().flatten().cloned().collect();
        let names: BTreeSet<Module> = left.keys().cloned().collect();
        left.retain(|of, to| {
            to.retain(|target| names.contains(target));
            !to.is_empty() && aims.contains(of)
        });
        if left.len() == before {
            return left.iter().flat_map(|(of, to)| to.iter().map(|to| (of.join("::"), to.join("::")))).collect();
        }
    }
}

fn made(files: &[(&str, &str)]) -> Arrows {
    arrows(files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())))
}

#[test]
fn every_way_to_import_is_seen() {
    let arrows = made(&[
        ("lib.rs", "mod a;\npub mod b;\npub use b::deep::Type as Kind;\nfn of() -> Kind { a::new() }\n"),
        ("a.rs", "use crate::{Kind, b::{self, other}};\n// super::c\nconst C: &str = \"crate::c\";\n"),
        ("b/mod.rs", "pub mod deep;\npub use deep::{Type, f};\n#[cfg(test)]\nmod tests;\nuse super::c;\n"),
        ("b/deep.rs", "use super::*;\n"),
        ("b/tests.rs", "use super::super::c;\n"),
        ("c.rs", "fn f() { crate::b::f(); super::b::deep::g(); }\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
    ]);
    let told = |of: &[&str]| -> Vec<String> {
        let of: Module = of.iter().map(|part| (*part).to_owned()).collect();
        arrows[&of].iter().map(|to| to.join("::")).collect()
    };
    assert_eq!(told(&[]), ["a", "b::deep"]);
    assert_eq!(told(&["a"]), ["b", "b::deep"]);
    assert_eq!(told(&["b"]), ["c"]);
    assert_eq!(told(&["b", "deep"]), ["b"]);
    assert_eq!(told(&["c"]), ["b::deep"]);
    assert_eq!(arrows.len(), 5);
    let told = cycles(&arrows);
    let told: Vec<_> = told.iter().map(|(of, to)| (of.as_str(), to.as_str())).collect();
    assert_eq!(told, [("b", "c"), ("b::deep", "b"), ("c", "b::deep")]);
}

#[test]
fn a_file_may_pass_on_what_its_children_define() {
    let child = ("a/child.rs", "use super::{Type, other::f};\n");
    let passed = [
        ("a/mod.rs", "pub use types::Type;\npub fn read() { child::f() }\n"),
        ("a/types.rs", ""),
        ("a/other.rs", ""),
        child,
    ];
    assert_eq!(cycles(&made(&passed)), []);
    let own = [("a/mod.rs", "pub struct Type;\npub fn read() { child::f() }\n"), ("a/other.rs", ""), child];
    assert_eq!(cycles(&made(&own)), [("a".into(), "a::child".into()), ("a::child".into(), "a".into())]);
}

use std::{ops::Range, path::PathBuf};

use crate::plan::{
    grammar::hostlist::expand,
    mistakes::Mistake,
    read::{At, Book, file},
};

/// Names of the file with their places, and whether that is all of them; mistakes have been reported.
pub fn read(book: &Book<'_>, path: &At<PathBuf>) -> (Vec<(String, usize, Range<usize>)>, bool) {
    let text = match file::read(&path.value) {
        Ok(text) => text,
        Err(fault) => {
            book.wrong(path.span.clone(), format!("the host file {fault}"), fault.help());
            return (Vec::new(), false);
        }
    };
    // As the plan spells it, next to the plan.
    let shown = book.text.get(path.span.start + 1..path.span.end.saturating_sub(1)).unwrap_or_default().to_owned();
    let source = book.source(shown, text.clone());
    let (mut names, mut sound, mut start) = (Vec::new(), true, 0);
    for line in text.split_inclusive('\n') {
        let content = line.split('#').next().unwrap_or_default();
        let list = content.trim();
        let at = start + (content.len() - content.trim_start().len());
        start += line.len();
        if list.is_empty() {
            continue;
        }
        match expand(list) {
            Ok(some) => names.extend(some.into_iter().map(|name| (name, source, at..at + list.len()))),
            Err(wrong) => {
                book.add(Mistake::wrong(source, at, wrong));
                sound = false;
            }
        }
    }
    if sound && names.is_empty() {
        book.wrong(path.span.clone(), "the host file lists no hosts", "write one hostlist on each line");
        sound = false;
    }
    (names, sound)
}

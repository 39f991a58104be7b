//! Known texts of loaders, shells and launchers' programs, each with a remedy. They may change: unknown ones are passed on unchanged.

use railgauge_wire::{failure::Kind, remedy::Entry};

pub(crate) struct Sign {
    /// Alternatives separated by `|`; a `*` is anything between two parts.
    pub texts: &'static str,
    pub cause: &'static str,
    pub kind: Kind,
    pub passing: bool,
    pub remedy: Entry,
}

pub(crate) const fn lasting(texts: &'static str, cause: &'static str, remedy: Entry) -> Sign {
    Sign { texts, cause, kind: Kind::Configuration, passing: false, remedy }
}

/// Something that does not answer now, but may later.
pub(crate) const fn passing(texts: &'static str, cause: &'static str, remedy: Entry) -> Sign {
    Sign { texts, cause, kind: Kind::Lost, passing: true, remedy }
}

pub(crate) fn find<'s>(signs: &'s [Sign], lines: &[&str]) -> Option<&'s Sign> {
    let lines: Vec<String> = lines.iter().map(|line| line.to_lowercase()).collect();
    let is_in = |text: &str| lines.iter().any(|line| text.split('*').all(|part| line.contains(part)));
    signs.iter().find(|sign| sign.texts.split('|').any(is_in))
}

/// The lines that `is_own` accepts as the program's own: output of a process on the host is in the same stream.
pub(crate) fn own_lines(words: &str, is_own: impl Fn(&str) -> bool) -> Vec<&str> {
    let lines = words.split('\n').flat_map(|line| line.split(" / ")).map(str::trim);
    lines.filter(|line| is_own(line)).collect()
}

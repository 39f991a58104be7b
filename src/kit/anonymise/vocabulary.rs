//! Words that railgauge uses itself. A host may be called `down` or `rate`: in texts that is a word and no name.

use std::{collections::HashSet, sync::LazyLock};

/// Texts with the words of messages, records and the files that are read: railgauge's own manual.
const TEXTS: &[&str] = &[
    include_str!("../../../README.md"),
    include_str!("../../../docs/concepts.md"),
    include_str!("../../../docs/dev/bundle.md"),
    include_str!("../../../docs/formats.md"),
    include_str!("../../../docs/launchers.md"),
    include_str!("../../../docs/plan-format.md"),
    include_str!("../../../docs/preflight.md"),
    include_str!("../../../docs/reading-the-report.md"),
    include_str!("../../../docs/remedies.md"),
    include_str!("../../../docs/tests.md"),
];

static WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let words = TEXTS.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphabetic()));
    words.filter(|word| !word.is_empty()).map(str::to_ascii_lowercase).collect()
});

/// Whether a name is a word of ours: letters only, and in the manual.
pub(super) fn is_word(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphabetic()) && WORDS.contains(&name.to_ascii_lowercase())
}

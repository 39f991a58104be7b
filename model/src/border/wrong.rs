use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub at: Range<usize>,
    pub message: String,
    pub help: String,
}

impl Wrong {
    pub fn new(at: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { at, message: message.into(), help: help.into() }
    }

    pub fn shifted(mut self, offset: usize) -> Self {
        self.at = self.at.start + offset..self.at.end + offset;
        self
    }
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.help)
    }
}

/// The word of `known` that `given` was most likely meant to be, whatever its case and its separators.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.replace(['_', '-'], "").to_lowercase();
    let given = plain(given);
    known
        .into_iter()
        .map(|word| (strsim::damerau_levenshtein(&given, &plain(word)), word))
        .filter(|(distance, word)| *distance <= (word.len().max(3) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

//! Links in earlier lines of a journal, so that thousands of outcomes over equal links refer to a line instead of repeating it.

use std::collections::HashMap;

use super::event::LinkRecord;

/// Most links in memory: at about 300 bytes each, 20 MB. Further links are written again.
const MOST: usize = 1 << 16;

/// Outcomes after which a link is written again: this limits what one damaged line makes unusable, for 2 bytes an outcome.
const TOLD_FOR: u32 = 256;

/// Lines of this process that hold links. A resumed run writes them again rather than trusting lines it did not write.
#[derive(Debug, Default)]
pub(super) struct Links {
    lines: HashMap<String, (u64, u32)>,
}

impl Links {
    pub(super) fn key(link: &LinkRecord) -> serde_json::Result<String> {
        serde_json::to_string(link)
    }

    /// The line of this link, for one more outcome; `None` if the link must be written, for the first time or again.
    pub(super) fn line(&mut self, key: &str) -> Option<u64> {
        let (line, outcomes) = self.lines.get_mut(key).filter(|(_, outcomes)| *outcomes < TOLD_FOR)?;
        *outcomes += 1;
        Some(*line)
    }

    pub(super) fn told(&mut self, key: String, line: u64) {
        if self.lines.len() >= MOST && !self.lines.contains_key(&key) {
            self.lines.clear();
        }
        self.lines.insert(key, (line, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_told_again_after_a_while() {
        let mut links = Links::default();
        links.told("a".into(), 3);
        let named = (1..).take_while(|_| links.line("a") == Some(3)).count();
        assert_eq!((named + 1) as u32, TOLD_FOR);
        links.told("a".into(), 900);
        assert_eq!(links.line("a"), Some(900));
    }

    #[test]
    fn memory_is_bounded() {
        let mut links = Links::default();
        (0..=MOST as u64).for_each(|line| links.told(line.to_string(), line));
        assert_eq!((links.line("7"), links.line(&MOST.to_string())), (None, Some(MOST as u64)));
        assert!(links.lines.len() <= MOST);
    }
}

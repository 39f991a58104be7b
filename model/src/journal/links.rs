//! Which links earlier lines of a journal tell, so that thousands of outcomes over equal links name a line and do not repeat it.

use std::collections::HashMap;

use railgauge_wire::failure::Failure;
use serde::Serialize;

use super::event::{LinkRecord, Outcome, Sample};

/// Most links whose lines are kept in mind: a link takes about 300 bytes, so these take 20 MB. Beyond them links are told again.
const MOST: usize = 1 << 16;

/// After how many outcomes a link is told again: what one damaged line makes unusable is little, for 2 bytes an outcome.
const TOLD_FOR: u32 = 256;

/// An outcome whose link stands in another line; it serialises as an [`Event`](super::event::Event) does.
#[derive(Serialize)]
pub(super) enum Told<'o> {
    /// As [`Outcome`].
    Outcome(Telling<'o>),
}

/// The fields of an [`Outcome`], without a copy of its sample.
#[derive(Serialize)]
pub(super) struct Telling<'o> {
    case: u64,
    repeat: u32,
    started_at: &'o str,
    link_line: u64,
    result: &'o Result<Sample, Failure>,
}

impl<'o> Told<'o> {
    /// The outcome, with the number of the line that tells its link.
    pub(super) fn new(outcome: &'o Outcome, link_line: u64) -> Self {
        let Outcome { case, repeat, started_at, link: _, link_line: _, result } = outcome;
        Self::Outcome(Telling { case: *case, repeat: *repeat, started_at, link_line, result })
    }
}

/// Lines of this process that tell links. A later process of the run tells them again: it need not trust what it did not write.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The line, and how many outcomes named it.
    lines: HashMap<String, (u64, u32)>,
}

impl Links {
    /// What tells equal links from others.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(super) fn key(link: &LinkRecord) -> serde_json::Result<String> {
        serde_json::to_string(link)
    }

    /// The line that tells this link, for one more outcome; `None` where it is to be told, for the first time or again.
    pub(super) fn line(&mut self, key: &str) -> Option<u64> {
        let (line, outcomes) = self.lines.get_mut(key).filter(|(_, outcomes)| *outcomes < TOLD_FOR)?;
        *outcomes += 1;
        Some(*line)
    }

    /// Keeps in mind that this line tells it, for the outcome behind it.
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
    use crate::journal::event::Event;

    #[test]
    fn an_outcome_is_told_as_its_event_is() {
        let outcome = Outcome {
            case: 7,
            repeat: 2,
            started_at: "x".into(),
            link: None,
            link_line: Some(12),
            result: Ok(Sample::default()),
        };
        let told = serde_json::to_value(Told::new(&outcome, 12)).unwrap();
        assert_eq!(told, serde_json::to_value(Event::Outcome(Box::new(outcome))).unwrap());
    }

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

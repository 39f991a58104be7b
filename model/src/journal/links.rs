//! Links in earlier lines of a journal, so that thousands of outcomes over equal links refer to a line instead of repeating it.

use std::collections::HashMap;

use railgauge_wire::{failure::Failure, unit};
use serde::Serialize;

use super::event::{LinkRecord, Outcome, Sample, Started};

/// Most links in memory: at about 300 bytes each, 20 MB. Further links are written again.
const MOST: usize = 1 << 16;

/// Outcomes after which a link is written again: this limits what one damaged line makes unusable, for 2 bytes an outcome.
const TOLD_FOR: u32 = 256;

/// An outcome that refers to a link in another line; it serialises as an [`Event`](super::event::Event) does.
#[derive(Serialize)]
pub(super) enum Told<'o> {
    Outcome(Telling<'o>),
}

/// The fields of an [`Outcome`], without copying its sample, and without defaults.
#[derive(Serialize)]
pub(super) struct Telling<'o> {
    case: u64,
    #[serde(skip_serializing_if = "unit::is_zero")]
    repeat: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ago: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<&'o Started>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link_line: Option<u64>,
    result: &'o Result<Sample, Failure>,
}

impl<'o> Told<'o> {
    /// The outcome for a line written at `at`, with the number of the line of its link, if any.
    pub(super) fn new(outcome: &'o Outcome, at: &str, link_line: Option<u64>) -> Self {
        let Outcome { case, repeat, started_at, link: _, link_line: _, result } = outcome;
        let ago = started_at.before(at);
        let started_at = Some(started_at).filter(|_| ago.is_none());
        Self::Outcome(Telling { case: *case, repeat: *repeat, ago, started_at, link_line, result })
    }
}

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
    use crate::journal::{event::Event, line};

    #[test]
    fn what_is_told_is_the_outcome() {
        let at = "2026-11-28T03:00:02.250Z";
        let outcome = |repeat, started_at: &str, link_line| Outcome {
            case: 7,
            repeat,
            started_at: started_at.into(),
            link: None,
            link_line,
            result: Ok(Sample::default()),
        };
        // The last one began after its line was written: the clock was set back.
        for outcome in [
            outcome(0, "2026-11-28T03:00:01.000Z", Some(12)),
            outcome(2, "2026-11-28T03:00:02.250Z", None),
            outcome(1, "2026-11-28T04:00:00.000Z", Some(3)),
        ] {
            let told = Told::new(&outcome, at, outcome.link_line);
            let line = line::encode("r", 2, at, &told).unwrap();
            let Event::Outcome(read) = line::decode(&line, Some("r")).unwrap().line.event else { panic!() };
            assert_eq!(*read, outcome);
        }
        let told = |outcome: &Outcome| serde_json::to_value(Told::new(outcome, at, None)).unwrap()["Outcome"].take();
        let short = told(&outcome(0, "2026-11-28T03:00:01.000Z", None));
        assert_eq!((&short["ago"], short.as_object().unwrap().len()), (&1250.into(), 3));
        let long = told(&outcome(1, "2026-11-28T04:00:00.000Z", None));
        assert_eq!((&long["started_at"], long.as_object().unwrap().len()), (&"2026-11-28T04:00:00.000Z".into(), 4));
    }

    #[test]
    fn an_outcome_has_one_start() {
        let line = |start: &str| {
            let event = format!(
                "{{\"Outcome\":{{\"case\":1{start},\"result\":{{\"Ok\":{{\"initiator\":{{}},\"checked\":{{\"verified\":1}}}}}}}}}}"
            );
            serde_json::from_str::<Event>(&event).map_err(|error| error.to_string())
        };
        line(",\"ago\":3").unwrap();
        line(",\"started_at\":\"x\"").unwrap();
        assert!(line("").unwrap_err().contains("started_at"));
        assert!(line(",\"ago\":3,\"started_at\":\"x\"").unwrap_err().contains("`ago`"));
        assert!(line(",\"ago\":-3").is_err());
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

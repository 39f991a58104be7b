use std::time::{Duration, Instant};

use railgauge_wire::{Answer, Ask, Failure, Kind, RawContent, RawEntry, RawLeftOut, RawPage, Stage};

use super::failures::unexpected;
use crate::cluster::Agent;

/// Most pages of one host: more text than its agent reads.
const PAGES: u32 = 200;
/// Most entries, most missing things, and most digits of files of one host. An agent limits itself to the first and to half of the last
/// (`agent/src/raw/collector.rs`): one that does not is broken.
const ENTRIES: usize = 40_000;
const LEFT_OUT: usize = 10_000;
const DIGITS: usize = 64 << 20;

#[derive(Debug, Clone, Default)]
pub(crate) struct RawTree {
    pub entries: Vec<RawEntry>,
    pub left_out: Vec<RawLeftOut>,
}

impl RawTree {
    /// Adds a page. Returns the exceeded limit, if any.
    fn take(&mut self, page: RawPage) -> Option<&'static str> {
        self.entries.extend(page.entries);
        self.left_out.extend(page.left_out);
        let digits = |entry: &RawEntry| match &entry.content {
            RawContent::File { hex, .. } => hex.iter().map(String::len).sum(),
            _ => 0,
        };
        match () {
            () if self.entries.len() > ENTRIES => Some("it lists more files than an agent reads"),
            () if self.left_out.len() > LEFT_OUT => Some("it lists more missing files than an agent does"),
            () if self.entries.iter().map(digits).sum::<usize>() > DIGITS => {
                Some("its files are larger than an agent reads")
            }
            () => None,
        }
    }
}

/// The files of a host, page by page, within `limit` in total.
///
/// # Errors
/// The agent is gone, does not answer in time, does not end, or sends more than agents read.
pub(super) async fn raw(agent: &Agent, limit: Duration) -> Result<RawTree, Failure> {
    let mut tree = RawTree::default();
    let mut from = 0;
    let begun = Instant::now();
    let broken = |cause: &str| Failure::new(Stage::Facts, Kind::Internal, cause.to_owned()).at(agent.host());
    for _ in 0..PAGES {
        // The limit is for all pages: a slow agent must not delay the kit for each of them.
        let left = limit.saturating_sub(begun.elapsed());
        let page = match agent.ask(Ask::Raw { from }, left).await? {
            Answer::Raw(page) => page,
            other => return Err(unexpected(agent.host(), Stage::Facts, &other)),
        };
        let next = page.next;
        if let Some(excess) = tree.take(page) {
            return Err(broken(excess));
        }
        match next {
            Some(next) if next > from => from = next,
            Some(_) => break,
            None => return Ok(tree),
        }
    }
    Err(broken("the pages of its files do not end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_tells_of_more_than_agents_read_is_refused() {
        let entry = || RawEntry { path: "sys/a".into(), content: RawContent::Directory };
        let page = |entries: usize, missing: usize| RawPage {
            entries: (0..entries).map(|_| entry()).collect(),
            left_out: (0..missing).map(|_| RawLeftOut { path: "x".into(), why: "y".into() }).collect(),
            next: None,
        };
        let mut tree = RawTree::default();
        assert_eq!(tree.take(page(ENTRIES, LEFT_OUT)), None);
        assert!(tree.clone().take(page(1, 0)).is_some());
        assert!(tree.clone().take(page(0, 1)).is_some());
        let content = RawContent::File { hex: vec!["00".repeat(DIGITS / 2 + 1)], whole: true };
        let large = RawPage { entries: vec![RawEntry { path: "sys/b".into(), content }], ..RawPage::default() };
        assert!(RawTree::default().take(large).is_some());
    }
}

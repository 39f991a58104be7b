//! The files that a host's facts and counters are made of, asked for page by page.

use std::time::Duration;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    message::{Answer, Ask},
    raw::{RawEntry, RawLeftOut, RawPage, RawScope},
};

use super::failures::unexpected;
use crate::cluster::Agent;

/// Most pages of one host: more text than its agent reads.
const PAGES: u32 = 200;

/// The files of a host.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawTree {
    /// Every entry, by path.
    pub entries: Vec<RawEntry>,
    /// What was not read, and why.
    pub left_out: Vec<RawLeftOut>,
}

/// The files of a host, page by page.
///
/// # Errors
/// The agent is gone, does not answer, or does not come to an end.
pub(super) async fn raw(agent: &Agent, scope: RawScope, limit: Duration) -> Result<RawTree, Failure> {
    let mut tree = RawTree::default();
    let mut from = 0;
    for _ in 0..PAGES {
        let RawPage { entries, next, left_out } =
            match agent.ask(Ask::Raw { scope: scope.clone(), from }, limit).await? {
                Answer::Raw(page) => page,
                other => return Err(unexpected(agent.host(), Stage::Facts, &other)),
            };
        tree.entries.extend(entries);
        tree.left_out.extend(left_out);
        match next {
            Some(next) if next > from => from = next,
            Some(_) => break,
            None => return Ok(tree),
        }
    }
    let cause = "the pages of its files do not come to an end";
    Err(Failure::new(Stage::Facts, Kind::Internal, cause).at(agent.host()))
}

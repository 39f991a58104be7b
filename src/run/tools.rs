use std::time::{Duration, Instant};

use railgauge_wire::{Answer, Ask, Failure, Kind, Stage, tool::Tool};

use super::failures::unexpected;
use crate::cluster::Agent;

const PAGES_WITHIN: Duration = Duration::from_secs(60);

/// The output of a program of a host.
///
/// # Errors
/// The agent's reason, or it is gone, does not answer in time, or sends more than agents accept.
pub(crate) async fn output(agent: &Agent, tool: Tool) -> Result<Vec<u8>, Failure> {
    let broken = |cause: &str| Failure::new(Stage::Facts, Kind::Internal, cause.to_owned()).at(agent.host());
    let (begun, limit) = (Instant::now(), tool.limit() + PAGES_WITHIN);
    let (mut written, mut from) = (Vec::new(), 0);
    loop {
        let page = match agent.ask(Ask::Tool { tool, from }, limit.saturating_sub(begun.elapsed())).await? {
            Answer::Tool(page) => page,
            other => return Err(unexpected(agent.host(), Stage::Facts, &other)),
        };
        written.extend(page.content.bytes().ok_or_else(|| broken("a page of its output has no bytes"))?);
        if written.len() > tool.most().as_usize() {
            return Err(broken("it passes on more than an agent takes of a program"));
        }
        match page.next {
            None => return Ok(written),
            Some(next) if next == written.len() as u64 && next > from => from = next,
            Some(_) => return Err(broken("the pages of its output do not follow one another")),
        }
    }
}

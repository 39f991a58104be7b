//! The agent's file on a host.

use std::sync::Arc;

use super::{
    binary::{AgentBinary, Machine},
    launch::Way,
    pipe::Pipe,
    trouble::Trouble,
};
use crate::plan::model::Launch;

/// What a running agent leaves to do on its host.
pub(crate) struct Deployed {
    way: Way,
}

impl Deployed {
    /// Takes the agent's file away unless it is to stay, and lets the host go.
    pub async fn clear(self) {
        self.way.close().await;
    }
}

/// Starts the agent over an opened way.
pub(crate) async fn start(way: Way, launch: &Launch, binary: &AgentBinary) -> Result<(Pipe, Deployed), Trouble> {
    let image = binary.image(&Machine::here()).map_err(|failure| Trouble { failure, passing: false })?;
    let image = Arc::clone(image);
    let pipe = way.start(&[image.path.display().to_string()], &launch.env).await?;
    Ok((pipe, Deployed { way }))
}

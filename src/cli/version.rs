//! `railgauge --version`: what this program is, and which agents it sends.

use railgauge_model::{border::text::path_text, journal::event::VERSION};

use super::print;
use crate::cluster::{AgentBinary, Image, Machine};

/// Prints what this program is.
///
/// # Errors
/// stdout cannot be written.
pub(super) fn show() -> anyhow::Result<()> {
    let build = if cfg!(debug_assertions) { ", built without optimisation" } else { "" };
    let commit = option_env!("RAILGAUGE_COMMIT").unwrap_or("not recorded (built from source)");
    let agents = AgentBinary::find().map_or_else(
        |failure| format!("agent     {failure}\n"),
        |found| found.images().iter().map(|image| agent(image)).collect(),
    );
    print(&format!(
        "railgauge {} for {}{build}\ncommit    {commit}\nprotocol  {}, journal {VERSION}\n{agents}",
        env!("CARGO_PKG_VERSION"),
        Machine::here(),
        railgauge_wire::PROTOCOL,
    ))
}

fn agent(image: &Image) -> String {
    let Image { machine, path, hash, bytes, .. } = image;
    format!("agent     {machine} {} ({} bytes, sha256 {hash})\n", path_text(path), bytes.len())
}

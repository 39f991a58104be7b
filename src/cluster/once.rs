//! One script on a host, over the launcher of the plan, beside its agent.

use std::time::Duration;

use railgauge_model::{
    border::text,
    plan::model::{Host, Launch},
};
use railgauge_wire::failure::{Failure, Kind, Stage};
use tokio::time::timeout;

use super::{launcher, script, trouble::Trouble};

/// What a script left on its streams, made printable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// Lines of its standard output.
    pub stdout: Vec<String>,
    /// Lines of its standard error.
    pub stderr: Vec<String>,
    /// How it ended, in words; empty for exit status 0.
    pub end: String,
}

/// Runs a script on a host with its arguments. The script sees to it that nothing of it outlives `limit` there.
///
/// # Errors
/// The host cannot be reached, or the script does not end in time.
pub(crate) async fn run_once(
    launch: &Launch,
    host: &Host,
    text: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<Said, Failure> {
    let named = |trouble: Trouble| trouble.at(&host.name);
    let work = async {
        let launcher = launcher::prepare(launch)?;
        let way = launcher.open(host).await?;
        let words = script::sh(text, arguments.iter().copied());
        let output = match way.start(&words).await {
            Ok(pipe) => Ok(pipe.run(b"").await),
            Err(trouble) => Err(trouble),
        };
        way.close().await;
        output
    };
    let output = timeout(limit, work).await.map_err(|_| {
        let cause = format!("a script on the host took longer than {} s", limit.as_secs_f64());
        Failure::new(Stage::Start, Kind::Deadline, cause).at(&host.name)
    })?;
    let output = output.map_err(named)?;
    let lines = |bytes: &[u8]| {
        let lines = bytes.split(|byte| *byte == b'\n').map(text::line);
        lines.filter(|line| !line.is_empty()).collect()
    };
    let end = match output.end {
        super::pipe::ProcessEnd::Code(0) => String::new(),
        end => end.to_string(),
    };
    Ok(Said { stdout: lines(&output.stdout), stderr: lines(&output.stderr), end })
}

use std::{process::Stdio, time::Duration};

use railgauge_model::border::text;
use serde::Deserialize;
use tokio::{process::Command, time::timeout};

use super::Container;

/// Time for an engine to answer; its service may be busy, or gone. Less than an inquiry may take.
const LIMIT: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    State(State),
    Refused(String),
    Nothing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct State {
    /// Such as `running`, `exited`, `paused`, `created`.
    pub status: String,
    pub running: bool,
    pub paused: bool,
    #[serde(rename = "OOMKilled")]
    pub oom_killed: bool,
    pub exit_code: i32,
    pub error: String,
    pub started_at: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Inspected {
    state: State,
}

pub(super) async fn ask(container: &Container) -> Known {
    let asked = Command::new(container.engine.0)
        .args(["inspect", "--type=container", &container.name])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    match timeout(LIMIT, asked).await {
        Ok(Ok(output)) if output.status.success() => read(&output.stdout),
        Ok(Ok(output)) => Known::Refused(String::from_utf8_lossy(&output.stderr).into_owned()),
        Ok(Err(_)) | Err(_) => Known::Nothing,
    }
}

fn read(bytes: &[u8]) -> Known {
    let inspected: Option<Vec<Inspected>> = serde_json::from_slice(bytes).ok();
    match inspected.and_then(|list| list.into_iter().next()) {
        Some(Inspected { state }) => Known::State(State { error: text::printable(&state.error), ..state }),
        None => Known::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_are_read() {
        let podman = br#"[{"Id": "a", "State": {"OciVersion": "1.0.2", "Status": "exited", "Running": false, "Paused": false,
            "Restarting": false, "OOMKilled": true, "ExitCode": 137, "Error": "", "StartedAt": "2026-11-25T08:00:00.1+00:00"}}]"#;
        let Known::State(state) = read(podman) else { panic!("not read") };
        assert_eq!(
            (state.status.as_str(), state.running, state.oom_killed, state.exit_code),
            ("exited", false, true, 137)
        );
        let docker = br#"[{"State": {"Status": "paused", "Running": true, "Paused": true, "Dead": false, "Pid": 7, "ExitCode": 0,
            "Error": "", "StartedAt": "2026-11-25T08:00:00.123456789Z", "FinishedAt": "0001-01-01T00:00:00Z"}}]"#;
        assert!(matches!(read(docker), Known::State(State { running: true, paused: true, .. })));
        assert_eq!(read(b"[]"), Known::Nothing);
    }
}

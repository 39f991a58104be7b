//! One script on a host, over the launcher of the plan, beside its agent.

use std::time::Duration;

use railgauge_model::{
    border::text,
    plan::model::{Host, Launch},
};
use railgauge_wire::failure::{Failure, Kind, Stage};
use tokio::time::timeout;

use super::{
    explain, launcher,
    pipe::{KEPT, Output, ProcessEnd},
    script,
    trouble::Trouble,
};

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

/// Runs a script on a host with its arguments. The script sees to it that nothing of it outlives `limit` there. Its last word is
/// its own: what reaches a host may end as if all were well when the way to it was cut.
///
/// # Errors
/// The host cannot be reached, the script does not end in time, or its end is not told.
pub(crate) async fn run_once(
    launch: &Launch,
    host: &Host,
    text: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<Said, Failure> {
    let work = async {
        let launcher = launcher::prepare(launch)?;
        let way = launcher.open(host).await?;
        let words = script::sh(script::ONCE, [text].into_iter().chain(arguments.iter().copied()));
        let said = match way.start(&words).await {
            Ok(pipe) => {
                let output = pipe.run(b"").await;
                let cut = "what a script on the host says ended before the script did";
                said(&output).ok_or_else(|| explain::script(&output, cut, &*way))
            }
            Err(trouble) => Err(trouble),
        };
        way.close().await;
        said
    };
    let said = timeout(limit, work).await.map_err(|_| {
        let cause = format!("a script on the host took longer than {} s", limit.as_secs_f64());
        Failure::new(Stage::Start, Kind::Deadline, cause).at(&host.name)
    })?;
    said.map_err(|trouble: Trouble| trouble.at(&host.name))
}

/// What a script said, if it told its end, or more than is read.
fn said(output: &Output) -> Option<Said> {
    let lines = |bytes: &[u8]| -> Vec<String> {
        let lines = bytes.split(|byte| *byte == b'\n').map(text::line);
        lines.filter(|line| !line.is_empty()).collect()
    };
    let mut stdout = lines(&output.stdout);
    let end = match stdout.last().and_then(|last| script::over(last)) {
        Some(status) => {
            stdout.pop();
            if status == 0 { String::new() } else { ProcessEnd::Code(status).to_string() }
        }
        None if output.stdout.len() as u64 >= KEPT => "it said more than is read of it".to_owned(),
        None => return None,
    };
    Some(Said { stdout, stderr: lines(&output.stderr), end })
}

#[cfg(test)]
mod tests {
    use railgauge_model::plan::model::{Command, Launcher};

    use super::*;

    /// What a script comes to over a command.
    async fn over(command: &str, text: &str, arguments: &[&str]) -> Result<Said, Failure> {
        let words = ["sh", "-c", command, "launcher"].map(str::to_owned);
        let launch = Launch {
            via: Launcher::Command(Command(words.into())),
            in_flight: 1,
            retries: 0,
            timeout: Duration::from_secs(20),
            keep_agent: false,
            agent_dir: None,
            env: std::collections::BTreeMap::new(),
            send_env: Vec::new(),
        };
        let host = Host { name: "a".into(), address: "a".into(), user: None, port: None, devices: vec![], tcp: vec![] };
        run_once(&launch, &host, text, arguments, Duration::from_secs(20)).await
    }

    #[tokio::test]
    async fn a_script_tells_its_lines_and_its_own_end() {
        // kubectl's status need not be that of the script.
        for command in ["exec \"$@\"", "\"$@\"; exit 0"] {
            let said = over(command, "echo \"one $1\"; echo two >&2; printf three; exit 4", &["a b"]).await.unwrap();
            assert_eq!((said.stdout, said.stderr), (vec!["one a b".into(), "three".into()], vec!["two".to_owned()]));
            assert_eq!(said.end, "exit status 4");
            assert_eq!(over(command, ":", &[]).await.unwrap().end, "");
        }
    }

    #[tokio::test]
    async fn a_stream_that_is_cut_is_a_failure_whatever_the_status() {
        for cut in ["\"$@\" | head -c 6; exit 0", "\"$@\" | head -n 1; exit 0", "exit 0"] {
            let failure = over(cut, "echo first; echo second", &[]).await.unwrap_err();
            assert_eq!((failure.host.as_deref(), failure.remedy.is_some()), (Some("a"), true), "{failure:?}");
            assert!(failure.cause.contains("ended before the script did"), "{failure}");
        }
        // What was read of a script that says very much is kept.
        let said = over("exec \"$@\"", "echo first; head -c 70000 /dev/zero; exit 0", &[]).await.unwrap();
        assert_eq!((said.stdout[0].as_str(), said.end.as_str()), ("first", "it said more than is read of it"));
    }
}

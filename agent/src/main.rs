//! railgauge's agent. Started by the controller; there is nothing to see here for a person but its version.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        None => railgauge_agent::run(),
        Some(railgauge_agent::TEND) => railgauge_agent::tend(std::env::args_os().skip(2)),
        Some("--rank") => railgauge_agent::run_rank(),
        Some("--version") => {
            println!("railgauge-agent {} (protocol {})", env!("CARGO_PKG_VERSION"), railgauge_wire::PROTOCOL);
            ExitCode::SUCCESS
        }
        Some(other) => {
            eprintln!(
                "railgauge-agent: unknown argument {other}. The agent takes none: it is started by `railgauge` and \
                 talks to it over stdin and stdout. `--version` prints its version."
            );
            ExitCode::from(2)
        }
    }
}

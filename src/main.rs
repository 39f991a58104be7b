//! The `railgauge` command.
use std::process::ExitCode;

fn main() -> ExitCode {
    railgauge::main()
}

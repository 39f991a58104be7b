//! railgauge's agent: one conversation over stdin and stdout, measurements in between.

mod fabric;

fn main() {}

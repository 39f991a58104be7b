//! Lines on stderr, which the controller keeps for each host.

use std::{
    fmt::Arguments,
    io::{self, Write as _},
};

macro_rules! log {
    ($($words:tt)*) => {
        $crate::system::log::write(format_args!($($words)*))
    };
}
pub(crate) use log;

/// Writes one line to stderr. A lost stderr is not a reason to stop.
pub(crate) fn write(words: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "railgauge-agent: {words}");
}

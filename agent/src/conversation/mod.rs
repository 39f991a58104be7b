//! The conversation with the controller, and the end of the process.
//!
//! ```text
//! main thread     reads requests ─┬─▶ link threads (open, join, step, case, close), one per link
//!                                 ├─▶ a passing thread each for facts and counters
//!                                 └─▶ sets flags at once (stop, close), answers clock at once
//! every thread    writes its own replies, whole frames under one lock
//! guard thread    sleeps until stdin or stdout is gone, then ends the process whatever the others do
//! ```

use std::process::ExitCode;

use crate::{facts::idle, system::process, verbs::region};

mod link;
mod pipes;
mod register;
mod requests;

/// Returns only if it cannot start: otherwise the process ends inside.
pub fn run() -> ExitCode {
    region::prepare();
    match pipes::claim() {
        Ok((inlet, outlet)) => {
            process::own_group();
            process::raise();
            if let Err(error) = pipes::guard(&inlet, &outlet) {
                crate::system::log!("cannot watch over stdin: {error}");
                return ExitCode::from(2);
            }
            outlet.announce();
            idle::begin();
            requests::answer_all(inlet, &outlet)
        }
        Err(error) => {
            crate::system::log!("cannot take over stdin and stdout: {error}");
            ExitCode::from(2)
        }
    }
}

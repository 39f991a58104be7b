//! Reads many runs at the same time and returns them in order.

use std::{
    path::{Path, PathBuf},
    sync::mpsc::sync_channel,
    thread,
};

use railgauge_wire::Metric;

use crate::frames::FrameFile;

use super::{Originals, Run, RunError, read};

/// Runs that a thread may be ahead.
const AHEAD: usize = 2;
/// More threads would wait for the disk and for memory.
const THREADS: usize = 8;

/// Reads all directories on several threads and calls `take` in their order; copies of earlier runs and imported ones are errors.
pub fn read_all(
    directories: &[PathBuf],
    metrics: &[Metric],
    frames: &dyn FrameFile,
    mut take: impl FnMut(&Path, Result<Run, RunError>),
) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(directories.len().max(1));
    let mut originals = Originals::default();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..threads)
            .map(|first| {
                let (send, receive) = sync_channel(AHEAD);
                scope.spawn(move || {
                    for directory in directories.iter().skip(first).step_by(threads) {
                        // The receiver is gone: the caller panicked.
                        if send.send(read(directory, metrics, frames)).is_err() {
                            return;
                        }
                    }
                });
                receive
            })
            .collect();
        for (directory, reader) in directories.iter().zip(readers.iter().cycle()) {
            if let Ok(run) = reader.recv() {
                take(
                    directory,
                    match run {
                        Ok(run) => originals.check(run),
                        // Even a caller that accepts imported runs must not count one twice.
                        Err(RunError::Imported { path, tools, run }) => originals
                            .check(*run)
                            .and_then(|run| Err(RunError::Imported { path, tools, run: Box::new(run) })),
                        Err(error) => Err(error),
                    },
                );
            }
        }
    });
}

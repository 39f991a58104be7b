//! The sums of the files of a run directory.

use std::{
    io::{self, Read},
    path::Path,
};

use railgauge_model::files;
use serde::{Deserialize, Serialize};

/// By what a reader of a run directory knows that journal, frame and verdicts belong together and are as they were written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// CRC-32 of `records.jsonl`, eight hexadecimal digits.
    pub journal: String,
    /// CRC-32 of `records.parquet`.
    pub frame: String,
    /// Whether no line of the journal is damaged or missing, but for those that were made good, and none contradicts another.
    pub whole: bool,
}

impl Sums {
    /// CRC-32 of a file as it stands here. The file is read piece by piece: a journal may have gigabytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> io::Result<String> {
        let (mut file, mut sum) = (files::open(path)?, crc32fast::Hasher::new());
        let mut piece = vec![0; 1 << 20];
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok(format!("{:08x}", sum.finalize())),
                Ok(length) => sum.update(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

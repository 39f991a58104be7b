use std::{
    io::{self, Read},
    path::Path,
};

use railgauge_model::files;
use serde::{Deserialize, Serialize};

/// Show that journal, frame and verdicts of a run directory belong together and are unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// CRC-32 of `records.jsonl`, eight hexadecimal digits.
    pub journal: String,
    /// CRC-32 of `records.parquet`.
    pub frame: String,
    /// Whether the journal has no contradictions and no damaged or missing lines, except those made up for.
    pub whole: bool,
}

impl Sums {
    /// CRC-32 of a file, read in pieces: a journal may have gigabytes.
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

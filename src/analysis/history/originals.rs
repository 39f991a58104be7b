//! Copies of a run are told from other runs: values that count twice make intervals too narrow.

use std::{
    collections::{HashMap, hash_map::Entry},
    path::PathBuf,
};

use jiff::Timestamp;

use super::{Run, RunError};

/// The runs that were seen, by their identity and the moment they started.
#[derive(Debug, Default)]
pub struct Originals(HashMap<(String, Timestamp), PathBuf>);

impl Originals {
    /// Lets a run pass once.
    ///
    /// # Errors
    /// The same run came before from another directory.
    pub fn check(&mut self, run: Run) -> Result<Run, RunError> {
        match self.0.entry((run.run_id.clone(), run.started)) {
            Entry::Vacant(place) => {
                place.insert(run.path.clone());
                Ok(run)
            }
            Entry::Occupied(place) => Err(RunError::Copy { path: run.path, original: place.get().clone() }),
        }
    }
}

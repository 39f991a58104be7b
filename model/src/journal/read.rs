use railgauge_wire::failure::Failure;
use serde::Deserialize;

use super::event::{self, LinkRecord, Sample, Started};

/// The fields of an [`event::Outcome`]; its start is in one of two of them.
#[derive(Deserialize)]
pub(super) struct Outcome {
    case: u64,
    /// Omitted where 0: most plans measure once.
    #[serde(default)]
    repeat: u32,
    #[serde(default)]
    started_at: Option<Started>,
    #[serde(default)]
    ago: Option<u64>,
    #[serde(default)]
    link: Option<LinkRecord>,
    #[serde(default)]
    link_line: Option<u64>,
    result: Result<Sample, Failure>,
}

impl TryFrom<Outcome> for event::Outcome {
    type Error = serde::de::value::Error;

    fn try_from(read: Outcome) -> Result<Self, Self::Error> {
        let Outcome { case, repeat, started_at, ago, link, link_line, result } = read;
        let started_at = Started::of_fields(started_at, ago)?;
        Ok(Self { case, repeat, started_at, link, link_line, result })
    }
}

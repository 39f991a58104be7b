use std::{fs::File, path::Path};

use polars::prelude::{KeyValueMetadata, ParquetCompression, ParquetWriter};
use railgauge_analysis::{
    frames::{FrameError, FrameFile},
    row::{Reading, Row},
};
use railgauge_model::border::text::path_text;
use railgauge_wire::Metric;

use super::{VERSION, VERSION_KEY, frame, polars, readings::readings};

/// Rows of a row group, and of the part of the frame in memory. A quarter of polars' own group size: for larger ones
/// the memory returns to the system each time, and is cleared again for the next.
const GROUP: usize = 1 << 16;

/// Frames as Parquet files, compressed with zstd.
#[derive(Debug, Clone, Copy)]
pub struct Parquet;

impl FrameFile for Parquet {
    fn readings(&self, path: &Path, metrics: &[Metric]) -> Result<Vec<Reading>, FrameError> {
        readings(path, metrics)
    }

    /// With one row group in memory at a time.
    fn write(&self, batches: &mut dyn Iterator<Item = Vec<Row>>, file: &File, path: &Path) -> Result<(), FrameError> {
        write_groups(batches, GROUP, file, path)
    }
}

fn write_groups(
    made: impl Iterator<Item = Vec<Row>>,
    group: usize,
    file: &File,
    path: &Path,
) -> Result<(), FrameError> {
    let fail = || polars(path_text(path));
    let mut made = made.fuse();
    let mut waiting: Vec<Row> = Vec::new();
    let mut writer_of = None;
    loop {
        while waiting.len() <= group
            && let Some(rows) = made.next()
        {
            waiting.extend(rows);
        }
        let is_last = waiting.len() <= group;
        let Some(writer) = &mut writer_of else {
            if is_last {
                return writer(file).finish(&mut frame(&waiting)?).map(drop).map_err(fail());
            }
            let schema = frame(&[])?.schema().clone();
            writer_of = Some(writer(file).batched(&schema).map_err(fail())?);
            continue;
        };
        let rest = waiting.split_off(waiting.len().min(group));
        writer.write_batch(&frame(&waiting)?).map_err(fail())?;
        waiting = rest;
        if is_last {
            return writer.finish().map(drop).map_err(fail());
        }
    }
}

fn writer(file: &File) -> ParquetWriter<&File> {
    let version = KeyValueMetadata::from_static(vec![(VERSION_KEY.to_owned(), VERSION.to_string())]);
    let writer = ParquetWriter::new(file).with_compression(ParquetCompression::Zstd(None));
    writer.with_key_value_metadata(Some(version))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use polars::prelude::{ParquetReader, SerReader};

    use railgauge_analysis::row::{CaseColumns, CellColumns};

    use super::*;
    use crate::{COLUMNS, made_test::made, read_parquet};

    /// Its columns are null in one case or the other.
    fn row(case: u64) -> Row {
        let row = made(case);
        let dst_gpu = (case == 3).then_some(1);
        let of = CellColumns { dst_gpu, ..(*row.of.of).clone() };
        let started_at = "2026-11-25T03:00:00Z".parse().ok().into();
        let of = CaseColumns { of: of.into(), started_at, ..(*row.of).clone() };
        let is_lost = case == 4;
        let error = is_lost.then(|| "gpu05: measure: gone".into());
        Row { of: of.into(), value: row.value.filter(|_| !is_lost), error, ..row }
    }

    #[test]
    fn rows_in_groups_are_the_rows_of_one_frame() {
        let place = tempfile::tempdir().unwrap();
        for count in [0, 1, 2, 3, 4, 5, 7] {
            let rows: Vec<Row> = (0..count).map(row).collect();
            let path = place.path().join(format!("{count}.parquet"));
            write_groups([rows.clone()].into_iter(), 2, &File::create(&path).unwrap(), &path).unwrap();
            let read = read_parquet(&path, &COLUMNS.map(|(name, _)| name)).unwrap();
            assert!(read.equals_missing(&frame(&rows).unwrap()));
            let mut reader = ParquetReader::new(File::open(&path).unwrap());
            let said = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
            let version = said.iter().find(|one| one.key == VERSION_KEY).and_then(|one| one.value.as_deref());
            assert_eq!(version, Some(VERSION.to_string().as_str()));
        }
    }
}

//! Frames as Parquet files.

use std::{fs::File, path::Path};

use polars::prelude::{DataFrame, KeyValueMetadata, ParquetCompression, ParquetWriter};
use railgauge_model::border::text::path_text;

use super::{FrameError, VERSION, VERSION_KEY, frame, polars};
use crate::analysis::row::Row;

/// Rows of one row group, and of the frame that is in memory meanwhile: polars' own size of a group.
const GROUP: usize = 512 * 512;

/// Writes the frame as Parquet, compressed by zstd, to a file; `path` is what errors name.
///
/// # Errors
/// The file cannot be written.
pub fn write_parquet(frame: &mut DataFrame, file: &File, path: &Path) -> Result<(), FrameError> {
    writer(file).finish(frame).map(drop).map_err(polars(path_text(path)))
}

/// Writes the frame of these rows as [`write_parquet`] does, with one row group of it in memory at a time: a frame takes about 350
/// bytes a row, and a run may have millions of rows.
///
/// # Errors
/// The file cannot be written.
pub fn write_rows(rows: &[Row], file: &File, path: &Path) -> Result<(), FrameError> {
    write_groups(rows, GROUP, file, path)
}

fn write_groups(rows: &[Row], group: usize, file: &File, path: &Path) -> Result<(), FrameError> {
    if rows.len() <= group {
        return write_parquet(&mut frame(rows)?, file, path);
    }
    let fail = || polars(path_text(path));
    let schema = frame(&[])?.schema().clone();
    let mut writer = writer(file).batched(&schema).map_err(fail())?;
    for group in rows.chunks(group) {
        writer.write_batch(&frame(group)?).map_err(fail())?;
    }
    writer.finish().map(drop).map_err(fail())
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
    use railgauge_wire::{
        terms::{Better, Metric},
        unit::Bytes,
    };

    use super::*;
    use crate::analysis::{
        frame,
        row::{CaseColumns, Phase},
    };

    fn row(case: u64) -> Row {
        let of = CaseColumns {
            run_id: "night".into(),
            plan: "nightly".into(),
            test: "bw".into(),
            case,
            round: 0,
            started_at: "2026-11-25T03:00:00Z".parse().ok(),
            op: "write".into(),
            size_bytes: Bytes(65536),
            ranks: 2,
            qps: 1,
            transport: "tcp".into(),
            link_layer: "ethernet".into(),
            memory: "host".into(),
            gpu_path: "none".into(),
            src_host: format!("gpu{case:02}").into(),
            src_device: "eth0".into(),
            src_gpu: (case == 3).then_some(1),
            dst_host: "gpu99".into(),
            dst_device: "eth0".into(),
            dst_gpu: None,
            rail: 0,
            verified_bytes: 0,
            wrong: 0,
            env: "".into(),
            phase: Phase::Test,
            tool: "railgauge 0.1.0".into(),
        };
        Row {
            of: of.into(),
            metric: Metric::Bandwidth,
            unit: "Gb/s".into(),
            value: (case != 4).then_some(390.0),
            value_min: None,
            value_max: None,
            better: Better::Higher,
            n: 1,
            ceiling: None,
            error: (case == 4).then(|| "gpu04: measure: gone".to_owned()),
        }
    }

    /// Columns that are null in one group and not in another, a group that is not full, and none at all.
    #[test]
    fn rows_in_groups_are_the_rows_of_one_frame() {
        let place = tempfile::tempdir().unwrap();
        for count in [0, 1, 2, 3, 4, 5, 7] {
            let rows: Vec<Row> = (0..count).map(row).collect();
            let path = place.path().join(format!("{count}.parquet"));
            write_groups(&rows, 2, &File::create(&path).unwrap(), &path).unwrap();
            let read = frame::read_parquet(&path).unwrap();
            assert_eq!(frame::rows(&read).unwrap(), rows);
            let mut reader = ParquetReader::new(File::open(&path).unwrap());
            let said = reader.get_metadata().unwrap().key_value_metadata().clone().unwrap();
            let version = said.iter().find(|one| one.key == VERSION_KEY).and_then(|one| one.value.as_deref());
            assert_eq!(version, Some("2"));
        }
    }
}

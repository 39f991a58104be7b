//! Outputs that nccl-tests wrote on two H100 (NCCL 2.28.3), three versions of it: only the host's name and the environment were taken out.

use railgauge_wire::terms::Metric::{self, Algbw, Busbw};

/// A file, the option that it needs, the tool, and values at 256 KiB out of place as they stand in the file.
type Recorded = (&'static str, &'static [&'static str], &'static str, [(Metric, f64); 2]);

const RECORDED: [Recorded; 12] = [
    ("2.13.10-all-gather.txt", &["--op", "all_gather"], "nccl-tests", [(Algbw, 16.30), (Busbw, 8.15)]),
    ("2.13.10-all-reduce.txt", &["--op", "all_reduce"], "nccl-tests", [(Algbw, 15.00), (Busbw, 15.00)]),
    ("2.16.9-all-gather.txt", &[], "nccl-tests", [(Algbw, 15.23), (Busbw, 7.62)]),
    ("2.16.9-all-reduce.txt", &[], "nccl-tests", [(Algbw, 17.56), (Busbw, 17.56)]),
    ("2.19.6-all-gather.txt", &[], "nccl-tests 2.19.6", [(Algbw, 13.40), (Busbw, 6.70)]),
    ("2.19.6-all-reduce.txt", &[], "nccl-tests 2.19.6", [(Algbw, 16.40), (Busbw, 16.40)]),
    ("2.19.6-alltoall.txt", &[], "nccl-tests 2.19.6", [(Algbw, 11.74), (Busbw, 5.87)]),
    ("2.19.6-broadcast.txt", &[], "nccl-tests 2.19.6", [(Algbw, 19.15), (Busbw, 19.15)]),
    ("2.19.6-iterations.txt", &[], "nccl-tests 2.19.6", [(Algbw, 16.62), (Busbw, 16.62)]),
    ("2.19.6-reduce-scatter-bf16.txt", &[], "nccl-tests 2.19.6", [(Algbw, 19.63), (Busbw, 9.81)]),
    ("2.19.6-sockets.txt", &[], "nccl-tests 2.19.6", [(Algbw, 1.36), (Busbw, 1.36)]),
    ("2.19.6-stamps.txt", &[], "nccl-tests 2.19.6", [(Algbw, 18.99), (Busbw, 18.99)]),
];

/// Names of these files without `recorded-`.
pub fn names() -> impl Iterator<Item = String> {
    RECORDED.iter().map(|(name, ..)| format!("nccl-tests-{name}"))
}

#[test]
fn outputs_that_were_recorded_are_taken_as_they_stand() {
    let place = tempfile::tempdir().unwrap();
    for (name, options, tool, values) in RECORDED {
        let file = format!("recorded-nccl-tests-{name}");
        let run = super::imported(place.path(), &file, options);
        assert_eq!(run.tools(), tool, "{file}");
        for (metric, value) in values {
            let rows = run.rows();
            let of_size = rows.iter().filter(|row| row.size_bytes.0 == 262_144 && row.metric == metric);
            let found: Vec<Option<f64>> =
                of_size.filter(|row| !row.env.contains("in_place=true")).map(|row| row.value).collect();
            assert_eq!(found, [Some(value)], "{file}: {metric}");
        }
    }
}

//! Traffic of an `all_to_all_v`: how many bytes each rank sends to each other rank.

use railgauge_wire::{Bytes, Exchange};
use serde::{Deserialize, Serialize};

use super::count::count;

/// Bytes from each rank (row) to each rank (column). What a rank keeps for itself is not traffic: the diagonal is zero.
pub type Matrix = Vec<Vec<u64>>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// From a file.
    Matrix(Matrix),
    Moe(Moe),
    /// The first `prefill` ranks send `bytes` each, in equal parts to the others.
    Kv {
        prefill: u32,
        bytes: Bytes,
    },
    /// Each rank but the first `trainers` receives `bytes`, in equal parts from those.
    Weights {
        trainers: u32,
        bytes: Bytes,
    },
    /// Each rank sends `bytes` to the same place of the next stage.
    Pipeline {
        stages: u32,
        bytes: Bytes,
    },
}

/// Dispatch of a mixture of experts with expert parallelism. Each rank holds as many adjacent experts as the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moe {
    pub experts: u32,
    pub top_k: u32,
    /// Of each rank.
    pub tokens: u64,
    pub hidden: u64,
    /// Bytes of one value of a token.
    pub value_bytes: u64,
    /// Exponent of Zipf's law: expert k is chosen in proportion to 1/k^skew.
    pub skew: f64,
    /// Whether the experts' results return instead.
    pub combine: bool,
}

impl Moe {
    /// Bytes that each rank gets from each other one: the expected number of its tokens. A token with several experts on one rank
    /// is sent there once, as DeepEP does; its `top_k` choices are independent.
    fn sent_to(&self, ranks: u32) -> Vec<u64> {
        let weight = |expert: u32| f64::from(expert + 1).powf(-self.skew);
        let all: f64 = (0..self.experts).map(weight).sum();
        let edge = |rank: u32| u64::from(self.experts) * u64::from(rank) / u64::from(ranks);
        let chosen = |rank: u32| (edge(rank) as u32..edge(rank + 1) as u32).map(weight).sum::<f64>() / all;
        let reached = |rank| 1.0 - (1.0 - chosen(rank)).max(0.0).powf(f64::from(self.top_k));
        (0..ranks)
            .map(|rank| (self.tokens as f64 * reached(rank)).round() as u64 * self.hidden * self.value_bytes)
            .collect()
    }
}

impl Traffic {
    /// Why it cannot be the traffic of so many ranks.
    pub fn misfit(&self, ranks: u32) -> Option<String> {
        let all = count(ranks as usize, "rank");
        match self {
            Self::Matrix(rows) if rows.len() != ranks as usize => {
                Some(format!("the matrix is for {}, and the test has {all}", count(rows.len(), "rank")))
            }
            Self::Kv { prefill: first, .. } | Self::Weights { trainers: first, .. } if *first >= ranks => {
                Some(format!("of {all} the first {first} send, so that none receives"))
            }
            Self::Pipeline { stages, .. } if !ranks.is_multiple_of(*stages) => {
                Some(format!("{all} cannot be divided into {stages} stages"))
            }
            _ => (busiest(&self.matrix(ranks)) == 0).then(|| "no rank sends anything to another".to_owned()),
        }
    }

    pub fn matrix(&self, ranks: u32) -> Matrix {
        let of = |bytes: &dyn Fn(u32, u32) -> u64| {
            let row = |from| (0..ranks).map(|to| if from == to { 0 } else { bytes(from, to) }).collect();
            (0..ranks).map(row).collect()
        };
        match self {
            Self::Matrix(rows) => {
                of(&|from, to| rows.get(from as usize).and_then(|row| row.get(to as usize)).copied().unwrap_or(0))
            }
            Self::Moe(moe) => {
                let sent = moe.sent_to(ranks);
                of(&|from, to| sent[if moe.combine { from } else { to } as usize])
            }
            Self::Kv { prefill, bytes } => {
                let part = bytes.0 / u64::from(ranks.saturating_sub(*prefill).max(1));
                of(&|from, to| if from < *prefill && to >= *prefill { part } else { 0 })
            }
            Self::Weights { trainers, bytes } => {
                let part = bytes.0 / u64::from(*trainers);
                of(&|from, to| if from < *trainers && to >= *trainers { part } else { 0 })
            }
            Self::Pipeline { stages, bytes } => {
                let width = ranks / stages;
                of(&|from, to| if to == from + width { bytes.0 } else { 0 })
            }
        }
    }

    /// Bytes of the busiest rank, as [`railgauge_wire::CollectiveSpec::size`] counts them, in whole elements of any type.
    pub fn size(&self, ranks: u32) -> Bytes {
        Bytes(busiest(&self.matrix(ranks)).next_multiple_of(8))
    }

    /// What `members`, some of `ranks`, exchange in elements of `width` bytes, such that the busiest of them sends or receives `size`.
    /// Members between which nothing flows exchange equal parts: a search for a slow host may measure any group.
    pub fn exchanges(&self, ranks: u32, members: &[usize], size: Bytes, width: Bytes) -> Vec<Exchange> {
        let whole = self.matrix(ranks);
        let at = |from: usize, to: usize| whole.get(from).and_then(|row| row.get(to)).copied().unwrap_or(0);
        let part: Matrix = members.iter().map(|from| members.iter().map(|to| at(*from, *to)).collect()).collect();
        let (most, elements) = (busiest(&part), size / width);
        let others = (members.len() as u64).saturating_sub(1).max(1);
        let scaled = |from: usize, to: usize| match most {
            0 if from == to => 0,
            0 => elements / others,
            _ => (u128::from(part[from][to]) * u128::from(elements) / u128::from(most)) as u64,
        };
        let blocks: Matrix =
            (0..members.len()).map(|from| (0..members.len()).map(|to| scaled(from, to)).collect()).collect();
        let starts =
            |row: &Vec<u64>| row.iter().scan(0, |next, count| Some(std::mem::replace(next, *next + count))).collect();
        let offsets: Matrix = blocks.iter().map(starts).collect();
        let column = |matrix: &Matrix, rank: usize| matrix.iter().map(|row| row[rank]).collect();
        let exchange = |rank: usize| Exchange {
            send: blocks[rank].clone(),
            receive: column(&blocks, rank),
            offsets: column(&offsets, rank),
        };
        (0..members.len()).map(exchange).collect()
    }
}

/// The most that a rank sends or receives.
fn busiest(matrix: &Matrix) -> u64 {
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
    let sent = matrix.iter().map(|row| sum(&mut row.iter().copied()));
    let received = (0..matrix.len()).map(|to| sum(&mut matrix.iter().map(|row| row[to])));
    sent.chain(received).max().unwrap_or(0)
}

/// The matrix of a file: a row of bytes for each rank, values apart by commas or blanks, with K, M or G (powers of 1024) as those of
/// kvbench's `ct-perftest`. Lines that start with `#` are comments.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub fn parse(text: &str) -> Result<Matrix, (usize, String)> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut rows = Matrix::new();
    let mut last = 1;
    for (number, line) in lines {
        let words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let value = |word: &str| bytes(word).ok_or_else(|| (number, format!("`{word}` is not a number of bytes")));
        rows.push(words.map(value).collect::<Result<Vec<u64>, _>>()?);
        last = number;
        if rows.last().map(Vec::len) != rows.first().map(Vec::len) {
            return Err((number, "the row has another number of values than the first".to_owned()));
        }
    }
    let columns = rows.first().map_or(0, Vec::len);
    if rows.len() != columns || rows.len() < 2 {
        let (rows, columns) = (count(rows.len(), "row"), count(columns, "column"));
        return Err((
            last,
            format!("{rows} and {columns}: a matrix has a row and a column for each of at least two ranks"),
        ));
    }
    Ok(rows)
}

fn bytes(word: &str) -> Option<u64> {
    let Some(unit) = word.chars().last().and_then(|last| "KMG".find(last.to_ascii_uppercase())) else {
        return word.parse().ok();
    };
    let number: f64 = word[..word.len() - 1].parse().ok()?;
    let bytes = number * 1024_f64.powi(unit as i32 + 1);
    (0.0..1e15).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOE: Moe =
        Moe { experts: 64, top_k: 8, tokens: 4096, hidden: 7168, value_bytes: 1, skew: 0.0, combine: false };

    #[test]
    fn generators_have_the_bytes_of_their_workload() {
        let even = Traffic::Moe(MOE).matrix(8);
        // 8 of 64 experts are on each rank: a token reaches it with 1 - (7/8)^8.
        let tokens = (4096.0 * (1.0 - 0.875_f64.powi(8))).round() as u64;
        assert!(even.iter().enumerate().all(|(from, row)| {
            row.iter().enumerate().all(|(to, bytes)| *bytes == if from == to { 0 } else { tokens * 7168 })
        }));
        let skewed = Traffic::Moe(Moe { skew: 1.0, ..MOE }).matrix(8);
        assert!(skewed[7].windows(2).take(6).all(|pair| pair[0] > pair[1]), "{skewed:?}");
        let combined = Traffic::Moe(Moe { skew: 1.0, combine: true, ..MOE }).matrix(8);
        assert!((0..8).all(|from| (0..8).all(|to| combined[from][to] == skewed[to][from])));
        let bytes = Bytes(600);
        assert_eq!(Traffic::Kv { prefill: 1, bytes }.matrix(3), [[0, 300, 300], [0; 3], [0; 3]]);
        assert_eq!(Traffic::Weights { trainers: 2, bytes }.matrix(3), [[0, 0, 300], [0, 0, 300], [0; 3]]);
        let stages = Traffic::Pipeline { stages: 2, bytes }.matrix(4);
        assert_eq!(stages, [[0, 0, 600, 0], [0, 0, 0, 600], [0; 4], [0; 4]]);
        assert_eq!(Traffic::Weights { trainers: 2, bytes }.size(3), Bytes(600));
    }

    #[test]
    fn files_are_square_and_whole() {
        assert_eq!(parse("# bytes\n0, 5\n\n7 0\n").unwrap(), [[0, 5], [7, 0]]);
        assert_eq!(parse("0 1.5k\n1M 0\n").unwrap(), [[0, 1536], [1 << 20, 0]]);
        for (text, line) in
            [("0,5\n7\n", 2), ("0,x\n", 1), ("0,1\n", 1), ("", 1), ("5\n", 1), ("0,-1\n1,0\n", 1), ("0,-1K\n1,0\n", 1)]
        {
            assert_eq!(parse(text).unwrap_err().0, line, "{text:?}");
        }
    }

    #[test]
    fn a_thousand_ranks_are_quick() {
        let ranks: Vec<usize> = (0..1024).collect();
        let all =
            Traffic::Moe(Moe { skew: 0.8, experts: 2048, ..MOE }).exchanges(1024, &ranks, Bytes(1 << 30), Bytes(2));
        assert_eq!(all.len(), 1024);
    }

    proptest! {
        #[test]
        fn blocks_fit_the_size_and_both_ends_agree(
            rows in (2_usize..7).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0_u64..1 << 50, n), n)),
            size in 1_u64..1 << 40,
            skip in 0_usize..2,
        ) {
            let ranks = rows.len() as u32;
            let members: Vec<usize> = (skip.min(rows.len() - 2)..rows.len()).collect();
            let all = Traffic::Matrix(rows).exchanges(ranks, &members, Bytes(size * 4), Bytes(4));
            for (rank, exchange) in all.iter().enumerate() {
                prop_assert!(exchange.send.iter().sum::<u64>() <= size && exchange.receive.iter().sum::<u64>() <= size);
                for (from, other) in all.iter().enumerate() {
                    prop_assert_eq!(exchange.receive[from], other.send[rank]);
                    prop_assert_eq!(exchange.offsets[from], other.send[..rank].iter().sum::<u64>());
                }
            }
        }
    }
}

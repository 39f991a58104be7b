//! Traffic of an `all_to_all_v`: how many bytes each rank sends to each other rank.

use std::cmp::Reverse;

use railgauge_wire::{Bytes, Exchange, starts};
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
    /// is sent there once, as DeepEP does.
    fn sent_to(&self, ranks: u32) -> Vec<u64> {
        let weight = |expert: u32| f64::from(expert + 1).powf(-self.skew);
        let edge = |rank: u32| (u64::from(self.experts) * u64::from(rank) / u64::from(ranks)) as u32;
        let held = |rank: u32| edge(rank)..edge(rank + 1);
        let chosen = if self.skew > 0.0 { self.pace(weight) } else { 0.0 };
        let missed = |rank: u32| match self.skew > 0.0 {
            true => (-chosen * held(rank).map(weight).sum::<f64>()).exp(),
            // Each of `top_k` different experts is on another rank.
            false => (0..self.top_k)
                .map(|k| {
                    f64::from(self.experts.saturating_sub(held(rank).len() as u32 + k)) / f64::from(self.experts - k)
                })
                .product(),
        };
        let tokens = |rank| (self.tokens as f64 * (1.0 - missed(rank))).round() as u64;
        (0..ranks).map(|rank| tokens(rank) * self.hidden * self.value_bytes).collect()
    }

    /// The rate at which experts with exponential arrival times, in proportion to their weights, are `top_k` arrivals in unit time on
    /// average: choices without replacement by weight are the first arrivals.
    fn pace(&self, weight: impl Fn(u32) -> f64) -> f64 {
        let arrived = |pace: f64| (0..self.experts).map(|expert| 1.0 - (-pace * weight(expert)).exp()).sum::<f64>();
        let (mut low, mut high) = (0.0, 1.0);
        while arrived(high) < f64::from(self.top_k) && high < 1e9 {
            high *= 2.0;
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            *(if arrived(middle) < f64::from(self.top_k) { &mut low } else { &mut high }) = middle;
        }
        high
    }
}

/// Most bytes of a rank in a round: the largest size of a plan.
const MOST: u64 = 1 << 40;

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
            _ => match busiest(&self.matrix(ranks)) {
                0 => Some("no rank sends anything to another".to_owned()),
                most if most > MOST => Some("a rank sends or receives more than 1024GiB".to_owned()),
                _ => None,
            },
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

    /// Bytes of the busiest rank, as [`railgauge_wire::CollectiveSpec::size`] counts them, in whole elements of `width` bytes.
    pub fn size(&self, ranks: u32, width: Bytes) -> Bytes {
        Bytes(busiest(&self.matrix(ranks)).next_multiple_of(width.0))
    }

    /// Elements of `width` bytes from each rank to each, such that the busiest of them sends or receives `size`.
    pub fn blocks(&self, ranks: u32, size: Bytes, width: Bytes) -> Matrix {
        let mut blocks = self.matrix(ranks);
        let (most, elements) = (busiest(&blocks).div_ceil(width.0), size / width);
        let scaled = |bytes: u64| u128::from(bytes) * u128::from(elements) / u128::from(most.max(1));
        blocks.iter_mut().flatten().for_each(|bytes| *bytes = (scaled(*bytes) / u128::from(width.0)) as u64);
        blocks
    }
}

/// Equal parts between so many ranks: what some ranks of a matrix exchange when a slow host is searched for.
pub fn equal_parts(ranks: usize, size: Bytes, width: Bytes) -> Matrix {
    let part = size / width / (ranks as u64).saturating_sub(1).max(1);
    let row = |from| (0..ranks).map(|to| if from == to { 0 } else { part }).collect();
    (0..ranks).map(row).collect()
}

/// What each rank sends and receives of such blocks. The `alone` largest ones are also measured alone.
pub fn exchanges(blocks: &Matrix, alone: usize) -> Vec<Exchange> {
    let alone = largest(blocks, alone);
    let offsets: Matrix = blocks.iter().map(|row| starts(row).collect()).collect();
    let column = |matrix: &Matrix, rank: usize| matrix.iter().map(|row| row[rank]).collect();
    let exchange = |rank: usize| Exchange {
        send: blocks[rank].clone(),
        receive: column(blocks, rank),
        offsets: column(&offsets, rank),
        alone: alone.clone(),
    };
    (0..blocks.len()).map(exchange).collect()
}

/// Sender and receiver of the `most` largest blocks. Of equal ones the nearest ranks come first, so that every rank has its part.
fn largest(blocks: &Matrix, most: usize) -> Vec<(u32, u32)> {
    let ranks = blocks.len();
    let flows = blocks
        .iter()
        .enumerate()
        .flat_map(|(from, row)| row.iter().enumerate().map(move |(to, count)| (*count, from, to)));
    let order = |(count, from, to): &(u64, usize, usize)| (Reverse(*count), (to + ranks - from) % ranks, *from);
    let mut flows: Vec<_> = flows.filter(|(count, ..)| *count > 0).collect();
    if (1..flows.len()).contains(&most) {
        flows.select_nth_unstable_by_key(most, order);
    }
    flows.truncate(most);
    flows.sort_unstable_by_key(order);
    flows.into_iter().map(|(_, from, to)| (from as u32, to as u32)).collect()
}

/// The most that a rank sends or receives.
fn busiest(matrix: &Matrix) -> u64 {
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
    let sent = matrix.iter().map(|row| sum(&mut row.iter().copied()));
    let received = (0..matrix.len()).map(|to| sum(&mut matrix.iter().map(|row| row[to])));
    sent.chain(received).max().unwrap_or(0)
}

/// The matrix of a file: a row of bytes for each rank, values apart by commas or blanks, with K, M or G (powers of 1024) as those of
/// kvbench's `ct-perftest`. `#` starts a comment.
///
/// # Errors
/// The line, from 1, and what is wrong with it.
pub fn parse(text: &str) -> Result<Matrix, (usize, String)> {
    let text = text.trim_start_matches('\u{feff}');
    let content = |line: &'_ str| line.split('#').next().unwrap_or_default().trim().to_owned();
    let lines = (1..).zip(text.lines().map(content)).filter(|(_, line)| !line.is_empty());
    let mut rows = Matrix::new();
    let mut last = 1;
    for (number, line) in lines {
        let words = line.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        let value =
            |word: &str| bytes(word).ok_or_else(|| (number, format!("`{word}` is not a number of bytes up to 1024G")));
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
        return word.parse().ok().filter(|bytes| *bytes <= MOST);
    };
    let number: f64 = word[..word.len() - 1].parse().ok()?;
    let bytes = number * 1024_f64.powi(unit as i32 + 1);
    (0.0..=MOST as f64).contains(&bytes).then_some(bytes as u64)
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
        // 8 of 64 experts are on each rank: a token misses it if all of its 8 experts are among the 56 others.
        let tokens =
            (4096.0 * (1.0 - (0..8).map(|k| f64::from(56 - k) / f64::from(64 - k)).product::<f64>())).round() as u64;
        assert!(even.iter().enumerate().all(|(from, row)| {
            row.iter().enumerate().all(|(to, bytes)| *bytes == if from == to { 0 } else { tokens * 7168 })
        }));
        let skewed = Traffic::Moe(Moe { skew: 1.0, ..MOE }).matrix(8);
        assert!(skewed[7].windows(2).take(6).all(|pair| pair[0] > pair[1]), "{skewed:?}");
        for skew in [0.0, 1.0] {
            let all = Traffic::Moe(Moe { experts: 8, skew, ..MOE }).matrix(4);
            assert_eq!(all[0], [0, 4096 * 7168, 4096 * 7168, 4096 * 7168], "all experts, so all ranks");
        }
        let combined = Traffic::Moe(Moe { skew: 1.0, combine: true, ..MOE }).matrix(8);
        assert!((0..8).all(|from| (0..8).all(|to| combined[from][to] == skewed[to][from])));
        let bytes = Bytes(600);
        assert_eq!(Traffic::Kv { prefill: 1, bytes }.matrix(3), [[0, 300, 300], [0; 3], [0; 3]]);
        assert_eq!(Traffic::Weights { trainers: 2, bytes }.matrix(3), [[0, 0, 300], [0, 0, 300], [0; 3]]);
        let stages = Traffic::Pipeline { stages: 2, bytes }.matrix(4);
        assert_eq!(stages, [[0, 0, 600, 0], [0, 0, 0, 600], [0; 4], [0; 4]]);
        assert_eq!(Traffic::Weights { trainers: 2, bytes }.size(3, Bytes(4)), Bytes(600));
    }

    #[test]
    fn files_are_square_and_whole() {
        assert_eq!(parse("\u{feff}# bytes\n0, 5 # of the first\n\n7 0\n").unwrap(), [[0, 5], [7, 0]]);
        assert_eq!(parse("0 1.5k\n1M 0\n").unwrap(), [[0, 1536], [1 << 20, 0]]);
        for (text, line) in [
            ("0,5\n7\n", 2),
            ("0,x\n", 1),
            ("0,1\n", 1),
            ("", 1),
            ("5\n", 1),
            ("0,-1\n1,0\n", 1),
            ("0,-1K\n1,0\n", 1),
            ("0 1025G\n1 0\n", 1),
            ("0 18446744073709551615\n1 0\n", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text:?}");
        }
    }

    #[test]
    fn the_largest_flows_are_spread_over_the_ranks() {
        let equal = equal_parts(3, Bytes(8), Bytes(1));
        assert_eq!(largest(&equal, 4), [(0, 1), (1, 2), (2, 0), (0, 2)]);
        let rows = vec![vec![0, 1, 0], vec![7, 0, 0], vec![0, 9, 0]];
        assert_eq!(largest(&rows, 2), [(2, 1), (1, 0)]);
        assert_eq!((largest(&rows, 9).len(), largest(&rows, 0)), (3, vec![]));
    }

    #[test]
    fn a_thousand_ranks_are_quick() {
        let all = Traffic::Moe(Moe { skew: 0.8, experts: 2048, ..MOE }).blocks(1024, Bytes(1 << 30), Bytes(2));
        assert_eq!(exchanges(&all, 256).len(), 1024);
    }

    #[test]
    fn the_default_size_carries_the_bytes_of_the_matrix() {
        let rows = vec![vec![0, 1501, 1502], vec![7, 0, 0], vec![0, 0, 0]];
        let traffic = Traffic::Matrix(rows);
        let sent = |width| traffic.blocks(3, traffic.size(3, Bytes(width)), Bytes(width))[0].clone();
        assert_eq!((traffic.size(3, Bytes(1)), sent(1)), (Bytes(3003), vec![0, 1501, 1502]));
        // Whole elements: 1500 of 1501 bytes.
        assert_eq!((traffic.size(3, Bytes(4)), sent(4)), (Bytes(3004), vec![0, 375, 375]));
        assert_eq!(equal_parts(3, Bytes(32), Bytes(4))[1], [4, 0, 4]);
    }

    proptest! {
        #[test]
        fn blocks_fit_the_size_and_both_ends_agree(
            rows in (2_usize..7).prop_flat_map(|n| prop::collection::vec(prop::collection::vec(0_u64..1 << 37, n), n)),
            size in 1_u64..1 << 38,
        ) {
            let all = exchanges(&Traffic::Matrix(rows.clone()).blocks(rows.len() as u32, Bytes(size * 4), Bytes(4)), 2);
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

//! What is told of a test and of a part that stands out.

use serde::Serialize;

/// What good pairs reach.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Good {
    /// Which pairs: `all pairs`, `pairs within a group`, `pairs between groups`.
    pub which: String,
    /// Centre in the metric's unit.
    pub centre: f64,
    /// Standard deviation in percent of the centre.
    pub spread_percent: f64,
    /// Pairs this rests on.
    pub n: usize,
}

/// Whether a suspicion was followed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Not followed up.
    Suspect,
    /// Low again when measured again.
    Confirmed,
    /// Good when measured again.
    Cleared,
    /// Measured again with too few results.
    Open,
}

/// A part that stands out, in words and numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Named {
    /// `host`, `nic`, `rail`, `group`, `group rail`, `uplink`, `boundary` or `path`.
    pub kind: &'static str,
    /// The part: `host gpu07`, `rail 3 of gpu07 (mlx5_3)`, `path between gpu01 rail 0 and gpu04 rail 0`.
    pub name: String,
    /// Hosts that the name holds.
    pub hosts: Vec<String>,
    /// The rail that the name holds, if it holds one.
    pub rail: Option<u32>,
    /// Change against good pairs in percent of them: negative for a bandwidth that is low, positive for a latency that is
    /// high.
    pub change_percent: f64,
    /// 95 % interval of it; `None` below six pairs.
    pub interval_percent: Option<(f64, f64)>,
    /// Pairs that speak of it.
    pub n: usize,
    /// How many of these are bad.
    pub bad: usize,
    /// Hosts at the other ends.
    pub partners: usize,
    /// How many standard errors it stands out.
    pub standard_errors: f64,
    /// How many count as standing out.
    pub needed: f64,
    /// How it was found.
    pub method: &'static str,
    /// Why, in a sentence.
    pub reason: String,
    /// Numbers of the cases that speak of it.
    pub cases: Vec<u64>,
    /// Whether it was followed up.
    pub standing: Standing,
    /// The further cases that were to settle it.
    pub further: Vec<Further>,
    /// What they came to; `None` without any, or with too few.
    pub confirmation: Option<Confirmation>,
    /// A path's source ports, each measured by itself; empty where that was not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<Lane>,
}

/// One queue pair or stream of a path, measured by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lane {
    /// What `number` is: `UDP source port`, `TCP source port`, `queue pair`, `stream`.
    pub kind: &'static str,
    /// The port; counted from 1 where no port is known.
    pub number: u32,
    /// Whether the port follows from the kernel's rule and was not read from the socket.
    pub predicted: bool,
    /// Median in the metric's unit; `None` without a value that may be trusted.
    pub value: Option<f64>,
    /// Values behind it.
    pub n: usize,
    /// Whether it is slow while the others are not.
    pub slow: bool,
}

/// A further case that was to settle a suspect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Further {
    /// Its number.
    pub case: u64,
    /// The link, in words.
    pub link: String,
    /// Its value, if it may be trusted.
    pub value: Option<f64>,
    /// What stands against it.
    pub error: Option<String>,
}

/// What the further cases of a suspect came to. They were not picked for being bad, so their effect is not flattered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Confirmation {
    /// Change against good pairs in percent of them.
    pub change_percent: f64,
    /// 95 % interval of it; `None` below six tests.
    pub interval_percent: Option<(f64, f64)>,
    /// Further cases with a result that may be trusted.
    pub n: usize,
}

impl Standing {
    /// In a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Suspect => "suspect",
            Self::Confirmed => "confirmed",
            Self::Cleared => "cleared",
            Self::Open => "open",
        }
    }
}

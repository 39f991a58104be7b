//! Grounds of the verdicts on links between switches.

use std::fmt;

use serde::Serialize;

use railgauge_model::plan::count::{are, have, were};

use crate::analysis::{
    localise::Standing,
    words::{count, number},
};

/// How many links are named.
const NAMED: usize = 3;

/// One ground of a verdict on links between switches.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind")]
pub enum OfLinks {
    /// A cable or switch is worse than the others.
    #[serde(rename = "link-stands-out")]
    StandsOut {
        /// Whether it was measured again, and what that said.
        standing: Standing,
        /// Where to look.
        link: String,
        /// Other parts that explain the same values about as well.
        alternatives: Vec<String>,
        /// Difference from good flows in percent.
        change_percent: f64,
        /// Its 95 % interval; `None` where the flows are too few for one.
        #[serde(skip_serializing_if = "Option::is_none")]
        interval_percent: Option<(f64, f64)>,
        /// Low flows that passed it.
        low: usize,
        /// Good flows that passed it.
        good: usize,
    },
    /// A link that stood out was good when it was measured again.
    #[serde(rename = "link-cleared")]
    Cleared {
        /// Where it is.
        link: String,
    },
    /// No link stands out.
    #[serde(rename = "no-link-stands-out")]
    NothingStandsOut {
        /// Directions of links that flows passed.
        passed: usize,
        /// All of them.
        of: usize,
        /// Flows that were judged.
        flows: usize,
    },
    /// Low flows that no link explains.
    #[serde(rename = "links-unexplained")]
    Unexplained {
        /// How many.
        flows: usize,
    },
    /// A link at half its rate would not stand out.
    #[serde(rename = "links-too-noisy")]
    TooNoisy,
    /// Flows with a known path that have no value that may be trusted.
    #[serde(rename = "links-not-measured")]
    NotMeasured {
        /// How many.
        flows: usize,
    },
    /// Low flows on links with others, of which nobody knows what they can carry.
    #[serde(rename = "links-undecided")]
    Undecided {
        /// How many.
        flows: usize,
    },
    /// Low flows that were left out because they shared a full link with others.
    #[serde(rename = "links-full")]
    Contended {
        /// How many.
        flows: usize,
    },
    /// How many directions of links were loaded.
    #[serde(rename = "links-loaded")]
    Loaded {
        /// So many.
        loaded: usize,
        /// Of so many.
        of: usize,
        /// A link counts as loaded from this share of its rate on, in percent.
        from_percent: f64,
    },
    /// Links that were not loaded.
    #[serde(rename = "links-not-loaded")]
    NotLoaded {
        /// The first of them.
        links: Vec<String>,
        /// All of them.
        all: usize,
    },
    /// Links whose rate is not known, so that nobody can say what share of it was reached.
    #[serde(rename = "links-no-rate")]
    NoRate {
        /// How many directions.
        links: usize,
    },
    /// Flows moved more over links than these can carry.
    #[serde(rename = "links-impossible")]
    Impossible {
        /// How many directions.
        links: usize,
        /// That with most.
        link: String,
        /// What it carried, in percent of its rate.
        percent: f64,
    },
    /// Flows of which nobody knows which of several equal paths they took.
    #[serde(rename = "links-open-flows")]
    OpenFlows {
        /// How many.
        flows: usize,
    },
    /// Flows of which the topology does not know the way.
    #[serde(rename = "links-unknown-ways")]
    Unknown {
        /// How many.
        flows: usize,
        /// Why.
        why: String,
    },
    /// Nothing is known of links between switches.
    #[serde(rename = "no-links")]
    NoLinks,
    /// No flow of the test was measured.
    #[serde(rename = "links-nothing-measured")]
    NothingMeasured,
}

impl OfLinks {
    /// Links that were not loaded, the first of them by name.
    pub(in crate::analysis::verdict) fn not_loaded(names: impl ExactSizeIterator<Item = String>) -> Self {
        let all = names.len();
        Self::NotLoaded { links: names.take(NAMED).collect(), all }
    }
}

/// A part, or the parts of which the values fit each as well: `one of A, B`.
fn one_of(link: &str, alternatives: &[String]) -> String {
    match alternatives {
        [] => link.to_owned(),
        others => format!("one of {link}, {}", others.join(", ")),
    }
}

impl fmt::Display for OfLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandsOut { standing, link, alternatives, change_percent, interval_percent, low, good } => {
                write!(f, "{} ({}): {} %", one_of(link, alternatives), standing.word(), number(*change_percent))?;
                if let Some((low_end, high_end)) = interval_percent {
                    write!(f, " ({} to {} %)", number(*low_end), number(*high_end))?;
                }
                write!(f, ", {} through it low, {good} good", count(*low, "flow"))
            }
            Self::Cleared { link } => write!(f, "{link} was good when it was measured again"),
            Self::NothingStandsOut { passed, of, flows } => {
                let rest = of - passed;
                let (passed, flows) = (count(*passed, "direction"), count(*flows, "judged flow"));
                write!(f, "none stands out of the {passed} of cables that {flows} passed")?;
                match rest {
                    0 => Ok(()),
                    rest => write!(f, "; {} passed by no judged flow", were(rest, "direction")),
                }
            }
            Self::Unexplained { flows } => {
                write!(f, "{} low and no link explains it: their links are good in other flows", are(*flows, "flow"))
            }
            Self::TooNoisy => {
                f.write_str("the values scatter so much that a link at half its rate would not stand out")
            }
            Self::NotMeasured { flows } => {
                write!(f, "{} no value that may be trusted", have(*flows, "flow with a known path"))
            }
            Self::Undecided { flows } => write!(
                f,
                "{} not judged: others were on its links, and it is not known what these carry",
                are(*flows, "low flow")
            ),
            Self::Contended { flows } => {
                write!(f, "{} not judged: its links were full of others", are(*flows, "low flow"))
            }
            Self::Loaded { loaded, of, from_percent } => {
                write!(
                    f,
                    "{loaded} of {of} directions of switch links were loaded to {} % of their rate or more",
                    number(*from_percent)
                )
            }
            Self::NotLoaded { links, all } => {
                let more = all - links.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                write!(f, "not loaded: {}{more}", links.join(", "))
            }
            Self::Impossible { links, link, percent } => write!(
                f,
                "{} carried more than their rate, {link} {} % of it: set the right `link_rate`, or look whether the topology is right",
                count(*links, "direction"),
                number(*percent)
            ),
            Self::NoRate { links } => write!(f, "the rate of {} is not known", count(*links, "direction")),
            Self::OpenFlows { flows } => {
                write!(
                    f,
                    "which of several equal paths {} took is not known: forwarding tables would tell",
                    count(*flows, "flow")
                )
            }
            Self::Unknown { flows, why } => write!(f, "the way of {} is not known: {why}", count(*flows, "flow")),
            Self::NoLinks => f.write_str("the topology has no link between switches"),
            Self::NothingMeasured => f.write_str("no flow of this test was measured"),
        }
    }
}

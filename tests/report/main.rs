//! Journals in, frames, verdicts and reports out.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/browser.rs"]
mod browser;

#[path = "../support/driver.rs"]
mod driver;

#[path = "../support/axe.rs"]
mod axe;

#[path = "../support/skip.rs"]
mod skip;

#[path = "../support/reworded.rs"]
mod reworded;

mod agreement;
mod banner;
mod baseline;
mod bisect;
mod causes;
mod compare;
mod compare_doubt;
mod contradictions;
mod crossing;
mod demanded;
mod drivers;
mod environments;
mod explain;
mod few;
mod few_peers;
mod first_step;
mod gpus;
mod groups;
mod journals;
mod kept;
mod lies;
mod localise;
mod losses;
mod names;
mod nodes;
mod noise;
mod numbers;
mod ocp;
mod one_place;
mod outliers;
mod pages;
mod part;
mod places;
mod preflight;
mod rates;
mod recorded;
mod rewording;
mod seen;
mod signoff;
mod soak;
mod switches;
mod texts;
mod trend;
mod tries;
mod unsettled;
mod untested;
mod values;
mod verdicts;
mod views;
mod ways;
mod words;
mod wrong_bytes;
mod wrong_ranks;

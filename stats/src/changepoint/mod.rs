//! Change points of nightly series.
//!
//! [`watch`] processes a series night by night. Each night it checks whether the present level costs less in two parts, or on a slope,
//! than as one: optimal partitioning with a bounded cost for a night and a price for a change, so that one night changes nothing and a
//! few far ones do. Low nights that come and go are counted ([`intermittent`]), also over several series ([`joint`]), and [`together`]
//! finds the common cause of series that changed at the same time.
//!
//! Values are natural logarithms. A night without a run is not in the series; one whose runs failed is, and counts among the nights that
//! come and go.

mod flicker;
mod intermittent;
mod joint;
mod last;
mod level;
mod noise;
mod peers;
mod standing;
mod together;
mod walk;
mod watch;

pub use intermittent::{Intermittent, Mark, intermittent, is_over};
pub use joint::{Joint, Several, WINDOW, joint};
pub use last::last_night;
pub use peers::{OTHERS, Out, low_among, stand_out, upper_spread};
pub use together::{Member, Shared, together};
pub use walk::watch;
pub use watch::{Alert, AlertEnd, Grade, Kind, Night, Repeat, Rules, Watch};

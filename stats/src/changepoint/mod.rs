//! When what changed: series of nightly results.
//!
//! Three speeds. The slow alert ([`rank_max`], [`recent_median`]) needs a week and raises few false alarms whatever the
//! noise. The fast alert ([`fast`]) needs one night, but only where repeating the measurement the same night tells noise
//! from change, that is where noise arises within runs and not between nights ([`variance_split`]).
//! The young alert ([`young`]) watches a level from its third night on. The night of a change
//! is placed by [`change_points`], energy statistics on the clipped series. Low nights that come and go are counted
//! ([`intermittent`]), in several series at once too ([`joint`]). [`watch`] walks a series night by night with all
//! of these, and [`together`] finds the common cause of series that changed at the same time.
//!
//! Values are natural logarithms. A night without a run is simply not in the series; one whose runs failed is, and counts among
//! the nights that come and go.

mod edivisive;
mod fast;
mod fellows;
mod flicker;
mod intermittent;
mod joint;
mod last;
mod place;
mod slow;
mod standing;
mod together;
mod variance;
mod walk;
mod watch;
mod young;

pub use edivisive::{ChangePoint, change_points};
pub use fast::{Fast, fast};
pub use fellows::{OTHERS, Out, low_among, stand_out, upper_spread};
pub use intermittent::{Intermittent, Mark, intermittent, is_over};
pub use joint::{Joint, Several, WINDOW, joint};
pub use last::last_night;
pub use slow::{Slow, by_chance, rank_max, recent_median, slow, wandering};
pub use together::{Member, Shared, together};
pub use variance::{Split, variance_split};
pub use watch::{Alert, AlertEnd, Grade, Kind, Night, Repeat, Rules, Suspicion, Watch, watch};
pub use young::{Step, young};

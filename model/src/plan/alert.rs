use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Section, Table, format::keys};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Nights with a fault, among the last `of`, that make a component faulty.
    pub nights: u32,
    /// Counts only nights on which it was measured.
    pub of: u32,
    /// Age at which a result other than a fault no longer counts.
    pub good_for: Duration,
}

impl Default for Alert {
    fn default() -> Self {
        Self { nights: 1, of: 1, good_for: Duration::from_secs(30 * 86_400) }
    }
}

impl Alert {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

pub static ALERT: Section = Section {
    header: "[alert]",
    about: "When `status`, `drain`, `trend` and `runs list` report a fault, over many runs of the plan. The newest run's values count.",
    keys: keys! {
        "nights": Whole(1, 100), Is("1"),
            "Nights on which a component must be measured as faulty before it is reported as faulty; until then it \
             is undecided.";
        "of": Whole(1, 100), Means("`nights`"),
            "Among how many of its last measured nights: `nights = 2` with `of = 3` is two of three.";
        "good_for": Time("1h", "10000h"), Is("\"720h\""),
            "Age at which a good or undecided state becomes unknown. A fault remains until a run measures the \
             component as good.";
    },
};

pub fn read(top: &Table<'_>) -> Alert {
    let (table, default) = (top.table("alert"), Alert::default());
    let nights = table.whole("nights").map_or(default.nights, |at| at.value);
    let of = table.whole::<u32>("of");
    if let Some(of) = of.as_ref().filter(|of| of.value < nights) {
        let message = format!("{nights} of {} nights cannot be: `of` is less than `nights`", of.value);
        table.wrong(of.span.clone(), message, "leave `of` out, or give a larger number");
    }
    Alert {
        nights,
        of: of.map_or(nights, |of| of.value),
        good_for: table.time("good_for").map_or(default.good_for, |at| at.value.into()),
    }
}

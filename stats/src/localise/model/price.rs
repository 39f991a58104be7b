use std::{
    f64::consts::LN_2,
    mem::{Discriminant, discriminant},
};

use foldhash::HashMap;

use crate::localise::{Part, Way, cover::Cover, cuts};

/// Degrees of freedom (Student's t) of the noise below the expected value.
pub(super) const FREEDOM: f64 = 4.0;
/// Cost factor of a result above the expected value: no fault causes that.
pub(super) const UP: f64 = 2.0;
pub(super) const MARGIN: f64 = 3.0;
/// Extra cost of a part that is bad in one direction or among one kind of pairs only.
pub(super) const NARROW: f64 = 1.0;

pub(super) fn prices(cover: &Cover) -> Vec<f64> {
    let mut count: HashMap<Discriminant<Part>, f64> = HashMap::default();
    let both = cover.parts.iter().filter(|part| part.way() == Way::Both);
    both.for_each(|part| *count.entry(discriminant(part)).or_default() += 1.0);
    let of_kind = |part: &Part| count.get(&discriminant(part)).copied().unwrap_or(1.0);
    let hosts = of_kind(&Part::Host(0, Way::Both)).max(2.0);
    let price = |(part, cells): (&Part, &Vec<u32>)| {
        let n = cells.len().max(1) as f64;
        let which = match part {
            // Its hosts one by one, or one of all partitions of the hosts.
            Part::Cut(side) => {
                let host = hosts.ln() + MARGIN + 0.5 * (2.0 * n / hosts).max(1.0).ln();
                // Where the plan has groups, other sides are less likely.
                let beside = if cover.is_grouped() { MARGIN + LN_2 } else { 0.0 };
                (side.len() as f64 * host).min((hosts - 1.0) * LN_2 + beside)
            }
            _ => of_kind(part).ln(),
        };
        let narrow = if part.way() == Way::Both { 0.0 } else { NARROW };
        which + 0.5 * n.ln() + narrow
    };
    cover.parts.iter().zip(&cover.cells).map(price).collect()
}

/// What a result costs that lies so many standard deviations from what is expected.
pub(super) fn loss(z: f64) -> f64 {
    let robust = (FREEDOM + 1.0) / 2.0 * (z * z / FREEDOM).ln_1p();
    if z > 2.0 { robust * (z / 2.0).min(UP) } else { robust }
}

pub(super) fn fewest(part: &Part) -> usize {
    match part {
        Part::Host(_, Way::Both) | Part::Nic(_, Way::Both) => 3,
        Part::Host(..) | Part::Nic(..) => 2,
        Part::Boundary(..) | Part::Uplink(_, Way::Send | Way::Receive) => 3,
        Part::Rail(_) => 4,
        Part::Cut(_) => cuts::FEWEST,
        _ => 6,
    }
}

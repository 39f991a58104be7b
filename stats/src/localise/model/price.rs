//! What an explanation costs.

use super::{FREEDOM, MARGIN, NARROW, UP};
use crate::localise::{Part, Way, cover::Cover};

/// What each part costs.
pub(super) fn prices(cover: &Cover) -> Vec<f64> {
    let kind = |part: &Part| match part {
        Part::Rail(_) => 0,
        Part::Group(_) => 1,
        Part::GroupRail { .. } => 2,
        Part::Uplink(..) => 3,
        Part::Boundary(..) => 4,
        Part::Host(..) => 5,
        Part::Nic(..) => 6,
        _ => 7,
    };
    let mut count = [0.0_f64; 8];
    cover.parts.iter().filter(|part| part.way() == Way::Both).for_each(|part| count[kind(part)] += 1.0);
    let price = |(part, cells): (&Part, &Vec<u32>)| {
        let of_kind = match part {
            // Its hosts one by one, or one of all partitions of the hosts.
            Part::Cut(side) => {
                let host = count[5].max(2.0).ln()
                    + MARGIN
                    + 0.5 * (2.0 * cells.len() as f64 / count[5].max(2.0)).max(1.0).ln();
                (side.len() as f64 * host).min(count[5] * std::f64::consts::LN_2 + MARGIN)
            }
            _ => count[kind(part)].max(1.0).ln(),
        };
        let narrow = if part.way() == Way::Both { 0.0 } else { NARROW };
        of_kind + 0.5 * (cells.len().max(1) as f64).ln() + narrow
    };
    cover.parts.iter().zip(&cover.cells).map(price).collect()
}

pub(super) fn loss(z: f64) -> f64 {
    let robust = (FREEDOM + 1.0) / 2.0 * (z * z / FREEDOM).ln_1p();
    if z > 2.0 { robust * (z / 2.0).min(UP) } else { robust }
}

/// Fewest cells by which a part can be judged.
pub(super) fn fewest(part: &Part) -> usize {
    match part {
        Part::Host(_, Way::Both) | Part::Nic(_, Way::Both) => 3,
        Part::Host(..) | Part::Nic(..) => 2,
        Part::Boundary(..) | Part::Uplink(_, Way::Send | Way::Receive) => 3,
        _ => 6,
    }
}

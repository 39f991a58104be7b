use std::collections::HashMap;

use super::network::{End, Link, Network};
use crate::topology::{Fabric, Hop, Route};

#[derive(Debug, Clone)]
pub struct Switches {
    pub network: Network,
    pub hops: Vec<Hop>,
    /// Some way is one of several equal paths that a hash or unread tables choose from.
    pub is_hashed: bool,
}

impl Switches {
    /// The links of `fabric`, and the ways between `ends`: host number and NIC port in the fabric, if known.
    pub fn new(fabric: &Fabric, ends: &[(u32, Option<u32>)]) -> Self {
        let hops: Vec<Hop> = fabric.hops().filter(|hop| fabric.hop(*hop).0.is_between_switches()).collect();
        let links: HashMap<Hop, Link> = hops.iter().copied().zip(0..).collect();
        let rates = hops.iter().map(|hop| fabric.hop(*hop).0.rate_gbps).collect();
        let mut leaves: HashMap<u32, u32> = HashMap::new();
        let mut first: Vec<u32> = Vec::new();
        let known = |&(host, nic): &(u32, Option<u32>)| {
            let plugged = nic.and_then(|nic| Some((nic, fabric.leaf(nic)?)));
            let leaf = plugged.map(|(nic, (_, switch))| {
                *leaves.entry(switch).or_insert_with(|| {
                    first.push(nic);
                    (first.len() - 1) as u32
                })
            });
            let rate_gbps = plugged.and_then(|(_, (link, _))| fabric.links[link as usize].rate_gbps);
            End { host, leaf, rate_gbps }
        };
        let places: Vec<End> = ends.iter().map(known).collect();
        let mut is_hashed = false;
        // Without a table the way depends only on the two leaves.
        let mut untabled: HashMap<(u32, u32), Option<Vec<Link>>> = HashMap::new();
        let network = Network::new(places, rates, |leaf, to| {
            // The first end represents its leaf: tables depend only on the destination.
            let (from, to) = (first[leaf as usize], ends[to].1?);
            let (here, there) = (fabric.leaf(from)?.1, fabric.leaf(to)?.1);
            let mut ask = || match fabric.route(from, to) {
                Route::Known(path) => Some(path.iter().filter_map(|hop| links.get(hop).copied()).collect()),
                Route::OneOf(_) => {
                    is_hashed = true;
                    None
                }
                Route::Unknown(_) => None,
            };
            match fabric.has_table(here) {
                true => ask(),
                false => untabled.entry((here, there)).or_insert_with(ask).clone(),
            }
        });
        Self { network, hops, is_hashed }
    }
}

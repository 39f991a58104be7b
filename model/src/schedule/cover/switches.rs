use std::collections::{BTreeMap, HashMap};

use super::network::{End, Link, Network};
use crate::topology::{
    Fabric,
    fabric::{Hop, Route},
};

#[derive(Debug, Clone)]
pub struct Switches {
    pub network: Network,
    pub hops: Vec<Hop>,
    pub open: Open,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Open {
    /// With several equal paths that a hash or unread tables choose from, by the number of paths.
    pub hashed: BTreeMap<usize, usize>,
    pub unknown: BTreeMap<String, usize>,
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
        let mut open = Open::default();
        // Without a table the way depends only on the two leaves.
        let mut untabled: HashMap<(u32, u32), Way> = HashMap::new();
        let network = Network::new(places, rates, |leaf, to| {
            // The first end represents its leaf: tables depend only on the destination.
            let (from, to) = (first[leaf as usize], ends[to].1?);
            let (here, there) = (fabric.leaf(from)?.1, fabric.leaf(to)?.1);
            let ask = || match fabric.route(from, to) {
                Route::Known(path) => Way::Known(path.iter().filter_map(|hop| links.get(hop).copied()).collect()),
                Route::OneOf(paths) => Way::Hashed(paths.len()),
                Route::Unknown(why) => Way::Unknown(why),
            };
            let way = match fabric.has_table(here) {
                true => ask(),
                false => untabled.entry((here, there)).or_insert_with(ask).clone(),
            };
            match way {
                Way::Known(path) => Some(path),
                Way::Hashed(paths) => {
                    *open.hashed.entry(paths).or_default() += 1;
                    None
                }
                Way::Unknown(why) => {
                    *open.unknown.entry(why).or_default() += 1;
                    None
                }
            }
        });
        Self { network, hops, open }
    }
}

#[derive(Debug, Clone)]
enum Way {
    Known(Vec<Link>),
    Hashed(usize),
    Unknown(String),
}

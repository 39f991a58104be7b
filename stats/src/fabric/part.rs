//! Links of a fabric, and the parts that can be bad.

use std::collections::BTreeMap;

use crate::refusal::Refusal;

/// A directed link. Links with the same ends are parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The device it leaves: a switch, or the NIC of a host.
    pub from: u32,
    pub to: u32,
    /// `None` without a link of the same cable the other way.
    pub reverse: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// One direction of a cable, with the ports at its ends.
    Link(u32),
    /// Both directions of a cable, by the numbers of its links, the smaller first; with its ports and, at a host, the NIC without another
    /// cable.
    Cable(u32, u32),
    /// A device with all of its cables, two at least.
    Device(u32),
}

#[derive(Debug, Clone)]
pub struct Fabric {
    links: Vec<Link>,
    /// Only of devices with two cables at least.
    devices: BTreeMap<u32, Vec<u32>>,
}

impl Fabric {
    /// A link's number is its index.
    ///
    /// # Errors
    /// A reverse link that does not exist, does not lead back, or has another reverse.
    pub fn new(links: Vec<Link>) -> Result<Self, Refusal> {
        let leads_back = |(at, link): (usize, &Link)| match link.reverse {
            None => true,
            Some(reverse) => links.get(reverse as usize).is_some_and(|back| {
                back.reverse == Some(at as u32)
                    && back.from == link.to
                    && back.to == link.from
                    && reverse as usize != at
            }),
        };
        if !links.iter().enumerate().all(leads_back) {
            return Err(Refusal::Parameter("the reverse of a link is not its reverse"));
        }
        let mut devices: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (at, link) in links.iter().enumerate() {
            devices.entry(link.from).or_default().push(at as u32);
            devices.entry(link.to).or_default().push(at as u32);
        }
        let fabric = Self { links, devices: BTreeMap::new() };
        let several = |of: &Vec<u32>| fabric.cables(of).len() >= 2;
        let devices = devices.into_iter().filter(|(_, of)| several(of)).collect();
        Ok(Self { devices, ..fabric })
    }

    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The link itself if it has no reverse.
    pub fn cable(&self, link: u32) -> Part {
        match self.links[link as usize].reverse {
            Some(reverse) => Part::Cable(link.min(reverse), link.max(reverse)),
            None => Part::Link(link),
        }
    }

    pub fn links_of(&self, part: &Part) -> Vec<u32> {
        match *part {
            Part::Link(link) => vec![link],
            Part::Cable(a, b) => vec![a, b],
            Part::Device(device) => self.devices.get(&device).cloned().unwrap_or_default(),
        }
    }

    /// Without duplicates.
    pub(super) fn cables(&self, links: &[u32]) -> Vec<Part> {
        let mut cables: Vec<Part> = links.iter().map(|&link| self.cable(link)).collect();
        cables.sort_unstable();
        cables.dedup();
        cables
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        let links: Vec<u32> = (0..self.links.len() as u32).collect();
        let cables = self.cables(&links).into_iter().filter(|part| matches!(part, Part::Cable(..)));
        let devices = self.devices.keys().map(|&device| Part::Device(device));
        links.iter().map(|&link| Part::Link(link)).chain(cables).chain(devices).collect()
    }
}

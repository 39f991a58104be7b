//! Placeholders: the same original has the same one everywhere, and addresses that shared a network still do.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use sha2::{Digest, Sha256};

/// First octet of placeholders of IPv4 addresses: 240.0.0.0/4 is on no network (RFC 1112, section 4).
const RESERVED: u8 = 240;
/// How many first octets there are from there to the broadcast address.
const OCTETS: u8 = 15;

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A host name.
    Name,
    /// An IP address or network.
    Address,
    /// A MAC address.
    Mac,
    /// A GUID, or the second half of an IPv6 address.
    Guid,
    /// A UUID.
    Uuid,
    /// A serial number or another text that tells a device apart.
    Identity,
}

impl Kind {
    /// Its word in the table of the user.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Address => "address",
            Self::Mac => "mac",
            Self::Guid => "guid",
            Self::Uuid => "uuid",
            Self::Identity => "identity",
        }
    }
}

/// Originals and their placeholders.
#[derive(Debug, Default)]
pub struct Table {
    /// Decides which bits of addresses are turned.
    key: [u8; 32],
    /// Host names.
    pub(super) names: BTreeMap<String, String>,
    macs: BTreeMap<u64, u64>,
    guids: BTreeMap<u64, u64>,
    uuids: BTreeMap<String, String>,
    identities: BTreeMap<String, String>,
    octets: BTreeMap<u8, u8>,
    v4: BTreeMap<Ipv4Addr, Ipv4Addr>,
    taken: BTreeSet<Ipv4Addr>,
    v6: BTreeMap<Ipv6Addr, Ipv6Addr>,
}

impl Table {
    /// An empty table; the key is drawn by chance for each kit.
    pub fn new(key: [u8; 32]) -> Self {
        Self { key, ..Self::default() }
    }

    /// Every pair, for the user alone.
    pub fn pairs(&self) -> Vec<(Kind, String, String)> {
        let text = |map: &BTreeMap<String, String>, kind| -> Vec<_> {
            map.iter().map(|(a, b)| (kind, a.clone(), b.clone())).collect()
        };
        let mut pairs = text(&self.names, Kind::Name);
        pairs.extend(self.v4.iter().map(|(a, b)| (Kind::Address, a.to_string(), b.to_string())));
        pairs.extend(self.v6.iter().map(|(a, b)| (Kind::Address, a.to_string(), b.to_string())));
        pairs.extend(self.macs.iter().map(|(a, b)| (Kind::Mac, mac_text(*a), mac_text(*b))));
        pairs.extend(self.guids.iter().map(|(a, b)| (Kind::Guid, guid_text(*a), guid_text(*b))));
        pairs.extend(text(&self.uuids, Kind::Uuid));
        pairs.extend(text(&self.identities, Kind::Identity));
        pairs
    }

    /// Gives a name its placeholder, unless it has one.
    pub fn name(&mut self, name: &str, placeholder: &str) {
        // Addresses are recognised by themselves, and digits alone are numbers everywhere.
        let telling =
            !name.is_empty() && name != "localhost" && name.parse::<IpAddr>().is_err() && name.parse::<u64>().is_err();
        if telling {
            self.names.entry(name.to_owned()).or_insert_with(|| placeholder.to_owned());
        }
    }

    /// A serial number or the like, by its whole text.
    pub fn identity(&mut self, text: &str) -> String {
        let next = format!("id-{}", self.identities.len() + 1);
        self.identities.entry(text.to_owned()).or_insert(next).clone()
    }

    /// A UUID.
    pub fn uuid(&mut self, text: &str) -> String {
        let next = format!("00000000-0000-0000-0000-{:012}", self.uuids.len() + 1);
        self.uuids.entry(text.to_ascii_lowercase()).or_insert(next).clone()
    }

    /// A MAC address; those that stand for none or for all stay.
    pub fn mac(&mut self, mac: u64) -> u64 {
        if mac == 0 || mac == 0xffff_ffff_ffff {
            return mac;
        }
        // Locally administered (IEEE 802, bit 1 of the first octet).
        let next = 0x0200_0000_0000 + self.macs.len() as u64 + 1;
        *self.macs.entry(mac).or_insert(next)
    }

    /// Whether a MAC address has a placeholder.
    pub(super) fn knows_mac(&self, mac: u64) -> bool {
        self.macs.contains_key(&mac)
    }

    /// Whether a GUID has a placeholder, by itself or by the MAC address in it.
    pub(super) fn knows_guid(&self, guid: u64) -> bool {
        self.guids.contains_key(&guid) || inner_mac(guid).is_some_and(|(mac, _)| self.knows_mac(mac))
    }

    /// Whether an IPv4 address has a placeholder.
    pub(super) fn knows_v4(&self, ip: Ipv4Addr) -> bool {
        self.v4.contains_key(&ip)
    }

    /// A GUID (EUI-64). One that is made of a MAC address stays so.
    pub fn guid(&mut self, guid: u64) -> u64 {
        if guid == 0 || guid == u64::MAX {
            return guid;
        }
        if let Some((mac, shape)) = inner_mac(guid) {
            return shape.around(self.mac(mac));
        }
        let next = 0x0200_0000_0000_0000 + self.guids.len() as u64 + 1;
        *self.guids.entry(guid).or_insert(next)
    }

    /// An IPv4 address: networks of any length from 8 bits stay networks.
    pub fn v4(&mut self, ip: Ipv4Addr) -> Ipv4Addr {
        let [first, second, ..] = ip.octets();
        // Netmasks begin with 255.
        if ip.is_loopback() || ip.is_unspecified() || ip.is_multicast() || first == 255 {
            return ip;
        }
        if let Some(known) = self.v4.get(&ip) {
            return *known;
        }
        let (kept, head) = if ip.is_link_local() {
            (16, u32::from_be_bytes([first, second, 0, 0]))
        } else {
            let next = RESERVED + self.octets.len() as u8 % OCTETS;
            (8, u32::from(*self.octets.entry(first).or_insert(next)) << 24)
        };
        let turned = self.turned(u64::from(ip.to_bits()) << 32, 32, kept) >> 32;
        let below = u32::MAX >> kept;
        let mut placeholder = Ipv4Addr::from_bits(head | (turned as u32 & below));
        // Networks of more than fifteen first octets share placeholders' first ones.
        while !self.taken.insert(placeholder) {
            placeholder = Ipv4Addr::from_bits(head | (placeholder.to_bits().wrapping_add(1) & below));
        }
        self.v4.insert(ip, placeholder);
        placeholder
    }

    /// The network of an IPv4 address.
    pub fn network(&mut self, ip: Ipv4Addr, bits: u32) -> Ipv4Addr {
        let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
        match ip.to_bits() & !mask {
            0 => Ipv4Addr::from_bits(self.v4(ip).to_bits() & mask),
            _ => self.v4(ip),
        }
    }

    /// An IPv6 address or a GID: networks of any length from 16 bits stay networks, link-local stays link-local, and what stands
    /// for an IPv4 address or is made of a MAC address or GUID stays so.
    pub fn v6(&mut self, ip: Ipv6Addr) -> Ipv6Addr {
        if ip.is_unspecified() || ip.is_loopback() {
            return ip;
        }
        if let Some(v4) = ip.to_ipv4_mapped() {
            return self.v4(v4).to_ipv6_mapped();
        }
        let bits = ip.to_bits();
        let (network, own) = ((bits >> 64) as u64, bits as u64);
        let network = match network {
            // fe80::/64, which every interface and every InfiniBand port begins with, and groups.
            0xfe80_0000_0000_0000 => network,
            network if ip.is_multicast() => network,
            network => self.turned(network, 64, 16),
        };
        let placeholder = Ipv6Addr::from_bits((u128::from(network) << 64) | u128::from(self.guid(own)));
        self.v6.insert(ip, placeholder);
        placeholder
    }

    /// A number with each of its first `length` bits turned or not, as the key and the bits before it say; the first `kept`
    /// stay. Numbers that begin alike are turned into numbers that begin alike (J. Xu et al., "Prefix-Preserving IP Address
    /// Anonymization", ICNP 2002).
    fn turned(&self, number: u64, length: u32, kept: u32) -> u64 {
        let mut turned = number;
        for bit in kept..length {
            let before = if bit == 0 { 0 } else { number >> (64 - bit) };
            let digest = Sha256::new()
                .chain_update(self.key)
                .chain_update(length.to_be_bytes())
                .chain_update(bit.to_be_bytes())
                .chain_update(before.to_be_bytes())
                .finalize();
            turned ^= u64::from(digest[0] & 1) << (63 - bit);
        }
        turned
    }
}

/// How a GUID is made of a MAC address.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `ff:fe` in the middle and bit 1 of the first octet turned, as IPv6 has it (RFC 4291, appendix A).
    Modified,
    /// `03:00` in the middle, as NVIDIA's adapters have it.
    Nvidia,
}

impl Shape {
    fn around(self, mac: u64) -> u64 {
        let (high, low) = (mac >> 24 << 40, mac & 0xff_ffff);
        match self {
            Self::Modified => (high ^ (0x02 << 56)) | 0xfffe << 24 | low,
            Self::Nvidia => high | 0x0300 << 24 | low,
        }
    }
}

fn inner_mac(guid: u64) -> Option<(u64, Shape)> {
    let mac = (guid >> 40 << 24) | (guid & 0xff_ffff);
    match guid >> 24 & 0xffff {
        0xfffe => Some((mac ^ (0x02 << 40), Shape::Modified)),
        0x0300 => Some((mac, Shape::Nvidia)),
        _ => None,
    }
}

/// `02:00:00:00:00:01`.
pub(super) fn mac_text(mac: u64) -> String {
    let bytes = mac.to_be_bytes();
    bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// `0200:0000:0000:0001`, as sysfs has it.
pub(super) fn guid_text(guid: u64) -> String {
    [48, 32, 16, 0].map(|shift| format!("{:04x}", guid >> shift & 0xffff)).join(":")
}

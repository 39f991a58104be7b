//! GIDs and partition keys of queue pairs: the GID that NCCL chooses, so that we measure its path, and keys by value, since indexes
//! differ between hosts.

use std::fmt;

use railgauge_wire::{
    Failure, Kind, LinkLayer, Stage,
    remedy::{self, Entry},
};

use crate::system::tree::Tree;

/// Kind of a GID, in the words of `gid_attrs/types/N` in sysfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GidKind {
    /// InfiniBand, or RoCE version 1: sysfs has one word for both.
    IbOrRoceV1,
    RoceV2,
    Unknown,
}

impl GidKind {
    pub(crate) const fn from_code(code: u32) -> Self {
        match code {
            0 | 1 => Self::IbOrRoceV1,
            2 => Self::RoceV2,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn from_sysfs(device: &str, port: u8, index: u32) -> Self {
        let path = format!("sys/class/infiniband/{device}/ports/{port}/gid_attrs/types/{index}");
        match Tree::host().text(path).as_deref() {
            Some("RoCE v2") => Self::RoceV2,
            Some("IB/RoCE v1") => Self::IbOrRoceV1,
            _ => Self::Unknown,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::IbOrRoceV1 => "IB/RoCE v1",
            Self::RoceV2 => "RoCE v2",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) const fn link_layer(self, ethernet: bool) -> Option<LinkLayer> {
        match (ethernet, self) {
            (false, _) => Some(LinkLayer::Infiniband),
            (true, Self::RoceV2) => Some(LinkLayer::RoceV2),
            (true, Self::IbOrRoceV1) => Some(LinkLayer::RoceV1),
            (true, Self::Unknown) => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gid {
    pub index: u8,
    pub raw: [u8; 16],
    pub kind: GidKind,
}

impl Gid {
    fn link_local(&self) -> bool {
        self.raw[0] == 0xfe && self.raw[1] & 0xc0 == 0x80
    }

    /// For `::ffff:a.b.c.d`.
    pub(crate) fn ipv4(&self) -> Option<std::net::Ipv4Addr> {
        std::net::Ipv6Addr::from(self.raw).to_ipv4_mapped()
    }

    /// 32 hexadecimal digits, as sent to the peer.
    pub(crate) fn hex(&self) -> String {
        hex::encode(self.raw)
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::net::Ipv6Addr::from(self.raw))
    }
}

pub(crate) fn from_hex(text: &str) -> Option<[u8; 16]> {
    let mut raw = [0; 16];
    hex::decode_to_slice(text, &mut raw).ok().map(|()| raw)
}

/// Index of the GID of a routed InfiniBand port (`NCCL_IB_ROUTABLE_FLID_GID_INDEX`).
const ROUTABLE: u8 = 1;

/// Whether a GID has InfiniBand's default prefix: 10 fixed bits, 22 zeros, 16 bits for the FLID, 16 for the subnet (NCCL
/// transport/net_ib, "GID Format").
fn is_default_prefix(raw: &[u8; 16]) -> bool {
    raw[..4] == [0xfe, 0x80, 0, 0]
}

/// The LID of the router to an InfiniBand port, if its GID names one.
pub(crate) fn flid(raw: &[u8; 16]) -> Option<u16> {
    Some(u16::from_be_bytes([raw[4], raw[5]])).filter(|flid| *flid != 0 && is_default_prefix(raw))
}

/// The prefix of an InfiniBand port, without a FLID.
pub(crate) fn subnet(raw: &[u8; 16]) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&raw[..8]);
    if is_default_prefix(raw) {
        (prefix[4], prefix[5]) = (0, 0);
    }
    prefix
}

/// The GID to use: `wanted` if given; else the first of InfiniBand, or the one that a router knows; on Ethernet the first by: not
/// link-local, IPv4-mapped, RoCE v2, lowest index (NCCL's default: `NCCL_IB_ADDR_FAMILY=AF_INET`, `NCCL_IB_ROCE_VERSION_NUM=2`).
pub(crate) fn choose(gids: &[Gid], ethernet: bool, wanted: Option<u8>) -> Result<Gid, Failure> {
    let refuse =
        |cause: String, remedy: Entry| Err(Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy));
    if let Some(index) = wanted {
        return gids.iter().find(|gid| gid.index == index).copied().map_or_else(
            || {
                let set: Vec<_> =
                    gids.iter().map(|gid| format!("{} ({gid}, {})", gid.index, gid.kind.word())).collect();
                let cause = format!("GID index {index} is not set; set are: {}", set.join(", "));
                refuse(cause, remedy::USE_SET_GID)
            },
            Ok,
        );
    }
    let chosen = if ethernet {
        gids.iter().min_by_key(|gid| (gid.link_local(), gid.ipv4().is_none(), gid.kind != GidKind::RoceV2, gid.index))
    } else {
        gids.iter().find(|gid| gid.index == ROUTABLE && flid(&gid.raw).is_some()).or_else(|| gids.first())
    };
    chosen.copied().map_or_else(|| refuse("the port has no GID".to_owned(), remedy::ADDRESS_AND_UP), Ok)
}

/// A full member of the partition. Limited members reach full members only (InfiniBand Architecture Specification 1.4, 10.9.2).
const FULL: u16 = 0x8000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pkey {
    pub index: u16,
    /// With its membership bit.
    pub value: u16,
}

impl Pkey {
    pub(crate) const fn full(self) -> bool {
        self.value & FULL != 0
    }

    /// Without membership; 0 is none.
    pub(crate) const fn partition(self) -> u16 {
        partition(self.value)
    }

    /// As in tools: `0x8001`.
    pub(crate) fn hex(self) -> String {
        format!("{:#06x}", self.value)
    }
}

const fn partition(value: u16) -> u16 {
    value & !FULL
}

/// The partition `wanted` if given, else the first full membership (UCX `uct_ib_iface_init_pkey`; at index 0 also perftest's and NCCL's
/// default), else the first set entry.
pub(crate) fn choose_pkey(table: &[Pkey], wanted: Option<u16>, port: &str) -> Result<Pkey, Failure> {
    let fits = |key: &&Pkey| match wanted {
        Some(value) => key.partition() == partition(value),
        None => true,
    };
    let set = table.iter().filter(|key| key.partition() != 0);
    let chosen = set.clone().filter(fits).min_by_key(|key| (!key.full(), key.index));
    chosen.copied().ok_or_else(|| {
        let all: Vec<_> = set.map(|key| format!("{} (index {})", key.hex(), key.index)).collect();
        let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let cause = match wanted {
            Some(value) => format!("{port} is not a member of partition {value:#06x}; it is one of: {all}"),
            None => format!("{port} is not a member of any partition"),
        };
        Failure::new(Stage::Open, Kind::Configuration, cause).remedy(remedy::USE_SET_PKEY)
    })
}

/// `Err` unless ports with these keys may communicate. `None` always may.
pub(crate) fn must_talk(own: Option<u16>, theirs: Option<u16>) -> Result<(), Failure> {
    let (Some(own), Some(theirs)) = (own, theirs) else { return Ok(()) };
    let cause = if partition(own) != partition(theirs) {
        format!("partitions differ: {own:#06x} here, {theirs:#06x} at the peer")
    } else if (own | theirs) & FULL == 0 {
        format!("both ends are limited members of partition {own:#06x}, which do not reach each other")
    } else {
        return Ok(());
    };
    Err(Failure::new(Stage::Join, Kind::Configuration, cause).remedy(remedy::SAME_PARTITION))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gid(index: u8, text: &str, kind: GidKind) -> Gid {
        Gid { index, raw: text.parse::<std::net::Ipv6Addr>().unwrap().octets(), kind }
    }

    #[test]
    fn the_choice_is_that_of_nccl() {
        use GidKind::{IbOrRoceV1, RoceV2};
        let mlx5 = [
            gid(0, "fe80::1", IbOrRoceV1),
            gid(1, "fe80::1", RoceV2),
            gid(2, "::ffff:10.0.0.1", IbOrRoceV1),
            gid(3, "::ffff:10.0.0.1", RoceV2),
            gid(5, "2001:db8::1", RoceV2),
        ];
        assert_eq!(choose(&mlx5, true, None).unwrap().index, 3);
        assert_eq!(choose(&mlx5[..2], true, None).unwrap().index, 1, "link-local only if there is nothing else");
        assert_eq!(choose(&[mlx5[0], mlx5[1], mlx5[4]], true, None).unwrap().index, 5);
        assert_eq!(choose(&mlx5, true, Some(2)).unwrap().index, 2);
        assert_eq!(choose(&mlx5, false, None).unwrap().index, 0, "InfiniBand uses the first");
        let failure = choose(&mlx5, true, Some(7)).unwrap_err();
        assert!(failure.cause.contains("3 (::ffff:10.0.0.1, RoCE v2)"), "{failure}");
        assert!(choose(&[], true, None).unwrap_err().cause.contains("no GID"));
    }

    #[test]
    fn a_routed_infiniband_port_uses_the_gid_that_names_its_router() {
        let own = gid(0, "fe80::b859:9f03:1", GidKind::IbOrRoceV1);
        let routable = gid(1, "fe80:0:c001:1:b859:9f03:0:1", GidKind::IbOrRoceV1);
        assert_eq!(choose(&[own, routable], false, None).unwrap().index, 1);
        let alias = gid(1, "fe80:0:0:1:b859:9f03:0:2", GidKind::IbOrRoceV1);
        assert_eq!(choose(&[own, alias], false, None).unwrap().index, 0);
        assert_eq!(flid(&routable.raw), Some(0xc001));
    }

    #[test]
    fn hexadecimal_reads_back() {
        let one = gid(0, "2001:db8::ff", GidKind::RoceV2);
        assert_eq!(from_hex(&one.hex()), Some(one.raw));
        assert_eq!(from_hex("12"), None);
        assert_eq!(from_hex(&"g".repeat(32)), None);
    }

    fn table(values: &[u16]) -> Vec<Pkey> {
        (0..).zip(values).map(|(index, value)| Pkey { index, value: *value }).collect()
    }

    #[test]
    fn the_first_full_membership_is_taken_wherever_it_stands() {
        let index = |values: &[u16]| choose_pkey(&table(values), None, "mlx5_0:1").unwrap().index;
        assert_eq!(index(&[0xffff]), 0);
        assert_eq!(
            index(&[0x7fff, 0x8001]),
            1,
            "a limited member of the default partition, as subnet managers set it up"
        );
        assert_eq!(index(&[0, 0, 0x8002, 0x8001]), 2);
        assert_eq!(index(&[0x0001, 0]), 0, "limited where there is nothing else");
        assert!(choose_pkey(&table(&[0, 0x8000]), None, "mlx5_0:1").unwrap_err().cause.contains("not a member of any"));
    }

    #[test]
    fn a_partition_is_found_by_its_value_whatever_the_membership_bit() {
        let table = table(&[0xffff, 0x0001, 0x8001, 0x0002]);
        let index = |wanted| choose_pkey(&table, Some(wanted), "mlx5_0:1").map(|key| key.index);
        assert_eq!(index(0x8001).unwrap(), 2);
        assert_eq!(index(0x0001).unwrap(), 2, "full membership before limited");
        assert_eq!(index(0x8002).unwrap(), 3);
        let failure = index(0x8003).unwrap_err();
        assert!(failure.cause.contains("0x8003") && failure.cause.contains("0x8001 (index 2)"), "{failure}");
        assert_eq!(failure.kind, Kind::Configuration);
    }

    #[test]
    fn members_of_other_partitions_and_two_limited_ones_are_refused_before_they_wait() {
        assert!(must_talk(Some(0x8001), Some(0x8001)).is_ok());
        assert!(must_talk(Some(0x8001), Some(0x0001)).is_ok());
        assert!(must_talk(None, Some(0x8001)).is_ok());
        let failure = must_talk(Some(0xffff), Some(0x8001)).unwrap_err();
        assert!(failure.cause.contains("0xffff") && failure.cause.contains("0x8001"), "{failure}");
        assert!(must_talk(Some(1), Some(1)).unwrap_err().cause.contains("limited"));
    }
}

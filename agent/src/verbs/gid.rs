//! GIDs, and which one a queue pair uses: the choice NCCL makes, so that we measure the path it will take.

use std::fmt;

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy::{self, Entry},
    terms::LinkLayer,
};

use crate::system::tree::Tree;

/// What a GID stands for, as `gid_attrs/types/N` of sysfs words it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GidKind {
    /// InfiniBand, or RoCE version 1: sysfs has one word for both.
    IbOrRoceV1,
    /// RoCE version 2.
    RoceV2,
    /// Not readable.
    Unknown,
}

impl GidKind {
    /// From the kernel's number (`enum ibv_gid_type`).
    pub(crate) const fn from_code(code: u32) -> Self {
        match code {
            0 | 1 => Self::IbOrRoceV1,
            2 => Self::RoceV2,
            _ => Self::Unknown,
        }
    }

    /// From sysfs; unknown where that cannot be read, as in some containers.
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

    /// The link layer that a port with this GID has.
    pub(crate) const fn link_layer(self, ethernet: bool) -> Option<LinkLayer> {
        match (ethernet, self) {
            (false, _) => Some(LinkLayer::Infiniband),
            (true, Self::RoceV2) => Some(LinkLayer::RoceV2),
            (true, Self::IbOrRoceV1) => Some(LinkLayer::RoceV1),
            (true, Self::Unknown) => None,
        }
    }
}

/// A set entry of a port's GID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gid {
    pub index: u8,
    /// The sixteen bytes.
    pub raw: [u8; 16],
    pub kind: GidKind,
}

impl Gid {
    fn link_local(&self) -> bool {
        self.raw[0] == 0xfe && self.raw[1] & 0xc0 == 0x80
    }

    /// The IPv4 address in a GID of the form `::ffff:a.b.c.d`.
    pub(crate) fn ipv4(&self) -> Option<std::net::Ipv4Addr> {
        std::net::Ipv6Addr::from(self.raw).to_ipv4_mapped()
    }

    /// 32 hexadecimal digits, as it travels to the peer.
    pub(crate) fn hex(&self) -> String {
        hex::encode(self.raw)
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", std::net::Ipv6Addr::from(self.raw))
    }
}

/// Reads what [`Gid::hex`] wrote.
pub(crate) fn from_hex(text: &str) -> Option<[u8; 16]> {
    let mut raw = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in raw.iter_mut().zip((0..32).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(raw)
}

/// Index at which the GID of a routed InfiniBand port stands (`NCCL_IB_ROUTABLE_FLID_GID_INDEX`).
const ROUTABLE: u8 = 1;

/// Whether a GID has the form of InfiniBand's default prefixes: 10 fixed bits, 22 zeros, 16 bits for the FLID, 16 for the
/// subnet (NCCL transport/net_ib, "GID Format").
fn is_default_prefix(raw: &[u8; 16]) -> bool {
    raw[..4] == [0xfe, 0x80, 0, 0]
}

/// The LID of the router to an InfiniBand port, where its GID names one.
pub(crate) fn flid(raw: &[u8; 16]) -> Option<u16> {
    Some(u16::from_be_bytes([raw[4], raw[5]])).filter(|flid| *flid != 0 && is_default_prefix(raw))
}

/// The subnet of an InfiniBand port: its prefix, without a FLID in it.
pub(crate) fn subnet(raw: &[u8; 16]) -> [u8; 8] {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&raw[..8]);
    if is_default_prefix(raw) {
        (prefix[4], prefix[5]) = (0, 0);
    }
    prefix
}

/// The GID to use: `wanted` if it is given; else the first of InfiniBand, or the one that a router knows; on Ethernet the first by: not link-local,
/// IPv4-mapped, RoCE v2, lowest index (NCCL's default: `NCCL_IB_ADDR_FAMILY=AF_INET`, `NCCL_IB_ROCE_VERSION_NUM=2`).
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
}

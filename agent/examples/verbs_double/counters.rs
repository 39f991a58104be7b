//! What a port counts. Where the tree around this process (`RAILGAUGE_ROOT`) has the files of the driver's counters, they
//! are kept up to date with what the double carries: brought there before a completion or a reply is seen, or once in a
//! period, as the driver does. Files that the tree does not have are not made. A tree belongs to one process.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use rdma_sys::*;

use crate::{
    port,
    profile::Profile,
    requester::brings,
    settings::{Settings, settings},
};

/// What a counter counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    SentBytes,
    ReceivedBytes,
    SentPackets,
    ReceivedPackets,
}

/// A file below the port's folder, what it counts, and how many of that make one.
pub type Counter = (&'static str, What, u64);

/// The counters of a driver.
pub struct Counters {
    pub files: &'static [Counter],
    /// How often they are brought up to date; `None` for whenever they are read.
    pub period: Option<Duration>,
    /// Bytes around each InfiniBand packet, from its base transport header to its invariant checksum, that are counted.
    pub around: Around,
}

/// Which headers are counted with a packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// Local routing header, and global one where there is one (InfiniBand Architecture Specification 16.1.3.5: all
    /// octets between the start of the packet and its variant checksum).
    InfiniBand,
    /// A frame without its checksum.
    Frame,
    /// The IP packet.
    Ip,
    /// The IP packets of a stream: TCP, MPA, DDP and RDMAP around every segment.
    Stream,
}

/// The counters of the PMA: K mlx5/mad.c pma_cnt_ext_assign, octets shifted right by two.
const PMA: &[Counter] = &[
    ("counters/port_xmit_data", What::SentBytes, 4),
    ("counters/port_rcv_data", What::ReceivedBytes, 4),
    ("counters/port_xmit_packets", What::SentPackets, 1),
    ("counters/port_rcv_packets", What::ReceivedPackets, 1),
    ("counters/unicast_xmit_packets", What::SentPackets, 1),
    ("counters/unicast_rcv_packets", What::ReceivedPackets, 1),
];

pub const MLX5_ROCE: Counters = Counters { files: PMA, period: None, around: Around::Frame };
pub const MLX5_IB: Counters = Counters { files: PMA, period: None, around: Around::InfiniBand };

/// K bnxt_re/hw_counters.c: no PMA; statistics that the device writes once a second (K bnxt_re/main.c
/// bnxt_re_net_stats_ctx_alloc, `update_period_ms`).
pub const BNXT: Counters = Counters {
    files: &[
        ("hw_counters/tx_bytes", What::SentBytes, 1),
        ("hw_counters/rx_bytes", What::ReceivedBytes, 1),
        ("hw_counters/tx_pkts", What::SentPackets, 1),
        ("hw_counters/rx_pkts", What::ReceivedPackets, 1),
    ],
    period: Some(Duration::from_secs(1)),
    around: Around::Frame,
};

/// K ionic/ionic_hw_stats.c; the names are the firmware's.
pub const IONIC: Counters = Counters {
    files: &[
        ("hw_counters/tx_rdma_ucast_bytes", What::SentBytes, 1),
        ("hw_counters/rx_rdma_ucast_bytes", What::ReceivedBytes, 1),
        ("hw_counters/tx_rdma_ucast_pkts", What::SentPackets, 1),
        ("hw_counters/rx_rdma_ucast_pkts", What::ReceivedPackets, 1),
    ],
    period: None,
    around: Around::Frame,
};

/// K irdma/verbs.c irdma_hw_stat_names.
const IRDMA: &[Counter] = &[
    ("hw_counters/ip4OutOctets", What::SentBytes, 1),
    ("hw_counters/ip4InOctets", What::ReceivedBytes, 1),
    ("hw_counters/ip4OutPkts", What::SentPackets, 1),
    ("hw_counters/ip4InPkts", What::ReceivedPackets, 1),
];

pub const IRDMA_ROCE: Counters = Counters { files: IRDMA, period: None, around: Around::Ip };
pub const IRDMA_IWARP: Counters = Counters { files: IRDMA, period: None, around: Around::Stream };

/// K efa/efa_verbs.c EFA_DEFINE_PORT_STATS.
pub const EFA: Counters = Counters {
    files: &[
        ("hw_counters/tx_bytes", What::SentBytes, 1),
        ("hw_counters/rx_bytes", What::ReceivedBytes, 1),
        ("hw_counters/tx_pkts", What::SentPackets, 1),
        ("hw_counters/rx_pkts", What::ReceivedPackets, 1),
    ],
    period: None,
    around: Around::Frame,
};

/// Packets, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    packets: u64,
    bytes: u64,
}

impl std::ops::AddAssign for Passed {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The way that packets take: what is around each of them, and how much payload fits into one.
#[derive(Debug, Clone, Copy)]
pub struct Packets {
    around: u64,
    mtu: u64,
}

impl Packets {
    /// Those of a path, by the GID that they come from, where they are global.
    pub fn of(profile: &Profile, service: ibv_qp_type::Type, path_mtu: u32, source: Option<&[u8; 16]>) -> Self {
        const ETHERNET: u64 = 14;
        const UDP: u64 = 8;
        const TCP: u64 = 20;
        const TRANSPORT: u64 = 12;
        const CHECKSUM: u64 = 4;
        // An IPv4 address stands in a GID behind ::ffff (RFC 4291, 2.5.5.2).
        let ip =
            if source.is_some_and(|gid| gid[..12] != [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]) { 40 } else { 20 };
        let around = match profile.counters.around {
            Around::InfiniBand => 8 + if source.is_some() { 40 } else { 0 } + TRANSPORT + CHECKSUM,
            Around::Frame => ETHERNET + ip + UDP + TRANSPORT + CHECKSUM,
            Around::Ip => ip + UDP + TRANSPORT + CHECKSUM,
            // MPA's length, DDP's and RDMAP's header, MPA's checksum (RFC 5044, 5041, 5040).
            Around::Stream => 20 + TCP + 2 + 14 + 4,
        };
        // A datagram is one packet.
        let mtu = if service == ibv_qp_type::IBV_QPT_UD { u64::MAX } else { u64::from(path_mtu).max(1) };
        Self { around, mtu }
    }

    /// A message with `extended` bytes of headers in front of its payload.
    fn message(self, length: u64, extended: u64) -> Passed {
        let packets = length.div_ceil(self.mtu).max(1);
        Passed { packets, bytes: packets * self.around + extended + length.next_multiple_of(4) }
    }

    /// What a request takes on its way (InfiniBand Architecture Specification 9.3: extended transport headers).
    pub fn request(self, opcode: ibv_wr_opcode::Type, length: u64) -> Passed {
        use ibv_wr_opcode as op;
        match opcode {
            op::IBV_WR_RDMA_WRITE => self.message(length, 16),
            op::IBV_WR_RDMA_WRITE_WITH_IMM => self.message(length, 16 + 4),
            op::IBV_WR_RDMA_READ => self.message(0, 16),
            op::IBV_WR_ATOMIC_CMP_AND_SWP | op::IBV_WR_ATOMIC_FETCH_AND_ADD => self.message(0, 28),
            op::IBV_WR_SEND_WITH_IMM => self.message(length, 4),
            _ => self.message(length, 0),
        }
    }

    /// What its answer takes: the bytes that were asked for, or an acknowledgement. Every request has its own here;
    /// devices acknowledge several at once.
    pub fn answer(self, opcode: ibv_wr_opcode::Type, length: u64) -> Passed {
        self.message(if brings(opcode) { length } else { 0 }, 4)
    }
}

/// What passed a port so far, and the files that say so.
struct Port {
    /// In the order of [`What`].
    totals: [AtomicU64; 4],
    files: Vec<Open>,
}

struct Open {
    file: File,
    counter: Counter,
    /// What it held when this process began, and what it holds.
    first: u64,
    last: Mutex<u64>,
}

/// The ports of this process's devices; empty without a tree.
static PORTS: LazyLock<Vec<Port>> = LazyLock::new(|| {
    let Some((settings, tree)) = settings().zip(std::env::var_os("RAILGAUGE_ROOT")) else { return Vec::new() };
    if settings.profile.counters.period.is_some() {
        thread::spawn(|| {
            loop {
                thread::sleep(settings.profile.counters.period.unwrap_or_default());
                PORTS.iter().for_each(Port::show);
            }
        });
    }
    (0..settings.devices).map(|device| open(settings, Path::new(&tree), device)).collect()
});

fn open(Settings { profile, hostile, .. }: &Settings, tree: &Path, device: u8) -> Port {
    let folder = tree.join(format!("sys/class/infiniband/{}{device}/ports/1", profile.device));
    let one = |counter: &Counter| {
        let path = folder.join(counter.0);
        let first = std::fs::read_to_string(&path).ok()?.trim().parse().ok()?;
        let file = OpenOptions::new().write(true).open(path).ok()?;
        Some(Open { file, counter: *counter, first, last: Mutex::new(first) })
    };
    let files =
        if hostile.counters_stuck { Vec::new() } else { profile.counters.files.iter().filter_map(one).collect() };
    Port { totals: Default::default(), files }
}

impl Port {
    /// Brings the files up to date. A number never gets shorter, so that the new one covers the old one.
    fn show(&self) {
        for Open { file, counter: (_, what, unit), first, last } in &self.files {
            let mut last = last.lock();
            let now = first + self.totals[*what as usize].load(Ordering::Acquire) / unit;
            if now > *last && file.write_all_at(format!("{now}\n").as_bytes(), 0).is_ok() {
                *last = now;
            }
        }
    }
}

/// Tells the tree that the ports have gone down (K core/sysfs.c state_show, phys_state_show), where it has the files.
pub fn port_went_down() {
    let Some((settings, tree)) = settings().zip(std::env::var_os("RAILGAUGE_ROOT")) else { return };
    for device in 0..settings.devices {
        let folder = Path::new(&tree).join(format!("sys/class/infiniband/{}{device}/ports/1", settings.profile.device));
        let said = [("state", "1: DOWN\n"), ("phys_state", "3: Disabled\n"), ("counters/link_downed", "1\n")];
        for (path, text) in said.map(|(file, text)| (folder.join(file), text)) {
            if path.exists() {
                let _ = std::fs::write(path, text);
            }
        }
    }
}

/// Counts what leaves a device's port.
pub fn sent(device: u8, passed: Passed) {
    add(device, passed, [What::SentBytes, What::SentPackets]);
}

/// Counts what arrives there.
pub fn received(device: u8, passed: Passed) {
    add(device, passed, [What::ReceivedBytes, What::ReceivedPackets]);
}

fn add(device: u8, passed: Passed, [bytes, packets]: [What; 2]) {
    let Some(port) = PORTS.get(usize::from(device)) else { return };
    port.totals[bytes as usize].fetch_add(passed.bytes, Ordering::AcqRel);
    port.totals[packets as usize].fetch_add(passed.packets, Ordering::AcqRel);
}

/// What was counted can be read from here on, where the driver does not take its time.
pub fn show(device: u8) {
    let at_once = settings().is_some_and(|settings| settings.profile.counters.period.is_none());
    if let Some(port) = PORTS.get(usize::from(device)).filter(|_| at_once) {
        port.show();
    }
}

/// The way of a queue pair's packets along a path.
pub fn along(device: u8, service: ibv_qp_type::Type, path_mtu: u32, path: &ibv_ah_attr) -> Option<Packets> {
    let source = port::gid(device, u32::from(path.grh.sgid_index)).filter(|_| path.is_global != 0);
    Some(Packets::of(settings()?.profile, service, path_mtu, source.as_ref().map(|(gid, _)| gid)))
}

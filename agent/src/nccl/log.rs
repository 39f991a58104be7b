//! Reads from NCCL's log what carried the bytes.
//!
//! With `NCCL_DEBUG=INFO` every connection is one line: `… Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM`, `… [send] via NET/IB/0/GDRDMA`, `…
//! [receive] via NET/AWS Libfabric/2/GDRDMA/Shared`, `… via SHM/direct/direct` (`src/transport/net.cc`, `p2p.cc`, `shm.cc` of NCCL 2.18
//! to 2.30). `16 coll channels, 16 collnet channels, 0 nvls channels, …` has the channels of a communicator.
//!
//! The built-in networks and NVIDIA's plugin list the devices behind the numbers after `NET` in one line: `NET/IB : Using
//! [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE …`, `NET/Socket : Using [0]eth0:10.0.0.1<0>` (`src/transport/net_ib.cc`, `net_socket.cc`). NCCL 2.30
//! adds the ids of rail and plane to a port: `[0]mlx5_0:1:0/IB`, `[0]mlx5_0:1::3/IB`. Ports that NCCL joins (2.23 and later) have further
//! numbers: `NET/IB : Made virtual device [4] name=mlx5_0+mlx5_1 speed=… ndevs=2`.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{
    gather::Gather,
    group::Carried,
    terms::{Carrier, GpuPath, LinkLayer},
};

/// What a rank's log says of its connections; `None` if it says nothing.
pub fn read(text: &str) -> Option<Carried> {
    let mut evidence: BTreeMap<String, u64> = BTreeMap::new();
    let mut connections = Vec::new();
    for line in text.lines().filter(|line| line.contains("Channel ") && line.contains(" -> ")) {
        let Some((_, via)) = line.rsplit_once(" via ") else { continue };
        let words = match Connection::parse(via) {
            Some(connection) => {
                let words = connection.words.to_owned();
                connections.push(connection);
                words
            }
            // What follows the path are numbers of buffers and the like.
            None => via.split_whitespace().next().unwrap_or(via).to_owned(),
        };
        *evidence.entry(format!("via {words}")).or_default() += 1;
    }
    let any = |start: &str| evidence.keys().any(|words| words.starts_with(start));
    // Sockets before a plugin before verbs: the slowest kind counts for the rank.
    let transport = match connections.iter().map(|connection| connection.net).max() {
        Some(Net::Socket) => Carrier::NcclSocket,
        Some(Net::Plugin) => Carrier::NcclPlugin,
        Some(Net::Verbs) => Carrier::NcclIb,
        None if any("via SHM") => Carrier::NcclShm,
        None if any("via P2P") => Carrier::NcclP2p,
        None => return None,
    };
    let networks = Networks::read(text);
    let direct = connections.iter().any(|connection| connection.direct);
    let gpu_path = match transport {
        // The log does not say which of both a plugin uses.
        Carrier::NcclPlugin if direct => GpuPath::Gdr,
        Carrier::NcclIb if direct && text.contains("DMA-BUF is available") => GpuPath::GdrDmabuf,
        Carrier::NcclIb if direct => GpuPath::GdrPeermem,
        Carrier::NcclIb | Carrier::NcclPlugin | Carrier::NcclSocket => GpuPath::Staged,
        _ => GpuPath::None,
    };
    let link_layer = match transport {
        Carrier::NcclIb => Some(networks.layer(&connections).unwrap_or(LinkLayer::Unknown)),
        Carrier::NcclPlugin => Some(LinkLayer::Unknown),
        Carrier::NcclSocket if networks.loopback(&connections) => Some(LinkLayer::Loopback),
        Carrier::NcclSocket => Some(LinkLayer::Ethernet),
        _ => None,
    };
    let nics = networks.names(&connections).unwrap_or_default();
    let (networked, collnet) = (!connections.is_empty(), any("via COLLNET"));
    Some(Carried { transport, link_layer, gpu_path, networked, collnet, evidence, channels: channels(text), nics })
}

/// Channels of the communicator, by kind; of several lines the last counts.
fn channels(text: &str) -> BTreeMap<String, u64> {
    let line = text.lines().rev().find_map(|line| Some((line, line.find(" coll channels, ")?)));
    let Some((line, at)) = line else { return BTreeMap::new() };
    let begin = line[..at].rfind(' ').map_or(0, |space| space + 1);
    let one = |part: &str| {
        let (count, kind) = part.trim().split_once(' ')?;
        Some((kind.strip_suffix(" channels")?.to_owned(), count.parse().ok()?))
    };
    line[begin..].split(',').filter_map(one).gathered()
}

/// The last line with NCCL's own complaint, for a failure's words.
pub fn complaint(text: &str) -> Option<&str> {
    let line = text.lines().rev().find(|line| line.contains("NCCL WARN"))?;
    line.split_once("NCCL WARN").map(|(_, words)| words.trim())
}

/// Kinds of networks, fastest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Net {
    /// InfiniBand verbs: NCCL's own (`IB`) or those of NVIDIA's plugin (`IBext_v8` and the like).
    Verbs,
    /// Another plugin: `Libfabric`, `AWS Libfabric`, `UCX_v8`, ….
    Plugin,
    Socket,
}

impl Net {
    fn of(name: &str) -> Self {
        match name {
            "Socket" => Self::Socket,
            "IB" => Self::Verbs,
            name if name.starts_with("IBext") => Self::Verbs,
            _ => Self::Plugin,
        }
    }
}

/// One line of the log about a connection over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection<'t> {
    /// The path, as in the log: `NET/IB/0(3)/GDRDMA/Shared`.
    pub words: &'t str,
    pub net: Net,
    pub device: u32,
    pub direct: bool,
}

impl<'t> Connection<'t> {
    /// Parses the text after ` via `: `NET/NAME/NUMBER`, the rank that sends in its place in brackets, `/GDRDMA` and `/Shared`. A
    /// plugin's name may have spaces. `None` if it is not a connection over a network.
    pub(super) fn parse(via: &'t str) -> Option<Self> {
        let (name, rest) = via.strip_prefix("NET/")?.split_once('/')?;
        let rest = rest.split_whitespace().next()?;
        let device = rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        let length = "NET/".len() + name.len() + 1 + rest.len();
        let direct = rest.split('/').skip(1).any(|part| part.starts_with("GDRDMA"));
        Some(Self { words: &via[..length], net: Net::of(name), device, direct })
    }
}

/// One device in a network's list: its ports or interface by their names in plans, and the layer below.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    names: Vec<String>,
    layer: Option<LinkLayer>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Networks {
    verbs: BTreeMap<u32, Entry>,
    sockets: BTreeMap<u32, Entry>,
}

impl Networks {
    /// Reads the lists; of several lines the last counts.
    pub(super) fn read(text: &str) -> Self {
        let mut networks = Self::default();
        for line in text.lines() {
            if let Some((_, list)) = line.split_once("NET/IB : Using ") {
                networks.verbs = entries(list, port);
            } else if let Some((_, list)) = line.split_once("NET/Socket : Using ") {
                networks.sockets = entries(list, interface);
            } else if let Some((_, made)) = line.split_once("NET/IB : Made virtual device ") {
                networks.join(made);
            }
        }
        networks
    }

    /// Adds ports that NCCL joined: `[4] name=mlx5_0+mlx5_1 speed=…`. Every single port has such a line too.
    fn join(&mut self, made: &str) {
        let number = made.strip_prefix('[').and_then(|rest| rest.split_once(']')).and_then(|(n, _)| n.parse().ok());
        let name = made.split_whitespace().find_map(|word| word.strip_prefix("name="));
        let (Some(number), Some(name)) = (number, name) else { return };
        let of = |device: &str| self.verbs.values().filter(|entry| entry.is_of(device)).cloned().collect::<Vec<_>>();
        let members: Vec<Entry> = name.split('+').gathered::<BTreeSet<_>>().into_iter().flat_map(of).collect();
        let Some(layer) = members.first().map(|entry| entry.layer) else { return };
        if name.contains('+') && !self.verbs.contains_key(&number) {
            let names = members.into_iter().flat_map(|entry| entry.names).collect();
            self.verbs.insert(number, Entry { names, layer });
        }
    }

    fn entry(&self, connection: &Connection<'_>) -> Option<&Entry> {
        match connection.net {
            Net::Verbs => self.verbs.get(&connection.device),
            Net::Socket => self.sockets.get(&connection.device),
            Net::Plugin => None,
        }
    }

    /// Devices of the connections by their names in plans; `None` for an unlisted number.
    pub(super) fn names(&self, connections: &[Connection<'_>]) -> Option<Vec<String>> {
        let mut names = BTreeSet::new();
        for connection in connections {
            names.extend(self.entry(connection)?.names.iter().cloned());
        }
        Some(names.into_iter().collect())
    }

    /// The link layer below the connections, or below all listed devices for an unlisted number; `None` if they differ.
    pub(super) fn layer(&self, connections: &[Connection<'_>]) -> Option<LinkLayer> {
        let verbs = connections.iter().filter(|connection| connection.net == Net::Verbs);
        let used: Option<Vec<&Entry>> = verbs.map(|connection| self.entry(connection)).collect();
        let entries = used.unwrap_or_else(|| self.verbs.values().collect());
        let layers: BTreeSet<_> = entries.into_iter().map(|entry| entry.layer).gathered();
        if layers.len() == 1 { layers.first().copied().flatten() } else { None }
    }

    pub(super) fn loopback(&self, connections: &[Connection<'_>]) -> bool {
        let sockets: Vec<_> = connections.iter().filter(|connection| connection.net == Net::Socket).copied().collect();
        self.names(&sockets).is_some_and(|names| names == ["lo"])
    }
}

impl Entry {
    fn is_of(&self, device: &str) -> bool {
        matches!(&*self.names, [name] if name.split_once(':').is_some_and(|(own, _)| own == device))
    }
}

/// The entries of a list, each `[NUMBER]WHAT`; what follows them (`[RO]; OOB …`) has no number.
fn entries(list: &str, read: fn(&str) -> Option<Entry>) -> BTreeMap<u32, Entry> {
    let one = |word: &str| {
        let (number, what) = word.strip_prefix('[')?.split_once(']')?;
        Some((number.parse().ok()?, read(what)?))
    };
    list.split_whitespace().filter_map(one).gathered()
}

/// `mlx5_0:1/RoCE`, and with the ids of rail and plane `mlx5_0:1:0:3/IB`.
fn port(text: &str) -> Option<Entry> {
    let (name, kind) = text.split_once('/')?;
    let mut parts = name.split(':');
    let (device, port) = (parts.next()?, parts.next()?);
    // NCCL chooses GIDs of RoCE v2 unless NCCL_IB_ROCE_VERSION_NUM says otherwise.
    let layer = match kind.split('/').next() {
        Some("RoCE") => Some(LinkLayer::RoceV2),
        Some("IB") => Some(LinkLayer::Infiniband),
        _ => None,
    };
    Some(Entry { names: vec![format!("{device}:{port}")], layer })
}

/// `eth0:10.0.0.1<0>`.
fn interface(text: &str) -> Option<Entry> {
    Some(Entry { names: vec![text.split(':').next()?.to_owned()], layer: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_told_apart() {
        let p2p = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n\
                   h:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n";
        let carried = read(p2p).unwrap();
        assert_eq!((carried.transport, carried.gpu_path), (Carrier::NcclP2p, GpuPath::None));
        assert_eq!(carried.evidence["via P2P/CUMEM"], 2);
        assert!(!carried.networked && !carried.collnet);
        let sharp =
            read(&format!("{p2p}h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] via COLLNET/SHARP/0\n")).unwrap();
        assert!(!sharp.networked && sharp.collnet);
        let ib = format!(
            "{p2p}h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
             h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA\n"
        );
        let carried = read(&ib).unwrap();
        assert_eq!((carried.transport, carried.link_layer), (Carrier::NcclIb, Some(LinkLayer::RoceV2)));
        assert_eq!((carried.gpu_path, carried.networked), (GpuPath::GdrPeermem, true));
        let socket = "h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n";
        assert_eq!(read(socket).unwrap().transport, Carrier::NcclSocket);
        let shared = "h:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n";
        assert_eq!(read(shared).unwrap().transport, Carrier::NcclShm);
        assert_eq!(read("h:1:2 [0] NCCL INFO Connected all rings\n"), None);
    }

    #[test]
    fn a_plugin_is_neither_ib_nor_staged() {
        let aws = "h:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/AWS Libfabric/2/GDRDMA\n";
        let carried = read(aws).unwrap();
        assert_eq!((carried.transport, carried.gpu_path), (Carrier::NcclPlugin, GpuPath::Gdr));
        assert_eq!((carried.link_layer, carried.nics), (Some(LinkLayer::Unknown), Vec::new()));
        assert_eq!(carried.evidence["via NET/AWS Libfabric/2/GDRDMA"], 1);
        let socket = "h:1:2 [0] NCCL INFO Channel 01/0 : 8[0] -> 0[0] [receive] via NET/Socket/0\n";
        assert_eq!(read(&format!("{aws}{socket}")).unwrap().transport, Carrier::NcclSocket);
    }

    #[test]
    fn channels_are_counted() {
        let line = "h:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels, 8 p2p channels per peer\n";
        let text = format!("{line}h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
        let wanted = [("coll", 16), ("collnet", 16), ("nvls", 0), ("p2p", 32)].map(|(kind, n)| (kind.to_owned(), n));
        assert_eq!(read(&text).unwrap().channels, wanted.into());
    }

    #[test]
    fn numbers_of_the_network_have_names() {
        let connection = |path: &str| format!("h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via {path}\n");
        let using = "h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n";
        let named = |paths: &[&str]| {
            let connections: String = paths.iter().map(|path| connection(path)).collect();
            read(&format!("{using}{connections}")).unwrap().nics
        };
        assert_eq!(named(&["NET/IB/1/GDRDMA", "NET/IB/0(3)/GDRDMA/Shared"]), ["mlx5_0:1", "mlx5_3:1"]);
        assert_eq!(named(&["NET/IB/0/GDRDMA", "NET/IB/2/GDRDMA"]), [""; 0]);
        let socket =
            format!("h:1:2 [0] NCCL INFO NET/Socket : Using [0]eth2:10.0.0.1<0>\n{}", connection("NET/Socket/0"));
        assert_eq!(read(&socket).unwrap().nics, ["eth2"]);
        assert_eq!(read(&connection("P2P/CUMEM")).unwrap().nics, [""; 0]);
    }

    #[test]
    fn a_complaint_is_found() {
        let text = "x\nh:1:2 [0] init.cc:9 NCCL WARN Duplicate GPU detected : rank 0\nh NCCL INFO y";
        assert_eq!(complaint(text), Some("Duplicate GPU detected : rank 0"));
        assert_eq!(complaint("x"), None);
    }

    fn used(list: &str, paths: &[&str]) -> (Option<Vec<String>>, Option<LinkLayer>) {
        let connections: Vec<_> = paths.iter().map(|path| Connection::parse(path).unwrap()).collect();
        let networks = Networks::read(list);
        (networks.names(&connections), networks.layer(&connections))
    }

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn every_spelling_of_a_connection_is_read() {
        let read = |via| Connection::parse(via).map(|found| (found.words, found.net, found.device, found.direct));
        // 2.18 to 2.30: src/transport/net.cc.
        assert_eq!(read("NET/IB/0"), Some(("NET/IB/0", Net::Verbs, 0, false)));
        assert_eq!(read("NET/IB/12(3)/GDRDMA/Shared"), Some(("NET/IB/12(3)/GDRDMA/Shared", Net::Verbs, 12, true)));
        assert_eq!(read("NET/IB/1/GDRDMA(PCI)"), Some(("NET/IB/1/GDRDMA(PCI)", Net::Verbs, 1, true)));
        assert_eq!(read("NET/IBext_v8/3 comm 0x1"), Some(("NET/IBext_v8/3", Net::Verbs, 3, false)));
        let libfabric = "NET/AWS Libfabric/2/GDRDMA";
        assert_eq!(read(libfabric), Some((libfabric, Net::Plugin, 2, true)));
        assert_eq!(read("NET/Socket/0"), Some(("NET/Socket/0", Net::Socket, 0, false)));
        for other in ["P2P/CUMEM/read", "SHM/direct/direct", "NET/IB", "NET/IB/x"] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn ids_of_rails_and_planes_are_no_ports() {
        for list in ["[0]mlx5_0:1:0/IB [1]mlx5_1:1:1/IB", "[0]mlx5_0:1::3/IB [1]mlx5_1:1:1:3/IB"] {
            let found = used(&format!("x NET/IB : Using {list} [RO]; OOB eth0:10.0.0.1<0>"), &["NET/IB/1/GDRDMA"]);
            assert_eq!(found, (names(&["mlx5_1:1"]), Some(LinkLayer::Infiniband)));
        }
    }

    #[test]
    fn nvidias_plugin_lists_its_ports_as_nccl_does() {
        let list = "x NET/IB : Using [0]mlx5_0:1/IB/SHARP [1]mlx5_1:1/IB/SHARP [RO]; OOB eth0:10.0.0.1<0>";
        assert_eq!(used(list, &["NET/IBext_v8/1"]), (names(&["mlx5_1:1"]), Some(LinkLayer::Infiniband)));
    }

    #[test]
    fn the_layer_is_that_of_the_ports_in_use() {
        let list = "x NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>";
        assert_eq!(used(list, &["NET/IB/1"]).1, Some(LinkLayer::Infiniband));
        assert_eq!(used(list, &["NET/IB/0"]).1, Some(LinkLayer::RoceV2));
        assert_eq!(used(list, &["NET/IB/0", "NET/IB/1"]).1, None);
        // A number that is not explained may be any of them.
        assert_eq!(used(list, &["NET/IB/7"]), (None, None));
    }

    #[test]
    fn joined_ports_are_those_they_are_made_of() {
        let log = "x NET/IB : Made virtual device [0] name=mlx5_0 speed=200000 ndevs=1\n\
                   x NET/IB : Made virtual device [1] name=mlx5_1 speed=200000 ndevs=1\n\
                   x NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
                   x NET/IB : Made virtual device [2] name=mlx5_0+mlx5_1 speed=400000 ndevs=2\n";
        assert_eq!(used(log, &["NET/IB/2/GDRDMA"]), (names(&["mlx5_0:1", "mlx5_1:1"]), Some(LinkLayer::RoceV2)));
        let both = "x NET/IB : Using [0]mlx4_0:1/IB [1]mlx4_0:2/IB ; OOB eth0:10.0.0.1<0>\n\
                    x NET/IB : Made virtual device [2] name=mlx4_0+mlx4_0 speed=2 ndevs=2\n";
        assert_eq!(used(both, &["NET/IB/2"]).0, names(&["mlx4_0:1", "mlx4_0:2"]));
    }

    #[test]
    fn sockets_have_interfaces() {
        let (found, _) = used("x NET/Socket : Using [0]eth2:10.0.0.1<0> [1]eth3:10.0.1.1<0>", &["NET/Socket/1"]);
        assert_eq!(found, names(&["eth3"]));
        let loopback = |list: &str, path| Networks::read(list).loopback(&[Connection::parse(path).unwrap()]);
        assert!(loopback("x NET/Socket : Using [0]lo:127.0.0.1<0>", "NET/Socket/0"));
        // What is listed and not used does not count.
        let both = "x NET/Socket : Using [0]lo:127.0.0.1<0> [1]eth0:10.0.0.1<0>";
        assert!(loopback(both, "NET/Socket/0") && !loopback(both, "NET/Socket/1"));
    }
}

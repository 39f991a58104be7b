//! Reads from NCCL's log what carried the bytes.
//!
//! With `NCCL_DEBUG=INFO` every connection is one line: `… Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM`, `… [send] via NET/IB/0/GDRDMA`, `…
//! [receive] via NET/AWS Libfabric/2/GDRDMA/Shared`, `… via SHM/direct/direct`, `CollNet 00/0 : 0 [receive] via COLLNET/SHARP/1/GDRDMA`
//! (`src/transport/net.cc`, `p2p.cc`, `shm.cc`, `coll_net.cc` of NCCL 2.18 to 2.30). `16 coll channels, 16 collnet channels, 0 nvls
//! channels, …` has the channels of a communicator.
//!
//! Which device a number of a network is, NCCL itself says for every network, built in or of a plugin: `NET/gIB : GPU Direct RDMA Enabled
//! for HCA 2 'mlx5_2'` (`src/graph/topo.cc`). Ports that it joins have the name `mlx5_0+mlx5_1`, and the Data Direct interface of a
//! ConnectX-8 `mlx5_0_dma` (`src/transport/net_ib/init.cc`). Ports and their layers are listed by the network for InfiniBand and by plugins
//! made of it: `NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1:0/IB …` with the ids of rail and plane in NCCL 2.30, and `[0]={[0]
//! mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}` in 2.20 to 2.23. Those of other plugins are this host's.

use std::collections::{BTreeMap, BTreeSet};

use railgauge_wire::{Carried, Carrier, Gather, GpuPath, LinkLayer, facts::port_name};

/// RDMA ports by their names in plans, with a number (`mlx5_0:1`), that speak InfiniBand or RoCE.
pub type Ports = BTreeMap<String, LinkLayer>;

/// What a rank's log says of its connections; `None` if it says nothing. `host` has the ports of this host.
pub fn read(text: &str, host: &Ports) -> Option<Carried> {
    let networks = Networks::read(text, host);
    let mut evidence: BTreeMap<String, u64> = BTreeMap::new();
    let mut connections = Vec::new();
    for line in text.lines().filter(|line| line.contains("Channel ") || line.contains("CollNet ")) {
        let Some((_, via)) = line.rsplit_once(" via ") else { continue };
        // What follows the path are numbers of buffers and the like.
        let path = Path::parse(via);
        let words = path.as_ref().map_or_else(|| via.split_whitespace().next().unwrap_or(via), |path| path.words);
        *evidence.entry(format!("via {words}")).or_default() += 1;
        connections.extend(path.map(|path| networks.connection(&path)));
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
    let direct = connections.iter().any(|connection| connection.direct);
    let gpu_path = match transport {
        // A GPU without dma-bufs leaves nvidia-peermem only. With them NCCL does not say which of both a NIC uses.
        Carrier::NcclIb if direct && !text.contains("DMA-BUF is available") => GpuPath::GdrPeermem,
        Carrier::NcclIb | Carrier::NcclPlugin if direct => GpuPath::Gdr,
        Carrier::NcclIb | Carrier::NcclPlugin | Carrier::NcclSocket => GpuPath::Staged,
        _ => GpuPath::None,
    };
    // Those of all connections, or none.
    let named = connections.iter().all(|connection| connection.nics.is_some());
    let nics = connections.iter().filter(|_| named).flat_map(|connection| connection.nics.iter().flatten());
    let nics: BTreeSet<&str> = nics.map(|(name, _)| *name).gathered();
    let link_layer = match transport {
        Carrier::NcclIb => Some(layer(&connections)),
        Carrier::NcclPlugin => Some(LinkLayer::Unknown),
        Carrier::NcclSocket if nics.iter().eq(["lo"].iter()) => Some(LinkLayer::Loopback),
        Carrier::NcclSocket => Some(LinkLayer::Ethernet),
        _ => None,
    };
    let nics = nics.into_iter().map(str::to_owned).collect();
    let (networked, collnet) = (!connections.is_empty(), any("via COLLNET/"));
    Some(Carried { transport, link_layer, gpu_path, networked, collnet, evidence, channels: channels(text), nics })
}

/// Of the ports in use; unknown if they differ.
fn layer(connections: &[Connection<'_>]) -> LinkLayer {
    let ports = connections.iter().filter(|connection| connection.net == Net::Verbs);
    let layers: BTreeSet<Option<LinkLayer>> =
        ports.flat_map(|connection| connection.nics.iter().flatten().map(|(_, layer)| *layer)).gathered();
    match (layers.len(), layers.first()) {
        (1, Some(Some(layer))) => *layer,
        _ => LinkLayer::Unknown,
    }
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
enum Net {
    /// InfiniBand and RoCE: NCCL's own, or a plugin whose devices are ports of that kind (`IBext_v8`, `NCCL RDMA Plugin v10`, `SPCX`,
    /// `gIB`, …).
    Verbs,
    /// Another plugin: `Libfabric` over EFA, ….
    Plugin,
    Socket,
}

/// The path of a connection over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Path<'t> {
    /// As in the log: `NET/IB/0(3)/GDRDMA/Shared`.
    words: &'t str,
    net: &'t str,
    device: u32,
    direct: bool,
}

impl<'t> Path<'t> {
    /// Parses the text after ` via `: `NET/NAME/NUMBER`, the rank that sends in its place in brackets, `/GDRDMA` and `/Shared`. A
    /// plugin's name may have spaces. `None` if it is not a connection over a network.
    fn parse(via: &'t str) -> Option<Self> {
        let (net, rest) = via.strip_prefix("NET/")?.split_once('/')?;
        let rest = rest.split_whitespace().next()?;
        let device = rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        let length = "NET/".len() + net.len() + 1 + rest.len();
        let direct = rest.split('/').skip(1).any(|part| part.starts_with("GDRDMA"));
        Some(Self { words: &via[..length], net, device, direct })
    }
}

struct Connection<'t> {
    net: Net,
    direct: bool,
    /// Ports or interfaces by their names in plans, and the layer of ports; `None` where the log does not name the device.
    nics: Option<Vec<(&'t str, Option<LinkLayer>)>>,
}

struct Networks<'t> {
    /// By network and number.
    devices: BTreeMap<(&'t str, u32), &'t str>,
    listed: Ports,
    host: &'t Ports,
}

impl<'t> Networks<'t> {
    fn read(text: &'t str, host: &'t Ports) -> Self {
        let lists =
            text.lines().filter_map(|line| line.split_once(" : Using ").filter(|(start, _)| start.contains("NET/")));
        let listed = lists.flat_map(|(_, list)| list.split([' ', ',', '[', ']', '{', '}'])).filter_map(port).gathered();
        Self { devices: text.lines().filter_map(device).gathered(), listed, host }
    }

    fn connection(&'t self, path: &Path<'t>) -> Connection<'t> {
        let name = self.devices.get(&(path.net, path.device));
        let nics = name.map(|name| name.split('+').flat_map(|member| self.nics(member)).collect::<Vec<_>>());
        let ports = || nics.as_ref().is_some_and(|nics| nics.iter().all(|(_, layer)| layer.is_some()));
        let net = match path.net {
            "Socket" => Net::Socket,
            "IB" => Net::Verbs,
            _ if ports() => Net::Verbs,
            _ => Net::Plugin,
        };
        Connection { net, direct: path.direct, nics }
    }

    /// The ports of a device that its network lists, else those of this host; itself if it has none.
    fn nics(&'t self, name: &'t str) -> Vec<(&'t str, Option<LinkLayer>)> {
        let device = name.strip_suffix("_dma").unwrap_or(name);
        let of = |ports: &'t Ports| -> Vec<_> {
            let mine = ports.iter().filter(|(port, _)| port_name(port).0 == device);
            mine.map(|(port, layer)| (port.as_str(), Some(*layer))).collect()
        };
        let found = [of(&self.listed), of(self.host), vec![(name, None)]].into_iter().find(|found| !found.is_empty());
        found.unwrap_or_default()
    }
}

/// `NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'`.
fn device(line: &str) -> Option<((&str, u32), &str)> {
    let (net, rest) = line.split_once("NET/")?.1.split_once(" : GPU Direct RDMA ")?;
    let (number, name) = rest.split_once(" for HCA ")?.1.split_once(" '")?;
    Some(((net, number.parse().ok()?), name.split_once('\'')?.0))
}

/// `mlx5_0:1/RoCE`, with the ids of rail and plane `mlx5_0:1:0:3/IB`, with SHARP `mlx5_0:1/IB/SHARP`.
fn port(text: &str) -> Option<(String, LinkLayer)> {
    let (name, kind) = text.split_once('/')?;
    let mut parts = name.split(':');
    let (device, number) = (parts.next()?, parts.next()?.parse::<u8>().ok()?);
    let device = device.strip_suffix("_dma").unwrap_or(device);
    // NCCL chooses GIDs of RoCE v2 unless NCCL_IB_ROCE_VERSION_NUM says otherwise.
    let layer = match kind.split('/').next()? {
        "RoCE" => LinkLayer::RoceV2,
        "IB" => LinkLayer::Infiniband,
        _ => return None,
    };
    Some((format!("{device}:{number}"), layer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn carried(text: &str) -> Carried {
        read(text, &Ports::new()).unwrap()
    }

    /// What `ports` of a host with four devices make of the log, and the names of the NICs.
    fn on_host(text: &str) -> (Carrier, Option<LinkLayer>, Vec<String>) {
        let ports = (0..4).map(|i| (format!("mlx5_{i}:1"), LinkLayer::RoceV2)).collect();
        let Carried { transport, link_layer, nics, .. } = read(text, &ports).unwrap();
        (transport, link_layer, nics)
    }

    fn verbs(layer: LinkLayer, nics: &[&str]) -> (Carrier, Option<LinkLayer>, Vec<String>) {
        (Carrier::NcclIb, Some(layer), nics.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn connections_are_distinguished() {
        let p2p = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n\
                   h:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM\n";
        let found = carried(p2p);
        assert_eq!((found.transport, found.gpu_path), (Carrier::NcclP2p, GpuPath::None));
        assert_eq!(found.evidence["via P2P/CUMEM"], 2);
        assert!(!found.networked && !found.collnet);
        let ib = format!(
            "{p2p}h:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
             h:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n\
             h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0/GDRDMA\n"
        );
        let found = carried(&ib);
        assert_eq!((found.transport, found.link_layer), (Carrier::NcclIb, Some(LinkLayer::RoceV2)));
        assert_eq!((found.gpu_path, found.networked), (GpuPath::GdrPeermem, true));
        // That the GPU has dma-bufs does not say that the NIC took one.
        let either = carried(&format!("h:1:2 [0] NCCL INFO DMA-BUF is available on GPU device 0\n{ib}"));
        assert_eq!(either.gpu_path, GpuPath::Gdr);
        let socket = "h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0\n";
        assert_eq!(carried(&format!("{ib}{socket}")).transport, Carrier::NcclSocket);
        let shared = "h:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct\n";
        assert_eq!(carried(shared).transport, Carrier::NcclShm);
        assert_eq!(read("h:1:2 [0] NCCL INFO Connected all rings\n", &Ports::new()), None);
    }

    /// From <https://github.com/NVIDIA/nccl-tests/issues/311> (NCCL 2.23.4 with the SHARP plugin); lines of `IBext_v8` by
    /// `src/graph/topo.cc`.
    #[test]
    fn sharp_is_seen_and_its_plugin_is_infiniband() {
        let log = "gpu41:63046:63077 [0] NCCL INFO NET/IB : Using [0]mlx5_2:1/IB/SHARP [1]mlx5_0:1/IB/SHARP [2]mlx5_6:1/IB/SHARP \
                   [3]mlx5_8:1/IB/SHARP [4]mlx5_9:1/IB/SHARP [5]mlx5_4:1/IB/SHARP [RO]; OOB ib0:10.159.0.41<0>\n\
                   gpu41:63046:63077 [0] NCCL INFO Using network IBext_v8\n\
                   gpu41:63046:63077 [0] NCCL INFO NET/IBext_v8 : GPU Direct RDMA Enabled for HCA 1 'mlx5_0'\n\
                   gpu41:63046:63077 [0] NCCL INFO CollNet 00/0 : 6 [receive] via COLLNET/SHARP/1/GDRDMA\n\
                   gpu41:63046:63077 [0] NCCL INFO Channel 00/0 : 5[1] -> 6[0] [receive] via NET/IBext_v8/1/GDRDMA\n";
        let found = carried(log);
        assert!(found.collnet && found.networked);
        assert_eq!(found.evidence["via COLLNET/SHARP/1/GDRDMA"], 1);
        assert_eq!(on_host(log), verbs(LinkLayer::Infiniband, &["mlx5_0:1"]));
    }

    /// From "Ray on GKE using DRANET" (<https://github.com/kubernetes-sigs/dranet>): Google's plugin lists no ports.
    #[test]
    fn googles_plugin_has_the_ports_of_the_host() {
        let log = "a4-ray-cluster-gpu-group-worker-pbkpw:3590:3753 [2] NCCL INFO NET/gIB : Initializing gIB v1.0.6\n\
                   a4-ray-cluster-gpu-group-worker-pbkpw:3590:3758 [7] NCCL INFO NET/gIB : GPU Direct RDMA Enabled for HCA 2 'mlx5_2'\n\
                   a4-ray-cluster-gpu-group-worker-pbkpw:3590:3799 [2] NCCL INFO Channel 02/0 : 2[2] -> 10[2] [send] via NET/gIB/2/GDRDMA\n";
        assert_eq!(on_host(log), verbs(LinkLayer::RoceV2, &["mlx5_2:1"]));
    }

    /// Connections and the list from a run of NCCL over Spectrum-X on two hosts with `NCCL_IB_HCA==mlx5_0,mlx5_1`; the device by
    /// `src/graph/topo.cc`.
    #[test]
    fn spectrum_x_joins_ports() {
        let log = "worker-0 [1] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
                   worker-0 [1] NCCL INFO NET/SPCX : GPU Direct RDMA Enabled for HCA 2 'mlx5_0+mlx5_1'\n\
                   worker-0 [1] NCCL INFO Channel 00/0 : 1[1] -> 8[0] [send] via NET/SPCX/2(0)/GDRDMA\n";
        assert_eq!(on_host(log), verbs(LinkLayer::RoceV2, &["mlx5_0:1", "mlx5_1:1"]));
    }

    /// The list from <https://github.com/NVIDIA/nccl-tests/issues/373> (NCCL 2.20 to 2.23): device 1 is not the port with that number.
    #[test]
    fn numbers_are_of_devices_and_not_of_ports() {
        let log = "bigo:1884:2298 [0] NCCL INFO NET/IB : Using [0]={[0] mlx5_2:1/RoCE, [1] mlx5_3:1/RoCE} [1]={[2] mlx5_0:1/RoCE, [3] \
                   mlx5_1:1/RoCE} [RO]; OOB bond0.526:169.136.106.9<0>\n\
                   bigo:1884:2298 [0] NCCL INFO NET/IBext_v8 : GPU Direct RDMA Disabled for HCA 1 'mlx5_0+mlx5_1'\n\
                   bigo:1884:2298 [0] NCCL INFO Channel 00/0 : 1[0] -> 2[0] [receive] via NET/IBext_v8/1\n";
        assert_eq!(on_host(log), verbs(LinkLayer::RoceV2, &["mlx5_0:1", "mlx5_1:1"]));
        assert_eq!(carried(log).gpu_path, GpuPath::Staged);
    }

    /// The list from OCI's nodes of GB300 with ConnectX-8 (NCCL 2.29.3, examples of <https://github.com/kubernetes-sigs/dranet>).
    #[test]
    fn a_data_direct_interface_is_its_device() {
        let log = "h:1:2 [0] NCCL INFO NET/IB : Using [0]rdma_vf_rail0_dma:1/RoCE [1]rdma_vf_rail1_dma:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n\
                   h:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Enabled for HCA 1 'rdma_vf_rail1_dma'\n\
                   h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/1/GDRDMA(PCI)\n";
        assert_eq!(on_host(log), verbs(LinkLayer::RoceV2, &["rdma_vf_rail1:1"]));
    }

    /// From users' logs: NVIDIA's plugin of NCCL 2.27 and later on a DGX Spark, and Amazon's over EFA, which is not a port of RDMA.
    #[test]
    fn a_plugin_is_verbs_if_its_devices_are() {
        let spark = "h:1:2 [0] NCCL INFO NET/IB : Using [0]rocep1s0f0:1/RoCE [RO]; OOB enp1s0f0np0:192.168.100.12<0>\n\
                     h:1:2 [0] NCCL INFO NET/NCCL RDMA Plugin v10 : GPU Direct RDMA Disabled for HCA 0 'rocep1s0f0'\n\
                     h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/NCCL RDMA Plugin v10/0\n";
        assert_eq!(on_host(spark), verbs(LinkLayer::RoceV2, &["rocep1s0f0:1"]));
        let aws = "h:1:2 [0] NCCL INFO NET/Libfabric : GPU Direct RDMA Enabled for HCA 1 'rdmap87s0'\n\
                   h:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/Libfabric/1/GDRDMA\n";
        assert_eq!(on_host(aws), (Carrier::NcclPlugin, Some(LinkLayer::Unknown), vec!["rdmap87s0".to_owned()]));
        assert_eq!(carried(aws).gpu_path, GpuPath::Gdr);
        let unnamed = "h:1:2 [0] NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/AWS Libfabric/2/GDRDMA\n";
        assert_eq!(on_host(unnamed), (Carrier::NcclPlugin, Some(LinkLayer::Unknown), Vec::new()));
    }

    #[test]
    fn the_layer_is_that_of_the_ports_in_use() {
        let used = |devices: &[u32]| {
            let mut log =
                "x NET/IB : Using [0]mlx5_0:1:0/RoCE [1]mlx5_1:1::3/IB [RO]; OOB eth0:10.0.0.1<0>\n".to_owned();
            for device in devices {
                log += &format!("x NET/IB : GPU Direct RDMA Enabled for HCA {device} 'mlx5_{device}'\n");
                log += &format!("x Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/{device}/GDRDMA/Shared comm 0x1\n");
            }
            on_host(&log)
        };
        assert_eq!(used(&[1]), verbs(LinkLayer::Infiniband, &["mlx5_1:1"]));
        assert_eq!(used(&[0, 1]), verbs(LinkLayer::Unknown, &["mlx5_0:1", "mlx5_1:1"]));
        // Neither a number that has no name nor one beside it names a NIC.
        let unnamed = "x Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/7\n";
        assert_eq!(on_host(unnamed), verbs(LinkLayer::Unknown, &[]));
    }

    #[test]
    fn sockets_have_interfaces() {
        let log = |name: &str, device: u32| {
            format!(
                "x NET/Socket : Using [0]lo:127.0.0.1<0> [1]eth3:10.0.1.1<0>\n\
                 x NET/Socket : GPU Direct RDMA Disabled for HCA {device} '{name}'\n\
                 x Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/{device}\n"
            )
        };
        assert_eq!(on_host(&log("eth3", 1)), (Carrier::NcclSocket, Some(LinkLayer::Ethernet), vec!["eth3".to_owned()]));
        assert_eq!(on_host(&log("lo", 0)).1, Some(LinkLayer::Loopback));
    }

    #[test]
    fn channels_are_counted() {
        let line = "h:1:2 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 32 p2p channels, 8 p2p channels per peer\n";
        let text = format!("{line}h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n");
        let wanted = [("coll", 16), ("collnet", 16), ("nvls", 0), ("p2p", 32)].map(|(kind, n)| (kind.to_owned(), n));
        assert_eq!(carried(&text).channels, wanted.into());
    }

    #[test]
    fn a_complaint_is_found() {
        let text = "x\nh:1:2 [0] init.cc:9 NCCL WARN Duplicate GPU detected : rank 0\nh NCCL INFO y";
        assert_eq!(complaint(text), Some("Duplicate GPU detected : rank 0"));
        assert_eq!(complaint("x"), None);
    }

    #[test]
    fn every_spelling_of_a_path_is_read() {
        let read = |via| Path::parse(via).map(|found| (found.words, found.net, found.device, found.direct));
        // 2.18 to 2.30: src/transport/net.cc.
        assert_eq!(read("NET/IB/0"), Some(("NET/IB/0", "IB", 0, false)));
        assert_eq!(read("NET/IB/12(3)/GDRDMA/Shared"), Some(("NET/IB/12(3)/GDRDMA/Shared", "IB", 12, true)));
        assert_eq!(read("NET/IB/1/GDRDMA(PCI)"), Some(("NET/IB/1/GDRDMA(PCI)", "IB", 1, true)));
        assert_eq!(read("NET/IBext_v8/3 comm 0x1"), Some(("NET/IBext_v8/3", "IBext_v8", 3, false)));
        let libfabric = "NET/AWS Libfabric/2/GDRDMA";
        assert_eq!(read(libfabric), Some((libfabric, "AWS Libfabric", 2, true)));
        for other in ["P2P/CUMEM/read", "SHM/direct/direct", "NET/IB", "NET/IB/x", "COLLNET/SHARP/1"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}

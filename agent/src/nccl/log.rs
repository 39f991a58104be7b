//! NCCL's own log as evidence of what carried the bytes.
//!
//! With `NCCL_DEBUG=INFO` every connection is one line: `… Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM`,
//! `… [send] via NET/IB/0/GDRDMA`, `… [receive] via NET/AWS Libfabric/2/GDRDMA/Shared`, `… via SHM/direct/direct`
//! (`src/transport/net.cc`, `p2p.cc`, `shm.cc` of NCCL 2.18 to 2.30). The numbers behind `NET` are explained by
//! [`super::network`]. `16 coll channels, 16 collnet channels, 0 nvls channels, …` says over how many channels a
//! communicator spreads its work.

use std::collections::BTreeMap;

use railgauge_wire::{
    gather::Gather,
    group::Carried,
    terms::{Carrier, GpuPath, LinkLayer},
};

use super::network::{Connection, Net, Networks};

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
    // Sockets before a plugin before verbs: the slowest kind speaks for the rank.
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
        // Which of both a plugin uses stands in no log.
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
        // The slowest kind speaks for the rank.
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
        // Ports that were joined have numbers behind those of the list.
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
}

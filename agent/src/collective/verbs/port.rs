//! Opens a rank's queue pairs and connects them with the others'.

use std::sync::Arc;

use railgauge_wire::{
    Carrier, Completion, Endpoint, Failure, GpuPath, Joining, Kind, LinkLayer, LinkSpec, Opened, Service, Stage,
    VerbsEndpoint, remedy,
};

use super::super::engine::{Neighbour, RankPort, Wire};
use super::{DEPTH, Lane, SLOT, SLOTS, Verbs};
use crate::{
    bench::control::Control,
    endpoint::verbs::{
        choice::{Choice, choose, described, psns, settle},
        join::{self, Target},
        settings::Settings,
    },
    verbs::{
        completion::{CompletionQueue, Poller},
        events::Watch,
        queue_pair::{Capacity, Change, QueuePair},
        receive::Slots,
        region,
    },
};

/// `Err` unless queue pairs over this layer can be joined by exchanging numbers.
fn joined_by_exchange(layer: LinkLayer, joining: Joining, is_erdma: bool) -> Result<(), Failure> {
    let (cause, remedy) = match (layer, joining) {
        // As for pairs: in compatibility mode eRDMA's queue pairs are joined by exchange.
        (LinkLayer::Iwarp, Joining::Exchange) if is_erdma => return Ok(()),
        // RFC 5044: a connection starts with a TCP stream and the exchange of MPA, led by the connection manager.
        (LinkLayer::Iwarp, _) => (
            "iWARP: its queue pairs are connected by rdma_cm only, and those of collectives are not",
            remedy::TCP_ON_IWARP,
        ),
        (_, Joining::RdmaCm) => ("queue pairs of collectives are not joined by rdma_cm", remedy::LEAVE_JOINING_OUT),
        (_, Joining::Auto | Joining::Exchange) => return Ok(()),
    };
    Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy))
}

pub(crate) struct VerbsRankPort {
    choice: Choice,
    settings: Settings,
    /// `None` for this rank. Before the memory, which is unregistered after their end.
    pairs: Vec<Option<Arc<QueuePair>>>,
    queue: Arc<CompletionQueue>,
    slots: Slots,
    opened: Opened,
    watch: Watch,
}

impl VerbsRankPort {
    /// Opens the device and one queue pair for each other rank, on the calling thread, which is moved to the device's node.
    pub(crate) fn open(spec: &LinkSpec, rank: u32, ranks: u32) -> Result<Self, Failure> {
        let (choice, limits, settings) = choose(spec)?;
        let device = choice.domain.device().clone();
        joined_by_exchange(choice.link_layer, settings.joining, choice.driver.is("erdma"))?;
        let mut notes = settle(&choice, &settings)?;
        let slots = Slots::new(&choice.domain, u64::from(ranks) * u64::from(SLOTS), SLOT, settings.huge_pages)?;
        let entries = (2 * DEPTH).saturating_mul(ranks);
        if entries > limits.completions {
            let cause =
                format!("{ranks} ranks need {entries} completions, {} has {}", device.name(), limits.completions);
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::SMALLER_GROUPS));
        }
        let making = region::making(false);
        let queue = CompletionQueue::new(&device, entries, settings.completion == Completion::Events)?;
        let capacity = Capacity { sends: DEPTH, receives: DEPTH, inline: 0 };
        let pkey_index = choice.pkey.map_or(0, |pkey| pkey.index);
        let pair = |other: u32| -> Result<Option<Arc<QueuePair>>, Failure> {
            if other == rank {
                return Ok(None);
            }
            let pair = QueuePair::new(&choice.domain, &queue, Service::Rc, capacity, None)?;
            pair.change(&Change::Initialise { port: choice.port.number, pkey_index, atomics: false, qkey: 0 })?;
            Ok(Some(Arc::new(pair)))
        };
        let pairs = (0..ranks).map(pair).collect::<Result<Vec<_>, _>>()?;
        drop(making);
        let watch = Watch::new(&device, choice.port.clone(), choice.gid, choice.pkey);
        let watch = watch.of(pairs.iter().flatten().map(|pair| &**pair));
        notes.insert("buffer_bytes".into(), slots.length().to_string());
        for name in ["completion", "mtu", "traffic_class", "service_level", "retry_count", "timeout"] {
            notes.extend(settings.record().remove(name).map(|value| (name.to_owned(), value)));
        }
        let endpoint = VerbsEndpoint {
            qp_numbers: pairs.iter().map(|pair| pair.as_ref().map_or(0, |pair| pair.number())).collect(),
            psns: psns(pairs.len()),
            // Messages land where the receiver decides: ranks do not access memory by address.
            max_reads: 1,
            ..described(&choice, &settings)
        };
        let opened = Opened {
            endpoint: Endpoint::Verbs(endpoint),
            device: choice.name(),
            transport: Carrier::VerbsRc,
            link_layer: choice.link_layer,
            gpu_path: GpuPath::None,
            rate_gbps: choice.rate_gbps,
            mtu: settings.mtu,
            software: choice.driver.software,
            write_order: None,
            settings: notes,
        };
        Ok(Self { choice, settings, pairs, queue, slots, opened, watch })
    }

    /// Also posts its receives.
    fn connect(
        &mut self,
        own: &VerbsEndpoint,
        rank: usize,
        other: usize,
        neighbour: &Neighbour,
    ) -> Result<Lane, Failure> {
        let unfit = |cause: &str| Failure::new(Stage::Join, Kind::Internal, cause.to_owned());
        let Endpoint::Verbs(peer) = &neighbour.endpoint else { return Err(unfit("it has no queue pairs")) };
        join::same_network(&self.choice, peer)?;
        let path = join::path(&self.choice, &self.settings, peer, other)?;
        let number = peer.qp_numbers.get(rank).zip(peer.psns.get(rank)).zip(own.psns.get(other));
        let (Some(pair), Some(((number, psn), own_psn))) = (&self.pairs[other], number) else {
            return Err(unfit("it has no queue pair for this rank"));
        };
        let mtu = self.settings.mtu.min(peer.mtu);
        let (number, psn, own_psn) = (*number, *psn, *own_psn);
        join::connect(pair, &self.settings, &Target { path, mtu, number, psn, own_psn, accepted: 1, reads: 1 })?;
        let mut messages =
            self.slots.next(pair, SLOTS, other as u32).ok_or_else(|| unfit("its slots leave the buffer"))?;
        for slot in 0..DEPTH {
            messages.receive(slot).map_err(|errno| unfit(&format!("a receive is refused: errno {errno}")))?;
        }
        Ok(Lane::new(neighbour.name.clone(), messages))
    }
}

impl RankPort for VerbsRankPort {
    fn opened(&self) -> &Opened {
        &self.opened
    }

    fn join(
        mut self: Box<Self>,
        rank: usize,
        group: &[Neighbour],
        _control: &Control,
    ) -> Result<(Box<dyn Wire>, Opened), Failure> {
        let Endpoint::Verbs(own) = self.opened.endpoint.clone() else {
            return Err(Failure::new(Stage::Join, Kind::Internal, "this rank has no queue pairs"));
        };
        let (others, choice) = (group.iter().enumerate().filter(|(other, _)| *other != rank), &self.choice);
        self.opened.settings.extend(others.filter_map(|(_, neighbour)| match &neighbour.endpoint {
            Endpoint::Verbs(peer) => join::grh(choice, peer),
            Endpoint::Tcp(_) | Endpoint::Several(_) => None,
        }));
        let lane = |(other, neighbour): (usize, &Neighbour)| {
            if other == rank {
                return Ok(None);
            }
            let lane = self.connect(&own, rank, other, neighbour);
            lane.map(Some).map_err(|failure| failure.about(&neighbour.name))
        };
        let lanes = group.iter().enumerate().map(lane).collect::<Result<Vec<_>, Failure>>()?;
        // All on one port: the device's own loopback carries the bytes.
        let same = |neighbour: &Neighbour| match &neighbour.endpoint {
            Endpoint::Verbs(other) => (&other.gid, other.lid) == (&own.gid, own.lid),
            Endpoint::Tcp(_) | Endpoint::Several(_) => false,
        };
        if group.iter().all(same) {
            self.opened.link_layer = LinkLayer::Loopback;
        }
        let poller = Poller::new(&self.queue);
        let wire = Verbs { lanes, queue: self.queue, poller, watch: self.watch };
        Ok((Box::new(wire), self.opened))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iwarp_is_refused_by_its_layer_whatever_the_joining_and_rdma_cm_on_any_other() {
        for joining in [Joining::Auto, Joining::Exchange, Joining::RdmaCm] {
            let failure = joined_by_exchange(LinkLayer::Iwarp, joining, false).unwrap_err();
            assert!(failure.cause.contains("iWARP"), "{failure}");
            assert_eq!(failure.remedy.map(|remedy| remedy.id), Some(remedy::TCP_ON_IWARP.id.into()));
        }
        assert!(joined_by_exchange(LinkLayer::Iwarp, Joining::Exchange, true).is_ok());
        assert!(joined_by_exchange(LinkLayer::Iwarp, Joining::RdmaCm, true).is_err());
        for layer in [LinkLayer::Infiniband, LinkLayer::RoceV2] {
            assert!(joined_by_exchange(layer, Joining::Exchange, false).is_ok());
            let failure = joined_by_exchange(layer, Joining::RdmaCm, false).unwrap_err();
            assert!(!failure.cause.contains("iWARP"), "{failure}");
        }
    }
}

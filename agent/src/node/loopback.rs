//! Writes through an RDMA port of this host back into its memory, by two connected reliable queue pairs. Both ends are links as for
//! pairs, in one process, without a peer and a cable. A NIC reads every byte from the memory next to it and writes it there again. It
//! decides whether the bytes turn round inside it or at the other end of its cable, and does not report which.

use railgauge_wire::{
    Carrier, Checked, Failure, Joining, Kind, Knobs, LinkLayer, LinkSpec, Measurement, Memory, NicPort, NodeAccount,
    NodeSpec, Op, Pattern, Role, Service, Stage, Step, Stepped, TestMetric, Timing, Transport, remedy,
};

use super::mover::{Mover, twice};
use crate::{
    bench::control::Control,
    endpoint::verbs::choice::Choice,
    fabric::{self, Link},
    facts::rdma,
    system::tree::Tree,
};

/// Each end has one to send from and one to receive into.
pub(super) const BUFFERS: u64 = 4;

const OF_GPU: [&str; 3] = ["gpu", "gpu_name", "gpu_pci"];

pub(super) struct Loopback {
    from: Box<dyn Link>,
    to: Box<dyn Link>,
}

impl Loopback {
    pub(super) fn open(
        tree: &Tree,
        nic: &NicPort,
        spec: &NodeSpec,
        control: &Control,
    ) -> Result<(Self, NodeAccount), Failure> {
        let end = |role| of_end(nic, spec, role);
        let port = Choice::new(&end(Role::Initiator))?;
        if port.link_layer == LinkLayer::Iwarp {
            let cause = format!(
                "{}: iWARP joins queue pairs by rdma_cm only, and not with others of the same port",
                port.name()
            );
            return Err(Failure::new(Stage::Open, Kind::Unsupported, cause).remedy(remedy::LEAVE_TESTS_OUT));
        }
        let device = port.domain.device().name().to_owned();
        // So that an end has its context.
        drop(port);
        let mut from = fabric::open(&end(Role::Initiator)).map_err(without_staging)?;
        let mut to = fabric::open(&end(Role::Responder)).map_err(without_staging)?;
        let (near, far) = (from.opened().endpoint, to.opened().endpoint);
        from.join(&far, control)?;
        to.join(&near, control)?;
        let opened = from.opened();
        let mut settings = opened.settings;
        let pci = rdma::address(tree, &device);
        let told = [
            ("nic_pci", pci.clone()),
            ("port_link_layer", Some(opened.link_layer.to_string())),
            ("port_rate_gbps", opened.rate_gbps.map(|rate| rate.0.to_string())),
            ("gpu_path", Some(opened.gpu_path.to_string())),
        ];
        settings.extend(told.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let of_gpu = OF_GPU.iter().filter_map(|name| Some((format!("{name}_remote"), settings.get(*name)?.clone())));
        let of_gpu: Vec<_> = of_gpu.collect();
        settings.extend(of_gpu);
        let link_layer = match (opened.software, pci) {
            (true, _) => LinkLayer::Memory,
            (false, Some(_)) => LinkLayer::Pcie,
            (false, None) => LinkLayer::Unknown,
        };
        let account = super::mover::opened(link_layer, Carrier::VerbsLoopback, twice(&opened.device), settings);
        let account = NodeAccount { gpu_path: Some(opened.gpu_path), software: opened.software, ..account };
        Ok((Self { from, to }, account))
    }
}

fn of_end(nic: &NicPort, spec: &NodeSpec, role: Role) -> LinkSpec {
    LinkSpec {
        role,
        transport: Transport::Verbs,
        service: Service::Rc,
        device: Some(nic.device.clone()),
        port: nic.port,
        address: None,
        memory: if nic.gpu.is_some() { Memory::Cuda } else { Memory::Host },
        gpu: nic.gpu.as_ref().map(|gpu| gpu.number),
        gpu_path: nic.gpu_path,
        qps: 1,
        threads: 1,
        max_size: spec.size,
        token: String::new(),
        rides_out: false,
        knobs: Knobs { joining: Some(Joining::Exchange), ..nic.knobs.clone() },
    }
}

/// Without the proposal of host memory: then the NIC would not reach the GPU's.
fn without_staging(failure: Failure) -> Failure {
    match &failure.remedy {
        Some(told) if told.id == remedy::REACH_GPU_MEMORY.id => failure.remedy(remedy::LOOP_GPU_MEMORY),
        Some(told) if told.id == remedy::AMD_GPU_OVER_RDMA.id => failure.remedy(remedy::LOOP_AMD_GPU_MEMORY),
        _ => failure,
    }
}

impl Mover for Loopback {
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure> {
        self.from.step(&Step::Fill(*pattern), control)?;
        self.to.step(&Step::Poison(*pattern), control)?;
        self.from.step(&Step::Transfer { op: Op::Write, pattern: *pattern }, control)?;
        match self.to.step(&Step::Check(*pattern), control)? {
            Stepped::Checked(checked) => Ok(checked),
            other => Err(unexpected(Stage::Verify, &other)),
        }
    }

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure> {
        let timing = Timing {
            op: Op::Write,
            metric: TestMetric::Bandwidth,
            size: spec.size,
            window: spec.window,
            warm_up: spec.warm_up,
            start_at: None,
            bidirectional: false,
            only: None,
            pace: None,
        };
        match self.from.step(&Step::Time(timing), control)? {
            // One queue pair has no choice of paths.
            Stepped::Measured(measured) => Ok(Measurement { lanes: Vec::new().into(), moved: None, ..*measured }),
            other => Err(unexpected(Stage::Measure, &other)),
        }
    }
}

fn unexpected(stage: Stage, stepped: &Stepped) -> Failure {
    Failure::new(stage, Kind::Internal, format!("unexpected result of a step of a link: {stepped:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_nic_does_not_reach_is_not_proposed_to_be_staged() {
        let failure =
            |entry| Failure::new(Stage::Open, Kind::Unsupported, "x0 does not reach GPU memory").remedy(entry);
        let told = |entry| without_staging(failure(entry)).remedy.unwrap().text();
        assert!(
            told(remedy::REACH_GPU_MEMORY).contains("memory = \"host\"")
                && !told(remedy::REACH_GPU_MEMORY).contains("staged")
        );
        assert!(
            told(remedy::AMD_GPU_OVER_RDMA).contains("memory = \"host\"")
                && !told(remedy::AMD_GPU_OVER_RDMA).contains("staged")
        );
        assert_eq!(without_staging(failure(remedy::NEWER_CUDA)), failure(remedy::NEWER_CUDA));
    }
}

//! Whether the GPUs of a group's ranks can be used according to the facts of its hosts: checked before anything is started.

use std::collections::BTreeMap;

use railgauge_model::schedule::Port;
use railgauge_wire::{Bytes, Failure, HostFacts, Kind, Stage, remedy};

#[derive(Clone, Copy)]
pub(super) struct Placed<'m> {
    pub port: &'m Port,
    pub facts: &'m HostFacts,
    pub gpu: Option<u32>,
}

/// Checks every rank that has a GPU, where the host knows its GPUs and CUDA's numbers for them. `max_size` is the largest size of the test.
///
/// # Errors
/// A GPU does not exist, has two ranks, or is too small for a rank's two buffers.
pub(super) fn check<'m>(ranks: impl Iterator<Item = Placed<'m>>, max_size: Bytes) -> Result<(), Failure> {
    let mut seen: BTreeMap<&str, &Port> = BTreeMap::new();
    for Placed { port, facts, gpu } in ranks.filter(|rank| knows_gpus(rank.facts)) {
        let Some(gpu) = gpu else { continue };
        let wrong = |cause: String| Failure::new(Stage::Open, Kind::Configuration, cause).at(&port.host);
        let Some(found) = facts.cuda_gpu(gpu) else {
            let count = facts.gpus.iter().filter(|gpu| facts.cuda_number(gpu).is_some()).count();
            let by = match facts.has_amd_gpus() {
                true => "ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES",
                false => "CUDA_VISIBLE_DEVICES",
            };
            let hidden = match facts.gpus.len() - count {
                0 => String::new(),
                hidden => format!("; {by} hides {hidden} more"),
            };
            return Err(wrong(format!("rank {} wants GPU {gpu}, and the host has {count}{hidden}", port.rail))
                .remedy(remedy::GPU_OF_RANK));
        };
        if let Some(memory) = found.memory_bytes.filter(|memory| max_size.saturating_mul(2) > *memory) {
            let cause = format!(
                "rank {} needs two buffers of {max_size} bytes, and GPU {gpu} has {memory} bytes of memory",
                port.rail
            );
            return Err(wrong(cause).remedy(remedy::SMALLER_SIZES));
        }
        let Some(uuid) = &found.uuid else { continue };
        if let Some(other) = seen.insert(uuid, port) {
            return Err(wrong(format!(
                "rank {} and rank {} of {} are on one GPU ({uuid})",
                port.rail, other.rail, other.host
            ))
            .remedy(remedy::GPU_FOR_EVERY_RANK));
        }
    }
    Ok(())
}

fn knows_gpus(facts: &HostFacts) -> bool {
    !facts.gpus.is_empty() && facts.numbers_gpus()
}

#[cfg(test)]
mod tests {
    use railgauge_wire::Gpu;

    use super::*;

    fn checked(ranks: &[(&str, u32, u32)], max_size: Bytes) -> Result<(), Failure> {
        let facts = |host: &str| {
            let uuid = |index| Some(format!("GPU-{}-{index}", &host[..1]));
            let gpu =
                |index| Gpu { index, uuid: uuid(index), memory_bytes: Some(Bytes::from_gib(1)), ..Gpu::default() };
            HostFacts { gpus: (0..2).map(gpu).collect(), ..HostFacts::default() }
        };
        let all: Vec<(Port, HostFacts, u32)> =
            ranks.iter().map(|(host, rail, gpu)| (Port::new(*host, *rail), facts(host), *gpu)).collect();
        check(all.iter().map(|(port, facts, gpu)| Placed { port, facts, gpu: Some(*gpu) }), max_size)
    }

    #[test]
    fn every_rank_has_a_gpu_of_its_own() {
        assert_eq!(checked(&[("a1", 0, 0), ("a1", 1, 1), ("b1", 0, 0)], Bytes(1 << 29)), Ok(()));
        for (ranks, host, words) in [
            (&[("a1", 0, 0), ("a1", 1, 2)][..], "a1", "rank 1 wants GPU 2, and the host has 2"),
            (&[("a1", 0, 0), ("a2", 0, 0)], "a2", "rank 0 and rank 0 of a1 are on one GPU (GPU-a-0)"),
            (&[("a1", 0, 1), ("a1", 1, 1)], "a1", "rank 1 and rank 0 of a1 are on one GPU (GPU-a-1)"),
        ] {
            let failure = checked(ranks, Bytes(8)).unwrap_err();
            assert_eq!(failure.host.as_deref(), Some(host));
            assert!(failure.cause.contains(words) && failure.remedy.is_some(), "{failure}");
        }
    }

    #[test]
    fn buffers_that_cannot_fit_are_refused() {
        let failure = checked(&[("a1", 0, 0), ("a1", 1, 1)], Bytes((1 << 29) + 8)).unwrap_err();
        assert!(failure.cause.contains("two buffers of 536870920 bytes, and GPU 0 has 1073741824"), "{failure}");
    }

    #[test]
    fn a_host_that_does_not_know_its_gpus_is_left_to_its_agent() {
        let (port, facts) = (Port::new("a", 0), HostFacts::default());
        assert_eq!(check([Placed { port: &port, facts: &facts, gpu: Some(9) }].into_iter(), Bytes(8)), Ok(()));
    }

    #[test]
    fn hidden_gpus_are_known_by_what_cuda_says() {
        let gpu =
            |index: u32, cuda_device| Gpu { index, uuid: Some(format!("GPU-{index}")), cuda_device, ..Gpu::default() };
        let one = |visible: &str, numbers: [Option<u32>; 2]| HostFacts {
            gpus: vec![gpu(0, numbers[0]), gpu(1, numbers[1])],
            cuda_visible: Some(visible.to_owned()),
            ..HostFacts::default()
        };
        let ports = [Port::new("a1", 0), Port::new("a2", 0)];
        let checked = |facts: &[HostFacts; 2], gpu| {
            check(ports.iter().zip(facts).map(|(port, facts)| Placed { port, facts, gpu: Some(gpu) }), Bytes(8))
        };
        let apart = [one("0", [Some(0), None]), one("1", [None, Some(0)])];
        assert_eq!(checked(&apart, 0), Ok(()));
        let failure = checked(&apart, 1).unwrap_err();
        assert!(
            failure.cause.contains("wants GPU 1, and the host has 1; CUDA_VISIBLE_DEVICES hides 1 more"),
            "{failure}"
        );
        let same = [one("1", [None, Some(0)]), one("1", [None, Some(0)])];
        assert!(checked(&same, 0).unwrap_err().cause.contains("are on one GPU (GPU-1)"));
    }

    #[test]
    fn hosts_that_see_some_gpus_only_may_be_one_machine() {
        let gpu = Gpu { uuid: Some("GPU-1".into()), memory_bytes: Some(Bytes::from_gib(1)), ..Gpu::default() };
        let one = |visible: &str| HostFacts {
            gpus: vec![gpu.clone()],
            cuda_visible: Some(visible.to_owned()),
            ..HostFacts::default()
        };
        let (ports, facts) = ([Port::new("a1", 0), Port::new("a2", 0)], [one("0"), one("1")]);
        let ranks = ports.iter().zip(&facts).map(|(port, facts)| Placed { port, facts, gpu: Some(0) });
        assert_eq!(check(ranks, Bytes(8)), Ok(()));
    }
}

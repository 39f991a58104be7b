//! Which GPU an end of a pair, or an RDMA port that writes to itself, uses, by its distance from the NIC on the PCIe tree.

use std::collections::BTreeSet;

use railgauge_model::schedule::devices::devices;
use railgauge_model::{
    plan::model::{Host, Test},
    schedule::Port,
};
use railgauge_wire::{
    Distance, Failure, GpuDistance, HostFacts, Kind, Memory, Opened, Role, Stage, Transport, facts::port_name, remedy,
};

fn card(device: &str) -> &str {
    port_name(device).0
}

pub(super) fn distances(host: &Host, facts: &HostFacts) -> Vec<BTreeSet<Distance>> {
    let of = |device: &String| facts.gpus_near(card(device)).map(|known| known.distance).collect();
    devices(host, Some(facts), Transport::Verbs).iter().map(of).collect()
}

/// The GPU of an end: the one the plan names for its rail, else one at the distance the plan wants, else the nearest to the rail's NIC,
/// else the one with the rail's number.
///
/// # Errors
/// The host has no GPU at that distance.
pub(super) fn of_end(
    test: &Test,
    role: Role,
    port: &Port,
    device: Option<&str>,
    facts: &HostFacts,
) -> Result<Option<u32>, Failure> {
    if *test.memory.of(role) != Memory::Cuda {
        return Ok(None);
    }
    let gpus = test.gpus.of(role);
    let named = gpus.get(port.rail as usize).or(match gpus.as_slice() {
        [only] => Some(only),
        _ => None,
    });
    if let Some(named) = named {
        return Ok(Some(*named));
    }
    let own = facts.rdma.get(port.rail as usize).map(|device| device.name.as_str());
    let by_port = matches!(test.transport, Transport::Verbs | Transport::Nic);
    let device = device.filter(|_| by_port).map(card).or(own);
    let near = || device.into_iter().flat_map(|device| facts.gpus_near(device));
    let fits = |known: &GpuDistance| test.gpu_distance.is_none_or(|wanted| known.distance == wanted);
    let found = near().filter(fits).min_by_key(|known| (known.distance, known.gpu.abs_diff(port.rail)));
    if let (None, Some(wanted)) = (&found, test.gpu_distance) {
        let all: Vec<String> = near().map(|known| format!("{} {}", known.gpu, known.distance)).collect();
        let cause = format!(
            "no GPU is {wanted} from {} (there: {})",
            device.unwrap_or("the rail's NIC"),
            if all.is_empty() { "none known".to_owned() } else { all.join(", ") }
        );
        return Err(Failure::new(Stage::Open, Kind::Configuration, cause).at(&port.host).remedy(remedy::GPU_DISTANCE));
    }
    Ok(Some(found.map_or(port.rail, |known| known.gpu)))
}

/// `Err` unless the opened GPU is as far from its NIC as the plan wants: CUDA may number GPUs differently than the facts.
pub(super) fn as_far(test: &Test, role: Role, host: &str, end: &Opened) -> Result<(), Failure> {
    let on_gpu = *test.memory.of(role) == Memory::Cuda;
    let Some(wanted) = test.gpu_distance.filter(|_| on_gpu) else { return Ok(()) };
    let found = end.settings.get("gpu_distance").map_or("at an unknown distance", String::as_str);
    if found == wanted.word() {
        return Ok(());
    }
    let gpu = end.settings.get("gpu").map_or("?", String::as_str);
    let cause = format!("the plan asks for a GPU {wanted} from its NIC, and GPU {gpu} is {found}");
    Err(Failure::new(Stage::Open, Kind::Configuration, cause).at(host).remedy(remedy::GPU_ORDER))
}

#[cfg(test)]
mod tests {
    use railgauge_wire::{Gpu, RdmaDevice};

    use super::*;
    use railgauge_model::plan::parse;

    fn test(rest: &str) -> Test {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a\", \"b\"] }\n";
        let text = format!("{head}[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\nmemory = \"cuda\"\n{rest}\n");
        parse("p.toml", &text, std::path::Path::new("")).unwrap().0.tests.remove(0)
    }

    /// Two rails; the first one's NIC has GPU 2 on its switch, GPU 0 across the processor, and 1 on the other socket.
    fn facts() -> HostFacts {
        let device = |name: &str| RdmaDevice { name: name.into(), ..RdmaDevice::default() };
        let known = |gpu, device: &str, distance| GpuDistance { gpu, device: device.into(), distance };
        HostFacts {
            rdma: vec![device("mlx5_0"), device("mlx5_1")],
            gpus: (0..3).map(|index| Gpu { index, ..Gpu::default() }).collect(),
            gpu_distances: vec![
                known(0, "mlx5_0", Distance::Phb),
                known(1, "mlx5_0", Distance::Sys),
                known(2, "mlx5_0", Distance::Pix),
                known(1, "mlx5_1", Distance::Pix),
            ],
            ..HostFacts::default()
        }
    }

    #[test]
    fn a_rail_uses_the_gpu_named_asked_for_or_nearest() {
        let of =
            |rest: &str, rail, device| of_end(&test(rest), Role::Initiator, &Port::new("a", rail), device, &facts());
        assert_eq!(of("", 0, Some("mlx5_0")).unwrap(), Some(2));
        assert_eq!(of("", 0, Some("mlx5_1:2")).unwrap(), Some(1), "the device the plan names, not the rail's number");
        assert_eq!(of("gpus = [3, 5]", 1, Some("mlx5_1")).unwrap(), Some(5));
        assert_eq!(of("gpu_distance = \"SYS\"", 0, Some("mlx5_0")).unwrap(), Some(1));
        let refused = of("gpu_distance = \"NODE\"", 0, Some("mlx5_0")).unwrap_err();
        assert_eq!(refused.host.as_deref(), Some("a"));
        assert!(refused.cause.contains("no GPU is NODE from mlx5_0 (there: 0 PHB, 1 SYS, 2 PIX)"), "{refused}");
        assert_eq!(of("", 7, None).unwrap(), Some(7));
    }

    #[test]
    fn the_gpu_that_was_opened_is_as_far_as_asked() {
        let opened = |distance: &str| Opened {
            endpoint: railgauge_wire::link::Endpoint::Tcp(railgauge_wire::link::TcpEndpoint {
                address: String::new(),
                port: 0,
            }),
            device: String::new(),
            transport: railgauge_wire::terms::Carrier::VerbsRc,
            link_layer: railgauge_wire::terms::LinkLayer::Infiniband,
            gpu_path: railgauge_wire::terms::GpuPath::GdrDmabuf,
            rate_gbps: None,
            mtu: 4096,
            software: false,
            write_order: None,
            settings: [("gpu_distance".to_owned(), distance.to_owned()), ("gpu".to_owned(), "1".to_owned())].into(),
        };
        assert!(as_far(&test("gpu_distance = \"SYS\""), Role::Initiator, "a", &opened("SYS")).is_ok());
        let refused = as_far(&test("gpu_distance = \"SYS\""), Role::Initiator, "a", &opened("PIX")).unwrap_err();
        assert!(refused.cause.contains("GPU 1 is PIX"), "{refused}");
        assert_eq!(refused.remedy.unwrap().id, "gpu-order");
    }
}

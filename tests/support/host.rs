//! Facts of a made-up host.

use railgauge_model::journal::event::Event;
use railgauge_wire::{
    facts::{Cpu, HostFacts, Interface, RdmaDevice, RdmaPort},
    unit::{Bytes, GigabitsPerSecond, MegabitsPerSecond, Nanoseconds, NanosecondsI64},
};

use super::Scenario;

/// A host that answered.
pub fn up(scenario: &Scenario, index: usize) -> Event {
    let rails = 0..scenario.rails;
    let number = scenario.number(index);
    let governor = if number == 2 { "powersave" } else { "performance" };
    let facts = HostFacts {
        hostname: scenario.name(index),
        os: Some("Ubuntu 24.04.3 LTS".into()),
        kernel: if number == 1 { "6.8.0-41-generic" } else { "6.8.0-45-generic" }.into(),
        architecture: "x86_64".into(),
        cpu: Cpu {
            model: Some("AMD EPYC 9554 64-Core Processor".into()),
            threads: 256,
            numa_nodes: 2,
            governor: Some(governor.into()),
            last_level_cache: Some(Bytes::from_mib(256)),
            ..Cpu::default()
        },
        memory_bytes: Some(Bytes(1 << 40)),
        rdma: rails.clone().map(|rail| device(scenario, number, rail)).collect(),
        interfaces: vec![Interface {
            name: "eth0".into(),
            mtu: Some(1500),
            state: Some("up".into()),
            speed_mbps: Some(MegabitsPerSecond(25_000)),
            addresses: vec![format!("10.0.0.{}", number + 1)],
            ..Interface::default()
        }],
        libraries: [("libibverbs.so.1".into(), "/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.50.0".into())].into(),
        ..HostFacts::default()
    };
    let offset = NanosecondsI64(1_500_000 * index as i64 - 4_000_000);
    let clock = Some((offset, Nanoseconds(60_000 + 1_000 * index as u64)));
    Event::HostUp { host: scenario.name(index), facts: Box::new(facts), clock, wall: None }
}

fn device(scenario: &Scenario, index: usize, rail: u32) -> RdmaDevice {
    let port = RdmaPort {
        number: 1,
        state: Some("ACTIVE".into()),
        physical: Some("LinkUp".into()),
        link_layer: Some("Ethernet".into()),
        rate_gbps: (!scenario.software).then_some(GigabitsPerSecond(200.0)),
        mtu: Some(4096),
        netdev: Some(format!("eth{}", rail + 1)),
        ..RdmaPort::default()
    };
    let (name, driver) = if scenario.software { ("rxe", "rdma_rxe") } else { ("mlx5_", "mlx5_core") };
    RdmaDevice {
        name: format!("{name}{rail}"),
        driver: Some(driver.into()),
        software: scenario.software,
        firmware: (!scenario.software)
            .then(|| if (index, rail) == (3, 0) { "28.39.2048" } else { scenario.firmware }.into()),
        pcie: Some((16.0, 16)),
        pcie_max: Some((16.0, 16)),
        numa: Some(rail % 2),
        ports: vec![port],
        ..RdmaDevice::default()
    }
}

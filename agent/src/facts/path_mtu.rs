//! Active path MTU of every RDMA port: no file of the kernel holds it, so the devices are asked through libibverbs.

use railgauge_wire::failure::Failure;

use crate::verbs::{device::Device, port::Port};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortAnswer {
    pub device: String,
    /// Port, counted from 1.
    pub port: u8,
    /// Bytes, or why they are not known.
    pub mtu: Result<u32, Failure>,
}

/// Asks every port of every device. Empty where libibverbs or the kernel's part of it is missing: that is said among
/// the libraries.
pub fn ask() -> Vec<PortAnswer> {
    Device::names().unwrap_or_default().iter().flat_map(|name| of_device(name)).collect()
}

fn of_device(name: &str) -> Vec<PortAnswer> {
    let said = |port, mtu| PortAnswer { device: name.to_owned(), port, mtu };
    let opened = Device::open(name).and_then(|device| device.limits().map(|limits| (device, limits)));
    match opened {
        Err(failure) => vec![said(1, Err(failure))],
        Ok((device, limits)) => {
            (1..=limits.ports).map(|port| said(port, Port::query(&device, port).map(|port| port.mtu))).collect()
        }
    }
}

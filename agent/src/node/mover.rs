//! What a flow within a host does, whatever moves its bytes.

use std::collections::BTreeMap;

use railgauge_wire::{Carrier, Checked, Failure, LinkLayer, Measurement, NodeAccount, NodeSpec, Pattern};

use crate::bench::control::Control;

pub(super) trait Mover {
    /// Fills, moves once and compares.
    fn verify(&mut self, pattern: &Pattern, control: &Control) -> Result<Checked, Failure>;

    fn time(&mut self, spec: &NodeSpec, control: &Control) -> Result<Measurement, Failure>;

    fn checked(&self) -> Checked {
        Checked::default()
    }
}

pub(super) fn opened(
    link_layer: LinkLayer,
    carrier: Carrier,
    devices: (String, String),
    settings: BTreeMap<String, String>,
) -> NodeAccount {
    NodeAccount { link_layer: Some(link_layer), carrier: Some(carrier), devices, settings, ..NodeAccount::default() }
}

pub(super) fn twice(device: &str) -> (String, String) {
    (device.to_owned(), device.to_owned())
}

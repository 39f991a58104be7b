//! Processes in pods of Kubernetes: one `kubectl exec` for each, and its streams.

mod client;
mod find;

use std::future::ready;

use railgauge_model::plan::model::{Host, Kubectl, Launch};
use railgauge_wire::remedy;

use super::{Connection, Launcher, Pending, container::Container};
use crate::cluster::Trouble;
use client::Client;

pub use find::{pods, pods_again};

pub(super) fn prepare(kubectl: &Kubectl, _launch: &Launch) -> Result<Box<dyn Launcher>, Trouble> {
    Ok(Box::new(Client::new(kubectl)))
}

impl Launcher for Client {
    fn open<'a>(&'a self, host: &'a Host) -> Pending<'a, Result<Box<dyn Connection>, Trouble>> {
        let values = [("pod", host.address.clone())].into_iter().chain(self.place());
        let pod: Box<dyn Connection> = Box::new(Container {
            client: self.exec(&host.address),
            name: format!("the pod {}", host.address),
            tells: "command terminated with exit code",
            by_hand: remedy::KUBECTL_BY_HAND.with(values),
        });
        Box::pin(ready(Ok(pod)))
    }
}

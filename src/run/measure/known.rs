//! A known number of bytes over one link, and what every counter of both ends said before and after.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use railgauge_model::{
    journal::event::LinkRecord,
    plan::{Plan, model::Test},
    schedule::{Cell, Flow},
};
use railgauge_wire::{
    facts::{HostFacts, port_name},
    failure::{Failure, Stage},
    message::{Answer, Ask},
    raw::{RawContent, RawScope},
    unit::Bytes,
};
use serde::Serialize;

use super::super::{
    failures::unexpected,
    links::{self, Wanted},
    raw::raw,
    spine::now,
};
use super::steps::{Timed, arm, timed};
use crate::cluster::Agent;

/// How long reading the counters of one end may take.
const LIMIT: Duration = Duration::from_secs(15);

/// What was moved, and what was counted.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct KnownBytes {
    /// When it began, UTC.
    pub at: String,
    /// Word of the operation.
    pub op: &'static str,
    /// Bytes of a message.
    pub message_bytes: Bytes,
    /// Messages that completed.
    pub messages: u64,
    /// Payload bytes that the initiator moved in all, and the responder, where it counted.
    pub payload_bytes: (Option<Bytes>, Option<Bytes>),
    /// Seconds between both readings of the counters, about.
    pub seconds: f64,
    /// What carried them.
    pub link: LinkRecord,
    /// The initiator's end.
    pub from: CountedEnd,
    /// The responder's end.
    pub to: CountedEnd,
}

/// Counters of one end.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CountedEnd {
    /// The host.
    pub host: String,
    /// The device.
    pub device: String,
    /// Its port.
    pub port: u8,
    /// Before anything was moved.
    pub before: Reading,
    /// After all of it had arrived.
    pub after: Reading,
}

/// One reading of the counters of one end.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Reading {
    /// Values by name, as the agent names them.
    pub values: BTreeMap<String, u64>,
    /// Files that could not be read, by path, and why.
    pub unreadable: BTreeMap<String, String>,
    /// Files whose content is no number, by path.
    pub other: BTreeMap<String, String>,
}

/// Moves a known number of bytes over a flow.
///
/// # Errors
/// The link cannot be opened, or the bytes did not arrive.
pub(crate) async fn move_known(
    (plan, test): (&Plan, &Test),
    flow: &Flow,
    from: (&Agent, &HostFacts),
    to: (&Agent, &HostFacts),
) -> Result<KnownBytes, Failure> {
    let size = test.sizes.last().copied().unwrap_or(Bytes::from_mib(1));
    let qps = test.qps.first().copied().unwrap_or(1);
    let cell = Cell {
        op: test.op,
        metric: test.metric,
        transport: test.transport,
        service: test.service,
        memory: test.memory,
        size,
        qps,
        only: None,
        neighbours: None,
        applied: None,
        manner: None,
    };
    let wanted = Wanted {
        hosts: &plan.hosts,
        test,
        flow,
        qps,
        max_size: size,
        id: links::fresh_id(),
        token: links::token()?,
        rides_out: false,
    };
    let at = now();
    let link = links::open(wanted, from, to).await?;
    let (from_device, to_device) = (link.record.from_device.clone(), link.record.to_device.clone());
    let began = Instant::now();
    let result = async {
        let before =
            tokio::try_join!(reading(from.0, &from_device, link.ports.0), reading(to.0, &to_device, link.ports.1))?;
        arm(&link, test, &cell).await?;
        let Timed { initiator, responder, .. } = timed(&link, test, &cell, None, None).await?;
        let after =
            tokio::try_join!(reading(from.0, &from_device, link.ports.0), reading(to.0, &to_device, link.ports.1))?;
        let end = |agent: &Agent, device: &str, port, before, after| CountedEnd {
            host: agent.host().to_owned(),
            device: device.to_owned(),
            port,
            before,
            after,
        };
        Ok(KnownBytes {
            at,
            op: test.op.word(),
            message_bytes: size,
            messages: initiator.operations,
            payload_bytes: (initiator.moved, responder.and_then(|responder| responder.moved)),
            seconds: began.elapsed().as_secs_f64(),
            link: link.record.clone(),
            from: end(from.0, &from_device, link.ports.0, before.0, after.0),
            to: end(to.0, &to_device, link.ports.1, before.1, after.1),
        })
    }
    .await;
    links::close(link).await;
    result
}

async fn reading(agent: &Agent, device: &str, port: u8) -> Result<Reading, Failure> {
    let (device, named) = port_name(device);
    let port = named.unwrap_or(port);
    let values = match agent.ask(Ask::Counters { device: device.to_owned(), port }, LIMIT).await? {
        Answer::Counters(values) => values,
        other => return Err(unexpected(agent.host(), Stage::Facts, &other)),
    };
    let mut reading = Reading { values, ..Reading::default() };
    let scope = RawScope::Counters { device: device.to_owned(), port };
    let files = raw(agent, scope, LIMIT).await?;
    for entry in files.entries {
        match &entry.content {
            RawContent::Unreadable { why } => _ = reading.unreadable.insert(entry.path, why.clone()),
            content => {
                let Some(bytes) = content.bytes() else { continue };
                let text = String::from_utf8_lossy(&bytes).trim().to_owned();
                if text.parse::<u64>().is_err() {
                    reading.other.insert(entry.path, text);
                }
            }
        }
    }
    Ok(reading)
}

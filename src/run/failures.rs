//! Failures that are made where agents are asked.

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    message::Answer,
    remedy,
};

/// The failure for an answer that does not belong to its question.
pub(super) fn unexpected(host: &str, stage: Stage, answer: &Answer) -> Failure {
    let text = format!("{answer:?}");
    let text: String = text.chars().take(80).collect();
    Failure::new(stage, Kind::Internal, format!("unexpected reply from the agent: {text}"))
        .at(host)
        .remedy(remedy::REBUILD_BOTH)
}

/// What breaks between two hosts may be either's fault: the one that noticed and the one it talked to are both named. So
/// it is with ends that do not fit each other, such as a GID type that only one of them has.
pub(super) fn both_named(failure: Failure, from: &str, to: &str) -> Failure {
    let misfit = failure.stage == Stage::Join && failure.kind == Kind::Configuration;
    let known = !misfit && !matches!(failure.kind, Kind::Fabric | Kind::Deadline);
    if known || failure.peer.is_some() {
        return failure;
    }
    let noticed = failure.host.clone().unwrap_or_else(|| from.to_owned());
    let peer = if noticed == from { to } else { from };
    failure.at(&noticed).with(peer)
}

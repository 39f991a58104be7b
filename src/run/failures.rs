use railgauge_model::plan::model::Host;
use railgauge_wire::{Answer, Failure, Kind, Stage, remedy};

pub(super) fn unexpected(host: &str, stage: Stage, answer: &Answer) -> Failure {
    let text = format!("{answer:?}");
    let text: String = text.chars().take(80).collect();
    Failure::new(stage, Kind::Internal, format!("unexpected reply from the agent: {text}"))
        .at(host)
        .remedy(remedy::REBUILD_BOTH)
}

pub(super) fn host_of<'p>(hosts: &'p [Host], name: &str) -> Result<&'p Host, Failure> {
    hosts.iter().find(|host| host.name == name).ok_or_else(|| {
        Failure::new(Stage::Open, Kind::Internal, "the schedule names a host the plan does not have").at(name)
    })
}

/// A break between two hosts may be either's fault, so both the one that noticed and its peer are named. The same applies to ends that do
/// not fit each other, such as a GID type that only one of them has.
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

//! `pattern = "victim"`: a flow alone, then during an incast that shares no NIC port with it.

use railgauge_wire::Metric;

use super::members::{Members, one, takes_part};
use crate::plan::{AtOnce, Limit, Rails, Table, Test, Victim, count::count};

/// Fewest repeats that distinguish a loss from noise: with two, the 95 % interval of Student's t is 13 standard errors wide on either side.
const REPEATS: u32 = 3;

pub(super) fn read(test: &Table<'_>, members: &Members<'_>) -> Option<AtOnce> {
    let wrong = |key: &str, message: String, help: &str| {
        let span = test.name_span(key).unwrap_or(test.span.clone());
        test.reject(span, message, help)
    };
    let hosts = members.list.len();
    if hosts < Victim::HOSTS {
        let message = format!("a victim of an incast needs {} hosts, and here are {hosts}", Victim::HOSTS);
        return wrong(
            "pattern",
            message,
            "both ends of the flow, the host of the incast, and two that send to it: add hosts",
        );
    }
    let flow = if test.has("victim") { Some(ends(test, members)?) } else { None };
    let to = if test.has("to") { Some(one(test, "to", members)?) } else { None };
    if let (Some((from, into)), Some(to)) = (&flow, &to)
        && [from, into].contains(&to)
    {
        let message = format!("the incast goes to {to}, which is an end of the victim");
        return wrong("to", message, "name a third host: the two would share a NIC port, and a loss would say nothing");
    }
    if flow.is_some() && to.is_some() && test.name_span("rounds").is_some() {
        return wrong(
            "rounds",
            "`rounds` does not apply to a named victim of a named incast".to_owned(),
            "leave it out, or leave out `victim` or `to`: nothing is drawn; use `repeats` to measure more often",
        );
    }
    let drawn = test.has("rounds") && !(flow.is_some() && to.is_some());
    let draws = if drawn { test.whole::<u32>("rounds")?.value } else { 1 };
    Some(AtOnce::Victim(Victim { flow, to, draws }))
}

fn ends(test: &Table<'_>, members: &Members<'_>) -> Option<(String, String)> {
    let two = test.texts("victim")?;
    let [from, into] = two.value.as_slice() else { return None };
    let sound = [from, into].map(|end| takes_part(test, &end.text, end.span.clone(), members));
    if from.text == into.text {
        return test.reject(two.span, format!("{} cannot be its own peer", from.text), "name two hosts");
    }
    (sound == [true, true]).then(|| (from.text.clone(), into.text.clone()))
}

pub(super) fn judge(table: &Table<'_>, test: &Test) {
    if !test.has_victim() {
        return;
    }
    let wrong = |key: &str, message: &str, help: &str| {
        let span = table.written(key).unwrap_or(table.span.clone());
        table.wrong(span, message, help);
    };
    if test.op.pulls() {
        wrong(
            "op",
            "a victim of an incast is not measured with reads",
            "reads bring the bytes the other way: use write",
        );
    }
    if table.has("gpu_distance") {
        let message = "`gpu_distance` does not apply with the pattern victim";
        wrong("gpu_distance", message, "it would leave out flows of the incast: name the hosts in `hosts`");
    }
    if matches!(test.rails, Rails::Crossed | Rails::Each) {
        let message = "a victim of an incast goes with aligned rails or a list of them";
        wrong("rails", message, "write rails = \"aligned\": the flow and the incast take all rails at the same time");
    }
    loss(test, Metric::VictimLoss, |key, message, help| wrong(key, &message, help));
}

/// Reports limits on a loss that cannot be judged, through `wrong` with the key, the message and the help.
pub(super) fn loss(test: &Test, loss: Metric, wrong: impl Fn(&str, String, &str)) {
    let on_loss = || test.expect.iter().filter(|wanted| wanted.metric == loss);
    if on_loss().any(|wanted| !matches!(wanted.limit, Limit::AtMost(_))) {
        let help = "write for example at_most = \"10%\": a share of a loss near zero says nothing";
        wrong("expect", format!("{loss} takes `at_most` only"), help);
    }
    if on_loss().next().is_some() && test.repeats < REPEATS {
        let message = format!("{loss} cannot be separated from noise with {}", count(test.repeats as usize, "repeat"));
        wrong("repeats", message, &format!("set repeats = {REPEATS} or more: their scatter is the noise"));
    }
}

//! The verdict on flows at once: none of them is far below the others of the test.
//!
//! Flows at once are not searched for suspects, because their rates depend on each other. An outlier is reported here
//! all the same: it is not a pass.

use railgauge_model::plan::{Plan, model::Test};

use super::{Kind, Tally, Untested, Verdict, named::named, parts, shared::only_shared};
use crate::{
    outliers::{Link, OfTest},
    reason::{Id, Reason, Reasons, Value},
    status::Status,
    words::count,
};

const FLOW: &str = "flow";

/// `None` for other tests, and where too few flows have values to compare.
pub(super) fn judge(test: &Test, of: &OfTest<'_>, untested: &[Untested], plan: &Plan) -> Option<Verdict> {
    if !test.at_once() {
        return None;
    }
    let judged: Vec<&Link<'_>> = of.links.iter().filter(|link| link.deviation.is_some()).collect();
    let missing = of.links.iter().filter(|link| link.value.is_none()).count();
    judged.first()?;
    let ([own, waived], parts) = parts::outside(of.flows().into_iter().map(|(link, _)| link), plan);
    let mut reason = Reasons::default();
    let hosts: Vec<Vec<String>> =
        own.iter().map(|link| link.result.case.flow.hosts().into_iter().map(ToString::to_string).collect()).collect();
    reason.extend(parts::standing_out(&own, only_shared(hosts.iter().map(Vec::as_slice))));
    if !waived.is_empty() {
        reason.push(Reason::new(Id::Waived).with("parts", named(&[(parts::LINKS, None)])));
    }
    if parts.is_empty() {
        let below = from_where(&judged).map(|percent| Value::Number(percent, "%"));
        let nothing = Reason::new(Id::NothingStandsOut).with("among", Value::Counted(judged.len(), FLOW));
        reason.push(nothing.with("below", below));
    }
    reason.extend(parts::untested_parts(untested, &test.name));
    // If only waived flows stand out, the verdict is about them and does not count.
    let set_aside = own.is_empty() && !waived.is_empty() && missing == 0;
    let is_open = !parts.is_empty() || missing > 0;
    let status = if is_open { Status::Inconclusive } else { Status::Pass };
    Some(Verdict {
        scope: count(judged.len(), FLOW),
        metric: Some(of.metric),
        unit: Some(of.metric.unit().to_owned()),
        waived: set_aside,
        tally: Tally {
            in_scope: of.links.len(),
            judged: judged.len(),
            violating: 0,
            doubtful: own.len() + waived.len(),
            missing,
            ..Tally::default()
        },
        parts,
        ..Verdict::new(Kind::Parts, &test.name, "no flow is far below the others", status, reason)
    })
}

/// Percent of the centre of good flows below which a flow would stand out: the more flows scatter, the lower.
fn from_where(links: &[&Link<'_>]) -> Option<f64> {
    let widest = links.iter().filter_map(|link| link.level).map(|level| level.threshold).max_by(f64::total_cmp);
    widest.map(|threshold| 100.0 * (-threshold).exp())
}

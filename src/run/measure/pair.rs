//! One case of one pair: verify, time, verify.
//!
//! ```text
//! open the link, unless it is warm → verify → counters, arm → compare clocks → time → counters → verify
//! ```

use railgauge_model::{journal::event::Sample, plan::model::Test, schedule::Cell};
use railgauge_wire::{failure::Failure, step::Checked};

use super::super::{clocks, links::Link, spine::now};
use super::{
    case::{PairCase, Tried},
    counters,
    steps::{Timed, add, arm, attribute, corrupted, timed, verify},
};

/// Runs one case: what it came to, with its link if that stands.
pub(crate) async fn run(case: PairCase) -> Tried<Link> {
    let started_at = now();
    let (link, result) = match case.link().await {
        Ok(link) => {
            let result = measure(&link, case.test(), &case.case.cell, case.plan.seed).await;
            (Some(link), result)
        }
        Err(failure) => (None, Err(failure)),
    };
    case.tried(started_at, link, result)
}

/// Measures one case on its link.
///
/// # Errors
/// Any step's failure, naming the host; a host that turned out to be lost is named before the host that noticed.
async fn measure(link: &Link, test: &Test, cell: &Cell, seed: u64) -> Result<Sample, Failure> {
    match on(link, test, cell, seed).await {
        Err(failure) => Err(attribute(failure, link).await),
        sample => sample,
    }
}

async fn on(link: &Link, test: &Test, cell: &Cell, seed: u64) -> Result<Sample, Failure> {
    let checked = verify(link, test, cell, seed, 1).await?;
    timed_and_verified(link, test, cell, seed, checked).await.map_err(|failure| corrupted(checked, failure))
}

async fn timed_and_verified(
    link: &Link,
    test: &Test,
    cell: &Cell,
    seed: u64,
    mut checked: Checked,
) -> Result<Sample, Failure> {
    // Asked for together: the pipe keeps their order, and the counters are read before the initiator starts.
    let (before, armed) = tokio::join!(counters::both(link), arm(link, test, cell));
    armed?;
    // Clocks drift apart and hosts start anew: what was known when the host came up is of no use hours later.
    let offset = if test.bidirectional { Some(clocks::apart(&link.from, &link.to).await?) } else { None };
    let Timed { initiator, responder, waited } = timed(link, test, cell, None).await?;
    let after = counters::both(link).await;
    add(&mut checked, verify(link, test, cell, seed, 2).await?);
    Ok(Sample {
        initiator,
        responder,
        checked,
        from_counters: counters::difference(&before.0, &after.0),
        to_counters: counters::difference(&before.1, &after.1),
        waited: Some(waited),
        offset,
        ..Sample::default()
    })
}

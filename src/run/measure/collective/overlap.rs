//! A collective alone and alongside other traffic: passes with a second communicator, which the ranks themselves measured, or the plan's
//! command on all hosts, from before a second measurement to after it.

use std::{collections::BTreeMap, future::Future};

use railgauge_model::plan::{Plan, model::BesideCommand};
use railgauge_wire::{CollectiveMeasurement, Failure, Kind, Nanoseconds, OtherTimes, Overlap, Stage};

use super::{
    super::command::Commands,
    group::Group,
    times::{distribution, slowest},
};

/// Medians of the passes at the slowest rank of each; `None` without passes, or if the ranks had not equally many.
pub(super) fn of_passes(accounts: &[CollectiveMeasurement]) -> Option<Overlap> {
    let median = |of: &dyn Fn(&Overlap) -> Option<Nanoseconds>| {
        let passes = |account: &CollectiveMeasurement| account.overlap.iter().map(of).collect::<Option<Vec<_>>>();
        let ranks = accounts.iter().map(passes).collect::<Option<Vec<_>>>()?;
        slowest(&ranks.iter().map(Vec::as_slice).collect::<Vec<_>>()).map(|times| distribution(&times, 1).p50)
    };
    let of_other = |of: fn(OtherTimes) -> Nanoseconds| median(&move |pass: &Overlap| pass.other.map(of));
    let operations =
        accounts.iter().flat_map(|account| &account.overlap).filter_map(|pass| Some(pass.other?.operations));
    let other = OtherTimes {
        alone: of_other(|other| other.alone)?,
        together: of_other(|other| other.together)?,
        operations: operations.min().filter(|operations| *operations > 0)?,
    };
    let (alone, together) = (median(&|pass| Some(pass.alone))?, median(&|pass| Some(pass.together))?);
    Some(Overlap { alone, together, other: Some(other) })
}

/// Measures again while the command runs on every host. What was verified then is added to `accounts`.
pub(super) async fn alongside<F>(
    group: &Group,
    plan: &Plan,
    command: &BesideCommand,
    accounts: &mut [CollectiveMeasurement],
    measure: impl FnOnce() -> F,
) -> Result<Overlap, Failure>
where
    F: Future<Output = Result<Vec<CollectiveMeasurement>, Failure>>,
{
    let agents: BTreeMap<&str, _> = group.members.iter().map(|member| (&*member.port.host, &member.agent)).collect();
    let mut commands = Commands::start(plan, command, agents).await;
    let measured = match commands.first_failure() {
        Some(failure) => Err(failure.clone()),
        None => measure().await,
    };
    commands.end().await;
    let again = measured?;
    if let Some(failure) = commands.first_failure() {
        return Err(failure.clone());
    }
    let median = |accounts: &[CollectiveMeasurement]| {
        let batch = accounts.first().map_or(1, |account| account.batch);
        let times = slowest(&accounts.iter().map(|account| account.times.as_slice()).collect::<Vec<_>>())?;
        Some(distribution(&times, batch).p50)
    };
    let nothing = || Failure::new(Stage::Measure, Kind::Internal, "the ranks do not agree on what was timed");
    let (alone, together) = (median(accounts).ok_or_else(nothing)?, median(&again).ok_or_else(nothing)?);
    for (account, again) in accounts.iter_mut().zip(&again) {
        account.checked += again.checked;
    }
    Ok(Overlap { alone, together, other: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(passes: &[[u64; 5]]) -> CollectiveMeasurement {
        let overlap = passes.iter().map(|[alone, together, other_alone, other_together, operations]| Overlap {
            alone: Nanoseconds(*alone),
            together: Nanoseconds(*together),
            other: Some(OtherTimes {
                alone: Nanoseconds(*other_alone),
                together: Nanoseconds(*other_together),
                operations: *operations,
            }),
        });
        CollectiveMeasurement { overlap: overlap.collect(), ..CollectiveMeasurement::default() }
    }

    #[test]
    fn the_slowest_rank_of_each_pass_counts() {
        let ranks = [
            account(&[[10, 20, 30, 40, 7], [11, 22, 31, 41, 8], [9, 21, 29, 50, 9]]),
            account(&[[12, 19, 28, 44, 7], [10, 23, 30, 40, 5], [8, 20, 33, 39, 9]]),
        ];
        let found = of_passes(&ranks).unwrap();
        assert_eq!((found.alone.0, found.together.0), (11, 21));
        let other = found.other.unwrap();
        assert_eq!((other.alone.0, other.together.0, other.operations), (31, 44, 5));
        assert_eq!(of_passes(&[account(&[[1, 2, 3, 4, 5]]), account(&[])]), None, "not equally many");
        assert_eq!(of_passes(&[account(&[[1, 2, 3, 4, 0]])]), None, "none of the other ran meanwhile");
        assert_eq!(of_passes(&[account(&[]), account(&[])]), None);
    }
}

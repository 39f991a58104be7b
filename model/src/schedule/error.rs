use railgauge_wire::Op;
use thiserror::Error;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScheduleError {
    #[error("test `{test}`: its pattern names host `{host}`, which is not among the test's hosts; add it to `hosts`")]
    UnknownHost { test: String, host: String },
    #[error("test `{test}`: its pattern names group `{group}`, which the plan does not define")]
    UnknownGroup { test: String, group: String },
    #[error("test `{test}`: host `{host}` is paired with itself; one NIC cannot be both ends of a link")]
    SelfPair { test: String, host: String },
    #[error("test `{test}`: {why}, so there is nothing to measure; a pair needs two hosts and a rail")]
    NoPairs { test: String, why: String },
    #[error(
        "test `{test}`: {amount} measurements with those of the tests before it, and a run makes at most {most}{widest}; take \
         fewer sizes, repeats or pairs, or name the `devices` of hosts or the `rails` of the test"
    )]
    TooMany {
        test: String,
        amount: u128,
        most: u64,
        /// The host with the most ports and their number, in words; empty where ports do not matter.
        widest: String,
    },
    #[error("test `{test}`: `{op}` joins a group of ranks, and the test has pairs")]
    Collective { test: String, op: Op },
}

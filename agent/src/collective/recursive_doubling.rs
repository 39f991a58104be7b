//! Recursive doubling: in step i every rank exchanges all of its data with the rank whose number differs in bit i.
//! Fewest steps; each moves everything.

use super::{
    folding::Circle,
    job::Job,
    script::{How, Script, Side, Stretch},
};

/// The steps of one rank, whose contribution is in `held`.
pub(crate) fn exchange(job: &Job, circle: &Circle, held: Side, script: &mut Script) {
    let mut held = held;
    for bit in 0..circle.size.ilog2() {
        let partner = circle.rank(circle.number ^ 1 << bit);
        script.send(partner, Stretch { side: held, at: job.all() }, script.last_receive());
        // What the send still reads must not be reduced into yet.
        let behind = script.last_send().filter(|_| held == Side::Output);
        script.receive(partner, Stretch::output(job.all()), How::Reduce(held, 0), behind);
        held = Side::Output;
    }
}

//! Rings: every rank sends to the next and receives from the one before.
//!
//! All-reduce: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations" (2009). The
//! data is cut into as many parts as there are ranks. n - 1 steps reduce: each part travels round and collects every
//! rank's contribution; n - 1 steps gather: the results travel round. Every rank sends 2(n-1)/n of the data.

use super::{
    job::Job,
    script::{How, Script, Side, Stretch},
};

pub(crate) fn all_reduce(job: &Job) -> Script {
    let (next, previous) = (job.after(1), job.before(1));
    let mut script = Script::default();
    if job.ranks == 1 {
        script.copy(job.whole(), Stretch::output(job.all()));
    }
    for step in 0..job.ranks - 1 {
        let side = if step == 0 { job.given() } else { Side::Output };
        let after = script.last_receive();
        script.send(next, Stretch { side, at: job.part(job.before(step)) }, after);
        let part = job.part(job.before(step + 1));
        script.receive(previous, Stretch::output(part.clone()), How::Reduce(job.given(), part.start), None);
    }
    for step in 0..job.ranks - 1 {
        let after = script.last_receive();
        script.send(next, Stretch::output(job.part(job.before(step + job.ranks - 1))), after);
        // In place this is where the reducing send of step `step` read from. What comes now holds what that send
        // carried, so it has long gone.
        script.receive(previous, Stretch::output(job.part(job.before(step))), How::Place, None);
    }
    script
}

/// n - 1 steps; in each a rank hands on what it received in the one before.
pub(crate) fn all_gather(job: &Job) -> Script {
    let (next, previous) = (job.after(1), job.before(1));
    let own = Stretch::output(job.share(job.rank));
    let given = if job.in_place { own.clone() } else { job.whole() };
    let mut script = Script::default();
    script.copy(given.clone(), own);
    for step in 0..job.ranks - 1 {
        let what = if step == 0 { given.clone() } else { Stretch::output(job.share(job.before(step))) };
        let after = script.last_receive();
        script.send(next, what, after);
        script.receive(previous, Stretch::output(job.share(job.before(step + 1))), How::Place, None);
    }
    script
}

/// The first half of [`all_reduce`], such that part r ends at rank r. Partial results stand in two scratch blocks by
/// turns, so that the input stays as it is.
pub(crate) fn reduce_scatter(job: &Job) -> Script {
    let (next, previous) = (job.after(1), job.before(1));
    let result = Stretch::output(if job.in_place { job.share(job.rank) } else { job.all() });
    let scratch = |step: usize| Stretch { side: Side::Scratch, at: job.share(step % 2) };
    let mut script = Script::default();
    if job.ranks == 1 {
        script.copy(job.whole(), result.clone());
    }
    for step in 0..job.ranks - 1 {
        let given = Stretch { side: job.given(), at: job.share(job.before(step + 1)) };
        // The block received into now is the one the send before this step's reads from.
        let behind = if step > 1 { script.last_send() } else { None };
        let after = script.last_receive();
        script.send(next, if step == 0 { given } else { scratch(step - 1) }, after);
        let with = job.share(job.before(step + 2)).start;
        let into = if step + 2 == job.ranks { result.clone() } else { scratch(step) };
        script.receive(previous, into, How::Reduce(job.given(), with), behind);
    }
    script
}

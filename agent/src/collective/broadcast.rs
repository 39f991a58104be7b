//! Broadcasts from rank 0.

use super::{
    job::Job,
    script::{How, Script, Stretch},
};

/// A stream from rank to rank: each hands on what it receives, while it receives.
pub(crate) fn chain(job: &Job) -> Script {
    let mut script = begun(job);
    let what = if job.is_root() { job.whole() } else { Stretch::output(job.all()) };
    if !job.is_root() {
        script.receive(job.before(1), Stretch::output(job.all()), How::Place, None);
    }
    if job.after(1) != super::ROOT as usize {
        let after = script.last_receive();
        script.send(job.after(1), what, after);
    }
    script
}

/// A binomial tree: ceil(log2 n) steps. The parent of a rank lacks its lowest set bit.
pub(crate) fn tree(job: &Job) -> Script {
    let mut script = begun(job);
    let what = if job.is_root() { job.whole() } else { Stretch::output(job.all()) };
    let reach = if job.is_root() { job.ranks.next_power_of_two() } else { 1 << job.rank.trailing_zeros() };
    if !job.is_root() {
        script.receive(job.rank - reach, Stretch::output(job.all()), How::Place, None);
    }
    let mut distance = reach / 2;
    while distance > 0 {
        if job.rank + distance < job.ranks {
            let after = script.last_receive();
            script.send(job.rank + distance, what.clone(), after);
        }
        distance /= 2;
    }
    script
}

fn begun(job: &Job) -> Script {
    let mut script = Script::default();
    if job.is_root() {
        script.copy(job.whole(), Stretch::output(job.all()));
    }
    script
}

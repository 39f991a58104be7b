//! Algorithms for a power of two of ranks, for any number of ranks.
//!
//! Of n = 2^k + m ranks the first 2m form pairs: the even one gives its data to the odd one, which takes part for both
//! and hands the result back (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations in
//! MPICH", 2005).

use super::{
    job::Job,
    script::{How, Script, Side, Stretch},
};

/// Who is who among the ranks that take part.
pub(crate) struct Circle {
    pub number: usize,
    /// How many they are: a power of two.
    pub size: usize,
    folded: usize,
}

impl Circle {
    /// The rank that has number `number`.
    pub(crate) fn rank(&self, number: usize) -> usize {
        if number < self.folded { 2 * number + 1 } else { number + self.folded }
    }
}

/// All-reduce by `exchange`, which is told the memory that holds this rank's contribution.
pub(crate) fn all_reduce(job: &Job, exchange: fn(&Job, &Circle, Side, &mut Script)) -> Script {
    let size = 1 << job.ranks.ilog2();
    let folded = job.ranks - size;
    let mut script = Script::default();
    let output = Stretch::output(job.all());
    if job.rank < 2 * folded && job.rank.is_multiple_of(2) {
        script.send(job.rank + 1, job.whole(), None);
        script.receive(job.rank + 1, output, How::Place, script.last_send());
        return script;
    }
    let paired = job.rank < 2 * folded;
    let number = if paired { job.rank / 2 } else { job.rank - folded };
    let mut held = job.given();
    if paired {
        script.receive(job.rank - 1, output.clone(), How::Reduce(held, 0), None);
        held = Side::Output;
    }
    if size == 1 {
        script.copy(job.whole(), output.clone());
    }
    exchange(job, &Circle { number, size, folded }, held, &mut script);
    if paired {
        script.send(job.rank - 1, output, script.last_receive());
    }
    script
}

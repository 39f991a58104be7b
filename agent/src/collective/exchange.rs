//! All-to-all: in step k every rank sends to the k-th after it and receives from the k-th before it.

use super::{
    job::Job,
    script::{How, Script, Stretch},
};

pub(crate) fn all_to_all(job: &Job) -> Script {
    let given = |share| Stretch { side: job.given(), at: job.share(share) };
    let mut script = Script::default();
    script.copy(given(job.rank), Stretch::output(job.share(job.rank)));
    for step in 1..job.ranks {
        let (to, from) = (job.after(step), job.before(step));
        script.send(to, given(to), None);
        script.receive(from, Stretch::output(job.share(from)), How::Place, None);
    }
    script
}

//! Recursive halving and doubling (Rabenseifner, "Optimization of collective reduction operations", 2004): halves of
//! what is left are exchanged and reduced until every rank has its part of the result, which is then gathered over the
//! same partners in reverse. As few bytes as a ring in 2 log2 n steps.

use std::ops::Range;

use super::{
    folding::Circle,
    job::Job,
    script::{How, Script, Side, Stretch},
};

/// The steps of one rank, whose contribution is in `held`.
pub(crate) fn exchange(job: &Job, circle: &Circle, held: Side, script: &mut Script) {
    let bytes = |elements: &Range<usize>| elements.start * job.width..elements.end * job.width;
    let mut held = held;
    let mut mine = 0..job.count;
    let mut given_away = Vec::new();
    for bit in (0..circle.size.ilog2()).rev() {
        let partner = circle.rank(circle.number ^ 1 << bit);
        let middle = mine.start + mine.len() / 2;
        let (lower, upper) = (mine.start..middle, middle..mine.end);
        let (keep, give) = if circle.number >> bit & 1 == 0 { (lower, upper) } else { (upper, lower) };
        script.send(partner, Stretch { side: held, at: bytes(&give) }, script.last_receive());
        let into = bytes(&keep);
        script.receive(partner, Stretch::output(into.clone()), How::Reduce(held, into.start), None);
        given_away.push((partner, give));
        (mine, held) = (keep, Side::Output);
    }
    for (partner, theirs) in given_away.into_iter().rev() {
        script.send(partner, Stretch::output(bytes(&mine)), script.last_receive());
        // Sent from long ago: what comes now holds what that send carried.
        script.receive(partner, Stretch::output(bytes(&theirs)), How::Place, None);
        mine = mine.start.min(theirs.start)..mine.end.max(theirs.end);
    }
}

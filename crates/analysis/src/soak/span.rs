//! Times of a soak: spans and their unions.

use railgauge_wire::Nanoseconds;
use serde::Serialize;

/// Largest share of a demanded time that may be missing at its end, where the last window would not have ended in time.
pub const SHORT: f64 = 0.01;

/// In nanoseconds since 1970 by the controller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Span {
    pub from: Nanoseconds,
    pub until: Nanoseconds,
}

impl Span {
    /// Of length zero if the end is before the start, as in a forged journal.
    pub fn new(from: Nanoseconds, until: Nanoseconds) -> Self {
        Self { from, until: until.max(from) }
    }

    pub fn length(&self) -> Nanoseconds {
        self.until.saturating_sub(self.from)
    }

    pub fn meets(&self, other: &Self) -> bool {
        self.from <= other.until && other.from <= self.until
    }

    pub fn common(&self, other: &Self) -> Self {
        Self::new(self.from.max(other.from), self.until.min(other.until))
    }

    pub fn widened(&self, by: Nanoseconds) -> Self {
        Self { from: self.from.saturating_sub(by), until: self.until.saturating_add(by) }
    }
}

/// The same times as disjoint spans in order.
pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from <= last.until => last.until = last.until.max(span.until),
            _ => joined.push(span),
        }
    }
    joined
}

pub fn before(spans: &[Span], moment: Nanoseconds) -> Vec<Span> {
    let begun = spans.iter().filter(|span| span.from < moment);
    begun.map(|span| Span::new(span.from, span.until.min(moment))).collect()
}

/// The spans must be disjoint.
pub fn total(spans: &[Span]) -> Nanoseconds {
    spans.iter().fold(Nanoseconds::ZERO, |sum, span| sum.saturating_add(span.length()))
}

/// From the first start to the last end; the spans must be in order.
pub fn hull(spans: &[Span]) -> Option<Span> {
    Some(Span::new(spans.first()?.from, spans.last()?.until))
}

/// The spans must be disjoint and in order.
pub fn meeting<'s>(spans: &'s [Span], with: &'s Span) -> impl Iterator<Item = &'s Span> {
    let first = spans.partition_point(|span| span.until < with.from);
    spans[first..].iter().take_while(|span| span.from <= with.until)
}

/// The part of `span` in disjoint spans in order.
pub fn within(spans: &[Span], span: &Span) -> Nanoseconds {
    meeting(spans, span).fold(Nanoseconds::ZERO, |sum, one| sum.saturating_add(one.common(span).length()))
}

/// What is left of `whole` without these times, in order.
pub fn without(whole: &Span, times: Vec<Span>) -> Vec<Span> {
    let ends = [Span::new(whole.from, whole.from), Span::new(whole.until, whole.until)];
    let left = between(&union(times.into_iter().chain(ends).collect()), Nanoseconds::ZERO);
    left.iter().map(|span| span.common(whole)).filter(|span| !span.length().is_zero()).collect()
}

/// The gaps longer than `least` between spans in order.
pub fn between(spans: &[Span], least: Nanoseconds) -> Vec<Span> {
    let gaps = spans.windows(2).map(|pair| Span::new(pair[0].until, pair[1].from));
    gaps.filter(|gap| gap.length() > least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, until: u64) -> Span {
        Span::new(Nanoseconds::from_secs(from), Nanoseconds::from_secs(until))
    }

    #[test]
    fn overlapping_times_count_once() {
        let joined = union(vec![span(5, 9), span(0, 3), span(2, 4), span(9, 10)]);
        assert_eq!(joined, [span(0, 4), span(5, 10)]);
        assert_eq!(total(&joined), Nanoseconds::from_secs(9));
        assert_eq!(within(&joined, &span(3, 7)), Nanoseconds::from_secs(3));
        assert_eq!(within(&joined, &span(20, 30)), Nanoseconds::ZERO);
        assert_eq!(between(&joined, Nanoseconds::ZERO), [span(4, 5)]);
        assert_eq!(hull(&joined), Some(span(0, 10)));
        assert_eq!(without(&span(1, 8), joined), [span(4, 5)]);
        assert_eq!(without(&span(2, 8), vec![span(0, 1), span(7, 12)]), [span(2, 7)]);
        assert_eq!(without(&span(2, 8), vec![span(0, 12)]), []);
    }
}

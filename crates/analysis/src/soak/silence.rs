//! Times in which nothing of a flow arrived: across parts, and to the end of the traffic if a host of the flow was lost.
//!
//! A flow that waits for its turn does not stall. After the loss of its host it has no more turns and is silent, whatever is recorded.

use std::collections::BTreeMap;

use railgauge_wire::{Nanoseconds, measure::SLICE};

use super::{span::Span, traffic::Traffic};

/// Longest time from a failed window to giving up its host: an agent that does not answer is asked once more.
const GIVEN_UP: Nanoseconds = Nanoseconds::from_secs(6);

/// Resolution of times in the journal.
const WRITTEN: Nanoseconds = Nanoseconds::from_millis(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stalled {
    pub case: u64,
    pub span: Span,
    pub error: Nanoseconds,
    pub end_error: Nanoseconds,
    /// Additional error of its position as a whole.
    pub loose: Nanoseconds,
    /// Whether a window failed in it, or could not start.
    pub failed: bool,
    pub open: bool,
    pub lost: Option<(usize, Nanoseconds)>,
}

impl Stalled {
    pub(super) fn length_error(&self) -> Nanoseconds {
        self.error.saturating_add(self.end_error)
    }

    /// When its cause may have been. What follows the loss of a host does not explain its silence.
    pub(super) fn around(&self) -> Span {
        let until = self.span.until.saturating_add(self.end_error).saturating_add(self.loose);
        let from = self.span.from.saturating_sub(self.error).saturating_sub(self.loose);
        Span::new(from, self.lost.map_or(until, |(_, at)| at.max(self.span.from)))
    }

    fn join(&mut self, next: &Self) {
        if next.span.until > self.span.until {
            (self.span.until, self.end_error, self.open) = (next.span.until, next.end_error, next.open);
        } else if next.span.until == self.span.until && next.span.length().is_zero() {
            // The flow continued in a window without a result when the part was reported.
            (self.end_error, self.open) = (next.end_error, false);
        } else if next.span.until == self.span.until {
            self.end_error = self.end_error.min(next.end_error);
            self.open |= next.open;
        }
        self.loose = self.loose.max(next.loose);
        self.failed |= next.failed;
        self.lost = self.lost.or(next.lost);
    }
}

pub(super) fn stalls(traffic: &Traffic<'_>) -> Vec<Stalled> {
    let mut of_flow: BTreeMap<u64, Vec<Stalled>> = BTreeMap::new();
    for part in &traffic.parts {
        for flow in &part.flows {
            of_flow.entry(flow.case).or_default().extend(flow.stalls.iter().map(|stall| {
                // A flow that is still silent is reported up to the end of its part: that end is certain.
                let open = stall.failed && stall.until == part.until;
                Stalled {
                    case: flow.case,
                    span: Span::new(stall.from, stall.until),
                    error: stall.error,
                    end_error: stall.until_error.unwrap_or(if open { Nanoseconds::ZERO } else { stall.error }),
                    loose: stall.loose,
                    failed: stall.failed,
                    open,
                    lost: None,
                }
            }));
        }
    }
    for case in traffic.ends.keys() {
        let losses = losses(traffic, *case);
        if losses.is_empty() {
            continue;
        }
        let known = of_flow.entry(*case).or_default();
        for stall in known.iter_mut().filter(|stall| stall.failed) {
            // Includes a turn that was cut off with the traffic.
            let behind = losses.iter().find(|(_, gone)| (gone.from..gone.until).contains(&stall.span.from));
            stall.lost = behind.map(|(place, gone)| (*place, gone.from));
        }
        known.extend(losses.iter().flat_map(|loss| silences(traffic, *case, loss)));
    }
    let mut all: Vec<Stalled> = of_flow.into_values().flat_map(joined).collect();
    all.sort_by_key(|stall| (stall.span.from, stall.case));
    all
}

/// By position in the journal, each with the time until the host was back.
fn losses(traffic: &Traffic<'_>, case: u64) -> Vec<(usize, Span)> {
    let of_flow = |host: &str| traffic.hosts(case).any(|own| own == host);
    let losses = traffic.journal.losses.iter().enumerate().filter(|(_, loss)| of_flow(&loss.host));
    losses
        .filter_map(|(place, loss)| Some((place, Span::new(loss.at?, loss.back.unwrap_or(Nanoseconds::MAX)))))
        .collect()
}

/// Times in which a flow had no traffic because a host of it was lost.
fn silences(traffic: &Traffic<'_>, case: u64, (place, gone): &(usize, Span)) -> Vec<Stalled> {
    let of_time = |time: &Span| {
        let span = time.common(gone);
        (time.meets(gone) && !span.length().is_zero()).then_some(Stalled {
            case,
            span,
            error: WRITTEN,
            end_error: Nanoseconds::ZERO,
            loose: Nanoseconds::ZERO,
            failed: true,
            open: span.until == time.until,
            lost: Some((*place, gone.from)),
        })
    };
    traffic.times.iter().filter_map(of_time).collect()
}

fn joined(mut stalls: Vec<Stalled>) -> Vec<Stalled> {
    stalls.sort_by_key(|stall| (stall.span.from, stall.span.until));
    let mut all: Vec<Stalled> = Vec::new();
    for stall in stalls {
        let Some(last) = all.last_mut() else {
            all.push(stall);
            continue;
        };
        let gap = stall.span.from.saturating_sub(last.span.until);
        let noticed = |within| stall.lost.is_some() && last.failed && gap <= within;
        if gap <= last.end_error.min(stall.error) || noticed(SLICE) {
            last.join(&stall);
            continue;
        }
        if noticed(GIVEN_UP) {
            last.lost = last.lost.or(stall.lost);
        }
        all.push(stall);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanoseconds = Nanoseconds::from_secs(1);
    const ZERO: Nanoseconds = Nanoseconds::ZERO;

    fn stall(from: u64, until: u64, failed: bool) -> Stalled {
        let span = Span::new(S * from, S * until);
        Stalled { case: 0, span, error: ZERO, end_error: ZERO, loose: ZERO, failed, open: false, lost: None }
    }

    fn lost(from: u64, until: u64) -> Stalled {
        Stalled { error: WRITTEN, open: true, lost: Some((0, S * from)), ..stall(from, until, true) }
    }

    /// The last bytes are only known to within the window; the silence since the loss is certain.
    #[test]
    fn a_window_that_failed_by_the_loss_makes_the_length_no_less_sure() {
        let failed = Stalled { error: S * 10, end_error: S * 10, ..stall(100, 110, true) };
        let all = joined(vec![failed, lost(110, 140), stall(120, 122, true)]);
        let [one] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((one.span, one.open, one.lost), (Span::new(S * 100, S * 140), true, Some((0, S * 110))));
        assert_eq!(one.span.length().saturating_sub(one.length_error()), S * 30);
        assert_eq!(one.around(), Span::new(S * 90, S * 110), "what came after the loss explains nothing");
    }

    #[test]
    fn a_window_that_failed_just_before_a_host_was_given_up_is_of_that_loss() {
        let all = joined(vec![stall(100, 105, true), lost(110, 140)]);
        assert_eq!(
            all.iter().map(|one| (one.lost.is_some(), one.span.length())).collect::<Vec<_>>(),
            [(true, S * 5), (true, S * 30)]
        );
        let others = joined(vec![stall(90, 95, true), stall(104, 105, false), lost(110, 140)]);
        assert_eq!(others.iter().map(|one| one.lost.is_some()).collect::<Vec<_>>(), [false, false, true]);
    }
}

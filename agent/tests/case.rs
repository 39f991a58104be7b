//! Whole cases, which two real agents lead by themselves over their link.

use std::time::Duration;

use railgauge_wire::{
    Answer, Ask, Bytes, CaseAccount, CaseSpec, Checked, Failure, Kind, LinkSpec, Nanoseconds, Op, TestMetric, Timing,
    Window,
};

use crate::controller::{
    Agent, DEADLINE_MS, ENDLESS, command,
    pair::{LINK, Pair},
};

const MS: Nanoseconds = Nanoseconds::from_millis(1);

fn case(op: Op, metric: TestMetric, size: u64) -> CaseSpec {
    let timing = Timing {
        op,
        metric,
        size: Bytes(size),
        window: Window::Iterations(10),
        warm_up: MS,
        start_at: None,
        bidirectional: false,
        only: None,
        pace: None,
    };
    CaseSpec { timing, verify: Some(42), deadline_ms: DEADLINE_MS }
}

/// What both ends came to, case by case; all are asked for before the first answer is looked at.
fn all(pair: &mut Pair, cases: &[CaseSpec]) -> Vec<[Result<CaseAccount, Failure>; 2]> {
    let ask = |agent: &mut Agent, case: &CaseSpec| agent.post(Ask::Case { link: LINK, case: Box::new(case.clone()) });
    let asked: Vec<_> =
        cases.iter().map(|case| (ask(&mut pair.initiator, case), ask(&mut pair.responder, case))).collect();
    let account = |outcome| match outcome {
        Ok(Answer::Case(account)) => Ok(*account),
        Ok(other) => panic!("no account of a case: {other:?}"),
        Err(failure) => Err(failure),
    };
    let answers = asked.into_iter().map(|(near, far)| [pair.initiator.wait(near), pair.responder.wait(far)]);
    answers.map(|both| both.map(account)).collect()
}

fn whole([near, far]: [Result<CaseAccount, Failure>; 2]) -> (CaseAccount, CaseAccount) {
    let (near, far) = (near.unwrap(), far.unwrap());
    assert_eq!((&near.failure, &far.failure), (&None, &None));
    (near, far)
}

fn lanes(threads: u32) -> impl Fn(&mut LinkSpec) {
    move |spec: &mut LinkSpec| spec.threads = threads
}

#[test]
fn every_case_of_a_sweep_is_verified_and_measured() {
    for threads in [1, 2] {
        let mut pair = Pair::new().linked(lanes(threads), 2, 65_536);
        let bandwidth = |op, size| case(op, TestMetric::Bandwidth, size);
        let mut timed = bandwidth(Op::Write, 100);
        timed.timing.window = Window::Duration(MS * 20);
        let cases = [bandwidth(Op::Write, 65_536), bandwidth(Op::Read, 4_096), bandwidth(Op::Send, 1), timed];
        for (case, both) in cases.iter().zip(all(&mut pair, &cases)) {
            let (near, far) = whole(both);
            // Two streams, before and after.
            let verified = Checked { verified: case.timing.size * 4, ..Checked::default() };
            let (sink, source) = if case.timing.op.pulls() { (&near, &far) } else { (&far, &near) };
            assert_eq!((sink.checked, source.checked), (verified, Checked::default()), "{case:?}");
            let measured = near.measured.unwrap();
            match case.timing.window {
                Window::Iterations(each) => assert_eq!(measured.operations, 2 * each, "{measured:?}"),
                _ => assert!(measured.elapsed >= MS * 20, "{measured:?}"),
            }
            assert_eq!(near.spent.window, measured.elapsed);
            // The parts that are accounted for are within the whole.
            assert!(near.took >= near.spent.total(), "{} of {:?}", near.took, near.spent);
            assert!(far.took >= far.spent.total(), "{} of {:?}", far.took, far.spent);
            assert!(far.measured.is_some_and(|far| far.bytes == measured.bytes));
        }
    }
}

#[test]
fn latency_is_a_case_like_any_other() {
    let mut pair = Pair::new().linked(|_| (), 1, 64);
    let cases = [case(Op::Send, TestMetric::Latency, 8), case(Op::Read, TestMetric::Latency, 64)];
    for both in all(&mut pair, &cases) {
        let (near, _) = whole(both);
        assert_eq!(near.measured.unwrap().latency.unwrap().samples, 10);
    }
}

#[test]
fn wrong_bytes_are_told_and_end_nothing() {
    let initiator = Agent::greeted(command().env("RAILGAUGE_FAULT", "flip-bit"));
    let mut pair = Pair { initiator, responder: Agent::start() }.linked(|_| (), 1, 4_096);
    let case = case(Op::Write, TestMetric::Bandwidth, 4_096);
    for both in all(&mut pair, &[case.clone(), case]) {
        let (near, far) = whole(both);
        assert_eq!((far.checked.verified, far.checked.wrong), (Bytes(8_192), Bytes(2)));
        assert!(near.measured.is_some());
    }
}

#[test]
fn a_case_that_cannot_be_done_fails_at_both_ends_and_so_do_those_behind_it() {
    let mut pair = Pair::new().linked(|_| (), 1, 4_096);
    let fits = case(Op::Write, TestMetric::Bandwidth, 4_096);
    let too_long = case(Op::Write, TestMetric::Bandwidth, 8_192);
    // No end waits for one that has given up: that would be until its deadline.
    let mut answers = all(&mut pair, &[fits.clone(), too_long, fits]);
    let behind = answers.pop().unwrap();
    let failed = answers.pop().unwrap().map(|account| account.unwrap().failure.unwrap());
    assert!(failed.iter().all(|failure| failure.cause.contains("8192 bytes")), "{failed:?}");
    whole(answers.pop().unwrap());
    for refused in behind {
        assert_eq!(refused.unwrap_err().kind, Kind::Aborted);
    }
}

#[test]
fn an_end_whose_peer_is_gone_says_so_soon() {
    let short = case(Op::Write, TestMetric::Bandwidth, 64);
    let long = CaseSpec { timing: Timing { window: Window::Duration(ENDLESS), ..short.timing }, ..short };
    // On a busy machine the peer may be gone before the first pass is over.
    let begun = [100, 400, 1_600].into_iter().any(|pause| {
        let mut pair = Pair::new().linked(|_| (), 1, 4_096);
        let asked = pair.initiator.post(Ask::Case { link: LINK, case: Box::new(long.clone()) });
        pair.responder.post(Ask::Case { link: LINK, case: Box::new(long.clone()) });
        std::thread::sleep(Duration::from_millis(pause));
        drop(pair.responder);
        let Ok(Answer::Case(account)) = pair.initiator.wait(asked) else { panic!("no account") };
        assert_eq!(account.failure.map(|failure| failure.kind), Some(Kind::Fabric));
        // What was learned before stays.
        assert_eq!(account.checked.wrong, Bytes::ZERO);
        !account.spent.verify.is_zero()
    });
    assert!(begun, "the peer was always gone before the first pass");
}

#[test]
fn the_reason_of_the_end_that_failed_is_not_hidden_behind_the_other_one() {
    let mut pair = Pair::new().linked(|_| (), 1, 4_096);
    let fits = case(Op::Write, TestMetric::Bandwidth, 4_096);
    let too_long = case(Op::Write, TestMetric::Bandwidth, 8_192);
    // Only the responder is asked for what it cannot do.
    let near = pair.initiator.post(Ask::Case { link: LINK, case: Box::new(fits) });
    let far = pair.responder.post(Ask::Case { link: LINK, case: Box::new(too_long) });
    let failure = |agent: &mut Agent, asked| match agent.wait(asked) {
        Ok(Answer::Case(account)) => account.failure.unwrap(),
        other => panic!("no account of a case: {other:?}"),
    };
    assert_eq!(failure(&mut pair.initiator, near).kind, Kind::Aborted);
    assert!(failure(&mut pair.responder, far).cause.contains("8192 bytes"));
}

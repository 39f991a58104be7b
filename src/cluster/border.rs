//! Input validation of agents' messages.
//!
//! An agent is a program on a host that may be broken or worse. Its texts and numbers pass the [`border`], and every text is cut to a
//! readable length. A reply with too much text or an impossible number fails its request. [`railgauge_analysis`] judges whether numbers can be
//! true, and the report says so.

use railgauge_model::border::{self, facts, text};
use railgauge_wire::{
    Answer, CaseAccount, Failure, FromAgent, Kind, Stage, frame, gpu_state,
    remedy::{self, Entry, Place, Remedy},
};
use serde_json::Value;

/// Longest text that is kept whole, in bytes. A kernel's command line has at most 4,096.
const LONGEST: usize = 4096;
/// Most bytes of a reply. A latency distribution with every possible bucket takes less than a fifth of that.
const LARGEST: usize = 4 << 20;
/// Most bytes of text in one reply. The facts of a host with 16 NICs and 8 GPUs have about 60 KiB.
const MOST: usize = 1 << 20;

/// Validates one frame of an agent. Fails if the bytes are not a reply.
pub(super) fn admit(bytes: &[u8]) -> std::io::Result<FromAgent> {
    let mut value: Value = frame::decode(bytes)?;
    let seen = border::look(&value);
    for (what, has, most) in [("bytes", bytes.len(), LARGEST), ("bytes of text", seen.said, MOST)] {
        if has > most {
            let cause = format!("its reply has {has} {what}; at most {most} are taken");
            return refused(&value, cause, remedy::CHECK_ANSWERER);
        }
    }
    if let Some(what) = seen.impossible {
        let cause = format!("in its reply {what}, which no number there can be");
        return refused(&value, cause, remedy::LEAVE_HOST_OUT);
    }
    if !seen.unprintable && seen.longest <= LONGEST {
        return frame::decode(bytes).map(bounded);
    }
    border::clean(&mut value, harmless);
    Ok(bounded(border::typed(&value)?))
}

/// Refuses impossible facts of a host; a failure keeps no host, and only a remedy of the table.
fn bounded(reply: FromAgent) -> FromAgent {
    match reply {
        FromAgent::Reply { id, outcome: Ok(Answer::Facts(facts)) } => {
            let failure = |cause| Failure::new(Stage::Facts, Kind::Internal, cause).remedy(remedy::CHECK_SYSFS);
            let outcome = match facts::too_many(&facts) {
                Some(cause) => Err(failure(cause)),
                None => Ok(Answer::Facts(facts)),
            };
            FromAgent::Reply { id, outcome }
        }
        FromAgent::Reply { id, outcome: Err(failure) } => FromAgent::Reply { id, outcome: Err(of_agent(failure)) },
        FromAgent::Reply { id, outcome: Ok(Answer::Case(mut account)) } => {
            of_case(&mut account);
            FromAgent::Reply { id, outcome: Ok(Answer::Case(account)) }
        }
        FromAgent::Reply { id, outcome: Ok(Answer::Node(mut accounts)) } => {
            accounts.iter_mut().for_each(|of_flow| of_case(&mut of_flow.account));
            FromAgent::Reply { id, outcome: Ok(Answer::Node(accounts)) }
        }
        FromAgent::Reply { id, outcome: Ok(Answer::SteppedOnGpu { stepped, gpus }) } => {
            let gpus = gpu_state::bounded(gpus);
            FromAgent::Reply { id, outcome: Ok(Answer::SteppedOnGpu { stepped, gpus }) }
        }
        FromAgent::Reply { id, outcome: Ok(Answer::MemberMeasured(mut measured)) } => {
            let gpu = measured.gpu.take().map(|gpu| gpu_state::bounded(vec![*gpu]));
            measured.gpu = gpu.and_then(|mut gpus| gpus.pop()).map(Box::new);
            FromAgent::Reply { id, outcome: Ok(Answer::MemberMeasured(measured)) }
        }
        other => other,
    }
}

fn of_case(account: &mut CaseAccount) {
    account.failure = account.failure.take().map(of_agent);
    account.gpus = gpu_state::bounded(std::mem::take(&mut account.gpus));
}

/// A failure reported by an agent. The controller knows the host; an agent could only name others.
fn of_agent(failure: Failure) -> Failure {
    let remedy = failure.remedy.filter(|remedy| known(remedy));
    Failure { host: None, peer: None, remedy, ..failure }
}

/// Whether a remedy is one of the table with no more values than ours: its words are made from that. An agent must not choose commands for
/// this machine.
fn known(remedy: &Remedy) -> bool {
    let ours = |entry: &Entry| entry.commands.iter().all(|command| command.on == Place::Host);
    Entry::find(&remedy.id).is_some_and(ours) && remedy.values.len() <= remedy::VALUES
}

fn refused(value: &Value, cause: String, remedy: Entry) -> std::io::Result<FromAgent> {
    let id = value.pointer("/Reply/id").and_then(Value::as_u64);
    let id = id.ok_or_else(|| std::io::Error::other("a reply without the number of its request"))?;
    let failure = Failure::new(Stage::Converse, Kind::Internal, cause).remedy(remedy);
    Ok(FromAgent::Reply { id, outcome: Err(failure) })
}

fn harmless(said: &str) -> String {
    if said.len() <= LONGEST {
        return text::printable(said);
    }
    let cut = &said[..said.floor_char_boundary(LONGEST)];
    format!("{}… ({} bytes in all)", text::printable(cut), said.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railgauge_wire::{
        CollectiveMeasurement, GpuSeen, HostFacts, Nanoseconds, NodeAccount, RdmaDevice, RdmaPort, Stepped,
    };

    fn reply(outcome: Result<Answer, Failure>) -> Vec<u8> {
        frame::encode(&FromAgent::Reply { id: 7, outcome }).unwrap().split_off(4)
    }

    fn failed(cause: &str) -> Failure {
        Failure::new(Stage::Open, Kind::Unsupported, cause)
    }

    fn admitted(cause: &str) -> Failure {
        let FromAgent::Reply { id: 7, outcome: Err(failure) } = admit(&reply(Err(failed(cause)))).unwrap() else {
            panic!("another reply");
        };
        failure
    }

    #[test]
    fn what_is_harmless_passes_as_it_is() {
        let cause = "ibv_reg_mr: Operation not permitted (tab\there, ümlaut, 日本)";
        assert_eq!(admitted(cause), failed(cause));
        let hello = Ok(Answer::Hello { protocol: 1, version: "0.1.0".into(), pid: u32::MAX });
        assert_eq!(admit(&reply(hello.clone())).unwrap(), FromAgent::Reply { id: 7, outcome: hello });
    }

    #[test]
    fn terminals_see_no_control_character() {
        let failure = admitted("no\x1b]0;owned\x07\nPASS  everything\r\x1b[2J \u{202e}evil\n");
        assert_eq!(failure.cause, "no\u{fffd}]0;owned\u{fffd} PASS  everything\u{fffd}\u{fffd}[2J \u{fffd}evil");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        let failure = admitted(&"ü".repeat(1 << 18));
        assert!(failure.cause.len() < LONGEST + 64 && failure.cause.ends_with("(524288 bytes in all)"));
    }

    #[test]
    fn a_remedy_is_one_of_the_table_or_none() {
        let sent = |id: &str, values: usize| {
            let values = (0..values).map(|n| (format!("name{n}").into(), "eth1".to_owned())).collect();
            let failure = failed("no").remedy(Remedy { id: id.to_owned().into(), values });
            let FromAgent::Reply { outcome: Err(failure), .. } = admit(&reply(Err(failure))).unwrap() else {
                panic!("another reply");
            };
            failure.remedy
        };
        let id = remedy::INTERFACE_MTU.id;
        assert_eq!(sent(id, remedy::VALUES).map(|kept| kept.values.len()), Some(remedy::VALUES));
        assert_eq!(sent(id, remedy::VALUES + 1), None);
        assert_eq!(sent("made-up", 0), None);
        assert_eq!(sent(remedy::ACCEPT_HOST_KEY.id, 0), None, "its command is for this machine");
        let failure = failed("no").remedy(remedy::INTERFACE_MTU.with([("interface", "eth1\x1b[31m")]));
        let FromAgent::Reply { outcome: Err(failure), .. } = admit(&reply(Err(failure))).unwrap() else {
            panic!("another reply");
        };
        assert_eq!(failure.remedy.unwrap().values["interface"], "eth1\u{fffd}[31m");
    }

    #[test]
    fn a_reply_of_nothing_but_text_is_a_failure_of_its_request() {
        let failure = admitted(&"x".repeat(2 << 20));
        assert_eq!((failure.stage, failure.kind), (Stage::Converse, Kind::Internal));
        let counters = (0..200_000).map(|i| (format!("counter {i}"), i)).collect();
        let outcome = admit(&reply(Ok(Answer::Counters(counters)))).unwrap();
        assert!(matches!(outcome, FromAgent::Reply { id: 7, outcome: Err(_) }));
    }

    #[test]
    fn a_reply_larger_than_any_of_ours_is_a_failure_of_its_request() {
        let numbers = vec!["1"; 3 << 20].join(",");
        let reply = format!("{{\"Reply\":{{\"id\":7,\"outcome\":{{\"Ok\":{{\"Noise\":[{numbers}]}}}}}}}}");
        let FromAgent::Reply { id: 7, outcome: Err(failure) } = admit(reply.as_bytes()).unwrap() else {
            panic!("it was taken");
        };
        assert_eq!((failure.stage, failure.kind), (Stage::Converse, Kind::Internal));
    }

    #[test]
    fn facts_of_a_host_that_cannot_be_are_a_failure_of_their_request() {
        let with = |ports: u8, devices: usize| {
            let ports = (0..ports).map(|number| RdmaPort { number, ..RdmaPort::default() }).collect();
            let device = RdmaDevice { ports, ..RdmaDevice::default() };
            let facts = HostFacts { rdma: vec![device; devices], ..HostFacts::default() };
            match admit(&reply(Ok(Answer::Facts(Box::new(facts))))).unwrap() {
                FromAgent::Reply { id: 7, outcome } => outcome,
                other => panic!("another reply: {other:?}"),
            }
        };
        assert!(with(2, 128).is_ok());
        let failure = with(10, 150).unwrap_err();
        assert_eq!(failure.stage, Stage::Facts);
        assert!(failure.cause.contains("1500 RDMA ports"), "{failure}");
    }

    #[test]
    fn names_are_cleaned_too() {
        let counters = [("rx\x1b[31m".to_owned(), 3)].into();
        let FromAgent::Reply { outcome: Ok(Answer::Counters(counters)), .. } =
            admit(&reply(Ok(Answer::Counters(counters)))).unwrap()
        else {
            panic!("no counters");
        };
        assert_eq!(counters.keys().collect::<Vec<_>>(), ["rx\u{fffd}[31m"]);
    }

    #[test]
    fn a_number_that_cannot_be_is_a_failure_of_its_request() {
        let clock = |realtime| reply(Ok(Answer::Clock { monotonic: Nanoseconds(1), realtime }));
        let FromAgent::Reply { id: 7, outcome: Err(failure) } = admit(&clock(Nanoseconds(u64::MAX))).unwrap() else {
            panic!("it was taken");
        };
        assert_eq!((failure.stage, failure.kind), (Stage::Converse, Kind::Internal));
        assert!(failure.cause.contains("Clock.realtime` is 18446744073709551615"), "{failure}");
        // Clocks since 1970 and counters of the kernel are allowed.
        assert!(matches!(admit(&clock(Nanoseconds(1 << 61))).unwrap(), FromAgent::Reply { outcome: Ok(_), .. }));
        let counters = Answer::Counters([("rx".to_owned(), u64::MAX)].into());
        assert!(matches!(admit(&reply(Ok(counters))).unwrap(), FromAgent::Reply { outcome: Ok(_), .. }));
    }

    #[test]
    fn a_case_of_a_node_or_rank_tells_no_more_of_gpus_than_ours_do() {
        let seen = GpuSeen { xids: Some(vec![79; 500]), ..GpuSeen::default() };
        let account = || CaseAccount { gpus: vec![seen.clone(); 200], ..CaseAccount::default() };
        let read = |answer| match admit(&reply(Ok(answer))).unwrap() {
            FromAgent::Reply { outcome: Ok(answer), .. } => answer,
            other => panic!("{other:?}"),
        };
        let node = NodeAccount { account: account(), ..NodeAccount::default() };
        let measured = CollectiveMeasurement { gpu: Some(Box::new(seen.clone())), ..CollectiveMeasurement::default() };
        let told = [
            match read(Answer::Case(Box::new(account()))) {
                Answer::Case(account) => account.gpus,
                other => panic!("{other:?}"),
            },
            match read(Answer::Node(vec![node])) {
                Answer::Node(mut accounts) => accounts.remove(0).account.gpus,
                other => panic!("{other:?}"),
            },
            match read(Answer::SteppedOnGpu { stepped: Stepped::Done, gpus: account().gpus }) {
                Answer::SteppedOnGpu { gpus, .. } => gpus,
                other => panic!("{other:?}"),
            },
            match read(Answer::MemberMeasured(Box::new(measured))) {
                Answer::MemberMeasured(measured) => vec![*measured.gpu.unwrap()],
                other => panic!("{other:?}"),
            },
        ];
        for gpus in told {
            let xids = gpus[0].xids.as_ref().map(Vec::len);
            assert!(gpus.len() <= gpu_state::MOST && xids == Some(gpu_state::MOST_XIDS));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_admitted_or_refused(bytes: Vec<u8>) {
            let _ = admit(&bytes);
        }

        #[test]
        fn any_text_comes_out_harmless_and_stays_so(said: String) {
            let once = admitted(&said).cause;
            prop_assert!(text::is_printable(&once) && once.len() <= LONGEST + 64);
            prop_assert_eq!(admitted(&once).cause, once);
        }
    }
}

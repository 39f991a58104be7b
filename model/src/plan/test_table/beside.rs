use railgauge_wire::{GigabitsPerSecond, Metric, Op, TestMetric, Transport};

use super::{at_once::unsteady, members::Members, victim};
use crate::plan::{
    Beside, Mistake, Section, Table, Test, command,
    count::count,
    format::keys,
    grammar::quantity,
    limits,
    model::{BesideCommand, BesideOn, BesideWay},
};

pub static BESIDE: Section = Section {
    header: "[test.beside]",
    about: "TCP connections between the interfaces of the NICs that a flow uses, or a command on its hosts. Each flow is measured alone \
            and right after that beside each number of connections, or beside the command, in every repeat. They start before its \
            window and end after it. A collective runs alongside a command on all of its hosts, or another operation.",
    keys: keys! {
        "transport": Word(|| vec!["tcp"]), Is("\"tcp\""),
            "What carries it: TCP from the agents.";
        "flows": Wholes(1, limits::NEIGHBOURS), Is("4"),
            "Connections in each direction; a list gives a curve.";
        "direction": Word(BesideWay::all_words), Is("\"same\""),
            "Direction relative to the flow's bytes.";
        "rate": Quantity, Means("as fast as they go"),
            "Rate of all connections of one direction together: `\"10 Gb/s\"`.";
        "op": Word(seconds), Means("TCP connections"),
            "Operation of a second communicator alongside a collective of NCCL: the same ranks, sizes and datatype.";
        "command": Command, Means("TCP connections"),
            "A command that agents run on the flow's hosts in place of TCP, such as fio on a network file system; it \
             must run until it is ended. `{host}`, `{name}`, `{user}` and `{port}` are replaced; no shell is used.";
        "on": Word(BesideOn::all_words), Is("\"both\""),
            "Hosts that run the command.";
    },
};

/// Slowest rate of one connection: a message of 1 KiB in ten milliseconds.
const SLOWEST_EACH: f64 = 1024.0 * 8.0 / 0.01 / 1e9;

pub(super) fn read(test: &Table<'_>, members: Option<&Members<'_>>) -> Option<Beside> {
    test.written("beside")?;
    let table = test.table("beside");
    if table.written("op").is_some() {
        return of_second(&table);
    }
    if table.written("command").is_some() {
        return of_command(&table, members);
    }
    table.refuse(["on"], "applies only to a command");
    // Read all before returning, so that every mistake is reported.
    let (transport, flows, direction) =
        (table.word("transport"), flows(&table), table.term("direction", BesideWay::from_word));
    let most = flows.as_ref().and_then(|flows| flows.last().copied()).unwrap_or(1);
    let rate = match table.written("rate") {
        None => Some(None),
        Some(_) => rate(&table, most).map(Some),
    };
    transport?;
    Some(Beside { flows: flows?, direction: direction?.value, rate: rate?, command: None, op: None })
}

fn of_command(table: &Table<'_>, members: Option<&Members<'_>>) -> Option<Beside> {
    table.refuse(["transport", "flows", "direction", "rate"], "does not apply to a command");
    let example = "fio --name=beside --directory=/mnt/nfs --rw=write --size=4g --time_based --runtime=600";
    let words = command::read(table, "command", example);
    if let Some(members) = members {
        let hosts = members.hosts.list.iter().filter(|host| members.has(&host.name));
        command::judge(table, "command", &words, hosts);
    }
    let on = table.term("on", BesideOn::from_word)?.value;
    let command = (!words.is_empty()).then_some(BesideCommand { words, on })?;
    Some(Beside { flows: vec![0], direction: BesideWay::Same, rate: None, command: Some(command), op: None })
}

/// Operations of a second communicator: those that no rank ends before every rank has begun them.
fn seconds() -> Vec<&'static str> {
    Op::ALL.iter().filter(|op| op.synchronizes()).map(|op| op.word()).collect()
}

fn of_second(table: &Table<'_>) -> Option<Beside> {
    let others = ["transport", "flows", "direction", "rate", "command", "on"];
    table.refuse(others, "does not apply to an operation of a second communicator");
    let op = table.term("op", Op::from_word)?.value;
    Some(Beside { flows: vec![0], direction: BesideWay::Same, rate: None, command: None, op: Some(op) })
}

fn flows(table: &Table<'_>) -> Option<Vec<u32>> {
    let numbers = table.wholes::<u32>("flows")?;
    let mut flows = table.unique("flows", numbers.value);
    flows.sort_unstable();
    if flows.is_empty() {
        return None;
    }
    if flows.len() > limits::BESIDE {
        let message = format!("{} numbers of connections", flows.len());
        return table.reject(numbers.span, message, format!("list at most {}", limits::BESIDE));
    }
    Some(flows)
}

fn rate(table: &Table<'_>, most: u32) -> Option<GigabitsPerSecond> {
    let rate = table.parsed("rate", |text| quantity::limit(text, Metric::Bandwidth).map(|(rate, _)| rate))?;
    if rate.value < SLOWEST_EACH * f64::from(most) {
        let message = format!("{} at this rate would send nothing in most windows", count(most as usize, "connection"));
        return table.reject(rate.span, message, "give each connection 1 Mb/s or more");
    }
    Some(GigabitsPerSecond(rate.value))
}

/// Reports what such a test cannot be, and removes the traffic where it is impossible.
pub(super) fn judge(table: &Table<'_>, test: &mut Test) {
    let Some(span) = table.name_span("beside") else { return };
    let wrong = |key: &str, message: String, help: &str| {
        let at = table.written(key).unwrap_or(span.clone());
        table.book.add(Mistake::at(at, message).also(span.clone(), "the traffic beside").help(help));
    };
    let Some(beside) = &test.beside else { return };
    for metric in [Metric::BesideLoss, Metric::OverlapLoss, Metric::OverlapLossOther] {
        victim::loss(test, metric, wrong);
    }
    if test.collective.is_some() || test.op.is_collective() {
        of_collective(test, beside, wrong);
    } else if beside.op.is_some() {
        let message = format!("a second communicator runs alongside collectives only, and not alongside {}", test.op);
        wrong("op", message, "write `flows` or a `command`, or measure a collective");
    } else if test.at_once() {
        let help = "these flows run at the same time already: leave it out, or use a pattern without shared NICs such as neighbours";
        wrong("pattern", "`beside` does not apply with flows at once".to_owned(), help);
    } else if test.metric != TestMetric::Bandwidth {
        wrong(
            "metric",
            format!("`beside` does not apply to {}", test.metric),
            "measure bandwidth: the loss is one of bandwidth",
        );
    } else {
        if let Some(why) = unsteady(test.window) {
            wrong("measure", format!("flows with background traffic {why}"), "write measure = \"2s\"");
        }
        if table.name_span("bidirectional").is_some() && test.bidirectional {
            let message = "`bidirectional` does not apply with background traffic".to_owned();
            wrong("bidirectional", message, "leave it out; direction = \"both\" loads both directions of the NICs");
        }
    }
    // A default that does not apply here is dropped.
    test.bidirectional &= table.name_span("bidirectional").is_some();
}

/// Alongside a collective: what its ranks or a command can do at the same time.
fn of_collective(test: &Test, beside: &Beside, wrong: impl Fn(&str, String, &str)) {
    let collective = test.collective.as_ref();
    let on_both = beside.command.as_ref().is_none_or(|command| command.on == BesideOn::Both);
    if beside.op.is_none() && beside.command.is_none() {
        let help = "write op = \"reduce_scatter\" for a second communicator, or a `command` that makes the traffic";
        wrong("op", format!("TCP connections do not run alongside {}", test.op), help);
    } else if test.metric != TestMetric::Bandwidth {
        let message = format!("a loss of {} is not measured", test.metric);
        wrong("metric", message, "measure bandwidth: the loss is one of bandwidth");
    } else if !on_both {
        let help = "leave `on` out: a collective has no source and no destination";
        wrong("op", format!("the command runs on all hosts of {}", test.op), help);
    } else if beside.op.is_some() && test.transport != Transport::Nccl {
        let message = "a second communicator is one of NCCL".to_owned();
        wrong("transport", message, "write transport = \"nccl\", or a `command`");
    } else if beside.op.is_some() && !test.op.synchronizes() {
        let message =
            format!("{} is not measured alongside another operation: its ranks do not wait for each other", test.op);
        wrong("op", message, "use all_reduce, all_gather, reduce_scatter or all_to_all");
    } else if beside.op.is_some() && collective.is_some_and(|one| one.in_place || one.graph) {
        let help = "leave `in_place` and `graph` out: both operations are queued one by one, in buffers of their own";
        wrong("op", format!("{} in place or in a graph is not measured alongside another operation", test.op), help);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_wire::Op;

    use crate::plan::{Mistakes, Plan, model::BesideOn, parse};

    fn read(beside: &str) -> Result<Plan, Mistakes> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a[1-2]\"] }\n[[test]]\nop = \"write\"\n\
                    metric = \"bandwidth\"\ntransport = \"tcp\"\nmeasure = \"2s\"\nrepeats = 3\n";
        parse("p.toml", &format!("{head}{beside}"), Path::new("")).map(|(plan, _)| plan)
    }

    #[test]
    fn a_command_is_words_on_hosts() {
        let plan = read("[test.beside]\ncommand = \"fio --directory=/mnt/{name} 'a b'\"\n").unwrap();
        let beside = plan.tests[0].beside.as_ref().unwrap();
        let command = beside.command.as_ref().unwrap();
        assert_eq!((command.words.len(), command.words[2].as_str(), command.on), (3, "a b", BesideOn::Both));
        assert_eq!(plan.tests[0].neighbours(), [None, Some(0)]);
        let plan = read("[test.beside]\ncommand = \"dd\"\non = \"source\"\n").unwrap();
        assert_eq!(plan.tests[0].beside.as_ref().unwrap().command.as_ref().unwrap().on, BesideOn::Source);
    }

    fn collective(test: &str, beside: &str) -> Result<Plan, String> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a[1-3]\"] }\n[[test]]\n\
                    metric = \"bandwidth\"\n";
        let other = |key: &str, line| if test.contains(key) { "" } else { line };
        let (sizes, repeats) = (other("sizes", "sizes = \"12MiB\"\n"), other("repeats", "repeats = 3\n"));
        let limit = "[[test.expect]]\nmetric = \"overlap_loss\"\nat_most = \"20%\"\n";
        parse("p.toml", &format!("{head}{sizes}{repeats}{test}\n[test.beside]\n{beside}\n{limit}"), Path::new(""))
            .map(|(plan, _)| plan)
            .map_err(|mistakes| mistakes.to_string())
    }

    #[test]
    fn a_collective_runs_beside_another_or_a_command() {
        const GATHER: &str = "op = \"all_gather\"\ntransport = \"nccl\"";
        const SCATTER: &str = "op = \"reduce_scatter\"";
        let test = collective(GATHER, SCATTER).unwrap().tests.remove(0);
        assert_eq!((test.beside.as_ref().unwrap().op, test.timed_together()), (Some(Op::ReduceScatter), false));
        let tcp = "op = \"all_reduce\"\ntransport = \"tcp\"";
        collective(tcp, "command = \"dd\"").unwrap();
        for (test, beside, words) in [
            (tcp, SCATTER, "a second communicator is one of NCCL"),
            (tcp, "flows = 4", "TCP connections do not run alongside all_reduce"),
            (tcp, "command = \"dd\"\non = \"source\"", "runs on all hosts"),
            (GATHER, "op = \"write\"", "write"),
            (GATHER, "op = \"all_reduce\"\nflows = 4", "`flows` does not apply to an operation"),
            (GATHER, "op = \"all_reduce\"\ncommand = \"dd\"", "`command` does not apply to an operation"),
            ("op = \"broadcast\"\ntransport = \"nccl\"", SCATTER, "do not wait for each other"),
            ("op = \"all_reduce\"\ntransport = \"nccl\"\nin_place = true", SCATTER, "in place or in a graph"),
            ("op = \"all_reduce\"\ntransport = \"nccl\"\nsizes = \"4MiB\"", SCATTER, "cannot be divided"),
            ("op = \"all_reduce\"\ntransport = \"nccl\"\nrepeats = 2", SCATTER, "cannot be separated from noise"),
            ("op = \"write\"\ntransport = \"tcp\"\nmeasure = \"2s\"", SCATTER, "alongside collectives only"),
        ] {
            let mistakes = collective(test, beside).expect_err(test);
            assert!(mistakes.contains(words), "{test}\n{beside}\n{mistakes}");
        }
        let other = "[[test.expect]]\nmetric = \"overlap_loss_other\"\nat_most = \"20%\"";
        collective(GATHER, &format!("{SCATTER}\n{other}")).unwrap();
        let mistakes = collective(tcp, &format!("command = \"dd\"\n{other}")).unwrap_err();
        assert!(mistakes.contains("overlap_loss_other"), "{mistakes}");
    }

    #[test]
    fn what_is_of_connections_alone_is_a_mistake_beside_a_command() {
        for (beside, words) in [
            ("command = \"dd\"\nflows = 4\n", "`flows` does not apply to a command"),
            ("command = \"dd\"\nrate = \"1 Gb/s\"\n", "`rate` does not apply to a command"),
            ("command = \"dd\"\ndirection = \"both\"\n", "`direction` does not apply to a command"),
            ("command = \"dd\"\ntransport = \"tcp\"\n", "`transport` does not apply to a command"),
            ("command = \"\"\n", "`command` is empty"),
            ("command = \"dd {hots}\"\n", "no placeholder `{hots}`"),
            ("command = \"dd {user}\"\n", "a1 has no user"),
            ("on = \"source\"\n", "`on` applies only to a command"),
            ("command = \"dd\"\non = \"nowhere\"\n", "nowhere"),
        ] {
            let mistakes = read(&format!("[test.beside]\n{beside}")).unwrap_err().to_string();
            assert!(mistakes.contains(words), "{beside}: {mistakes}");
        }
        let wanted = "[[test.expect]]\nmetric = \"beside_bandwidth\"\nat_least = \"1 Gb/s\"\n";
        let mistakes = read(&format!("[test.beside]\ncommand = \"dd\"\n{wanted}")).unwrap_err().to_string();
        assert!(mistakes.contains("beside_bandwidth"), "{mistakes}");
        assert!(read(&format!("[test.beside]\nflows = 4\n{wanted}")).is_ok());
    }
}

use railgauge_wire::{GigabitsPerSecond, Metric, TestMetric};

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
            window and end after it.",
    keys: keys! {
        "transport": Word(|| vec!["tcp"]), Is("\"tcp\""),
            "What carries it: TCP from the agents.";
        "flows": Wholes(1, limits::NEIGHBOURS), Is("4"),
            "Connections in each direction; a list gives a curve.";
        "direction": Word(BesideWay::all_words), Is("\"same\""),
            "Direction relative to the flow's bytes.";
        "rate": Quantity, Means("as fast as they go"),
            "Rate of all connections of one direction together: `\"10 Gb/s\"`.";
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
    Some(Beside { flows: flows?, direction: direction?.value, rate: rate?, command: None })
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
    Some(Beside { flows: vec![0], direction: BesideWay::Same, rate: None, command: Some(command) })
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
    if test.beside.is_none() {
        return;
    }
    victim::loss(test, Metric::BesideLoss, wrong);
    if test.collective.is_some() || test.op.is_collective() {
        let help = "it belongs to tests of pairs: leave it out, or measure write or send";
        wrong("op", format!("`beside` does not apply to {}", test.op), help);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

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

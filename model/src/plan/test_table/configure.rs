//! `[test.configure]`: commands that change the cluster for a test, and undo that.

use std::time::Duration;

use super::members::Members;
use crate::{
    border::text::is_printable,
    plan::{At, Mistake, Section, Table, command, count::count, format::keys, limits, model::Configure},
};

pub static CONFIGURE: Section = Section {
    header: "[test.configure]",
    about: "Commands of this machine that make the cluster what the test wants. `apply` runs before its rounds, `undo` before \
            anything else is measured and at the end, interrupted or not. A command that says `{host}` (or `{name}`, \
            `{user}`, `{port}`) runs once for every host of the test, `in_flight` at the same time; another runs once. No \
            shell takes part.",
    keys: keys! {
        "apply": Command, Required,
            "Makes the change, such as `ssh {host} sudo sysctl -qw net.ipv4.tcp_congestion_control=bbr`. With an \
             exit status other than 0 the round is not measured.";
        "undo": Command, Required,
            "Undoes the change, even if `apply` failed. Until it succeeds, nothing else is measured.";
        "timeout": Time("100ms", "1h"), Is("\"1min\""), "Time limit for either at one host.";
        "values": Texts, Means("one change"),
            "Values for `{value}` in the commands; the test is measured at each, in every repeat, and compared with \
             the first.";
    },
};

pub fn read(test: &Table<'_>, members: Option<&Members<'_>>) -> Option<Configure> {
    test.written("configure")?;
    let table = test.table("configure");
    let [apply, undo] = ["apply", "undo"].map(|key| {
        let example = "ssh {host} sudo mlnx_qos -i eth2 --pfc 0,0,0,1,0,0,0,0";
        let words = command::read_with(&table, key, example, &[command::VALUE]);
        if let Some(members) = members {
            let hosts = members.hosts.list.iter().filter(|host| members.has(&host.name));
            command::judge(&table, key, &words, hosts);
        }
        words
    });
    let values = values(&table);
    judge(&table, &apply, &undo);
    let timeout = Duration::from(table.time("timeout")?.value);
    (!apply.is_empty() && !undo.is_empty()).then_some(Configure { apply, undo, timeout, values: values? })
}

fn values(table: &Table<'_>) -> Option<Vec<String>> {
    if table.written("values").is_none() {
        return Some(Vec::new());
    }
    let given = table.texts("values")?;
    let mut sound = true;
    for one in &given.value {
        let length = one.text.chars().count();
        let (message, help) = if one.text.trim().is_empty() {
            ("a value is empty".to_owned(), "write the values of {value}, for example \"0%\"")
        } else if !is_printable(&one.text) {
            ("a value has characters that cannot be printed".to_owned(), "a value is one line of text")
        } else if length > limits::VALUE {
            let message = format!("a value has {length} characters, and at most {} can be", limits::VALUE);
            (message, "it is in every row of the results: put what is long into `apply`")
        } else {
            continue;
        };
        table.wrong(one.span.clone(), message, help);
        sound = false;
    }
    let all = given.value.len();
    let of_texts = given.value.into_iter().map(|one| At { value: one.text, span: one.span, own: given.own });
    let values = table.unique("values", of_texts.collect());
    match values.len() {
        _ if !sound || values.len() < all => None,
        // An empty list is reported already.
        0 => None,
        1 => {
            let help = "the others are compared with the first: for example values = [\"0%\", \"0.1%\", \"1%\"]";
            table.reject(given.span, "`values` has 1 value", help)
        }
        n if n > limits::VALUES => {
            table.reject(given.span, count(n, "value"), format!("list at most {}", limits::VALUES))
        }
        _ => Some(values),
    }
}

fn judge(table: &Table<'_>, apply: &[String], undo: &[String]) {
    let listed = table.written("values");
    for (key, words) in [("apply", apply), ("undo", undo)].into_iter().filter(|(_, words)| !words.is_empty()) {
        let Some(span) = table.written(key) else { continue };
        let mistake = match (&listed, command::has_value(words)) {
            (None, true) => Mistake::at(span, format!("`{key}` uses `{{value}}`, but `values` is missing"))
                .help("list them: values = [\"0%\", \"0.1%\", \"1%\"]"),
            (Some(values), false) if key == "apply" => {
                Mistake::at(span, "`apply` does not use `{value}`, so that all values would be the same")
                    .also(values.clone(), "the values")
                    .help("write {value} where it belongs, or leave `values` out")
            }
            _ => continue,
        };
        table.book.add(mistake);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{
        plan::{Mistakes, Plan, limits, parse},
        schedule::{Inventory, schedule},
    };

    fn read(configure: &str) -> Result<Plan, Mistakes> {
        let head = "name = \"p\"\nlaunch = { via = \"local\" }\nhosts = { names = [\"a[1-2]\"] }\n\
                    [[test]]\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n[test.configure]\n";
        parse("p.toml", &format!("{head}{configure}"), Path::new("")).map(|(plan, _)| plan)
    }

    #[test]
    fn commands_are_words() {
        let plan = read("apply = \"ssh {host} 'a b'\"\nundo = [\"ssh\", \"{host}\"]\n").unwrap();
        let configure = plan.tests[0].configure.as_ref().unwrap();
        assert_eq!(configure.apply, ["ssh", "{host}", "a b"]);
        assert_eq!(configure.undo, ["ssh", "{host}"]);
        assert_eq!(configure.timeout.as_secs(), 60);
    }

    #[test]
    fn a_series_of_values_is_a_case_for_each() {
        let plan = read("apply = \"tc {value}\"\nundo = \"tc del\"\nvalues = [\"0us\", \"50us 10us\"]\n").unwrap();
        assert_eq!(plan.tests[0].values(), ["0us", "50us 10us"]);
        let schedule = schedule(&plan, &Inventory::of_plan(&plan)).unwrap();
        let applied: Vec<_> = schedule.cells[0].iter().map(|cell| cell.applied.as_deref()).collect();
        assert_eq!(applied, [Some("0us"), Some("50us 10us")]);
        assert_eq!(limits::least(&plan.groups, &plan.tests[0]), 2);
        assert!(
            schedule.cells[0][0].is_reference(&plan.tests[0]) && !schedule.cells[0][1].is_reference(&plan.tests[0])
        );
    }

    #[test]
    fn what_cannot_be_run_or_taken_back_is_said() {
        for (configure, words) in [
            ("apply = \"true\"\n", "`undo` is missing in [test.configure]"),
            ("apply = \"\"\nundo = \"true\"\n", "`apply` is empty"),
            ("apply = \"ssh {hots}\"\nundo = \"true\"\n", "no placeholder `{hots}`"),
            ("apply = \"ssh {user}@{host}\"\nundo = \"true\"\n", "a1 has no user"),
            ("apply = \"a 'b\"\nundo = \"true\"\n", "quote"),
            ("apply = \"tc {value}\"\nundo = \"true\"\n", "`apply` uses `{value}`"),
            ("apply = \"tc\"\nundo = \"tc {value}\"\n", "`undo` uses `{value}`"),
            ("apply = \"tc\"\nundo = \"true\"\nvalues = [\"0%\", \"1%\"]\n", "`apply` does not use `{value}`"),
            ("apply = \"tc {vlaue}\"\nundo = \"true\"\n", "no placeholder `{vlaue}`"),
            ("apply = \"tc {value}\"\nundo = \"true\"\nvalues = [\"1%\"]\n", "`values` has 1 value"),
            ("apply = \"tc {value}\"\nundo = \"true\"\nvalues = []\n", "values"),
            ("apply = \"tc {value}\"\nundo = \"true\"\nvalues = [\"1%\", \"1%\"]\n", "1% is listed twice in `values`"),
            ("apply = \"tc {value}\"\nundo = \"true\"\nvalues = [\"1%\", \" \"]\n", "a value is empty"),
            ("apply = \"tc {value}\"\nundo = \"true\"\nvalues = [\"1%\", \"a\\nb\"]\n", "cannot be printed"),
        ] {
            let mistakes = read(configure).unwrap_err().to_string();
            assert!(mistakes.contains(words), "{configure}: {mistakes}");
        }
    }
}

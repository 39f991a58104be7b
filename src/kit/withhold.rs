//! Removes from the records of a run what never leaves a controller: values of environments, and with names replaced also the ways to
//! hosts.

use std::{collections::BTreeMap, sync::Arc};

use railgauge_model::{
    journal::event::{Case, Event},
    plan::model::{Launch, Launcher},
};

use super::tree::{command_line, without_process};

const WITHHELD: &str = "(left out)";

pub(super) struct Withheld {
    /// Whether names are replaced: then the launcher's settings are removed too.
    replaces: bool,
    /// Numbers of values: different environments stay different, and equal ones stay equal.
    values: BTreeMap<String, usize>,
}

impl Withheld {
    pub(super) fn new(replaces: bool) -> Self {
        Self { replaces, values: BTreeMap::new() }
    }

    pub(super) fn event(&mut self, event: &mut Event) {
        match event {
            Event::Started { resolved, launcher, .. } => {
                self.launch(&mut resolved.launch);
                for test in &mut resolved.tests {
                    let environments = test.collective.iter_mut().flat_map(|collective| &mut collective.env);
                    environments.for_each(|env| self.environment(env));
                }
                *launcher = resolved.launch.via.way().words;
                if self.replaces {
                    *launcher = WITHHELD.to_owned();
                    resolved.description.clear();
                    resolved.places.clear();
                    resolved.pods = None;
                    for host in &mut resolved.hosts {
                        (host.user, host.port) = (None, None);
                    }
                }
            }
            Event::Planned { cases } | Event::Confirming { cases, .. } => self.cases(cases),
            Event::HostUp { facts, .. } => {
                facts.command_line = facts.command_line.take().map(|line| command_line(&line));
                facts.xids.iter_mut().flatten().for_each(|xid| xid.text = without_process(&xid.text));
            }
            _ => {}
        }
    }

    fn cases(&mut self, cases: &mut [Case]) {
        for case in cases.iter_mut().filter(|case| case.cell.manner.is_some()) {
            if let Some(manner) = &mut Arc::make_mut(&mut case.cell).manner {
                self.environment(&mut manner.env);
            }
        }
    }

    fn launch(&mut self, launch: &mut Launch) {
        launch.env.values_mut().for_each(|value| *value = WITHHELD.to_owned());
        if let Launcher::Command(command) = &mut launch.via {
            for word in &mut command.0 {
                // `env TOKEN=x`, `--export=TOKEN=x`: what follows the first `=` may be anything.
                if let Some((name, _)) = word.split_once('=') {
                    *word = format!("{name}={WITHHELD}");
                }
            }
        }
        if self.replaces {
            // Users, keys, jump hosts, commands.
            (launch.via, launch.agent_dir) = (Launcher::Local, None);
            launch.send_env.clear();
        }
    }

    /// An environment of ranks. NCCL's variables determine what is measured and are kept, unless they name a file.
    fn environment(&mut self, env: &mut BTreeMap<String, String>) {
        for (name, value) in env {
            if name.starts_with("NCCL_") && !value.contains('/') {
                continue;
            }
            let next = self.values.len() + 1;
            let number = *self.values.entry(value.clone()).or_insert(next);
            *value = format!("(left out {number})");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_model::plan;

    use super::*;

    fn started(text: &str) -> Event {
        let head = "name = \"p\"\n[hosts]\nnames = [\"a\", \"b\"]\n";
        let (plan, _) =
            plan::parse("p", &format!("{head}{text}"), Path::new("")).unwrap_or_else(|m| panic!("{}", m.render(false)));
        Event::Started {
            run_id: "r".into(),
            plan: "p".into(),
            plan_hash: String::new(),
            version: "0".into(),
            controller: "c".into(),
            launcher: plan.launch.via.way().words,
            resolved: Box::new(plan),
        }
    }

    const COLLECTIVE: &str = "[[test]]\nname = \"t\"\nop = \"all_reduce\"\nmetric = \"bandwidth\"\n\
        transport = \"nccl\"\nsizes = \"1MiB\"\nenv = { NCCL_ALGO = [\"Ring\", \"Tree\"], \
        TOKEN = [\"s3cret-a\", \"s3cret-b\"], NCCL_TOPO_FILE = \"/home/s3cret\" }\n";

    #[test]
    fn environments_of_tests_are_withheld_and_stay_different() {
        let mut event = started(&format!("[launch]\nvia = \"local\"\n{COLLECTIVE}"));
        let mut withheld = Withheld::new(false);
        withheld.event(&mut event);
        let said = serde_json::to_string(&event).unwrap();
        assert!(!said.contains("s3cret") && said.contains("Ring") && said.contains("Tree"), "{said}");
        let Event::Started { resolved, .. } = &event else { panic!() };
        let env = &resolved.tests[0].collective.as_ref().unwrap().env;
        let distinct: std::collections::BTreeSet<_> = env.iter().collect();
        assert_eq!((env.len(), distinct.len()), (4, 4), "{env:?}");
    }

    #[test]
    fn words_of_a_command_that_set_something_are_cut() {
        let launch = "[launch]\nvia = \"command\"\ncommand = \"env TOKEN=s3cret ssh {host}\"\n[[test]]\nname = \"t\"\n\
             op = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"1MiB\"\n";
        for replaces in [false, true] {
            let mut event = started(launch);
            let mut withheld = Withheld::new(replaces);
            withheld.event(&mut event);
            let Event::Started { resolved, launcher, .. } = &event else { panic!() };
            assert!(!serde_json::to_string(&event).unwrap().contains("s3cret"));
            match replaces {
                true => assert_eq!((launcher.as_str(), &resolved.launch.via), (WITHHELD, &Launcher::Local)),
                false => assert_eq!(launcher, "command: env TOKEN=(left out) ssh {host}"),
            }
        }
    }
}

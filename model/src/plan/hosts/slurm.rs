use std::{collections::HashSet, ops::Range};

use super::known::Hosts;
use crate::plan::{Launch, Launcher, Mistake, Table, Topology, allocation::PLACEHOLDER, count::count};
use crate::topology::slurm;

/// The hosts of a plan that names none: nodes of the allocation, or placeholders for as many as it wants.
pub fn nodes(table: &Table<'_>, launch: &Launch, hosts: &mut Hosts) -> Vec<(String, usize, Range<usize>)> {
    let span = table.written("slurm").unwrap_or(table.span.clone());
    let is_slurm = matches!(launch.via, Launcher::Slurm(_));
    if !is_slurm {
        if table.written("slurm").is_some() {
            let message = "`slurm` of [hosts] applies only with via = \"slurm\"";
            table.wrong(span, message, "give `names` or `file`, or set via = \"slurm\"");
            hosts.sound = false;
        }
        return Vec::new();
    }
    let wanted = match table.written("slurm") {
        Some(_) => match table.table("slurm").whole::<usize>("nodes") {
            Some(nodes) => Some(nodes.value),
            None => {
                hosts.sound = false;
                return Vec::new();
            }
        },
        None => None,
    };
    let listed = |names: Vec<String>| names.into_iter().map(|name| (name, 0, span.clone())).collect();
    match (table.book.allocation, wanted) {
        (Some(there), wanted) if there.nodes.len() >= wanted.unwrap_or(1) => {
            listed(there.nodes.iter().take(wanted.unwrap_or(usize::MAX)).cloned().collect())
        }
        (Some(there), wanted) => {
            let has = count(there.nodes.len(), "node");
            let message = format!("the plan wants {}, job {} has {has}", count(wanted.unwrap_or(1), "node"), there.job);
            table.wrong(span, message, "ask Slurm for more nodes, or lower `nodes`");
            hosts.sound = false;
            Vec::new()
        }
        (None, Some(wanted)) => listed((1..=wanted).map(|number| format!("{PLACEHOLDER}{number}")).collect()),
        (None, None) => {
            let message = "the plan has no hosts: it takes them from a Slurm allocation, and this is none";
            let help =
                "say how many: hosts = { slurm = { nodes = 32 } }; or name them; or call railgauge inside salloc";
            table.wrong(span, message, help);
            hosts.sound = false;
            Vec::new()
        }
    }
}

pub fn refuse_beside_names(table: &Table<'_>) {
    if let Some(span) = table.name_span("slurm") {
        let message = "`slurm` of [hosts] does not apply where hosts are named";
        table.wrong(span, message, "leave it out, or leave `names` and `file` out");
    }
}

/// Adds a group for each switch above some but not all of the hosts. Groups of the plan take precedence.
pub fn switches(table: &Table<'_>, launch: &Launch, hosts: &mut Hosts) {
    let Some(there) = table.book.allocation.filter(|_| matches!(launch.via, Launcher::Slurm(_))) else { return };
    for (name, nodes) in &there.switches {
        let members: Vec<String> =
            hosts.list.iter().map(|host| &host.name).filter(|name| nodes.contains(name)).cloned().collect();
        let tells = !members.is_empty() && members.len() < hosts.list.len();
        if tells && !hosts.position.contains_key(name) && !hosts.groups.contains_key(name) {
            hosts.groups.insert(name.clone(), members);
        }
    }
}

/// The topology of a plan without one: the switches above the plan's hosts according to Slurm. If it is unknown, a note says why.
pub fn topology(top: &Table<'_>, launch: &Launch, hosts: &Hosts) -> Option<Topology> {
    let there = top.book.allocation.filter(|_| matches!(launch.via, Launcher::Slurm(_)))?;
    if let Some(why) = &there.unread {
        let note = Mistake::at(top.written("launch").unwrap_or(0..0), format!("Slurm's topology is not known: {why}"));
        top.book
            .note(note.help("see `scontrol show topology`, or add [topology]; without it nothing is said of switches"));
    }
    // Both are names of nodes: Slurm starts agents by them.
    let names: HashSet<&str> = hosts.list.iter().flat_map(|host| [host.name.as_str(), host.address.as_str()]).collect();
    let told = slurm::above(there.topology.as_ref()?, |node| names.contains(node))?;
    Some(Topology { told: vec![told] })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::slurm;
    use crate::plan::{Mistakes, Plan, allocation::Allocation, parse_in};

    fn read(hosts: &str, allocation: Option<&Allocation>) -> Result<Plan, String> {
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"slurm\" }}\nhosts = {hosts}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n\
             transport = \"tcp\"\nsizes = \"1KiB\"\n"
        );
        parse_in("p.toml", &text, Path::new(""), allocation)
            .map(|(plan, _)| plan)
            .map_err(|mistakes| mistakes.render(false))
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    fn allocation() -> Allocation {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let switches = [
            ("leaf1", list(&["n1", "n2"])),
            ("leaf2", list(&["n3", "n4", "other"])),
            ("leaf3", list(&["other"])),
            ("spine", list(&["n1", "n2", "n3", "n4", "other"])),
        ];
        Allocation {
            job: "7".into(),
            nodes: list(&["n1", "n2", "n3"]),
            switches: switches.map(|(name, nodes)| (name.to_owned(), nodes)).into(),
            ..Allocation::default()
        }
    }

    #[test]
    fn nodes_of_the_allocation_are_hosts_and_switches_are_groups() {
        let there = allocation();
        let plan = read("{}", Some(&there)).unwrap();
        assert_eq!(names(&plan), ["n1", "n2", "n3"]);
        let groups: Vec<_> = plan.groups.iter().map(|(name, members)| (name.as_str(), members.len())).collect();
        assert_eq!(groups, [("leaf1", 2), ("leaf2", 1)]);
        assert_eq!(names(&read("{ slurm = { nodes = 2 } }", Some(&there)).unwrap()), ["n1", "n2"]);
        let plan = read("{ groups = { leaf1 = \"n3\" } }", Some(&there)).unwrap();
        assert_eq!(plan.groups["leaf1"], ["n3"]);
    }

    fn on_switches(pattern: &str, extra: &str, allocation: &Allocation) -> Result<(Plan, Mistakes), String> {
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"slurm\" }}\nhosts = {{}}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n\
             transport = \"tcp\"\nsizes = \"1KiB\"\npattern = \"{pattern}\"\n{extra}"
        );
        parse_in("p.toml", &text, Path::new(""), Some(allocation)).map_err(|mistakes| mistakes.render(false))
    }

    #[test]
    fn what_slurm_knows_of_switches_is_the_topology_of_a_plan_without_one() {
        let text = "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=n3,other\n\
                    SwitchName=leaf3 Level=0 LinkSpeed=1 Nodes=another\nSwitchName=spine Level=1 LinkSpeed=1 \
                    Nodes=n[1-3],other,another Switches=leaf[1-3]\n";
        let there = Allocation { topology: slurm::running(text).unwrap(), ..allocation() };
        let (plan, notes) = on_switches("cross-leaf", "", &there).unwrap();
        assert!(notes.list.is_empty(), "{}", notes.render(false));
        let told = &plan.topology.as_ref().unwrap().told;
        // Nodes of other jobs and the switches above only them are dropped.
        assert_eq!((told.len(), told[0].cables.len()), (1, 5));
        assert_eq!(told[0].switches.keys().collect::<Vec<_>>(), ["leaf1", "leaf2", "spine"]);
        assert!(on_switches("same-leaf", "", &there).is_ok());
        let own = "[topology]\ncables = [[\"n[1-2]\", \"a\"], [\"n3\", \"b\"]]\n";
        let (plan, _) = on_switches("same-leaf", own, &there).unwrap();
        assert_eq!(plan.topology.unwrap().told[0].switches.keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_topology_that_slurm_does_not_tell_is_a_note_and_one_it_has_not_is_none() {
        let there = Allocation { unread: Some("no answer within 5 s".into()), ..allocation() };
        let (plan, notes) = on_switches("ring", "", &there).unwrap();
        assert_eq!((plan.topology, notes.list.len()), (None, 1));
        assert!(notes.render(false).contains("no answer within 5 s"));
        assert!(on_switches("cross-leaf", "", &there).is_err());
        let (plan, notes) = on_switches("ring", "", &allocation()).unwrap();
        assert_eq!((plan.topology, notes.list.len()), (None, 0));
    }

    #[test]
    fn outside_an_allocation_nodes_have_placeholders() {
        assert_eq!(names(&read("{ slurm = { nodes = 2 } }", None).unwrap()), ["slurm-node-1", "slurm-node-2"]);
        assert!(read("{}", None).unwrap_err().contains("slurm = { nodes = 32 }"));
    }

    #[test]
    fn a_small_allocation_and_names_beside_a_number_are_mistakes() {
        let told = read("{ slurm = { nodes = 4 } }", Some(&allocation())).unwrap_err();
        assert!(told.contains("the plan wants 4 nodes, job 7 has 3 nodes"), "{told}");
        let told = read("{ names = [\"a\", \"b\"], slurm = { nodes = 2 } }", None).unwrap_err();
        assert!(told.contains("does not apply where hosts are named"), "{told}");
    }
}

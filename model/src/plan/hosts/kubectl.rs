use std::ops::Range;

use super::known::Hosts;
use crate::plan::{Launch, Launcher, Mistake, PodList, Pods, Table, allocation::POD_PLACEHOLDER, count::count};

/// The pods a plan asks for; `None` if it names hosts, or after reporting a mistake.
pub fn wanted(table: &Table<'_>) -> Option<Pods> {
    table.written("kubectl")?;
    let table = table.table("kubectl");
    let (selector, pods) = (table.text("selector"), table.whole::<usize>("pods"));
    Some(Pods { selector: selector?.value, pods: pods?.value })
}

/// The hosts of a plan that names none: the pods found, or placeholders for as many as it wants.
pub fn pods(table: &Table<'_>, hosts: &mut Hosts) -> Vec<(String, usize, Range<usize>)> {
    let span = table.written("kubectl").unwrap_or(table.span.clone());
    let listed = |names: Vec<String>| names.into_iter().map(|name| (name, 0, span.clone())).collect();
    let Some(Pods { selector, pods: wanted }) = wanted(table) else {
        if table.written("kubectl").is_none() {
            let help =
                "name pods (`names`), or say which: hosts = { kubectl = { selector = \"app=railgauge\", pods = 32 } }";
            table.wrong(span, "the plan has no hosts", help);
        }
        hosts.sound = false;
        return Vec::new();
    };
    hosts.pods = Some(Pods { selector: selector.clone(), pods: wanted });
    match table.book.allocation.and_then(|given| given.pods.as_ref()) {
        Some(found) if found.list.len() == wanted => listed(names(found)),
        Some(found) => {
            let others = match found.others.as_slice() {
                [] => String::new(),
                others => format!("; {}", others.join(", ")),
            };
            let (wants, has) = (count(wanted, "pod"), count(found.list.len(), "running pod"));
            let message = format!("the plan wants {wants}, kubectl finds {has} for {selector}{others}");
            table.wrong(span, message, "wait until all are Running, or correct `pods`");
            hosts.sound = false;
            Vec::new()
        }
        None => listed((1..=wanted).map(|number| format!("{POD_PLACEHOLDER}{number}")).collect()),
    }
}

/// Names of pods as hosts: their nodes where each has its own, since those stay when pods are recreated; otherwise their own names.
fn names(found: &PodList) -> Vec<String> {
    let mut nodes: Vec<&str> = found.list.iter().map(|pod| pod.node.as_str()).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let has_own = nodes.len() == found.list.len() && nodes.first() != Some(&"");
    found.list.iter().map(|pod| if has_own { pod.node.clone() } else { pod.name.clone() }).collect()
}

pub fn judge(table: &Table<'_>, launch: &Launch, is_named: bool, hosts: &mut Hosts) {
    let Some(span) = table.name_span("kubectl") else { return };
    let mistake = match (&launch.via, is_named) {
        (Launcher::Kubectl(_), true) => Mistake::at(span, "`kubectl` of [hosts] does not apply where hosts are named")
            .help("leave it out, or leave `names` and `file` out"),
        (Launcher::Kubectl(_), false) => return,
        _ => Mistake::at(span, "`kubectl` of [hosts] applies only with via = \"kubectl\"")
            .help("give `names` or `file`, or set via = \"kubectl\""),
    };
    table.book.add(mistake);
    hosts.sound = false;
}

pub fn addresses(table: &Table<'_>, hosts: &mut Hosts) {
    let Some(found) = table.book.allocation.and_then(|given| given.pods.as_ref()) else { return };
    for (name, pod) in names(found).into_iter().zip(&found.list) {
        for host in hosts.list.iter_mut().filter(|host| host.name == name) {
            host.address.clone_from(&pod.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::plan::{
        Plan,
        allocation::{Allocation, Pod, PodList},
        parse_in,
    };

    fn read(via: &str, hosts: &str, found: Option<PodList>) -> Result<Plan, String> {
        let text = format!(
            "name = \"p\"\nlaunch = {{ via = \"{via}\" }}\nhosts = {hosts}\n[[test]]\nop = \"write\"\nmetric = \"bandwidth\"\n\
             transport = \"tcp\"\nsizes = \"1KiB\"\n"
        );
        let given = Allocation { pods: found, ..Allocation::default() };
        parse_in("p.toml", &text, Path::new(""), Some(&given))
            .map(|(plan, _)| plan)
            .map_err(|mistakes| mistakes.render(false))
    }

    fn found(pods: &[(&str, &str)], others: &[&str]) -> Option<PodList> {
        let pod = |(name, node): &(&str, &str)| Pod { name: (*name).to_owned(), node: (*node).to_owned() };
        Some(PodList {
            list: pods.iter().map(pod).collect(),
            others: others.iter().map(|&one| one.to_owned()).collect(),
        })
    }

    fn hosts(plan: &Plan) -> Vec<(&str, &str)> {
        plan.hosts.iter().map(|host| (host.name.as_str(), host.address.as_str())).collect()
    }

    const TWO: &str = "{ kubectl = { selector = \"app=rg\", pods = 2 } }";

    #[test]
    fn hosts_have_the_names_of_their_nodes_where_those_tell_them_apart() {
        let plan = read("kubectl", TWO, found(&[("rg-a", "gpu1"), ("rg-b", "gpu2")], &[])).unwrap();
        assert_eq!(hosts(&plan), [("gpu1", "rg-a"), ("gpu2", "rg-b")]);
        assert_eq!(plan.pods.unwrap().selector, "app=rg");
        for nodes in [["gpu1", "gpu1"], ["", "gpu2"]] {
            let plan = read("kubectl", TWO, found(&[("rg-a", nodes[0]), ("rg-b", nodes[1])], &[])).unwrap();
            assert_eq!(hosts(&plan), [("rg-a", "rg-a"), ("rg-b", "rg-b")]);
        }
    }

    #[test]
    fn another_number_of_pods_is_a_mistake_that_names_those_that_do_not_run() {
        let told = read("kubectl", TWO, found(&[("rg-a", "gpu1")], &["rg-b is Pending"])).unwrap_err();
        assert!(told.contains("wants 2 pods, kubectl finds 1 running pod for app=rg; rg-b is Pending"), "{told}");
        let three = [("rg-a", "gpu1"), ("rg-b", "gpu2"), ("rg-c", "gpu3")];
        let told = read("kubectl", TWO, found(&three, &[])).unwrap_err();
        assert!(told.contains("finds 3 running pods"), "{told}");
    }

    #[test]
    fn where_nobody_has_asked_pods_have_placeholders() {
        assert_eq!(hosts(&read("kubectl", TWO, None).unwrap()), [("pod-1", "pod-1"), ("pod-2", "pod-2")]);
        let plan = read("kubectl", "{ names = [\"rg-a\", \"rg-b\"] }", None).unwrap();
        assert_eq!(hosts(&plan)[1], ("rg-b", "rg-b"));
        assert_eq!(plan.pods, None);
    }

    #[test]
    fn a_selector_needs_kubectl_and_no_names() {
        let told = read("ssh", TWO, None).unwrap_err();
        assert!(told.contains("applies only with via = \"kubectl\""), "{told}");
        let both = "{ names = [\"a\", \"b\"], kubectl = { selector = \"app=rg\", pods = 2 } }";
        assert!(read("kubectl", both, None).unwrap_err().contains("does not apply where hosts are named"));
        assert!(read("kubectl", "{}", None).unwrap_err().contains("selector = \"app=railgauge\""));
        assert!(read("kubectl", "{ kubectl = { pods = 2 } }", None).unwrap_err().contains("`selector` is missing"));
    }
}

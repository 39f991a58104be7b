use railgauge_wire::facts::MODULES as LOOKED_AT;

use super::rule::*;

pub(super) const RULE: Rule = Rule {
    reads: "/proc/sys/kernel/osrelease, /sys/module/*/version",
    meaning: "hosts with different software may perform differently: compare their results with care",
    source: "kernel Documentation/ABI/stable/sysfs-module",
    spoils: Spoils::Nothing,
    subject: Subject::Host,
    needs: &[Need::Host(|facts| !facts.kernel.is_empty(), "its kernel")],
    find,
};

fn find(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let kernels = || scene.hosts().map(|(_, facts)| facts.kernel.clone());
    if let Some(usual) = Usual::of(scene.wanted().kernel.clone(), kernels()) {
        for (host, facts) in scene.hosts().filter(|(_, facts)| facts.kernel != usual.value) {
            let what = format!("kernel {}, {}", facts.kernel, usual.words(Clone::clone));
            let other = Found::host(usual.severity(Notice), host, what, remedy::SAME_KERNEL);
            found.push(other.usual("kernel", facts.kernel.clone(), &usual));
        }
    }
    let mut names: BTreeSet<&str> =
        scene.hosts().flat_map(|(_, facts)| facts.modules.keys()).map(String::as_str).collect();
    names.extend(scene.wanted().modules.keys().map(String::as_str).filter(|name| LOOKED_AT.contains(name)));
    for name in names {
        let of = |facts: &HostFacts| facts.modules.get(name).cloned();
        let wanted = scene.wanted().modules.get(name);
        let usual = Usual::of(wanted.map(|version| Some(version.clone())), scene.hosts().map(|(_, facts)| of(facts)));
        let Some(usual) = usual else { continue };
        let any = usual.value.as_deref() == Some("*");
        let odd = |(_, facts): &(&str, &HostFacts)| if any { of(facts).is_none() } else { of(facts) != usual.value };
        for (host, facts) in scene.hosts().filter(odd) {
            let what = format!("module {name} {}, {}", shown(&of(facts)), usual.words(shown));
            // `false` is a module that is not loaded, `true` one without a version.
            let value = |version: &Option<String>| match version.as_deref() {
                None => Value::from(false),
                Some("" | "*") => Value::from(true),
                Some(version) => Value::from(version),
            };
            let usual_value = Usual { value: value(&usual.value), wanted: usual.wanted };
            let remedy = remedy::SAME_MODULE.with([("module", name)]);
            let other = Found::host(usual.severity(Notice), host, what, remedy);
            found.push(other.usual(format!("modules.{name}"), value(&of(facts)), &usual_value));
        }
    }
}

fn shown(version: &Option<String>) -> String {
    match version.as_deref() {
        None => "is not loaded".into(),
        Some("" | "*") => "loaded".into(),
        Some(version) => version.to_owned(),
    }
}

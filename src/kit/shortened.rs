use std::time::Duration;

use railgauge_model::plan::{Plan, model::Pattern};
use railgauge_wire::Window;

const WINDOW: Duration = Duration::from_millis(500);
const WARM_UP: Duration = Duration::from_millis(100);
const SIZES: usize = 3;

pub(crate) fn shorten(plan: &mut Plan) -> Vec<String> {
    let mut notes = Vec::new();
    let changing: Vec<String> =
        plan.tests.iter().filter(|test| test.configure.is_some()).map(|test| test.name.clone()).collect();
    if !changing.is_empty() {
        notes.push(format!("left out, because they change the cluster: {}", changing.join(", ")));
        plan.tests.retain(|test| test.configure.is_none());
    }
    if plan.topology.take().is_some() {
        notes.push("left out: what the plan knows of switches; tests of such pairs measure one random round".into());
        for test in &mut plan.tests {
            test.links_covered = None;
            if matches!(test.pattern, Pattern::Fabric(_)) {
                test.pattern = Pattern::Random(1);
            }
        }
    }
    if plan.soak.take().is_some() {
        notes.push("left out: the soak".into());
    }
    plan.interleave.clear();
    plan.localise.confirm = false;
    for test in &mut plan.tests {
        test.repeats = 1;
        test.warm_up = test.warm_up.min(WARM_UP);
        test.window = match test.window {
            Window::Duration(time) => Window::Duration(time.min(WINDOW.into())),
            Window::Iterations(count) => Window::Iterations(count.min(1000)),
            Window::Adaptive { .. } => Window::Duration(WINDOW.into()),
        };
        if test.sizes.len() > SIZES {
            let last = test.sizes.len() - 1;
            test.sizes = [0, last / 2, last].map(|at| test.sizes[at]).into();
        }
    }
    notes.push(format!(
        "every test once, windows of at most {} ms, at most {SIZES} sizes; parts are not confirmed",
        WINDOW.as_millis()
    ));
    notes
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use railgauge_model::plan;

    use super::*;

    fn plan(text: &str) -> Plan {
        let head = "name = \"p\"\n[launch]\nvia = \"local\"\n[hosts]\nnames = [\"a\", \"b\", \"c\"]\n";
        plan::parse("p", &format!("{head}{text}"), Path::new("")).unwrap_or_else(|m| panic!("{}", m.render(false))).0
    }

    #[test]
    fn a_plan_is_made_short() {
        let test = "[[test]]\nname = \"t\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                    sizes = \"4KiB..4MiB x4\"\nrepeats = 3\nmeasure = \"10s\"\n";
        let mut plan = plan(test);
        shorten(&mut plan);
        let short = &plan.tests[0];
        assert_eq!((short.repeats, short.sizes.len(), short.window), (1, 3, Window::Duration(WINDOW.into())));
    }

    #[test]
    fn what_changes_the_cluster_is_left_out() {
        let test = "[[test]]\nname = \"t\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\n\
                    sizes = \"4KiB\"\n[test.configure]\napply = [\"true\"]\nundo = [\"true\"]\n";
        let mut plan = plan(test);
        let notes = shorten(&mut plan);
        assert!(plan.tests.is_empty() && notes[0].ends_with(": t"), "{notes:?}");
    }

    #[test]
    fn a_soak_of_days_is_left_out() {
        let test = "[[test]]\nname = \"t\"\nop = \"write\"\nmetric = \"bandwidth\"\ntransport = \"tcp\"\nsizes = \"4KiB\"\n\
                    [soak]\nfor = \"72h\"\ntest = \"t\"\n";
        let mut plan = plan(test);
        assert!(plan.soak.is_some());
        let notes = shorten(&mut plan);
        assert!(plan.soak.is_none() && notes[0].contains("soak"), "{notes:?}");
    }
}

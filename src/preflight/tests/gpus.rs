use super::*;

#[test]
fn a_host_without_gpus_has_no_driver_that_root_could_read() {
    let plan = planned("transport = \"verbs\"\n[preflight]\ngpu_driver = \"580\"\n");
    let found: Vec<Finding> =
        judge(&plan, &cluster(|_| {})).into_iter().filter(|one| one.check == "gpu-driver").collect();
    let [one] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(
        (one.severity, one.unread, one.remedy.id.as_ref()),
        (Severity::Failure, false, "wanted-value"),
        "{one:#?}"
    );
    // Where GPUs cannot be read nobody knows.
    let mut blind = cluster(|_| {});
    blind.facts.values_mut().for_each(|host| {
        host.unreadable.insert(GPUS.into(), "no permission".into());
    });
    assert!(judge(&plan, &blind).iter().any(|one| one.check == "gpu-driver" && one.unread));
}

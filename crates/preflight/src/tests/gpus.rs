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

#[test]
fn gpus_of_amd_have_remedies_of_their_own() {
    let plan = planned(
        "transport = \"verbs\"\nmemory = \"cuda\"\n[[test]]\nname = \"loop\"\nop = \"nic_loopback\"\nmetric = \
         \"bandwidth\"\nmemory = \"cuda\"\n",
    );
    let of_amd = cluster(|facts| {
        facts.modules.insert("amdgpu".to_owned(), "6.10.5".to_owned());
        facts.libraries.insert("libamd_smi.so".to_owned(), "libamd_smi.so: cannot open".to_owned());
        let memory_faults = MemoryFaults { uncorrected: Some(2), ..MemoryFaults::default() };
        let pci = Some("0000:d0:00.0".to_owned());
        facts.gpus = vec![Gpu { pci, memory_faults, ecc: Some(false), ..Gpu::default() }];
    });
    let found = judge(&plan, &of_amd);
    let remedies = |check: &str| {
        let of_check = found.iter().filter(|one| one.check == check);
        let mut ids: Vec<&str> = of_check.map(|one| one.remedy.id.as_ref()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(remedies("gpudirect"), ["amd-gpu-over-rdma", "loop-amd-gpu-memory"], "{found:#?}");
    assert_eq!(remedies("gpu-memory"), ["ecc-of-amd-gpu", "reset-amd-gpu"], "{found:#?}");
    let reset = found.iter().find(|one| one.remedy.id == "reset-amd-gpu").map(|one| one.remedy.text());
    assert!(reset.is_some_and(|text| text.contains("amd-smi reset --gpureset --gpu 0000:d0:00.0")), "{found:#?}");
    let smi = found.iter().find(|one| one.check == "gpu-library").map(|one| one.meaning.as_str());
    assert_eq!(smi, Some("tests run; facts and the state of its GPUs are not read"), "{found:#?}");
}

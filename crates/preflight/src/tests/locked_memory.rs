use super::*;

/// One agent registers what all flows and rails of a round need on its host: KiB for 8 MiB in two areas of each queue pair, and the queues.
#[test]
fn locked_memory_is_that_of_all_ends_at_once() {
    let needed = |more: &str, host: &str| {
        let mut cluster = cluster(|_| {});
        let facts = cluster.facts.get_mut(host).unwrap();
        facts.memlock_bytes = Some(Bytes::from_kib(64));
        let found = judge(&planned(&format!("sizes = [\"8MiB\"]\n{more}")), &cluster);
        let of_check = found.into_iter().find(|finding| finding.check == "locked-memory");
        of_check.map(|finding| serde_json::to_value(&finding.observed).unwrap()["wanted"].as_u64().unwrap())
    };
    let ends = |count: u64| Some(count * 2 * (8192 + 8) + 1024);
    assert_eq!(needed("", "gpu1"), ends(1));
    assert_eq!(needed("qps = 4\n", "gpu1"), ends(4));
    assert_eq!(needed("pattern = \"incast\"\nto = \"gpu1\"\n", "gpu1"), ends(3));
    assert_eq!(needed("pattern = \"incast\"\nto = \"gpu1\"\n", "gpu2"), ends(1));
    let within = "[[test]]\nname = \"loop\"\nop = \"nic_loopback\"\nmetric = \"bandwidth\"\nsizes = [\"8MiB\"]\n";
    assert_eq!(needed(within, "gpu1"), ends(2));
    // Memory of a GPU is not memory of the host.
    assert_eq!(needed("memory = \"cuda\"\n", "gpu1"), None);
    assert_eq!(
        needed("memory = { from = \"cuda\", to = \"host\" }\npattern = \"incast\"\nto = \"gpu1\"\n", "gpu2"),
        None
    );
    assert_eq!(
        needed("memory = { from = \"cuda\", to = \"host\" }\npattern = \"incast\"\nto = \"gpu1\"\n", "gpu1"),
        ends(3)
    );
}

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn anonymiser() -> Anonymiser {
    let names = [("gpu01.site.example", "host-1"), ("gpu01", "host-1"), ("gpu02", "host-2")];
    with(&names)
}

fn with(names: &[(&str, &str)]) -> Anonymiser {
    let names = names.iter().map(|(name, placeholder)| (*name, (*placeholder).to_owned()));
    Anonymiser::new([7; 32], names).unwrap()
}

#[test]
fn names_are_whole_words() {
    let mut to = anonymiser();
    let text =
        "gpu01.site.example and gpu02-ib0 (gpu01): gpu011, agpu01, gpu[01-16], gpu[01-02].site.example: gpu01_eth0";
    assert_eq!(
        to.text(text),
        "host-1 and host-2-ib0 (host-1): gpu011, agpu01, hosts[01-16], hosts[01-02]: host-1_eth0"
    );
    // A longer name that does not fit hides no shorter one, and a name that is not a whole word hides no address.
    let mut to = with(&[("my-node", "host-1"), ("node", "host-2"), ("5a", "host-3"), ("rack1n2", "host-4")]);
    assert_eq!(to.text("xmy-node 5a54:00:77 rack[1-2]n[1-4]"), "xmy-host-2 5a54:00:77 hosts[1-2]");
    assert_eq!(to.text("5a:54:00:77:01:01x 52:54:00:77:01:01"), "host-3:54:00:77:01:01x 02:00:00:00:00:01");
    assert_eq!(with(&[]).text("gpu01"), "gpu01");
}

#[test]
fn fields_of_documents_are_replaced_only_where_they_are_hosts() {
    let mut to = with(&[("gpu01", "host-1"), ("cause", "name-1")]);
    let mut value = serde_json::json!({ "gpu01": { "cause": "cause: GPU01" }, "52:54:00:77:01:01": 1 });
    to.document(&mut value);
    assert_eq!(value, serde_json::json!({ "host-1": { "cause": "name-1: host-1" }, "02:00:00:00:00:01": 1 }));
}

#[test]
fn addresses_keep_their_kind_and_their_networks() {
    let mut to = anonymiser();
    let one = to.text("10.77.0.1");
    assert!(one.starts_with("2") && one != "10.77.0.1", "{one}");
    assert_eq!(to.text("::ffff:10.77.0.1"), format!("::ffff:{one}"));
    assert_eq!(
        to.text("at 10.77.0.1:4791, 127.0.0.1 and 255.255.255.0."),
        format!("at {one}:4791, 127.0.0.1 and 255.255.255.0.")
    );
    let network = to.text("10.77.0.0/24");
    let ip = |text: &str| text.split('/').next().unwrap().parse::<Ipv4Addr>().unwrap().to_bits();
    assert!(
        network.ends_with("/24") && ip(&network) >> 8 == ip(&one) >> 8 && ip(&network) & 0xff == 0,
        "{network} {one}"
    );
    // The GID of a RoCE port: of its IPv4 address, and of its MAC address.
    let gid = to.text("0000:0000:0000:0000:0000:ffff:0a4d:0001");
    assert_eq!(gid.parse::<Ipv6Addr>().unwrap().to_ipv4_mapped().unwrap().to_string(), one);
    let mac = to.text("52:54:00:77:01:01");
    assert_eq!(mac, "02:00:00:00:00:01");
    assert_eq!(to.text("fe80:0000:0000:0000:5054:00ff:fe77:0101"), "fe80:0000:0000:0000:0000:00ff:fe00:0001");
    assert_eq!(to.text("fe80::5054:ff:fe77:101%eth0"), "fe80::ff:fe00:1%eth0");
    assert_eq!(to.text("enx525400770101"), "enx020000000001");
    assert_eq!(to.text("525400770101 525400770102"), "020000000001 525400770102");
}

#[test]
fn guids_stay_guids() {
    let mut to = anonymiser();
    // NVIDIA's adapters make theirs of the MAC address.
    assert_eq!(to.text("b83f:d203:00aa:bbcc"), "0200:0003:0000:0001");
    assert_eq!(to.text("b8:3f:d2:aa:bb:cc"), "02:00:00:00:00:01");
    assert_eq!(to.text("0002:c903:00fe:8a11 0xb83fd20300aabbcc"), "0200:0003:0000:0002 0x0200000300000001");
    assert_eq!(to.text("506b:4b11:00c2:1a2e"), "0200:0000:0000:0001");
    // The default subnet prefix stays, another one does not, and ports of one subnet stay in one.
    let other = to.text("fec0:0000:0000:0007:506b:4b11:00c2:1a2e");
    assert!(
        other.starts_with("fec0:") && other.ends_with(":0200:0000:0000:0001") && !other.contains("0000:0000:0007"),
        "{other}"
    );
    let ipoib = to.text("80:00:02:08:fe:80:00:00:00:00:00:00:50:6b:4b:11:00:c2:1a:2e");
    assert_eq!(ipoib, "80:00:02:08:fe:80:00:00:00:00:00:00:02:00:00:00:00:00:00:01");
    assert_eq!(to.text("GPU-3b7ed2f1-1111-2222-3333-444455556666"), "GPU-00000000-0000-0000-0000-000000000001");
}

#[test]
fn what_only_looks_like_it_stays() {
    let mut to = anonymiser();
    for text in [
        "0000:3b:00.0",
        "2026-11-24T21:58:45.123Z",
        "12:30:45",
        "mlx5_0:1",
        "00:00:00:00:00:00",
        "::1",
        "fabric::verbs",
        "1.2.3",
    ] {
        assert_eq!(to.text(text), text);
    }
    // A version of bnxt's firmware, and an address that is known from elsewhere.
    to.text("10.77.0.1");
    let mut facts =
        serde_json::json!({ "firmware": "228.0.116.0", "libraries": { "x": "libx.so.1.2.3.4" }, "peer": "10.77.0.1" });
    to.document(&mut facts);
    assert_eq!(facts["firmware"], "228.0.116.0");
    assert_eq!(facts["libraries"]["x"], "libx.so.1.2.3.4");
    assert_ne!(facts["peer"], "10.77.0.1");
}

#[test]
fn serial_numbers_go() {
    let mut to = anonymiser();
    let tree = "tree/sys/class/infiniband/hfi1_0";
    let mut config = vec![0_u8; 4096];
    config[0x100..0x104].copy_from_slice(&(0x1501_0001_u32).to_le_bytes());
    config[0x150..0x154].copy_from_slice(&(0x0001_0003_u32).to_le_bytes());
    config[0x154..0x15c].fill(0xab);
    let items = Items::from([
        (format!("{tree}/serial"), Item::File(b"0x00abc123\n".to_vec())),
        (format!("{tree}/device/config"), Item::File(config)),
        ("tree/gpu02/sys/class/net/x".into(), Item::Link("tree/gpu02/sys/devices/y".into())),
    ]);
    let items = to.items(items);
    assert_eq!(items[&format!("{tree}/serial")], Item::File(b"id-1\n".to_vec()));
    let Item::File(config) = &items[&format!("{tree}/device/config")] else { panic!() };
    assert!(!config.contains(&0xab) && config[0x150] == 3);
    assert_eq!(items["tree/host-2/sys/class/net/x"], Item::Link("tree/host-2/sys/devices/y".into()));
    assert!(to.pairs().any(|pair| pair == ("identity", "0x00abc123", "id-1")));
}

#[test]
fn serial_numbers_and_places_in_documents_go_and_stay_the_same_everywhere() {
    let mut to = anonymiser();
    let facts = || {
        serde_json::json!({
            "parts": {
                "machine": { "vendor": "Maker", "serial": "J1234567" },
                "cards": [{ "pci": "0000:18:00.0", "label": { "part_number": "P1", "serial": "MT2326XZ0DQ8" } }],
                "modules": [{ "interface": "eth0", "form": "QSFP28", "label": { "serial": "MT2326XZ0DQ8" } }],
            },
            "gpus": [{ "serial": "1654323021232", "part_number": "900-2G520" }],
            "hosts": [{ "name": "gpu01", "place": "rack12/u07" }],
        })
    };
    for mut found in [facts(), facts()] {
        to.document(&mut found);
        let text = found.to_string();
        for secret in ["J1234567", "MT2326XZ0DQ8", "1654323021232", "rack12"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        let parts = &found["parts"];
        assert_eq!(parts["cards"][0]["label"]["serial"], parts["modules"][0]["label"]["serial"]);
        assert_ne!(parts["cards"][0]["label"]["serial"], parts["machine"]["serial"]);
        assert_eq!(
            (&parts["cards"][0]["label"]["part_number"], &found["gpus"][0]["part_number"]),
            (&"P1".into(), &"900-2G520".into())
        );
    }
    let tree = "tree/sys/class/dmi/id/product_serial".to_owned();
    let items = to.items(Items::from([(tree, Item::File(b"J1234567\n".to_vec()))]));
    assert!(items.into_values().all(|item| item != Item::File(b"J1234567\n".to_vec())));
}

#[test]
fn devices_named_by_their_guid_and_addresses_behind_a_word_are_replaced() {
    let mut to = anonymiser();
    let device = to.text("rocex506b4b1100c21a2e iwx506b4b1100c21a2e ibx506b4b1100c21a2e");
    assert_eq!(device, "rocex0200000000000001 iwx0200000000000001 ibx0200000000000001");
    assert_eq!(to.text("lladdr:52:54:00:77:01:01"), "lladdr:02:00:00:00:00:01");
    let peer = to.text("peer:2001:db8::5254:ff:fe77:101");
    assert!(peer.starts_with("peer:2001:") && !peer.contains("5254"), "{peer}");
    // What stands within an address is not an address.
    assert_eq!(to.text("0000:3b:00.0 zz:12:30:45"), "0000:3b:00.0 zz:12:30:45");
}

#[test]
fn names_in_capitals_and_identities_of_any_bytes_go() {
    let mut to = anonymiser();
    assert_eq!(to.text("GPU01 Gpu02.x GPU[01-16]"), "host-1 host-2.x hosts[01-16]");
    let path = "tree/sys/class/infiniband/x/node_desc".to_owned();
    let items = to.items(Items::from([(path, Item::File(b"\xffsecret".to_vec()))]));
    assert_eq!(items.into_values().collect::<Vec<_>>(), [Item::File(b"id-1\n".to_vec())]);
}

/// Compiled once: an unoptimised build takes long for it.
static PATTERN: std::sync::LazyLock<Arc<Regex>> = std::sync::LazyLock::new(|| anonymiser().pattern);

static KNOWN: std::sync::LazyLock<BTreeMap<(&str, String), String>> = std::sync::LazyLock::new(|| anonymiser().known);

fn shared(a: u32, b: u32) -> u32 {
    (a ^ b).leading_zeros()
}

proptest! {
    #[test]
    fn addresses_that_share_a_network_still_do(a: [u8; 4], b: [u8; 4], key: [u8; 32]) {
        let (a, b) = (Ipv4Addr::from(a), Ipv4Addr::from(b));
        let special = |ip: Ipv4Addr| ip.octets()[0] >= 224 || matches!(ip.octets()[0], 0 | 127 | 169);
        prop_assume!(!special(a) && !special(b));
        let mut to = Anonymiser { key, known: BTreeMap::new(), pattern: Arc::clone(&PATTERN) };
        let (x, y) = (to.v4(a), to.v4(b));
        prop_assert_eq!((to.v4(a), to.v4(b)), (x, y));
        prop_assert_eq!(a == b, x == y);
        let before = shared(a.to_bits(), b.to_bits());
        let after = shared(x.to_bits(), y.to_bits());
        prop_assert!(before < 8 || after == before, "{} {} {} {}", a, b, x, y);
    }

    #[test]
    fn no_original_is_left_in_any_text(
        ip: [u8; 4], mac: [u8; 6], words in "[ -~]{0,20}", more in "[ ,;()=]{1,3}",
    ) {
        let (ip, mut mac) = (Ipv4Addr::from(ip), mac);
        prop_assume!(!(ip.octets()[0] >= 224 || matches!(ip.octets()[0], 0 | 127)));
        mac[0] |= 0x10;
        prop_assume!(mac != [0xff; 6]);
        let mac_text = mac.map(|byte| format!("{byte:02x}")).join(":");
        let eui = Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]]);
        let mapped = ip.to_ipv6_mapped().segments().map(|segment| format!("{segment:04x}")).join(":");
        let originals = [ip.to_string(), mac_text, eui.to_string(), mapped, "gpu01".to_owned()];
        let text = originals.join(&more);
        let text = format!("{words}{more}{text}{more}{words}");
        let mut to = Anonymiser { pattern: Arc::clone(&PATTERN), known: KNOWN.clone(), key: [7; 32] };
        let once = to.text(&text);
        for original in &originals {
            let inside_words = words.contains(original.as_str());
            prop_assert!(inside_words || !once.contains(original.as_str()), "{original} in {once:?} of {text:?}");
        }
        prop_assert_eq!(to.text(&text), once, "the same text has the same placeholders");
    }

    #[test]
    fn any_text_is_read(text: String) {
        Anonymiser { pattern: Arc::clone(&PATTERN), known: KNOWN.clone(), key: [7; 32] }.text(&text);
    }
}

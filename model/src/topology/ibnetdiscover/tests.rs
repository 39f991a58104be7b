//! Recorded output of infiniband-diags on a simulated subnet of eight hosts with two rails, and lines that only other versions print.

use proptest::prelude::*;

use super::*;
use crate::topology::{Fabric, fabric::Route};

/// `bench/railgauge_bench/subnet.py DIR --hosts 8 --rails 2 --radix 8 --swap gpu0003 0 gpu0003 1 --slow leaf1 5`.
const FABRIC: &str = include_str!("../recorded/fabric.txt");
const TABLES: &str = include_str!("../recorded/lfts.txt");

fn at<'t>(told: &'t Told, host: &str, device: &str) -> (&'t Cable, String) {
    let is = |plug: &Plug| matches!(&plug.device, Device::Nic(nic) if nic.host.as_deref() == Some(host) && nic.device.as_deref() == Some(device));
    let cable = told.cables.iter().find(|cable| is(&cable.a) || is(&cable.b)).unwrap();
    let far = [&cable.a, &cable.b].into_iter().find_map(|plug| match &plug.device {
        Device::Switch(key) => Some(format!("{}:{}", told.switches[key].name, plug.port.as_deref().unwrap_or("?"))),
        Device::Nic(_) => None,
    });
    (cable, far.unwrap_or_default())
}

#[test]
fn a_recorded_subnet_is_read_whole() {
    let told = read(FABRIC).unwrap();
    // Four leaves, two spines; 16 cables to hosts, 16 upwards.
    assert_eq!((told.switches.len(), told.cables.len(), told.remarks.len()), (6, 32, 0));
    assert_eq!(at(&told, "gpu0001", "mlx5_0").1, "leaf1:1");
    assert_eq!(at(&told, "gpu0003", "mlx5_0").1, "leaf2:3");
    let (cable, far) = at(&told, "gpu0006", "mlx5_1");
    assert_eq!(
        (far.as_str(), cable.rate_gbps, cable.width, cable.speed.as_deref()),
        ("leaf4:2", Some(200.0), Some(4), Some("HDR"))
    );
    let nic = [&cable.a, &cable.b]
        .into_iter()
        .find_map(|plug| if let Device::Nic(nic) = &plug.device { Some(nic) } else { None });
    let nic = nic.unwrap();
    assert_eq!((nic.port, nic.guid.as_deref(), nic.lid.is_some()), (Some(1), Some("02000000000100b1"), true));
    let slow: Vec<_> = told.cables.iter().filter(|cable| cable.width != Some(4)).collect();
    assert_eq!((slow.len(), slow[0].width, slow[0].rate_gbps), (1, Some(1), Some(25.0)));
}

#[test]
fn every_pair_of_hosts_has_a_route_by_the_recorded_tables() {
    let fabric = Fabric::join(&[read(FABRIC).unwrap(), read_routes(TABLES).unwrap()]);
    assert_eq!((fabric.nics.len(), fabric.switches.len()), (16, 6));
    for from in 0..16 {
        for to in (0..16).filter(|to| *to != from) {
            assert!(matches!(fabric.route(from, to), Route::Known(_)), "{from} {to}: {:?}", fabric.route(from, to));
        }
    }
}

#[test]
fn older_and_chassis_forms_are_read() {
    let text = "#\n# Topology file: generated on Thu\n#\nChassis 1 (guid 0x8f10400410015)\n\n# Spine Nodes\nvendid=0x8f1\ndevid=0x5a06\n\
        sysimgguid=0x8f10400410015\t\t# Chassis 1\nswitchguid=0x8f1040041254a(8f1040041254a)\t# Leaf slot 1\n\
        Switch\t24 \"S-0008f1040041254a\"\t\t# \"a \"quoted\" name\" enhanced port 0 lid 6 lmc 0\n\
        [1][ext 3]\t\"H-0008f10403961354\"[2](8f10403961356) \t\t# \"MT25408 ConnectX Mellanox Technologies\" lid 4 4xQDR s=4 w=2 v=4\n\
        [2]\t\"S-0008f10400411a08\"[20][ext 4]\t\t# \"ISR9024\" lid 3 12xFDR10\n\
        [3]\t\"H-0008f10403961999\"[1](8f1040396199a) \t\t# \"Mellanox Technologies Aggregation Node\" lid 9 4xEDR\n\
        [4]\t\"H-0008f10403961888\"[1](8f10403961889) \t\t# \"gpu7 HCA-1\" lid 11 ??x???\n\
        Non-Chassis Nodes\n\nvendid=0x2c9\nCa\t1 \"H-0008f10403961999\"\t\t# \"Mellanox Technologies Aggregation Node\"\n\
        [1](8f1040396199a) \t\"S-0008f1040041254a\"[3]\t\t# lid 9 lmc 0 \"a\" lid 6 4xEDR\n\
        Ca\t2 \"H-0008f10403961354\"\t\t# \"MT25408 ConnectX Mellanox Technologies\"\n\
        [2](8f10403961356) \t\"S-0008f1040041254a\"[1]\t\t# lid 4 lmc 1 \"a \"quoted\" name\" lid 6 4xQDR\n\
        Ca\t1 \"H-0008f10403961888\"\t\t# \"gpu7 HCA-1\"\n";
    let told = read(text).unwrap();
    assert_eq!(told.switches["0008f1040041254a"].name, "a \"quoted\" name");
    assert_eq!(told.switches["0008f1040041254a"].lid, Some(6));
    let rates: Vec<_> = told.cables.iter().map(|cable| cable.rate_gbps).collect();
    assert_eq!(rates, [Some(32.0), Some(120.0), None], "{:?}", told.cables);
    let Device::Nic(nic) = &told.cables[0].b.device else { panic!("{:?}", told.cables[0]) };
    assert_eq!(
        (nic.host.as_deref(), nic.port, nic.lid, nic.guid.as_deref()),
        (None, Some(2), Some(4), Some("0008f10403961356"))
    );
    assert_eq!(told.cables[1].b.device, Device::Switch("0008f10400411a08".into()));
    let Device::Nic(nic) = &told.cables[2].b.device else { panic!() };
    assert_eq!((nic.host.as_deref(), nic.device.as_deref()), (Some("gpu7"), Some("HCA-1")));
}

#[test]
fn forms_of_tables_are_read() {
    let text = "Unicast lids [0x0-0x4] of switch Lid 6 guid 0x0008f1040041254a (leaf (upper)):\n  Lid  Out   Destination\n\
        0x0003 021 : (Switch portguid 0x8f10400411a08: 'x')\n0x0004 001 \n0x0006 000\n0x0007 255 : (illegal port)\n3 valid lids dumped\n\
        Multicast mlids [0xc000-0xc3ff] of switch Lid 6 guid 0x0008f1040041254a (x):\n0xc000      x\n0x0001 002\n\
        *** WARNING ***: this command has been replaced by dump_fts\n";
    let told = read_routes(text).unwrap();
    let switch = &told.switches["0008f1040041254a"];
    assert_eq!((switch.name.as_str(), switch.lid), ("leaf (upper)", Some(6)));
    assert_eq!(switch.routes.iter().map(|(lid, port)| (*lid, *port)).collect::<Vec<_>>(), [(3, 21), (4, 1), (6, 0)]);
}

#[test]
fn a_mistake_is_told_with_its_line() {
    assert_eq!(read("#\n[1] \"H-1\"[1]\n").unwrap_err(), Unread::line(2, "a port before any node"));
    assert!(matches!(read(&FABRIC.replacen("[1]", "[1", 1)), Err(Unread::Line { .. })));
    assert!(matches!(read("usage: ibnetdiscover"), Err(Unread::Line { line: 1, .. })));
    assert!(matches!(read(""), Err(Unread::Whole(_))));
    assert!(matches!(read_routes("\n0x0001 002\n"), Err(Unread::Line { line: 2, .. })));
    assert!(matches!(read_routes("nothing"), Err(Unread::Whole(_))));
}

#[test]
fn ends_that_disagree_are_remarked() {
    let told = read("Switch 4 \"S-1\" # \"a\" base port 0 lid 1 lmc 0\n[1] \"S-2\"[1] # \"b\" lid 2 4xHDR\nSwitch 4 \"S-2\" # \"b\"\n[1] \"S-1\"[2] # \"a\"\n").unwrap();
    assert_eq!((told.remarks.len(), told.cables.len()), (1, 2));
}

proptest! {
    #[test]
    fn nothing_panics(cut in 0..7000_usize, skip in 0..200_usize, put in "[\\[\\]()\"#x0-9 \n]{0,4}") {
        for text in [FABRIC, TABLES] {
            let text = format!("{}{put}{}", &text[..cut.min(text.len())], &text[(cut + skip).min(text.len())..]);
            let _ = (read(&text), read_routes(&text));
        }
    }
}

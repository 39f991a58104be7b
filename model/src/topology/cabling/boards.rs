//! Finds ports of one board at unlike ports of their leaves, where most hosts have like ports (sichek's rule).

use std::collections::{BTreeMap, BTreeSet};

use super::{
    finding::{Agree, Cabling, Finding},
    plugged::Attached,
};

type Board<'a> = (&'a str, &'a str, Vec<&'a Attached>);

pub(super) fn judge(ports: &[Attached], cabling: &mut Cabling) {
    let mut boards: BTreeMap<(&str, &str), Vec<&Attached>> = BTreeMap::new();
    for port in ports.iter().filter(|port| port.at.as_ref().is_some_and(|at| at.port.is_some())) {
        if let Some(board) = &port.board {
            boards.entry((&port.host, board)).or_default().push(port);
        }
    }
    // Boards of the same rails at the same leaves: another unit may use its leaves differently.
    let mut alike: BTreeMap<(Vec<u32>, BTreeSet<&str>), Vec<Board<'_>>> = BTreeMap::new();
    for ((host, board), mut ports) in boards {
        ports.sort_by(|one, other| (one.rail, &one.device).cmp(&(other.rail, &other.device)));
        if ports.len() > 1 {
            let leaves = ports.iter().filter_map(|port| port.at.as_ref()).map(|at| at.key.as_str()).collect();
            let rails = ports.iter().map(|port| port.rail).collect();
            alike.entry((rails, leaves)).or_default().push((host, board, ports));
        }
    }
    for boards in alike.into_values() {
        let agree = boards.iter().filter(|(_, _, ports)| are_like(ports)).count();
        let agree = Agree { agree, of: boards.len() };
        if !agree.is_rule() {
            continue;
        }
        for (host, board, ports) in boards.iter().filter(|(_, _, ports)| !are_like(ports)) {
            if !is_found(&cabling.findings, host, ports) {
                let ports = ports.iter().filter_map(|port| Some((port.device.clone(), port.at.clone()?))).collect();
                cabling.findings.push(Finding::UnlikePorts {
                    host: (*host).into(),
                    board: (*board).into(),
                    ports,
                    agree,
                });
            }
        }
    }
}

fn are_like(ports: &[&Attached]) -> bool {
    let number = |port: &Attached| port.at.as_ref().and_then(|at| at.port.clone());
    ports.iter().all(|port| number(port) == number(ports[0]))
}

fn is_found(findings: &[Finding], host: &str, ports: &[&Attached]) -> bool {
    let has = |device: &str| ports.iter().any(|port| port.device == device);
    findings.iter().any(|finding| match finding {
        Finding::WrongLeaf { host: of, device, .. } => of == host && has(device),
        Finding::Swapped { host: of, rails, .. } => of == host && rails.iter().any(|(_, device, _)| has(device)),
        _ => false,
    })
}

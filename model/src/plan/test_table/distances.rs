//! `gpu_distance`: how far the GPU of a pair may be from its NIC; each distance is a test of its own.

use railgauge_wire::{Distance, Transport};

use super::kind::Kind;
use crate::plan::{Table, Test};

pub fn read(test: &Table<'_>, kind: &Kind) -> Vec<Distance> {
    let collective = kind.op.is_some_and(railgauge_wire::terms::Op::is_collective);
    let refused = match (kind.memory, kind.transport) {
        _ if collective => Some("belongs to pairs and does not apply to a collective"),
        (Some(memory), _) if !memory.has_gpu() => Some("does not apply to host memory"),
        (_, Some(Transport::Tcp)) => Some("does not apply to TCP: it is the distance between GPU and RDMA device"),
        _ => None,
    };
    if let Some(why) = refused {
        test.refuse(["gpu_distance"], why);
        return Vec::new();
    }
    let list = test.terms("gpu_distance", Distance::from_word);
    if let (false, Some(span)) = (list.is_empty(), test.written("gpus")) {
        test.wrong(span, "`gpus` and `gpu_distance` both select GPUs", "leave one of them out");
    }
    list
}

/// One test per distance, named after it where there are several; the test itself without any.
pub fn spread(test: Test, distances: &[Distance]) -> Vec<Test> {
    match distances {
        [] => vec![test],
        [only] => vec![Test { gpu_distance: Some(*only), ..test }],
        several => several
            .iter()
            .map(|distance| {
                let name = if test.name.is_empty() { String::new() } else { format!("{}-{distance}", test.name) };
                Test { name, gpu_distance: Some(*distance), ..test.clone() }
            })
            .collect(),
    }
}

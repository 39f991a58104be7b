//! The structures we hand to libibverbs and librdmacm are C's, byte for byte; and the agent needs neither to start.

use std::{
    fmt::Write as _,
    mem::{offset_of, size_of},
    path::Path,
    process::Command,
};

use railgauge_wire::Ece as ibv_ece;
use rdma_sys::*;

use crate::skip::left_out;

/// One structure: C's name, our size, C's field names with our offsets.
type Structure = (&'static str, usize, Vec<(&'static str, usize)>);

macro_rules! structures {
    ($($type:ident { $($field:ident $(as $c:literal)?),* $(,)? })*) => {
        vec![$((stringify!($type), size_of::<$type>(), vec![
            $((structures!(@name $field $($c)?), offset_of!($type, $field)),)*
        ]),)*]
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $c:literal) => { $c };
}

fn ours() -> Vec<Structure> {
    structures! {
        ibv_sge { addr, length, lkey }
        ibv_ece { vendor_id, options, comp_mask }
        ibv_wc {
            wr_id, status, opcode, vendor_err, byte_len, imm_data_invalidated_rkey_union as "imm_data", qp_num, src_qp,
            wc_flags, pkey_index, slid, sl, dlid_path_bits,
        }
        ibv_recv_wr { wr_id, next, sg_list, num_sge }
        ibv_send_wr {
            wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data_invalidated_rkey_union as "imm_data", wr,
            qp_type, bind_mw_tso_union as "bind_mw",
        }
        ibv_global_route { dgid, flow_label, sgid_index, hop_limit, traffic_class }
        ibv_ah_attr { grh, dlid, sl, src_path_bits, static_rate, is_global, port_num }
        ibv_qp_cap { max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data }
        ibv_qp_init_attr { qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all }
        ibv_qp_attr {
            qp_state, path_mtu, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr, alt_ah_attr,
            pkey_index, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry,
        }
        ibv_port_attr { state, max_mtu, active_mtu, gid_tbl_len, lid, active_width, active_speed, phys_state, link_layer, flags }
        ibv_device_attr {
            fw_ver, node_guid, max_mr_size, max_qp, max_qp_wr, max_cqe, max_qp_rd_atom, max_qp_init_rd_atom, atomic_cap,
            phys_port_cnt,
        }
        ibv_device { node_type, transport_type, name, dev_name }
        ibv_context { device, ops, cmd_fd, async_fd, num_comp_vectors, abi_compat }
        ibv_context_ops { poll_cq, req_notify_cq, post_send, post_recv }
        ibv_qp { context, qp_context, pd, send_cq, recv_cq, handle, qp_num, state, qp_type }
        ibv_cq { context, channel, cq_context, cqe }
        ibv_mr { context, pd, addr, length, lkey, rkey }
        ibv_pd { context, handle }
        ibv_ah { context, pd, handle }
        ibv_comp_channel { context, fd }
        ibv_gid_entry { gid, gid_index, port_num, gid_type, ndev_ifindex }
        verbs_context { query_port, create_cq_ex, sz, context }
        rdma_event_channel { fd }
        rdma_cm_id { verbs, channel, context, qp, route, ps, port_num }
        rdma_conn_param {
            private_data, private_data_len, responder_resources, initiator_depth, flow_control, retry_count,
            rnr_retry_count, srq, qp_num,
        }
        rdma_cm_event { id, listen_id, event, status, param }
    }
}

/// Sizes on every 64-bit Linux since rdma-core 28; those that newer versions extend are left out.
const KNOWN: &[(&str, usize)] = &[
    ("ibv_sge", 16),
    ("ibv_wc", 48),
    ("ibv_recv_wr", 32),
    ("ibv_send_wr", 128),
    ("ibv_ah_attr", 32),
    ("ibv_qp_init_attr", 64),
    ("ibv_qp_attr", 144),
    ("ibv_device_attr", 232),
];

/// What C says, one `name value` per line; `None` without a C compiler or headers.
fn theirs(structures: &[Structure]) -> Option<String> {
    let mut program = String::from("#include <stdio.h>\n#include <stddef.h>\n#include <infiniband/verbs.h>\n");
    program.push_str("#include <rdma/rdma_cma.h>\nint main(void) {\n");
    for (name, _, fields) in structures {
        let _ = writeln!(program, "printf(\"{name} %zu\\n\", sizeof(struct {name}));");
        for (field, _) in fields {
            let _ = writeln!(program, "printf(\"{name}.{field} %zu\\n\", offsetof(struct {name}, {field}));");
        }
    }
    program.push_str("return 0;\n}\n");
    let folder = tempfile::tempdir().unwrap();
    let (source, binary) = (folder.path().join("types.c"), folder.path().join("types"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc").arg("-o").arg(&binary).arg(&source).output().ok()?;
    if !compiled.status.success() {
        eprintln!("C headers not usable: {}", String::from_utf8_lossy(&compiled.stderr));
        return None;
    }
    String::from_utf8(Command::new(&binary).output().ok()?.stdout).ok()
}

#[test]
fn sizes_and_offsets_are_those_of_the_c_headers() {
    let structures = ours();
    for (name, size) in KNOWN {
        let found = structures.iter().find(|(other, ..)| other == name).map(|(_, size, _)| *size);
        assert_eq!(found, Some(*size), "{name}");
    }
    let Some(said) = theirs(&structures) else {
        return left_out("structures are compared with known sizes only: no C compiler or headers here");
    };
    let mut wanted = String::new();
    for (name, size, fields) in &structures {
        let _ = writeln!(wanted, "{name} {size}");
        for (field, offset) in fields {
            let _ = writeln!(wanted, "{name}.{field} {offset}");
        }
    }
    assert_eq!(wanted, said);
}

/// Constants of C that we hand over by value.
#[test]
fn enums_have_the_values_of_the_abi() {
    assert_eq!(ibv_qp_type::IBV_QPT_RC, 2);
    assert_eq!(ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD, 6);
    assert_eq!(ibv_wc_opcode::IBV_WC_RECV, 128);
    assert_eq!(ibv_access_flags::IBV_ACCESS_RELAXED_ORDERING.0, 1 << 20);
    assert_eq!(ibv_qp_attr_mask::IBV_QP_DEST_QPN.0, 1 << 20);
    assert_eq!(ibv_send_flags::IBV_SEND_INLINE.0, 8);
    assert_eq!(rdma_port_space::RDMA_PS_TCP, 0x0106);
}

/// Names of the shared libraries an ELF file needs (DT_NEEDED).
fn needed(elf: &[u8]) -> Vec<String> {
    let number = |at: usize, bytes: usize| {
        elf[at..at + bytes].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte)) as usize
    };
    assert_eq!(&elf[..6], b"\x7fELF\x02\x01", "a 64-bit little-endian ELF file");
    let (headers, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    // Program headers as (type, file offset, address, length in the file).
    let segments: Vec<_> = (0..count)
        .map(|i| headers + i * size)
        .map(|at| (number(at, 4), number(at + 8, 8), number(at + 16, 8), number(at + 32, 8)))
        .collect();
    let offset_of = |address: usize| {
        let holds = |(kind, _, start, length): &&(usize, usize, usize, usize)| {
            *kind == 1 && (*start..start + length).contains(&address)
        };
        segments.iter().find(holds).map(|(_, offset, start, _)| address - start + offset).unwrap()
    };
    let (_, dynamic, _, length) = segments.iter().find(|(kind, ..)| *kind == 2).unwrap();
    let entries: Vec<_> =
        (0..length / 16).map(|i| dynamic + i * 16).map(|at| (number(at, 8), number(at + 8, 8))).collect();
    let names = offset_of(entries.iter().find(|(tag, _)| *tag == 5).unwrap().1);
    let name =
        |at: usize| elf[names + at..].iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
    entries.iter().filter(|(tag, _)| *tag == 1).map(|(_, at)| name(*at)).collect()
}

#[test]
fn the_agent_starts_without_rdma_libraries() {
    let libraries = needed(&std::fs::read(Path::new(env!("CARGO_BIN_EXE_railgauge-agent"))).unwrap());
    assert!(libraries.iter().any(|name| name.starts_with("libc.so")), "the reader reads: {libraries:?}");
    let wrong: Vec<_> = libraries.iter().filter(|name| name.contains("ibverbs") || name.contains("rdma")).collect();
    assert!(wrong.is_empty(), "the agent would not start on a host without {wrong:?}");
}

//! Numbers of `<infiniband/verbs.h>` as words.

use rdma_sys::{ibv_ah_attr, ibv_qp_attr, ibv_qp_cap};
use serde_json::{Map, Value, json};

/// `enum ibv_access_flags`.
const ACCESS: [(u32, &str); 9] = [
    (1, "LOCAL_WRITE"),
    (1 << 1, "REMOTE_WRITE"),
    (1 << 2, "REMOTE_READ"),
    (1 << 3, "REMOTE_ATOMIC"),
    (1 << 4, "MW_BIND"),
    (1 << 5, "ZERO_BASED"),
    (1 << 6, "ON_DEMAND"),
    (1 << 7, "HUGETLB"),
    (1 << 20, "RELAXED_ORDERING"),
];

/// `enum ibv_send_flags`.
const SEND: [(u32, &str); 5] =
    [(1, "FENCE"), (1 << 1, "SIGNALED"), (1 << 2, "SOLICITED"), (1 << 3, "INLINE"), (1 << 4, "IP_CSUM")];

/// `enum ibv_wr_opcode`, from 0 on.
const OPCODES: [&str; 7] = [
    "RDMA_WRITE",
    "RDMA_WRITE_WITH_IMM",
    "SEND",
    "SEND_WITH_IMM",
    "RDMA_READ",
    "ATOMIC_CMP_AND_SWP",
    "ATOMIC_FETCH_AND_ADD",
];

/// `enum ibv_qp_state`, from 0 on.
const STATES: [&str; 7] = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];

/// Names of the bits of `value`; those without a name as a number.
fn bits(table: &[(u32, &str)], value: u32) -> Value {
    let mut names: Vec<String> =
        table.iter().filter(|(bit, _)| value & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    let known = table.iter().fold(0, |all, (bit, _)| all | bit);
    if value & !known != 0 {
        names.push(format!("{:#x}", value & !known));
    }
    json!(names)
}

fn listed(table: &[&str], value: u32) -> Value {
    table.get(value as usize).map_or_else(|| json!(value.to_string()), |name| json!(name))
}

pub fn access(flags: u32) -> Value {
    bits(&ACCESS, flags)
}

pub fn send_flags(flags: u32) -> Value {
    bits(&SEND, flags)
}

pub fn opcode(opcode: u32) -> Value {
    listed(&OPCODES, opcode)
}

pub fn state(state: u32) -> Value {
    listed(&STATES, state)
}

/// `enum ibv_qp_type`.
pub fn service(kind: u32) -> Value {
    match kind {
        2 => json!("RC"),
        3 => json!("UC"),
        4 => json!("UD"),
        other => json!(other.to_string()),
    }
}

pub fn capacity(cap: &ibv_qp_cap) -> Value {
    json!({
        "max_send_wr": cap.max_send_wr,
        "max_recv_wr": cap.max_recv_wr,
        "max_send_sge": cap.max_send_sge,
        "max_recv_sge": cap.max_recv_sge,
        "max_inline_data": cap.max_inline_data,
    })
}

/// An address vector, or an address handle.
pub fn address(to: &ibv_ah_attr) -> Value {
    let mut fields = Map::new();
    let mut field = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    for (name, value) in [
        ("port_num", to.port_num),
        ("sl", to.sl),
        ("src_path_bits", to.src_path_bits),
        ("static_rate", to.static_rate),
        ("is_global", to.is_global),
    ] {
        field(name, json!(value));
    }
    field("dlid", json!(to.dlid));
    if to.is_global != 0 {
        // SAFETY: every member of the union is 16 plain bytes.
        let gid = unsafe { to.grh.dgid.raw };
        field("dgid", json!(gid.iter().map(|byte| format!("{byte:02x}")).collect::<String>()));
        field("flow_label", json!(to.grh.flow_label));
        field("sgid_index", json!(to.grh.sgid_index));
        field("hop_limit", json!(to.grh.hop_limit));
        field("traffic_class", json!(to.grh.traffic_class));
    }
    Value::Object(fields)
}

/// The attributes of a transition that its mask names (`enum ibv_qp_attr_mask`): exactly those, each by its name, and bits
/// without a name as `other`.
pub fn attributes(a: &ibv_qp_attr, mask: u32) -> Value {
    let all: [(u32, &str, Value); 22] = [
        (1, "qp_state", state(a.qp_state)),
        (1 << 1, "cur_qp_state", state(a.cur_qp_state)),
        (1 << 2, "en_sqd_async_notify", json!(a.en_sqd_async_notify)),
        (1 << 3, "qp_access_flags", access(a.qp_access_flags)),
        (1 << 4, "pkey_index", json!(a.pkey_index)),
        (1 << 5, "port_num", json!(a.port_num)),
        (1 << 6, "qkey", json!(a.qkey)),
        (1 << 7, "ah_attr", address(&a.ah_attr)),
        (1 << 8, "path_mtu", json!(a.path_mtu)),
        (1 << 9, "timeout", json!(a.timeout)),
        (1 << 10, "retry_cnt", json!(a.retry_cnt)),
        (1 << 11, "rnr_retry", json!(a.rnr_retry)),
        (1 << 12, "rq_psn", json!(a.rq_psn)),
        (1 << 13, "max_rd_atomic", json!(a.max_rd_atomic)),
        (1 << 14, "alt_path", json!(a.alt_timeout)),
        (1 << 15, "min_rnr_timer", json!(a.min_rnr_timer)),
        (1 << 16, "sq_psn", json!(a.sq_psn)),
        (1 << 17, "max_dest_rd_atomic", json!(a.max_dest_rd_atomic)),
        (1 << 18, "path_mig_state", json!(a.path_mig_state)),
        (1 << 19, "cap", capacity(&a.cap)),
        (1 << 20, "dest_qp_num", json!(a.dest_qp_num)),
        (1 << 25, "rate_limit", json!(a.rate_limit)),
    ];
    let known = all.iter().fold(0, |bits, (bit, ..)| bits | bit);
    let mut fields = Map::new();
    for (_, name, value) in all.into_iter().filter(|(bit, ..)| mask & bit != 0) {
        fields.insert(name.to_owned(), value);
    }
    if mask & !known != 0 {
        fields.insert("other".to_owned(), json!(format!("{:#x}", mask & !known)));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transition_shows_what_its_mask_names_and_nothing_else() {
        // SAFETY: all zero is a valid value of this structure of numbers.
        let mut attributes_of: ibv_qp_attr = unsafe { std::mem::zeroed() };
        (attributes_of.qp_state, attributes_of.retry_cnt, attributes_of.timeout) = (3, 6, 14);
        let shown = attributes(&attributes_of, 1 | 1 << 10 | 1 << 30);
        assert_eq!(shown, json!({"qp_state": "RTS", "retry_cnt": 6, "other": "0x40000000"}));
    }

    #[test]
    fn bits_without_a_name_are_numbers() {
        assert_eq!(access(1 | 1 << 20 | 1 << 30), json!(["LOCAL_WRITE", "RELAXED_ORDERING", "0x40000000"]));
        assert_eq!(opcode(6), json!("ATOMIC_FETCH_AND_ADD"));
        assert_eq!(opcode(99), json!("99"));
    }
}

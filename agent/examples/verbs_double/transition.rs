//! Which attributes a change of state needs and takes: the kernel's `qp_state_table` and `ib_modify_qp_is_ok`
//! (K core/verbs.c), and for EFA `efa_modify_qp_validate` (K efa/efa_verbs.c).

use rdma_sys::{ibv_qp_attr_mask as mask, ibv_qp_state as state, ibv_qp_type as service};

const STATE: u32 = mask::IBV_QP_STATE.0;
const CURRENT: u32 = mask::IBV_QP_CUR_STATE.0;
const ACCESS: u32 = mask::IBV_QP_ACCESS_FLAGS.0;
const PKEY: u32 = mask::IBV_QP_PKEY_INDEX.0;
const PORT: u32 = mask::IBV_QP_PORT.0;
const QKEY: u32 = mask::IBV_QP_QKEY.0;
const AV: u32 = mask::IBV_QP_AV.0;
const MTU: u32 = mask::IBV_QP_PATH_MTU.0;
const TIMEOUT: u32 = mask::IBV_QP_TIMEOUT.0;
const RETRIES: u32 = mask::IBV_QP_RETRY_CNT.0;
const RNR_RETRIES: u32 = mask::IBV_QP_RNR_RETRY.0;
const RQ_PSN: u32 = mask::IBV_QP_RQ_PSN.0;
const READS: u32 = mask::IBV_QP_MAX_QP_RD_ATOMIC.0;
const ALTERNATE: u32 = mask::IBV_QP_ALT_PATH.0;
const RNR_TIMER: u32 = mask::IBV_QP_MIN_RNR_TIMER.0;
const SQ_PSN: u32 = mask::IBV_QP_SQ_PSN.0;
const PEER_READS: u32 = mask::IBV_QP_MAX_DEST_RD_ATOMIC.0;
const MIGRATION: u32 = mask::IBV_QP_PATH_MIG_STATE.0;
const PEER: u32 = mask::IBV_QP_DEST_QPN.0;

/// What a change needs, and what it takes besides.
type Rule = (u32, u32);

/// The rule of a change; `None` where there is no such change.
const fn rule(of: service::Type, from: state::Type, to: state::Type) -> Option<Rule> {
    use state::{
        IBV_QPS_ERR as ERR, IBV_QPS_INIT as INIT, IBV_QPS_RESET as RESET, IBV_QPS_RTR as RTR, IBV_QPS_RTS as RTS,
    };
    let (rc, ud) = (of == service::IBV_QPT_RC, of == service::IBV_QPT_UD);
    match (from, to) {
        (_, RESET | ERR) => Some((0, 0)),
        (RESET, INIT) if ud => Some((PKEY | PORT | QKEY, 0)),
        (RESET, INIT) => Some((PKEY | PORT | ACCESS, 0)),
        (INIT, INIT) if ud => Some((0, PKEY | PORT | QKEY)),
        (INIT, INIT) => Some((0, PKEY | PORT | ACCESS)),
        (INIT, RTR) if ud => Some((0, PKEY | QKEY)),
        (INIT, RTR) if rc => Some((AV | MTU | PEER | RQ_PSN | PEER_READS | RNR_TIMER, ALTERNATE | ACCESS | PKEY)),
        (INIT, RTR) => Some((AV | MTU | PEER | RQ_PSN, ALTERNATE | ACCESS | PKEY)),
        (RTR, RTS) if ud => Some((SQ_PSN, CURRENT | QKEY)),
        (RTR, RTS) if rc => Some((
            TIMEOUT | RETRIES | RNR_RETRIES | SQ_PSN | READS,
            CURRENT | ALTERNATE | ACCESS | RNR_TIMER | MIGRATION,
        )),
        (RTR, RTS) => Some((SQ_PSN, CURRENT | ALTERNATE | ACCESS | MIGRATION)),
        (RTS, RTS) if ud => Some((0, CURRENT | QKEY)),
        (RTS, RTS) if rc => Some((0, CURRENT | ACCESS | ALTERNATE | MIGRATION | RNR_TIMER)),
        (RTS, RTS) => Some((0, CURRENT | ACCESS | ALTERNATE | MIGRATION)),
        _ => None,
    }
}

/// Whether a queue pair may change so with these attributes.
pub fn allowed(of: service::Type, from: state::Type, to: state::Type, given: u32) -> bool {
    rule(of, from, to).is_some_and(|(needed, taken)| given & needed == needed && given & !(needed | taken | STATE) == 0)
}

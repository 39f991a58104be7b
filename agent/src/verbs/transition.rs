//! The states a queue pair goes through, and the attributes each step needs for each service (InfiniBand
//! Architecture Specification 1.4, tables 91 to 93; `ibv_modify_qp(3)`). Pure: what is sent to the device is data.

use std::mem;

use railgauge_wire::{failure::Stage, terms::Service};
use rdma_sys::*;

use super::{address::Path, words::Doing};

/// Shortest wait that a receiver without a posted receive asks for, as a code of the specification's table 45:
/// 12 is 0.64 ms, NCCL's and perftest's value.
const RNR_TIMER: u8 = 12;

/// Times a sender comes back to a receiver that was not ready. 7 would mean for ever.
const RNR_RETRIES: u8 = 6;

/// A step from one state to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Initialise {
        port: u8,
        /// Index of the partition key in the port's table.
        pkey_index: u16,
        atomics: bool,
        qkey: u32,
    },
    Receive {
        /// Where the peer is.
        path: Path,
        mtu: ibv_mtu::Type,
        peer: u32,
        /// First packet sequence number the peer sends.
        psn: u32,
        /// Reads and atomics the peer may have outstanding.
        reads: u8,
    },
    Send {
        /// First packet sequence number we send.
        psn: u32,
        reads: u8,
        /// Retries before the connection is given up.
        retries: u8,
        timeout: u8,
    },
}

impl Change {
    pub(super) const fn doing(&self) -> Doing {
        match self {
            Self::Initialise { .. } => Doing::Initialise,
            Self::Receive { .. } => Doing::Receive,
            Self::Send { .. } => Doing::Send,
        }
    }

    pub(super) const fn stage(&self) -> Stage {
        match self {
            Self::Initialise { .. } => Stage::Open,
            Self::Receive { .. } | Self::Send { .. } => Stage::Join,
        }
    }

    /// The attributes for a queue pair of `service`, and the mask that names them.
    pub(super) fn attributes(&self, service: Service) -> (ibv_qp_attr, i32) {
        use ibv_qp_attr_mask as mask;
        // SAFETY: all zero is a valid value of this structure of numbers.
        let mut a: ibv_qp_attr = unsafe { mem::zeroed() };
        let mut set = mask::IBV_QP_STATE;
        match *self {
            Self::Initialise { port, pkey_index, atomics, qkey } => {
                a.qp_state = ibv_qp_state::IBV_QPS_INIT;
                a.port_num = port;
                a.pkey_index = pkey_index;
                set |= mask::IBV_QP_PKEY_INDEX | mask::IBV_QP_PORT;
                if service == Service::Ud {
                    a.qkey = qkey;
                    set |= mask::IBV_QP_QKEY;
                } else {
                    let mut access = ibv_access_flags::IBV_ACCESS_REMOTE_WRITE;
                    if service == Service::Rc {
                        access |= ibv_access_flags::IBV_ACCESS_REMOTE_READ;
                    }
                    if service == Service::Rc && atomics {
                        access |= ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC;
                    }
                    a.qp_access_flags = access.0;
                    set |= mask::IBV_QP_ACCESS_FLAGS;
                }
            }
            Self::Receive { path, mtu, peer, psn, reads } => {
                a.qp_state = ibv_qp_state::IBV_QPS_RTR;
                if service != Service::Ud {
                    a.ah_attr = path.attributes();
                    a.path_mtu = mtu;
                    a.dest_qp_num = peer;
                    a.rq_psn = psn;
                    set |= mask::IBV_QP_AV | mask::IBV_QP_PATH_MTU | mask::IBV_QP_DEST_QPN | mask::IBV_QP_RQ_PSN;
                }
                if service == Service::Rc {
                    a.max_dest_rd_atomic = reads;
                    a.min_rnr_timer = RNR_TIMER;
                    set |= mask::IBV_QP_MAX_DEST_RD_ATOMIC | mask::IBV_QP_MIN_RNR_TIMER;
                }
            }
            Self::Send { psn, reads, retries, timeout } => {
                a.qp_state = ibv_qp_state::IBV_QPS_RTS;
                a.sq_psn = psn;
                set |= mask::IBV_QP_SQ_PSN;
                if service == Service::Rc {
                    a.max_rd_atomic = reads;
                    a.retry_cnt = retries;
                    a.rnr_retry = RNR_RETRIES;
                    a.timeout = timeout;
                    set |= mask::IBV_QP_MAX_QP_RD_ATOMIC
                        | mask::IBV_QP_RETRY_CNT
                        | mask::IBV_QP_RNR_RETRY
                        | mask::IBV_QP_TIMEOUT;
                }
            }
        }
        (a, set.0.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(service: Service) -> [u32; 3] {
        let path = Path {
            port: 1,
            gid_index: 3,
            peer_gid: Some([1; 16]),
            peer_lid: 0,
            service_level: 0,
            traffic_class: 0,
            flow_label: 0,
        };
        let steps = [
            Change::Initialise { port: 1, pkey_index: 0, atomics: true, qkey: 7 },
            Change::Receive { path, mtu: ibv_mtu::IBV_MTU_1024, peer: 9, psn: 0, reads: 16 },
            Change::Send { psn: 0, reads: 16, retries: 6, timeout: 14 },
        ];
        steps.map(|step| step.attributes(service).1.cast_unsigned())
    }

    #[test]
    fn a_queue_pair_is_initialised_in_its_partition() {
        for service in [Service::Rc, Service::Uc, Service::Ud] {
            let step = Change::Initialise { port: 1, pkey_index: 1, atomics: false, qkey: 7 };
            assert_eq!(step.attributes(service).0.pkey_index, 1);
        }
    }

    /// The required attributes as `ibv_modify_qp(3)` lists them, by their values in <infiniband/verbs.h>.
    #[test]
    fn the_masks_are_those_of_the_manual() {
        const STATE: u32 = 1;
        let init = STATE | 1 << 3 | 1 << 4 | 1 << 5;
        let connected = STATE | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12;
        assert_eq!(
            masks(Service::Rc),
            [init, connected | 1 << 17 | 1 << 15, STATE | 1 << 16 | 1 << 13 | 1 << 10 | 1 << 11 | 1 << 9]
        );
        assert_eq!(masks(Service::Uc), [init, connected, STATE | 1 << 16]);
        assert_eq!(masks(Service::Ud), [STATE | 1 << 4 | 1 << 5 | 1 << 6, STATE, STATE | 1 << 16]);
    }
}

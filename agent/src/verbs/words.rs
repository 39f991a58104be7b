//! Messages for every completion status and every errno of a verb, with likely causes and remedies, in one table each.

use railgauge_wire::{
    Failure, Kind, Stage,
    remedy::{self, Entry},
};
use rdma_sys::{ibv_wc, ibv_wc_status as wc};

railgauge_wire::words! {
    Doing {
        /// `ibv_get_device_list`.
        ListDevices = "listing RDMA devices",
        /// `ibv_open_device`.
        OpenDevice = "opening the device",
        /// `ibv_query_device`, `ibv_query_port`, `ibv_query_gid`.
        Query = "querying the device",
        /// `ibv_alloc_pd`.
        AllocateDomain = "allocating a protection domain",
        /// `ibv_reg_mr`, `ibv_reg_dmabuf_mr`.
        Register = "registering memory",
        /// `ibv_create_cq`, `ibv_create_comp_channel`, `ibv_req_notify_cq`, `ibv_get_cq_event`.
        Completions = "setting up completions",
        /// `ibv_create_qp`.
        CreateQueuePair = "creating a queue pair",
        /// `ibv_modify_qp` to INIT.
        Initialise = "initialising a queue pair",
        /// `ibv_modify_qp` to RTR.
        Receive = "making a queue pair ready to receive",
        /// `ibv_modify_qp` to RTS.
        Send = "making a queue pair ready to send",
        /// `ibv_create_ah`.
        Address = "creating an address handle",
        /// `ibv_post_send`, `ibv_post_recv`.
        Post = "posting work requests",
        /// `ibv_poll_cq`.
        Poll = "polling for completions",
        ConnectionManager = "connecting by rdma_cm",
    }
}

/// Meaning of an errno after `doing`: kind, explanation where its own words lack one, and remedy.
const fn advice(doing: Doing, errno: i32) -> (Kind, &'static str, Option<Entry>) {
    use Doing::{Address, ConnectionManager, CreateQueuePair, ListDevices, OpenDevice, Receive, Register};
    match (doing, errno) {
        (ListDevices | OpenDevice, libc::ENOSYS | libc::ENOENT) => {
            (Kind::Unsupported, "the kernel has no ib_uverbs", Some(remedy::LOAD_IB_UVERBS))
        }
        (_, libc::EACCES | libc::EPERM) => (Kind::Configuration, "", Some(remedy::ALLOW_UVERBS)),
        (Register, libc::ENOMEM) => (
            Kind::Configuration,
            "the limit of locked memory is too small, or the host is out of memory",
            Some(remedy::RAISE_LOCKED_MEMORY),
        ),
        (Register, libc::EFAULT) => (
            Kind::Configuration,
            "the address cannot be pinned; managed memory cannot be registered",
            Some(remedy::PEERMEM_OR_DMA_BUF),
        ),
        (Register, libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => (
            Kind::Unsupported,
            "the device or its driver cannot register this kind of memory",
            Some(remedy::DMA_BUF_OF_NIC),
        ),
        (Register, libc::EINVAL) => (
            Kind::Unsupported,
            "the driver refuses these access flags or this length",
            Some(remedy::RELAXED_ORDERING_OFF),
        ),
        (_, libc::ENOMEM) => (
            Kind::Configuration,
            "the device is out of resources for this depth or number of queue pairs, or the limit of locked memory is \
             too small",
            Some(remedy::FEWER_QUEUE_PAIRS),
        ),
        (CreateQueuePair, libc::EINVAL) => (
            Kind::Unsupported,
            "the device does not offer this depth, inline size or service",
            Some(remedy::LOWER_DEPTH_OR_INLINE),
        ),
        (Receive | Address, libc::ENETUNREACH | libc::EHOSTUNREACH) => {
            (Kind::Fabric, "the peer's address is not reachable from this GID", Some(remedy::COMPARE_ROUTES))
        }
        (Receive | Address, libc::ETIMEDOUT) => {
            (Kind::Fabric, "the peer's hardware address could not be resolved", Some(remedy::PING_PEER))
        }
        (Receive, libc::EINVAL) => {
            (Kind::Configuration, "the peer's attributes do not fit this port", Some(remedy::COMPARE_PORTS))
        }
        (ConnectionManager, libc::ENODEV) => (
            Kind::Configuration,
            "no RDMA device is behind this address, or the module rdma_ucm is not loaded",
            Some(remedy::LOAD_RDMA_UCM),
        ),
        (ConnectionManager, libc::ECONNREFUSED) => {
            (Kind::Fabric, "the peer does not listen any more", Some(remedy::LOOK_AT_PEER_ERROR))
        }
        (_, libc::ENODEV | libc::EIO) => {
            (Kind::Configuration, "the device is gone or was reset", Some(remedy::LOOK_AT_DEVICE))
        }
        (_, libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => {
            (Kind::Unsupported, "the device or its driver does not offer this", None)
        }
        (_, libc::EMFILE | libc::ENFILE) => (Kind::Configuration, "", Some(remedy::RAISE_OPEN_FILES)),
        (_, libc::EAGAIN | libc::EBUSY) => {
            (Kind::Configuration, "something else holds the device", Some(remedy::MEASURE_AGAIN))
        }
        (_, libc::EINVAL) => {
            (Kind::Unsupported, "the device refuses these attributes", Some(remedy::COMPARE_CAPABILITIES))
        }
        _ => (Kind::Internal, "", None),
    }
}

/// The sign of `errno` does not matter: libraries differ.
pub(crate) fn verb(stage: Stage, doing: Doing, on: &str, errno: i32) -> Failure {
    let errno = errno.abs();
    let (kind, meaning, remedy) = advice(doing, errno);
    let said = std::io::Error::from_raw_os_error(errno);
    let colon = if meaning.is_empty() { "" } else { ": " };
    let cause = format!("{on}: {} failed: {said}{colon}{meaning}", doing.word());
    Failure::new(stage, kind, cause).remedy_if(remedy)
}

/// As [`verb`], with the thread's `errno`.
pub(crate) fn last(stage: Stage, doing: Doing, on: &str) -> Failure {
    verb(stage, doing, on, std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Completion statuses: name, meaning and remedy.
macro_rules! statuses {
    ($($status:ident: $name:literal, $meaning:literal $(, $remedy:path)?;)*) => {
        fn status(status: wc::Type) -> (&'static str, &'static str, Option<Entry>) {
            match status {
                $(wc::$status => ($name, $meaning, None $(.or(Some($remedy)))?),)*
                _ => ("unknown status", "a status newer than this agent", Some(remedy::LOOK_UP_STATUS)),
            }
        }
    };
}

statuses! {
    IBV_WC_SUCCESS: "success", "the operation completed";
    IBV_WC_LOC_LEN_ERR: "local length error", "a message is longer than the posted receive or than the port allows", remedy::COMPARE_SIZES;
    IBV_WC_LOC_QP_OP_ERR: "local queue pair operation error", "the device could not carry out its own request, or the \
        service does not offer this operation", remedy::LOOK_AT_DEVICE;
    IBV_WC_LOC_EEC_OP_ERR: "local EE context error", "reliable datagrams are not used";
    IBV_WC_LOC_PROT_ERR: "local protection error", "the local buffer is not registered for this access, or no longer", remedy::RESET_OR_DEFECT;
    IBV_WC_WR_FLUSH_ERR: "flushed", "the queue pair went into its error state before this request was done", remedy::FIRST_ERROR;
    IBV_WC_MW_BIND_ERR: "memory window bind error", "memory windows are not used";
    IBV_WC_BAD_RESP_ERR: "bad response", "the peer answered with a packet that does not fit the request", remedy::COMPARE_FIRMWARE;
    IBV_WC_LOC_ACCESS_ERR: "local access error", "data arrived for a buffer that may not be written (iWARP \
        needs remote write access on read sinks)", remedy::REPORT_DEFECT;
    IBV_WC_REM_INV_REQ_ERR: "remote invalid request", "the peer's device refused the request: it does not support the \
        operation, its receive is too short, or outstanding_reads is too high", remedy::LOWER_OUTSTANDING_READS;
    IBV_WC_REM_ACCESS_ERR: "remote access error", "the peer's memory key, address range or permission did not \
        allow it; its link may have been closed or reset in the meantime", remedy::LOOK_AT_PEER_ERROR;
    IBV_WC_REM_OP_ERR: "remote operation error", "the peer's device failed to carry the request out", remedy::LOOK_AT_PEER_DEVICE;
    IBV_WC_RETRY_EXC_ERR: "retries exceeded", "the peer did not acknowledge in time, again and again", remedy::CHECK_PATH_TO_PEER;
    IBV_WC_RNR_RETRY_EXC_ERR: "receiver not ready", "the peer had no receive posted, again and again: its agent was stalled or starved of CPU", remedy::PEER_CPU_TIME;
    IBV_WC_LOC_RDD_VIOL_ERR: "local RDD violation", "reliable datagrams are not used";
    IBV_WC_REM_INV_RD_REQ_ERR: "remote invalid RD request", "reliable datagrams are not used";
    IBV_WC_REM_ABORT_ERR: "remote abort", "the peer aborted the operation", remedy::LOOK_AT_PEER_ERROR;
    IBV_WC_INV_EECN_ERR: "invalid EE context number", "reliable datagrams are not used";
    IBV_WC_INV_EEC_STATE_ERR: "invalid EE context state", "reliable datagrams are not used";
    IBV_WC_FATAL_ERR: "fatal error", "the device had an error it cannot recover from", remedy::RESET_DEVICE;
    IBV_WC_RESP_TIMEOUT_ERR: "response timeout", "the peer's answer did not come in time", remedy::CHECK_WAY_BACK;
    IBV_WC_GENERAL_ERR: "general error", "the device reports an error without a name", remedy::LOOK_AT_DEVICE;
    IBV_WC_TM_ERR: "tag matching error", "tag matching is not used";
    IBV_WC_TM_RNDV_INCOMPLETE: "tag matching error", "tag matching is not used";
}

pub(crate) fn completion(stage: Stage, on: &str, completion: &ibv_wc) -> Failure {
    let (name, meaning, remedy) = status(completion.status);
    let kind = match completion.status {
        wc::IBV_WC_LOC_PROT_ERR | wc::IBV_WC_LOC_ACCESS_ERR | wc::IBV_WC_MW_BIND_ERR => Kind::Internal,
        _ => Kind::Fabric,
    };
    let cause = format!(
        "{on}: completion status {} on queue pair {:#x}: {name}: {meaning} (vendor code {:#x})",
        completion.status, completion.qp_num, completion.vendor_err
    );
    Failure::new(stage, kind, cause).remedy_if(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_the_headers_has_a_name() {
        let names: std::collections::BTreeSet<_> = (0..=wc::IBV_WC_TM_ERR).map(|code| status(code).0).collect();
        assert_eq!(names.len(), wc::IBV_WC_TM_ERR as usize + 1, "each status has its own name");
        assert!(!names.contains("unknown status"));
        assert_eq!(status(9999).0, "unknown status");
    }

    #[test]
    fn a_verb_says_what_it_did_and_what_to_do_next() {
        let failure = verb(Stage::Open, Doing::Register, "mlx5_0", libc::ENOMEM);
        assert_eq!(failure.kind, Kind::Configuration);
        assert!(failure.cause.starts_with("mlx5_0: registering memory failed: Cannot allocate"), "{failure}");
        assert_eq!(failure.remedy.unwrap().commands()[0].command, "ulimit -l");
        assert_eq!(verb(Stage::Open, Doing::Register, "x", libc::EOPNOTSUPP).kind, Kind::Unsupported);
        assert_eq!(verb(Stage::Open, Doing::OpenDevice, "x", libc::EACCES).remedy.unwrap().id, "allow-uverbs");
        assert_eq!(verb(Stage::Open, Doing::Post, "x", -libc::ENOMEM).kind, Kind::Configuration);
    }
}

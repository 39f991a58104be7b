//! Errors in words: every completion status and every errno a verb returns, with likely causes and the next thing to
//! look at. One table each, so that the whole of our advice can be read in one place.

use railgauge_wire::failure::{Failure, Kind, Stage};
use rdma_sys::{ibv_wc, ibv_wc_status as wc};

/// What was tried when a verb said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// `ibv_get_device_list`.
    ListDevices,
    /// `ibv_open_device`.
    OpenDevice,
    /// `ibv_query_device`, `ibv_query_port`, `ibv_query_gid`.
    Query,
    /// `ibv_alloc_pd`.
    AllocateDomain,
    /// `ibv_reg_mr`, `ibv_reg_dmabuf_mr`.
    Register,
    /// `ibv_create_cq`, `ibv_create_comp_channel`, `ibv_req_notify_cq`, `ibv_get_cq_event`.
    Completions,
    /// `ibv_create_qp`.
    CreateQueuePair,
    /// `ibv_modify_qp` to INIT.
    Initialise,
    /// `ibv_modify_qp` to RTR.
    Receive,
    /// `ibv_modify_qp` to RTS.
    Send,
    /// `ibv_create_ah`.
    Address,
    /// `ibv_post_send`, `ibv_post_recv`.
    Post,
    /// `ibv_poll_cq`.
    Poll,
    /// Anything of librdmacm.
    ConnectionManager,
}

impl Doing {
    const fn words(self) -> &'static str {
        match self {
            Self::ListDevices => "listing RDMA devices",
            Self::OpenDevice => "opening the device",
            Self::Query => "querying the device",
            Self::AllocateDomain => "allocating a protection domain",
            Self::Register => "registering memory",
            Self::Completions => "setting up completions",
            Self::CreateQueuePair => "creating a queue pair",
            Self::Initialise => "initialising a queue pair",
            Self::Receive => "making a queue pair ready to receive",
            Self::Send => "making a queue pair ready to send",
            Self::Address => "creating an address handle",
            Self::Post => "posting work requests",
            Self::Poll => "polling for completions",
            Self::ConnectionManager => "connecting by rdma_cm",
        }
    }
}

/// What an errno means after `doing`: kind of trouble and what to look at next.
const fn advice(doing: Doing, errno: i32) -> (Kind, &'static str) {
    use Doing::{Address, ConnectionManager, CreateQueuePair, ListDevices, OpenDevice, Receive, Register};
    match (doing, errno) {
        (ListDevices | OpenDevice, libc::ENOSYS | libc::ENOENT) => (
            Kind::Unsupported,
            "the kernel has no ib_uverbs: modprobe ib_uverbs, and in a container pass /dev/infiniband through",
        ),
        (_, libc::EACCES | libc::EPERM) => (
            Kind::Configuration,
            "check who may open /dev/infiniband/uverbs* (udev rule, group rdma, container device list)",
        ),
        (Register, libc::ENOMEM) => (
            Kind::Configuration,
            "the locked-memory limit is too small (ulimit -l; set memlock unlimited in limits.conf or the unit file, \
             and remember that sshd hands its own limit on), or the host is out of memory",
        ),
        (Register, libc::EFAULT) => (
            Kind::Configuration,
            "the address cannot be pinned: for GPU memory load nvidia_peermem or use dma-buf; managed memory cannot \
             be registered",
        ),
        (Register, libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => (
            Kind::Unsupported,
            "the device or its driver cannot register this kind of memory: dma-buf needs kernel 5.12, rdma-core 34 \
             and a driver that offers it; else load nvidia_peermem",
        ),
        (Register, libc::EINVAL) => (
            Kind::Unsupported,
            "the driver refuses these access flags or this length: try relaxed_ordering = false, or a smaller buffer",
        ),
        (_, libc::ENOMEM) => (
            Kind::Configuration,
            "the device is out of resources for this depth or number of queue pairs, or the locked-memory limit is \
             too small (ulimit -l)",
        ),
        (CreateQueuePair, libc::EINVAL) => (
            Kind::Unsupported,
            "the device does not offer this depth, inline size or service: lower depth or inline, or use service rc",
        ),
        (Receive | Address, libc::ENETUNREACH | libc::EHOSTUNREACH) => (
            Kind::Fabric,
            "the peer's address is not reachable from this GID: compare subnets, VLANs and routes of both ports",
        ),
        (Receive | Address, libc::ETIMEDOUT) => (
            Kind::Fabric,
            "the peer's hardware address could not be resolved: ping the peer from the interface behind this port",
        ),
        (Receive, libc::EINVAL) => (
            Kind::Configuration,
            "the peer's attributes do not fit this port: compare GID index and type, MTU and port state of both ends; \
             iWARP and eRDMA in standard mode can only be joined by rdma_cm",
        ),
        (ConnectionManager, libc::ENODEV) => {
            (Kind::Configuration, "no RDMA device behind this address, or the module rdma_ucm is not loaded")
        }
        (ConnectionManager, libc::ECONNREFUSED) => {
            (Kind::Fabric, "the peer does not listen any more: look at the peer's own error")
        }
        (_, libc::ENODEV | libc::EIO) => {
            (Kind::Configuration, "the device is gone or was reset: look at `dmesg` and at the firmware of the device")
        }
        (_, libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::ENOSYS) => {
            (Kind::Unsupported, "the device or its driver does not offer this")
        }
        (_, libc::EMFILE | libc::ENFILE) => (Kind::Configuration, "no descriptors left: raise `ulimit -n`"),
        (_, libc::EAGAIN | libc::EBUSY) => (Kind::Configuration, "something else holds the device: retry"),
        (_, libc::EINVAL) => (Kind::Unsupported, "the device refuses these attributes: compare with `ibv_devinfo -v`"),
        _ => (Kind::Internal, ""),
    }
}

/// The failure of a verb that returned `errno` (its sign does not matter; libraries disagree about it).
pub fn verb(stage: Stage, doing: Doing, on: &str, errno: i32) -> Failure {
    let errno = errno.abs();
    let (kind, help) = advice(doing, errno);
    let said = std::io::Error::from_raw_os_error(errno);
    Failure::new(stage, kind, format!("{on}: {} failed: {said}", doing.words())).help(help)
}

/// As [`verb`], for a verb that left its errno in the thread's `errno`.
pub fn last(stage: Stage, doing: Doing, on: &str) -> Failure {
    verb(stage, doing, on, std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Name, meaning and next step of a completion status.
const fn status(status: wc::Type) -> (&'static str, &'static str, &'static str) {
    match status {
        wc::IBV_WC_SUCCESS => ("success", "the operation completed", ""),
        wc::IBV_WC_LOC_LEN_ERR => (
            "local length error",
            "a message is longer than the posted receive or than the port allows",
            "compare message size, max_size and MTU of both ends",
        ),
        wc::IBV_WC_LOC_QP_OP_ERR => (
            "local queue pair operation error",
            "the device could not carry out its own request",
            "look for firmware messages in `dmesg`; the service may not offer this operation",
        ),
        wc::IBV_WC_LOC_EEC_OP_ERR => ("local EE context error", "reliable datagrams are not used", ""),
        wc::IBV_WC_LOC_PROT_ERR => (
            "local protection error",
            "the local buffer is not registered for this access",
            "a registration went away under running work: the device was reset, or this is a bug of ours",
        ),
        wc::IBV_WC_WR_FLUSH_ERR => (
            "flushed",
            "the queue pair went into its error state before this request was done",
            "the first error of this queue pair tells why; look at the peer's error too",
        ),
        wc::IBV_WC_MW_BIND_ERR => ("memory window bind error", "memory windows are not used", ""),
        wc::IBV_WC_BAD_RESP_ERR => (
            "bad response",
            "the peer answered with a packet that does not fit the request",
            "suspect mixed firmware or a fabric that reorders; compare firmware of both ends",
        ),
        wc::IBV_WC_LOC_ACCESS_ERR => (
            "local access error",
            "data arrived for a buffer that may not be written",
            "iWARP needs remote write access on read sinks; else this is a bug of ours",
        ),
        wc::IBV_WC_REM_INV_REQ_ERR => (
            "remote invalid request",
            "the peer's device refused the request",
            "the peer does not support the operation, its receive is too short, or outstanding_reads is too high",
        ),
        wc::IBV_WC_REM_ACCESS_ERR => (
            "remote access error",
            "the peer's memory key, address range or permission did not allow it",
            "the peer's link was closed or reset in the meantime: look at the peer's error",
        ),
        wc::IBV_WC_REM_OP_ERR => (
            "remote operation error",
            "the peer's device failed to carry the request out",
            "look at `dmesg` and firmware messages on the peer",
        ),
        wc::IBV_WC_RETRY_EXC_ERR => (
            "retries exceeded",
            "the peer did not acknowledge in time, again and again",
            "is the peer alive and its port up? Compare GID, VLAN, MTU (jumbo frames end to end) and routes of both \
             ends, then look at packet loss, PFC and firewalls (RoCE v2 is UDP port 4791)",
        ),
        wc::IBV_WC_RNR_RETRY_EXC_ERR => (
            "receiver not ready",
            "the peer had no receive posted, again and again",
            "the peer's agent was stalled or starved of CPU: look at its load and core pinning",
        ),
        wc::IBV_WC_LOC_RDD_VIOL_ERR => ("local RDD violation", "reliable datagrams are not used", ""),
        wc::IBV_WC_REM_INV_RD_REQ_ERR => ("remote invalid RD request", "reliable datagrams are not used", ""),
        wc::IBV_WC_REM_ABORT_ERR => ("remote abort", "the peer aborted the operation", "look at the peer's error"),
        wc::IBV_WC_INV_EECN_ERR => ("invalid EE context number", "reliable datagrams are not used", ""),
        wc::IBV_WC_INV_EEC_STATE_ERR => ("invalid EE context state", "reliable datagrams are not used", ""),
        wc::IBV_WC_FATAL_ERR => (
            "fatal error",
            "the device had an error it cannot recover from",
            "look at `dmesg`; the device probably needs a reset",
        ),
        wc::IBV_WC_RESP_TIMEOUT_ERR => (
            "response timeout",
            "the peer's answer did not come in time",
            "is the peer alive and its port up? Look at packet loss on the way back",
        ),
        wc::IBV_WC_GENERAL_ERR => (
            "general error",
            "the device reports an error without a name",
            "the vendor code and `dmesg` are all there is",
        ),
        wc::IBV_WC_TM_ERR | wc::IBV_WC_TM_RNDV_INCOMPLETE => ("tag matching error", "tag matching is not used", ""),
        _ => ("unknown status", "a status newer than this agent", "compare with <infiniband/verbs.h> of rdma-core"),
    }
}

/// The failure behind a completion that did not succeed.
pub fn completion(stage: Stage, on: &str, completion: &ibv_wc) -> Failure {
    let (name, meaning, help) = status(completion.status);
    let kind = match completion.status {
        wc::IBV_WC_LOC_PROT_ERR | wc::IBV_WC_LOC_ACCESS_ERR | wc::IBV_WC_MW_BIND_ERR => Kind::Internal,
        _ => Kind::Fabric,
    };
    let cause = format!(
        "{on}: completion status {} on queue pair {:#x}: {name}: {meaning} (vendor code {:#x})",
        completion.status, completion.qp_num, completion.vendor_err
    );
    Failure::new(stage, kind, cause).help(help)
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
        assert!(failure.help.contains("ulimit -l"));
        assert_eq!(verb(Stage::Open, Doing::Register, "x", libc::EOPNOTSUPP).kind, Kind::Unsupported);
        assert!(verb(Stage::Open, Doing::OpenDevice, "x", libc::EACCES).help.contains("/dev/infiniband"));
        assert_eq!(verb(Stage::Open, Doing::Post, "x", -libc::ENOMEM).kind, Kind::Configuration);
    }
}

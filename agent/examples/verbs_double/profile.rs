//! The devices that this library doubles: every trait is a fact of a provider or a driver, its source beside it (R is
//! rdma-core, K the kernel's `drivers/infiniband`). Where sources give a formula or a firmware's answer, the value is
//! one that users show for such a device, and the comment says so.

use rdma_sys::{ibv_atomic_cap, ibv_mtu, ibv_node_type, ibv_qp_type, ibv_transport_type};

use crate::counters::{self, Counters};

/// A device.
pub struct Profile {
    /// What `VERBS_DOUBLE_PROFILE` calls it.
    pub name: &'static str,
    /// Its devices' names without their number.
    pub device: &'static str,
    /// What the kernel calls its kind, and libibverbs its transport.
    pub node: ibv_node_type::Type,
    pub transport: ibv_transport_type::Type,
    /// `ibv_port_attr::link_layer`: 0 unspecified, 1 InfiniBand, 2 Ethernet.
    pub link_layer: u8,
    /// What an entry of the GID table is.
    pub gids: Gids,
    /// Partition keys by their index.
    pub pkeys: &'static [u16],
    /// Whether the port says `IBV_QPF_GRH_REQUIRED`.
    pub grh_required: bool,
    /// Services that `ibv_create_qp` takes.
    pub services: &'static [ibv_qp_type::Type],
    /// Errno for others.
    pub no_service: i32,
    /// Whether `ibv_query_qp_data_in_order` says yes for a queue pair in RTS.
    pub in_order: bool,
    /// Whether queue pairs take requests with immediate data: sends, writes.
    pub immediate: (bool, bool),
    /// Whether its driver registers dma-bufs.
    pub dma_buf: bool,
    /// Whether it has a second PCI function for them (R mlx5/verbs.c mlx5_get_data_direct_sysfs_path). Of mlx5 only.
    pub data_direct: bool,
    /// `ibv_ece::options`, whose bits firmware gives their meaning. Of mlx5 only.
    pub ece: u32,
    pub limits: Limits,
    /// Port's largest and active MTU.
    pub mtu: (ibv_mtu::Type, ibv_mtu::Type),
    /// `active_speed`, `active_width`.
    pub speed: (u8, u8),
    /// PCI vendor and device.
    pub vendor: (u32, u32),
    /// What it counts.
    pub counters: Counters,
}

impl Profile {
    /// Index of the GID that stands for the interface's address.
    pub const fn address_index(&self) -> u32 {
        match self.gids {
            Gids::Roce => 3,
            Gids::RoceV2 => 1,
            Gids::Port | Gids::Iwarp => 0,
        }
    }
}

/// What a GID table holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Gids {
    /// RoCE: a link-local and an IPv4 address, each as v1 and as v2 (K core/roce_gid_mgmt.c).
    Roce,
    /// RoCE by a driver without v1 (K bnxt_re and irdma fill v2 beside it; ionic v2 only).
    RoceV2,
    /// InfiniBand or EFA: the subnet prefix and the port's GUID.
    Port,
    /// iWARP: the interface's hardware address (K irdma/verbs.c `irdma_iw_query_gid`).
    Iwarp,
}

/// What a device can do at most.
pub struct Limits {
    pub work_requests: u32,
    pub elements: u32,
    pub inline: u32,
    pub completions: u32,
    pub reads: u8,
    pub atomics: ibv_atomic_cap::Type,
    pub message: u32,
}

const RC: ibv_qp_type::Type = ibv_qp_type::IBV_QPT_RC;
const UC: ibv_qp_type::Type = ibv_qp_type::IBV_QPT_UC;
const UD: ibv_qp_type::Type = ibv_qp_type::IBV_QPT_UD;

/// 4X NDR: `IB_SPEED_NDR` 128, `IB_WIDTH_4X` 2 (K include/rdma/ib_verbs.h). 4X EDR: 32.
const NDR: (u8, u8) = (128, 2);
const EDR: (u8, u8) = (32, 2);

const MLX5_ROCE: Profile = Profile {
    name: "mlx5-roce",
    device: "mlx5_",
    node: ibv_node_type::IBV_NODE_CA,
    transport: ibv_transport_type::IBV_TRANSPORT_IB,
    link_layer: 2,
    gids: Gids::Roce,
    // K mlx5/main.c mlx5_query_hca_port over Ethernet: one key, the default partition's.
    pkeys: &[0xffff],
    grh_required: false,
    services: &[RC, UC, UD],
    // K mlx5/qp.c check_qp_type, create_qp.
    no_service: libc::EOPNOTSUPP,
    // R mlx5/verbs.c mlx5_query_qp_data_in_order: only in RTS, and only where firmware says so.
    in_order: true,
    immediate: (true, true),
    // K mlx5/mr.c mlx5_ib_reg_user_mr_dmabuf.
    dma_buf: true,
    data_direct: false,
    ece: 0x1000_0003,
    limits: Limits {
        // K mlx5/main.c mlx5_ib_query_device: 1 << log_max_qp_sz, 15 on ConnectX-4 and later.
        work_requests: 32_768,
        elements: 30,
        // R mlx5/verbs.c mlx5_calc_send_wqe: what is left of a request of 1,008 bytes behind its segments.
        inline: 956,
        completions: 4_194_303,
        // K mlx5/main.c: 1 << log_max_ra_req_qp, 4 on all.
        reads: 16,
        atomics: ibv_atomic_cap::IBV_ATOMIC_HCA,
        // K mlx5/main.c: 1 << log_max_msg, 30.
        message: 1 << 30,
    },
    mtu: (ibv_mtu::IBV_MTU_4096, ibv_mtu::IBV_MTU_4096),
    speed: NDR,
    vendor: (0x02c9, 4129),
    counters: counters::MLX5_ROCE,
};

const MLX5_IB: Profile = Profile {
    name: "mlx5-ib",
    link_layer: 1,
    gids: Gids::Port,
    // What OpenSM gives every port: the default partition, as a full member.
    pkeys: &[0xffff, 0],
    // K mlx5/mad.c: those of the port, of a virtual function those of its virtual port.
    counters: counters::MLX5_IB,
    ..MLX5_ROCE
};

/// The devices.
pub static ALL: &[Profile] = &[
    MLX5_ROCE,
    MLX5_IB,
    Profile {
        name: "vf-grh",
        // K mlx5/main.c mlx5_port_immutable: RDMA_CORE_PORT_IB_GRH_REQUIRED where the virtual port says grh_required.
        // K core/verbs.c rdma_check_ah_attr: such a port's paths are refused without one.
        grh_required: true,
        vendor: (0x02c9, 4126),
        ..MLX5_IB
    },
    Profile {
        name: "ib-pkey",
        // A limited member of the default partition, whose limited members do not reach each other (InfiniBand
        // Architecture Specification 10.9.3), and a full member of the partition for its jobs.
        pkeys: &[0x7fff, 0x8123, 0],
        ..MLX5_IB
    },
    // Two ports of 200 Gb/s; what is reported is the rate of one: 4X HDR, `IB_SPEED_HDR` 64.
    Profile { name: "mlx5-bond", device: "mlx5_bond_", speed: (64, 2), ..MLX5_ROCE },
    // K mlx5/main.c mlx5_query_port_roce: 40 Gb/s for a mode of Ethernet that it does not know; ConnectX-8 is 4131.
    Profile { name: "cx8", speed: (4, 2), vendor: (0x02c9, 4131), data_direct: true, ..MLX5_ROCE },
    // BlueField-3 as a SuperNIC (41692): adaptive routing sends the packets of a message by several ways, and they are
    // placed as they come (MLX5DV_QP_CREATE_OOO_DP); ECE has selective repeat for it.
    Profile { name: "spectrum-x", in_order: false, vendor: (0x02c9, 41692), ece: 0x1000_0007, ..MLX5_ROCE },
    // A virtual function on a bond of two ports of 200 Gb/s: the rate of one.
    Profile { name: "vf-lag", speed: (64, 2), vendor: (0x02c9, 4126), ..MLX5_ROCE },
    Profile {
        name: "bnxt",
        device: "bnxt_re",
        // K bnxt_re/ib_verbs.c bnxt_re_query_port, bnxt_re_query_pkey: one key.
        pkeys: &[0xffff],
        // K bnxt_re/ib_verbs.c bnxt_re_init_qp_type, __from_ib_qp_type: no UC (EINVAL from the maker's own driver).
        services: &[RC, UD],
        no_service: libc::EOPNOTSUPP,
        // R bnxt_re has no such operation, so libibverbs says 0.
        in_order: false,
        dma_buf: true,
        limits: Limits {
            // K bnxt_re/qplib_sp.c bnxt_qplib_get_dev_attr: firmware's max_qp_wr less the reserved; users show 65,407.
            work_requests: 65_407,
            elements: 6,
            // R bnxt_re: BNXT_RE_MAX_INLINE_SIZE.
            inline: 96,
            completions: 8_388_607,
            reads: 126,
            // K bnxt_re/ib_verbs.c bnxt_re_query_device: GLOB where the PCI path completes atomics, else NONE.
            atomics: ibv_atomic_cap::IBV_ATOMIC_NONE,
            // K bnxt_re/bnxt_re.h BNXT_RE_MAX_MR_SIZE_HIGH; qplib: max_msg_sz 0x40000000.
            message: 1 << 30,
        },
        mtu: (ibv_mtu::IBV_MTU_4096, ibv_mtu::IBV_MTU_4096),
        speed: EDR,
        vendor: (0x14e4, 0x1750),
        counters: counters::BNXT,
        ..MLX5_ROCE
    },
    Profile {
        name: "ionic",
        device: "ionic_",
        gids: Gids::RoceV2,
        pkeys: &[0xffff],
        services: &[RC, UC, UD],
        no_service: libc::EOPNOTSUPP,
        in_order: false,
        dma_buf: true,
        limits: Limits {
            work_requests: 16_384,
            elements: 8,
            inline: 192,
            completions: 65_535,
            reads: 16,
            atomics: ibv_atomic_cap::IBV_ATOMIC_GLOB,
            message: 1 << 30,
        },
        speed: EDR,
        vendor: (0x1dd8, 0x1003),
        counters: counters::IONIC,
        ..MLX5_ROCE
    },
    Profile {
        name: "irdma-roce",
        device: "irdma",
        pkeys: &[0xffff],
        // K irdma/verbs.c irdma_validate_qp_attrs, irdma_create_qp: over RoCE RC, UD and GSI.
        services: &[RC, UD],
        no_service: libc::EOPNOTSUPP,
        in_order: false,
        dma_buf: true,
        limits: Limits {
            // K irdma: max_hw_wq_quanta and the quanta that a request may take; users show 4,063 on E810.
            work_requests: 4_063,
            elements: 13,
            // K irdma/icrdma_hw.c: ICRDMA max_hw_inline.
            inline: 101,
            completions: 1_048_574,
            reads: 127,
            // K irdma/verbs.c irdma_query_device: atomics from GEN_3 on.
            atomics: ibv_atomic_cap::IBV_ATOMIC_NONE,
            // K irdma/verbs.c irdma_query_port: IRDMA_MAX_OUTBOUND_MSG_SIZE.
            message: 2_147_483_647,
        },
        speed: EDR,
        vendor: (0x8086, 0x1592),
        counters: counters::IRDMA_ROCE,
        ..MLX5_ROCE
    },
    Profile {
        name: "irdma-iwarp",
        device: "irdma",
        node: ibv_node_type::IBV_NODE_RNIC,
        transport: ibv_transport_type::IBV_TRANSPORT_IWARP,
        gids: Gids::Iwarp,
        // iWARP has no partitions (K irdma/verbs.c: pkey_tbl_len only over RoCE).
        pkeys: &[],
        // K irdma/verbs.c irdma_create_qp: over iWARP only RC.
        services: &[RC],
        no_service: libc::EOPNOTSUPP,
        in_order: false,
        // R irdma/uverbs.c irdma_upost_send asks qp_caps for both; K irdma/verbs.c irdma_create_qp gives iWARP
        // IRDMA_WRITE_WITH_IMM alone, RoCE both.
        immediate: (false, true),
        dma_buf: true,
        limits: Limits {
            work_requests: 4_063,
            elements: 13,
            inline: 101,
            completions: 1_048_574,
            reads: 127,
            atomics: ibv_atomic_cap::IBV_ATOMIC_NONE,
            message: 2_147_483_647,
        },
        speed: EDR,
        vendor: (0x8086, 0x1592),
        counters: counters::IRDMA_IWARP,
        ..MLX5_ROCE
    },
    Profile {
        name: "efa",
        device: "efa_",
        // K efa/efa_verbs.c, R efa/efa.c: an unspecified node and transport; efa_port_link_layer: unspecified.
        node: ibv_node_type::IBV_NODE_UNSPECIFIED,
        transport: ibv_transport_type::IBV_TRANSPORT_UNSPECIFIED,
        link_layer: 0,
        gids: Gids::Port,
        pkeys: &[0xffff],
        // R efa/verbs.c efa_create_qp: only UD; SRD comes from efadv_create_driver_qp.
        services: &[UD],
        no_service: libc::EOPNOTSUPP,
        // R efa/verbs.c efa_query_qp_data_in_order: for writes of 128 bytes where the device says so.
        in_order: false,
        immediate: (true, false),
        dma_buf: true,
        limits: Limits {
            work_requests: 4_096,
            elements: 2,
            inline: 32,
            completions: 32_768,
            reads: 0,
            atomics: ibv_atomic_cap::IBV_ATOMIC_NONE,
            // K efa/efa_verbs.c efa_query_port: max_msg_sz is the MTU.
            message: 8_928,
        },
        mtu: (ibv_mtu::IBV_MTU_4096, ibv_mtu::IBV_MTU_4096),
        speed: EDR,
        vendor: (0x1d0f, 0xefa2),
        counters: counters::EFA,
        ..MLX5_ROCE
    },
];

//! NCCL or AMD's RCCL, opened at run time from the host's own library. Signatures and numbers are those of `nccl.h` 2.11 and later;
//! RCCL's header is equal (2.21.5, of ROCm 6.3) except for numbers of 8 bits, whose formats depend on the GPU.

use std::{
    ffi::{c_char, c_int, c_void},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicPtr, Ordering},
    },
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    remedy,
    terms::{Datatype, Op, Reduction},
};

use crate::{
    collective::ROOT,
    gpu::{self, Buffer, Stream, driver::Handle, table, vendor::Vendor},
    system::library::{self, Library, NoFunction, functions, said},
};

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct UniqueId(pub [u8; 128]);

/// `ncclResult_t`.
pub(crate) type Status = c_int;
/// `ncclSuccess`.
pub(crate) const SUCCESS: Status = 0;
/// `ncclInProgress`.
pub(crate) const IN_PROGRESS: Status = 7;

type Source = *const c_void;
type Target = *mut c_void;

functions! {
    #[derive(Clone)]
    pub(crate) struct Nccl {
        vendor: Vendor,
        path: String,
        version: c_int,
    }
    required {
        get_version = "ncclGetVersion": fn(*mut c_int) -> Status,
        get_unique_id = "ncclGetUniqueId": fn(*mut UniqueId) -> Status,
        comm_init_rank = "ncclCommInitRank": fn(*mut Handle, c_int, UniqueId, c_int) -> Status,
        comm_abort = "ncclCommAbort": fn(Handle) -> Status,
        comm_destroy = "ncclCommDestroy": fn(Handle) -> Status,
        comm_async_error = "ncclCommGetAsyncError": fn(Handle, *mut Status) -> Status,
        error_words = "ncclGetErrorString": fn(Status) -> *const c_char,
        all_reduce = "ncclAllReduce": fn(Source, Target, usize, c_int, c_int, Handle, Handle) -> Status,
        broadcast = "ncclBroadcast": fn(Source, Target, usize, c_int, c_int, Handle, Handle) -> Status,
        reduce = "ncclReduce": fn(Source, Target, usize, c_int, c_int, c_int, Handle, Handle) -> Status,
        all_gather = "ncclAllGather": fn(Source, Target, usize, c_int, Handle, Handle) -> Status,
        reduce_scatter = "ncclReduceScatter": fn(Source, Target, usize, c_int, c_int, Handle, Handle) -> Status,
        send = "ncclSend": fn(Source, usize, c_int, c_int, Handle, Handle) -> Status,
        receive = "ncclRecv": fn(Target, usize, c_int, c_int, Handle, Handle) -> Status,
        scaled_sum = "ncclRedOpCreatePreMulSum": fn(*mut c_int, *const c_void, c_int, c_int, Handle) -> Status,
        group_start = "ncclGroupStart": fn() -> Status,
        group_end = "ncclGroupEnd": fn() -> Status,
    }
    optional {}
}

/// Oldest supported NCCL, in the format of `ncclGetVersion` since 2.9: 2.10 added bfloat16 and means, 2.11 scaled sums.
const OLDEST: c_int = 21_100;
/// First NCCL with numbers of 8 bits.
const EIGHT_BITS: c_int = 22_400;
/// `ncclScalarHostImmediate`: the scalar is read during the call.
const SCALAR_OF_HOST: c_int = 1;

/// The name of a vendor's library, and its files as the run-time packages install them.
const fn name(vendor: Vendor) -> (&'static str, &'static [&'static str]) {
    vendor.either(("NCCL", &["libnccl.so.2"]), ("RCCL", &gpu::RCCL))
}

impl Nccl {
    /// Opens the named library, else the one that the loader finds.
    pub(crate) fn open(vendor: Vendor, named: Option<&str>) -> Result<Self, Failure> {
        let (called, usual) = name(vendor);
        let (install, newer) =
            vendor.either((remedy::INSTALL_NCCL, remedy::NEWER_NCCL), (remedy::INSTALL_RCCL, remedy::NEWER_RCCL));
        let refused = |cause: String| Failure::new(Stage::Open, Kind::Unsupported, cause);
        let names = named.as_ref().map_or(usual, std::slice::from_ref);
        let library = Library::first(names)
            .map_err(|why| refused(format!("{called} cannot be opened: {why}")).remedy(install))?;
        let name = library.name();
        let file = Path::new(name).file_name().map_or(name.to_owned(), |file| file.to_string_lossy().into_owned());
        let path = library::find(&file).map_or_else(|_| name.to_owned(), |path| path.display().to_string());
        let mut nccl = Self::look_up(&library, 0, vendor, path.clone(), 0).map_err(|NoFunction(symbol)| {
            refused(format!("{path} has no {symbol}: it is no {called}, or too old")).remedy(newer)
        })?;
        let mut version = 0;
        // SAFETY: `version` is valid for writes.
        nccl.check(unsafe { (nccl.get_version)(&raw mut version) }, &format!("reading {called}'s version"))?;
        nccl.version = version;
        if version < OLDEST {
            let cause = format!("{path} is {called} {}, which is too old", nccl.version());
            return Err(refused(cause).remedy(newer));
        }
        Ok(nccl)
    }

    pub(crate) fn name(&self) -> &'static str {
        name(self.vendor).0
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its version, such as `2.28.9`.
    pub(crate) fn version(&self) -> String {
        let version = self.version;
        format!("{}.{}.{}", version / 10_000, version % 10_000 / 100, version % 100)
    }

    pub(crate) fn knows(&self, datatype: Datatype) -> Result<(), Failure> {
        let is_known = self.version >= EIGHT_BITS && self.vendor == Vendor::Nvidia;
        if is_known || !matches!(datatype, Datatype::F8e4m3 | Datatype::F8e5m2) {
            return Ok(());
        }
        let (cause, remedy) = match self.vendor {
            Vendor::Nvidia => (format!("NCCL {} has no {datatype}", self.version()), remedy::NCCL_OF_8_BITS),
            // OCP's or FNUZ, by the GPU and the version.
            Vendor::Amd => (
                format!("{datatype} is not used with RCCL, whose numbers of 8 bits may be others"),
                remedy::RCCL_OF_8_BITS,
            ),
        };
        Err(Failure::new(Stage::Measure, Kind::Unsupported, cause).remedy(remedy))
    }

    /// Makes the reduction [`Reduction::Mulsum`] for a type of a communicator, which owns it.
    pub(super) fn scaled_sum(&self, communicator: Handle, of: Datatype) -> Result<c_int, Failure> {
        let scalar = table::bits(of, f64::from(table::SCALAR)).to_le_bytes();
        let mut made = 0;
        // SAFETY: `made` is valid for writes; the scalar has the bytes of its type and is read before the call returns.
        let status = unsafe {
            let from = scalar.as_ptr().cast::<c_void>();
            (self.scaled_sum)(&raw mut made, from, datatype(of), SCALAR_OF_HOST, communicator)
        };
        self.check(status, "making a scaled sum")?;
        Ok(made)
    }

    /// Turns a status into a failure with the attempted operation and NCCL's answer.
    pub(crate) fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == SUCCESS || status == IN_PROGRESS {
            return Ok(());
        }
        // SAFETY: NCCL answers with a static string for every number.
        let words = unsafe { said((self.error_words)(status)) }.unwrap_or_default();
        let kind = match status {
            // ncclRemoteError: another rank went first.
            6 => Kind::Fabric,
            _ => Kind::Unsupported,
        };
        Err(Failure::new(Stage::Open, kind, format!("{what}: {} error {status} ({words})", self.name())))
    }
}

/// `ncclDataType_t`.
pub(crate) fn datatype(of: Datatype) -> c_int {
    match of {
        Datatype::I8 => 0,
        Datatype::U8 => 1,
        Datatype::I32 => 2,
        Datatype::U32 => 3,
        Datatype::I64 => 4,
        Datatype::U64 => 5,
        Datatype::F16 => 6,
        Datatype::F32 => 7,
        Datatype::F64 => 8,
        Datatype::Bf16 => 9,
        Datatype::F8e4m3 => 10,
        Datatype::F8e5m2 => 11,
    }
}

/// `ncclMax`.
pub(crate) const LARGEST: c_int = 2;

/// `ncclRedOp_t`; a scaled sum is made for each communicator ([`Nccl::scaled_sum`]).
pub(crate) fn reduction(of: Reduction) -> Option<c_int> {
    match of {
        Reduction::Sum => Some(0),
        Reduction::Prod => Some(1),
        Reduction::Max => Some(LARGEST),
        Reduction::Min => Some(3),
        Reduction::Avg => Some(4),
        Reduction::Mulsum => None,
    }
}

/// Used by one thread; another one may have to abort it and shares its handle.
pub(crate) struct Communicator {
    nccl: Nccl,
    handle: Arc<AtomicPtr<c_void>>,
    rank: u32,
    ranks: u32,
    scaled: Vec<(Datatype, c_int)>,
}

/// One repeatable call. Buffers must outlive every operation queued with it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'b> {
    pub op: Op,
    /// Elements, as `ncclAllReduce` and similar calls count them.
    pub count: u64,
    /// Type of the elements: `ncclDataType_t` and bytes.
    pub datatype: (c_int, u64),
    /// As [`Communicator::reduction`]; 0 where nothing is reduced.
    pub reduction: c_int,
    pub send: &'b Buffer,
    /// In bytes.
    pub send_at: u64,
    pub receive: &'b Buffer,
    pub receive_at: u64,
}

impl Communicator {
    /// Joins the group. Blocks until every rank is there.
    pub(crate) fn join(
        nccl: &Nccl,
        id: UniqueId,
        rank: u32,
        ranks: u32,
        handle: Arc<AtomicPtr<c_void>>,
    ) -> Result<Self, Failure> {
        let mut comm = std::ptr::null_mut();
        // SAFETY: `comm` is valid for writes; the id came from `ncclGetUniqueId`; this rank's GPU is current.
        let status = unsafe { (nccl.comm_init_rank)(&raw mut comm, ranks.cast_signed(), id, rank.cast_signed()) };
        nccl.check(status, "joining the group").map_err(|failure| Failure { stage: Stage::Join, ..failure })?;
        handle.store(comm, Ordering::Release);
        Ok(Self { nccl: nccl.clone(), handle, rank, ranks, scaled: Vec::new() })
    }

    /// The library's number of a reduction of elements of a type.
    pub(crate) fn reduction(&mut self, of: Option<Reduction>, datatype: Datatype) -> Result<c_int, Failure> {
        self.nccl.knows(datatype)?;
        let Some(of) = of else { return Ok(0) };
        if let Some(known) = reduction(of) {
            return Ok(known);
        }
        if let Some((_, made)) = self.scaled.iter().find(|(known, _)| *known == datatype) {
            return Ok(*made);
        }
        let made = self.nccl.scaled_sum(self.handle.load(Ordering::Relaxed), datatype)?;
        self.scaled.push((datatype, made));
        Ok(made)
    }

    pub(crate) fn rank(&self) -> u32 {
        self.rank
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Fails if NCCL's own threads or another rank saw an error.
    pub(crate) fn healthy(&self) -> Result<(), Failure> {
        let mut status = SUCCESS;
        // SAFETY: the communicator lives as long as `self`; `status` is valid for writes.
        let asked = unsafe { (self.nccl.comm_async_error)(self.handle.load(Ordering::Relaxed), &raw mut status) };
        self.check(asked)?;
        self.check(status)
    }

    #[inline]
    fn check(&self, status: Status) -> Result<(), Failure> {
        if status == SUCCESS {
            return Ok(());
        }
        self.nccl.check(status, "a collective").map_err(|failure| Failure { stage: Stage::Measure, ..failure })
    }

    #[inline]
    pub(crate) fn queue(&self, call: &Call<'_>, stream: &Stream) -> Result<(), Failure> {
        let Call { op, count, datatype: (datatype, width), .. } = *call;
        let (nccl, comm, stream) = (&self.nccl, self.handle.load(Ordering::Relaxed), stream.handle());
        let (from, to) = (call.send.address() + call.send_at, call.receive.address() + call.receive_at);
        let (send, receive) = (place(from).cast_const(), place(to));
        let elements = count as usize;
        let reduction = call.reduction;
        let root = ROOT.cast_signed();
        // SAFETY: whoever makes a `Call` gives buffers that hold what the operation reads and writes; they outlive the
        // stream's work, and communicator and stream live as long as `self` and the caller's stream.
        let status = unsafe {
            match op {
                Op::AllReduce => (nccl.all_reduce)(send, receive, elements, datatype, reduction, comm, stream),
                Op::Broadcast => (nccl.broadcast)(send, receive, elements, datatype, root, comm, stream),
                Op::Reduce => (nccl.reduce)(send, receive, elements, datatype, reduction, root, comm, stream),
                Op::AllGather => (nccl.all_gather)(send, receive, elements, datatype, comm, stream),
                Op::ReduceScatter => (nccl.reduce_scatter)(send, receive, elements, datatype, reduction, comm, stream),
                Op::AllToAll => {
                    let block = count * width;
                    return self.grouped(|| {
                        for peer in 0..self.ranks {
                            let at = u64::from(peer) * block;
                            let (send, receive) = (place(from + at).cast_const(), place(to + at));
                            self.check((nccl.send)(send, elements, datatype, peer.cast_signed(), comm, stream))?;
                            self.check((nccl.receive)(receive, elements, datatype, peer.cast_signed(), comm, stream))?;
                        }
                        Ok(())
                    });
                }
                // Every rank to the next, as nccl-tests' sendrecv.
                Op::SendRecv => {
                    let next = (self.rank + 1) % self.ranks;
                    let last = (self.rank + self.ranks - 1) % self.ranks;
                    return self.grouped(|| {
                        self.check((nccl.send)(send, elements, datatype, next.cast_signed(), comm, stream))?;
                        self.check((nccl.receive)(receive, elements, datatype, last.cast_signed(), comm, stream))
                    });
                }
                _ => {
                    let cause = format!("NCCL does not support {op}");
                    return Err(Failure::new(Stage::Measure, Kind::Internal, cause));
                }
            }
        };
        self.check(status)
    }

    fn grouped(&self, calls: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
        // SAFETY: neither takes arguments; every start has its end.
        unsafe {
            self.check((self.nccl.group_start)())?;
            let called = calls();
            let ended = self.check((self.nccl.group_end)());
            called.and(ended)
        }
    }
}

fn place(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

impl Drop for Communicator {
    fn drop(&mut self) {
        let handle = self.handle.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if !handle.is_null() {
            // SAFETY: the communicator of `join`; whoever takes the handle out of the cell ends it, once.
            unsafe { (self.nccl.comm_destroy)(handle) };
        }
    }
}

/// Ends a communicator under a running operation, from another thread.
pub(crate) fn abort(nccl: &Nccl, handle: &AtomicPtr<c_void>) {
    let handle = handle.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !handle.is_null() {
        // SAFETY: as in `drop`; NCCL allows this call while another thread waits in the communicator.
        unsafe { (nccl.comm_abort)(handle) };
    }
}

pub(crate) fn fresh_id(nccl: &Nccl) -> Result<UniqueId, Failure> {
    let mut id = UniqueId([0; 128]);
    // SAFETY: `id` is valid for writes.
    nccl.check(unsafe { (nccl.get_unique_id)(&raw mut id) }, "making the group's id")
        .map_err(|failure| failure.remedy(remedy::NCCL_INTERFACE))?;
    Ok(id)
}

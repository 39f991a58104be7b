//! NCCL or AMD's RCCL, opened at run time from the host's own library. Signatures and numbers are those of `nccl.h` 2.11 and later;
//! RCCL's header is equal (2.21.5, of ROCm 6.3) except for numbers of 8 bits, whose formats depend on the GPU.

use std::{
    ffi::{c_char, c_int, c_void},
    path::Path,
    ptr::NonNull,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use railgauge_wire::{Datatype, Exchange, Failure, Kind, Op, Reduction, Stage, remedy, starts};

use crate::{
    collective::ROOT,
    gpu::{self, Buffer, Graph, Stream, driver::Handle, stream::fits, table, vendor::Vendor},
    system::{
        library::{self, Library, NoFunction, functions, said},
        log,
    },
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
        pub(crate) path: String,
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
            refused(format!("{path} has no {symbol}: it is not {called}, or too old")).remedy(newer)
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

    fn ended(&self, status: Status, what: &str) {
        if let Err(failure) = self.check(status, what) {
            log!("{failure}");
        }
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

/// `ncclRedOp_t`; a scaled sum is made for each communicator.
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

/// A communicator. Whoever calls the library with it holds the lock around it; who ends it takes it out.
#[derive(Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Option<Joined>>>);

struct Joined(NonNull<c_void>);

// SAFETY: NCCL takes its calls from any thread, one at a time, as the lock guarantees.
unsafe impl Send for Joined {}

impl Shared {
    #[inline]
    fn with<R>(&self, call: impl FnOnce(Handle) -> R) -> Result<R, Failure> {
        let held = self.0.lock();
        let gone = || Failure::new(Stage::Measure, Kind::Aborted, "the group was ended");
        held.as_ref().map(|joined| call(joined.0.as_ptr())).ok_or_else(gone)
    }

    /// Ends the group from another thread. A call that hangs in the library for longer keeps it: the end of the process ends it, too.
    pub(crate) fn abort(&self, nccl: &Nccl, limit: Duration) {
        if let Some(joined) = self.0.try_lock_for(limit).and_then(|mut held| held.take()) {
            // SAFETY: the communicator of `join`, taken out of its place, so that no call begins or is under way.
            nccl.ended(unsafe { (nccl.comm_abort)(joined.0.as_ptr()) }, "aborting the group");
        }
    }
}

/// Used by one thread; another one may have to abort it.
pub(crate) struct Communicator {
    nccl: Nccl,
    shared: Shared,
    pub rank: u32,
    pub ranks: u32,
    scaled: Vec<(Datatype, c_int)>,
}

/// One repeatable call.
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
    /// Blocks from rank to rank, of an operation that only moves them.
    pub exchange: Option<&'b Exchange>,
}

impl Communicator {
    /// Joins the group. Blocks until every rank is there.
    pub(crate) fn join(nccl: &Nccl, id: UniqueId, rank: u32, ranks: u32, shared: Shared) -> Result<Self, Failure> {
        let mut comm = std::ptr::null_mut();
        // SAFETY: `comm` is valid for writes; the id came from `ncclGetUniqueId`; this rank's GPU is current.
        let status = unsafe { (nccl.comm_init_rank)(&raw mut comm, ranks.cast_signed(), id, rank.cast_signed()) };
        nccl.check(status, "joining the group").map_err(|failure| Failure { stage: Stage::Join, ..failure })?;
        *shared.0.lock() = NonNull::new(comm).map(Joined);
        Ok(Self { nccl: nccl.clone(), shared, rank, ranks, scaled: Vec::new() })
    }

    /// The id of another group of the same library.
    pub(crate) fn fresh_id(&self) -> Result<UniqueId, Failure> {
        fresh_id(&self.nccl)
    }

    /// Joins another group with the same ranks.
    pub(crate) fn join_another(&self, id: UniqueId, shared: Shared) -> Result<Self, Failure> {
        Self::join(&self.nccl, id, self.rank, self.ranks, shared)
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
        let (scalar, mut made) = (table::bits(datatype, f64::from(table::SCALAR)).to_le_bytes(), 0);
        // SAFETY: `made` is valid for writes; the scalar has the bytes of its type and is read before the call returns.
        let status = self.shared.with(|comm| unsafe {
            let from = scalar.as_ptr().cast::<c_void>();
            (self.nccl.scaled_sum)(&raw mut made, from, self::datatype(datatype), SCALAR_OF_HOST, comm)
        })?;
        self.nccl.check(status, "making a scaled sum")?;
        self.scaled.push((datatype, made));
        Ok(made)
    }

    /// Fails if NCCL's own threads or another rank saw an error.
    pub(crate) fn healthy(&self) -> Result<(), Failure> {
        let mut status = SUCCESS;
        // SAFETY: the communicator is not ended during the call; `status` is valid for writes.
        self.check(self.shared.with(|comm| unsafe { (self.nccl.comm_async_error)(comm, &raw mut status) })?)?;
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
        self.shared.with(|comm| self.call(call, comm, stream.handle()))?
    }

    /// What `calls` queue, as a graph.
    pub(crate) fn capture<'b>(&'b self, calls: &[Call<'b>], stream: &'b Stream) -> Result<Graph<'b>, Failure> {
        // SAFETY: the calls' buffers are borrowed for as long.
        unsafe { stream.capture(|| calls.iter().try_for_each(|call| self.queue(call, stream))) }
    }

    #[inline]
    fn call(&self, call: &Call<'_>, comm: Handle, stream: Handle) -> Result<(), Failure> {
        let (Call { op, count, datatype: (datatype, width), .. }, nccl) = (*call, &self.nccl);
        let (from, to) = (call.send.address() + call.send_at, call.receive.address() + call.receive_at);
        let (send, receive) = (place(from).cast_const(), place(to));
        let elements = count as usize;
        let reduction = call.reduction;
        let root = ROOT.cast_signed();
        let bytes = |divided: bool, blocks: Option<&[u64]>| {
            let all = if divided { count.saturating_mul(self.ranks.into()) } else { count };
            blocks
                .map_or(all, |counts| counts.iter().fold(0, |sum, count| sum.saturating_add(*count)))
                .saturating_mul(width)
        };
        fits(call.send, call.send_at, bytes(op == Op::ReduceScatter, call.exchange.map(|all| &*all.send)))?;
        fits(call.receive, call.receive_at, bytes(op == Op::AllGather, call.exchange.map(|all| &*all.receive)))?;
        if let Some(Exchange { send, receive, .. }) = call.exchange {
            let blocks = (0..).zip(starts(send).zip(send).zip(starts(receive).zip(receive)));
            // SAFETY: as below; the blocks are within the buffers, checked above.
            return self.grouped(|| unsafe {
                for (peer, ((send_at, send), (receive_at, receive))) in blocks {
                    if *send > 0 {
                        let block = place(from + send_at * width).cast_const();
                        self.check((nccl.send)(block, *send as usize, datatype, peer, comm, stream))?;
                    }
                    if *receive > 0 {
                        let block = place(to + receive_at * width);
                        self.check((nccl.receive)(block, *receive as usize, datatype, peer, comm, stream))?;
                    }
                }
                Ok(())
            });
        }
        // SAFETY: the buffers hold what the operation reads and writes, checked above. They are freed only after the stream's work (see
        // `Buffer`); communicator and stream live through the call.
        let status = unsafe {
            match op {
                Op::AllReduce => (nccl.all_reduce)(send, receive, elements, datatype, reduction, comm, stream),
                Op::Broadcast => (nccl.broadcast)(send, receive, elements, datatype, root, comm, stream),
                Op::Reduce => (nccl.reduce)(send, receive, elements, datatype, reduction, root, comm, stream),
                Op::AllGather => (nccl.all_gather)(send, receive, elements, datatype, comm, stream),
                Op::ReduceScatter => (nccl.reduce_scatter)(send, receive, elements, datatype, reduction, comm, stream),
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
        let joined = self.shared.0.lock().take();
        if let Some(joined) = joined {
            // SAFETY: as in `abort`.
            self.nccl.ended(unsafe { (self.nccl.comm_destroy)(joined.0.as_ptr()) }, "ending the group");
        }
    }
}

pub(crate) fn fresh_id(nccl: &Nccl) -> Result<UniqueId, Failure> {
    let mut id = UniqueId([0; 128]);
    // SAFETY: `id` is valid for writes.
    nccl.check(unsafe { (nccl.get_unique_id)(&raw mut id) }, "making the group's id")
        .map_err(|failure| failure.remedy(remedy::NCCL_INTERFACE))?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use std::{
        mem::transmute_copy,
        sync::atomic::{AtomicU32, Ordering::SeqCst},
        thread,
    };

    use super::*;

    unsafe extern "C" fn nothing() {}

    /// Any function of C, never called.
    fn never<F: Copy>() -> F {
        const { assert!(size_of::<F>() == size_of::<unsafe extern "C" fn()>()) };
        // SAFETY: a pointer to a function, as `F` is where this is used.
        unsafe { transmute_copy(&(nothing as unsafe extern "C" fn())) }
    }

    unsafe extern "C" fn words(_: Status) -> *const c_char {
        c"a call with an ended communicator".as_ptr()
    }

    /// Fails if the communicator, a number, counts that it was ended.
    unsafe extern "C" fn look(comm: Handle, status: *mut Status) -> Status {
        // SAFETY: the number lives, and `status` is valid for writes.
        unsafe {
            *status = SUCCESS;
            (*comm.cast::<AtomicU32>()).load(SeqCst).cast_signed()
        }
    }

    unsafe extern "C" fn end(comm: Handle) -> Status {
        // SAFETY: as above.
        unsafe { (*comm.cast::<AtomicU32>()).fetch_add(1, SeqCst) }.cast_signed()
    }

    fn library() -> Nccl {
        Nccl {
            vendor: Vendor::Nvidia,
            path: String::new(),
            version: 0,
            comm_abort: end,
            comm_destroy: end,
            comm_async_error: look,
            error_words: words,
            get_version: never(),
            get_unique_id: never(),
            comm_init_rank: never(),
            all_reduce: never(),
            broadcast: never(),
            reduce: never(),
            all_gather: never(),
            reduce_scatter: never(),
            send: never(),
            receive: never(),
            scaled_sum: never(),
            group_start: never(),
            group_end: never(),
        }
    }

    /// The number outlives the communicator.
    fn shared(ended: &Arc<AtomicU32>) -> Shared {
        Shared(Arc::new(Mutex::new(Some(Joined(NonNull::from(&**ended).cast())))))
    }

    #[test]
    fn no_call_is_made_with_a_communicator_that_another_thread_has_ended() {
        let nccl = library();
        let rounds = if cfg!(miri) { 10 } else { 100 };
        for round in 0..rounds {
            let ended = Arc::new(AtomicU32::new(0));
            let shared = shared(&ended);
            let own =
                Communicator { nccl: nccl.clone(), shared: shared.clone(), rank: 0, ranks: 2, scaled: Vec::new() };
            let worker = thread::spawn(move || {
                loop {
                    if let Err(failure) = own.healthy() {
                        return failure;
                    }
                    thread::yield_now();
                }
            });
            (0..round % 16).for_each(|_| thread::yield_now());
            shared.abort(&nccl, Duration::from_secs(60));
            let failure = worker.join().unwrap();
            assert_eq!((failure.kind, ended.load(SeqCst)), (Kind::Aborted, 1), "{failure}");
        }
    }

    #[test]
    fn a_call_that_hangs_keeps_its_communicator() {
        let ended = Arc::new(AtomicU32::new(0));
        let shared = shared(&ended);
        shared.with(|_| shared.abort(&library(), Duration::ZERO)).unwrap();
        assert_eq!(ended.load(SeqCst), 0);
        shared.abort(&library(), Duration::ZERO);
        assert_eq!(ended.load(SeqCst), 1);
    }
}

//! One communicator, and the collectives on it.

use std::{
    ffi::{c_int, c_void},
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

use super::library::{self, Nccl, SUCCESS, UniqueId};
use crate::{
    collective::ROOT,
    gpu::{Buffer, Stream},
};

/// A communicator, as seen by the thread that uses it. Its handle is shared with the one that may have to abort it.
pub(crate) struct Communicator {
    nccl: Nccl,
    handle: Arc<AtomicPtr<c_void>>,
    rank: u32,
    ranks: u32,
    scaled: Vec<(Datatype, c_int)>,
}

/// One call, ready to be repeated. Buffers must outlive every operation queued with it.
#[derive(Clone, Copy)]
pub(crate) struct Call<'b> {
    pub op: Op,
    /// Elements, as `ncclAllReduce` and its kin count them.
    pub count: u64,
    /// Type of the elements: `ncclDataType_t` and bytes.
    pub datatype: (c_int, u64),
    /// Reduction, as [`Communicator::reduction`] gives it; 0 where nothing is reduced.
    pub reduction: c_int,
    pub send: &'b Buffer,
    /// Where in it, in bytes.
    pub send_at: u64,
    /// Where the result goes.
    pub receive: &'b Buffer,
    /// Where in it, in bytes.
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
        if let Some(known) = library::reduction(of) {
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
    fn check(&self, status: library::Status) -> Result<(), Failure> {
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

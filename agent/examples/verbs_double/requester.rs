//! The half of a queue pair that sends: a thread that takes what was posted, a batch at a time, and completes it.

use std::{
    collections::{HashMap, hash_map::Entry as Slot},
    io::{self, BufReader, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rdma_sys::*;

use crate::{
    completion::Entry,
    counters, event, fabric,
    hostile::LATE,
    memory, port,
    queue_pair::{Attributes, Pair, Payload, Work, blank},
    settings::settings,
    wire::{self, Hello, Reply, Request, status},
};

/// Requests that are under way at once, and the bytes of payload that go out before replies are read: less than a
/// socket holds, so that neither side waits for the other.
const BATCH: usize = 64;
const BYTES: u64 = 64 << 10;

/// Longest time a peer's process may take over a batch: not the network's time, which passes nothing, but its own.
const PATIENCE: Duration = Duration::from_secs(20);

/// Shortest time between two tries.
const SHORTEST: Duration = Duration::from_millis(1);

fn is_atomic(opcode: ibv_wr_opcode::Type) -> bool {
    matches!(opcode, ibv_wr_opcode::IBV_WR_ATOMIC_CMP_AND_SWP | ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD)
}

/// Whether a request brings bytes here.
pub fn brings(opcode: ibv_wr_opcode::Type) -> bool {
    opcode == ibv_wr_opcode::IBV_WR_RDMA_READ || is_atomic(opcode)
}

/// Waits for work and does it, until the queue pair is destroyed.
pub fn run(pair: &Arc<Pair>) {
    let mut streams = Streams::default();
    while let Some(batch) = next(pair) {
        if pair.service == ibv_qp_type::IBV_QPT_RC {
            reliable(pair, &mut streams, batch);
        } else {
            for work in batch {
                unreliable(pair, &mut streams, work);
            }
        }
    }
}

/// Takes what is to be done next; `None` once the queue pair is destroyed.
fn next(pair: &Pair) -> Option<Vec<Work>> {
    let mut inner = pair.inner.lock();
    while !inner.closed && (inner.sends.is_empty() || inner.state != ibv_qp_state::IBV_QPS_RTS) {
        pair.posted.wait(&mut inner);
    }
    let (mut batch, mut bytes, mut reads) = (Vec::new(), 0, 0);
    let most = usize::from(inner.attributes.max_rd_atomic).max(1);
    while let Some(work) = inner.sends.front().filter(|_| !inner.closed) {
        let brought = brings(work.opcode);
        reads += usize::from(brought);
        bytes += if brought { 0 } else { work.length };
        if !batch.is_empty() && (batch.len() == BATCH || bytes > BYTES || reads > most) {
            break;
        }
        batch.extend(inner.sends.pop_front());
    }
    (!inner.closed).then_some(batch)
}

/// Streams to where the requests go: one of a connected queue pair, one per peer of datagrams.
#[derive(Default)]
struct Streams(HashMap<u32, BufReader<UnixStream>>);

impl Streams {
    /// The stream to queue pair `to` along `path`.
    fn to(&mut self, pair: &Pair, to: u32, path: &ibv_ah_attr) -> io::Result<&mut BufReader<UnixStream>> {
        match self.0.entry(to) {
            Slot::Occupied(known) => Ok(known.into_mut()),
            Slot::Vacant(place) => {
                let stream = fabric::fabric().ok_or(io::ErrorKind::NotFound)?.connect(to)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                wire::put(&mut &stream, &hello(pair, to, path))?;
                Ok(place.insert(BufReader::with_capacity(256 << 10, stream)))
            }
        }
    }
}

/// What packets of this queue pair say of themselves.
fn hello(pair: &Pair, to: u32, path: &ibv_ah_attr) -> Hello {
    let attributes = pair.inner.lock().attributes;
    let (source_gid, _) = port::gid(pair.device, u32::from(path.grh.sgid_index)).unwrap_or_default();
    let global = path.is_global != 0;
    Hello {
        to,
        from: pair.number,
        service: pair.service,
        psn: attributes.sq_psn,
        mtu: 128 << attributes.path_mtu,
        rnr_retry: u32::from(attributes.rnr_retry),
        pkey: u32::from(port::pkey(attributes.pkey_index).unwrap_or(0)),
        global: u32::from(global),
        source_lid: u32::from(port::lid(pair.device)),
        target_lid: u32::from(path.dlid),
        source_gid: if global { source_gid } else { [0; 16] },
        // SAFETY: both members of the union are the same 16 bytes.
        target_gid: if global { unsafe { path.grh.dgid.raw } } else { [0; 16] },
    }
}

/// The bytes of a request, or the status of what stands in the way.
fn gather(pair: &Pair, work: &Work) -> Result<Vec<u8>, ibv_wc_status::Type> {
    let elements = match &work.payload {
        Payload::Inline(bytes) => return Ok(bytes.clone()),
        Payload::Elements(elements) => elements,
    };
    let mut bytes = Vec::with_capacity(work.length as usize);
    for element in elements.iter().filter(|element| element.length > 0) {
        let region = memory::local(element.lkey).ok_or(ibv_wc_status::IBV_WC_LOC_PROT_ERR)?;
        let alive = region.alive.read();
        if !*alive || !region.allows(pair.domain, element.addr, u64::from(element.length), 0) {
            return Err(ibv_wc_status::IBV_WC_LOC_PROT_ERR);
        }
        // SAFETY: inside of a region that is held alive.
        unsafe { memory::take(element.addr, element.length as usize, &mut bytes) };
    }
    Ok(bytes)
}

/// Puts bytes into elements of memory that may be written; the status of what stands in the way.
pub fn scatter(pair: &Pair, elements: &[ibv_sge], mut bytes: &[u8]) -> Result<(), ibv_wc_status::Type> {
    for element in elements {
        let (part, rest) = bytes.split_at(bytes.len().min(element.length as usize));
        if part.is_empty() {
            break;
        }
        let region = memory::local(element.lkey).ok_or(ibv_wc_status::IBV_WC_LOC_PROT_ERR)?;
        let alive = region.alive.read();
        let write = ibv_access_flags::IBV_ACCESS_LOCAL_WRITE.0;
        if !*alive || !region.allows(pair.domain, element.addr, u64::from(element.length), write) {
            return Err(ibv_wc_status::IBV_WC_LOC_PROT_ERR);
        }
        // SAFETY: inside of a region that is held alive.
        unsafe { memory::place(element.addr, part) };
        bytes = rest;
    }
    Ok(())
}

/// Writes a request into `out`.
fn put(out: &mut Vec<u8>, work: &Work, bytes: &[u8], outstanding: u32) -> io::Result<()> {
    let request = Request {
        opcode: work.opcode,
        length: work.length as u32,
        immediate: work.immediate,
        rkey: work.rkey,
        remote: work.remote,
        operand: work.operand,
        swap: work.swap,
        outstanding,
        qkey: work.datagram.map_or(0, |(_, _, qkey)| qkey),
    };
    wire::put(out, &request)?;
    out.write_all(bytes)
}

/// Completes a request.
fn complete(pair: &Arc<Pair>, work: &Work, result: ibv_wc_status::Type) {
    use ibv_wr_opcode as op;
    let failed = result != ibv_wc_status::IBV_WC_SUCCESS;
    if !failed && !work.signalled {
        return;
    }
    let hostile = settings().map(|settings| &settings.hostile);
    if hostile.is_some_and(|hostile| hostile.late_completions) && !failed {
        thread::sleep(LATE);
    }
    let mut wc = blank(pair, work.wr_id, result);
    wc.opcode = match work.opcode {
        op::IBV_WR_RDMA_WRITE | op::IBV_WR_RDMA_WRITE_WITH_IMM => ibv_wc_opcode::IBV_WC_RDMA_WRITE,
        op::IBV_WR_RDMA_READ => ibv_wc_opcode::IBV_WC_RDMA_READ,
        op::IBV_WR_ATOMIC_CMP_AND_SWP => ibv_wc_opcode::IBV_WC_COMP_SWAP,
        op::IBV_WR_ATOMIC_FETCH_AND_ADD => ibv_wc_opcode::IBV_WC_FETCH_ADD,
        _ => ibv_wc_opcode::IBV_WC_SEND,
    };
    wc.byte_len = if brings(work.opcode) { work.length as u32 } else { 0 };
    pair.send_queue.push(Entry { wc, frees: Some((pair.clone(), work.number)) });
    let datagrams = pair.service == ibv_qp_type::IBV_QPT_UD;
    if datagrams && hostile.is_some_and(|hostile| hostile.reordered_completions) {
        pair.send_queue.swap_last();
    }
}

/// What fails: the request, with its status, and all behind it, flushed.
fn fail(pair: &Arc<Pair>, batch: &[Work], result: ibv_wc_status::Type) {
    for (i, work) in batch.iter().enumerate() {
        complete(pair, work, if i == 0 { result } else { ibv_wc_status::IBV_WC_WR_FLUSH_ERR });
    }
    pair.fail();
}

/// A batch on a reliable connection, tried again where it is lost, until the retries are over.
fn reliable(pair: &Arc<Pair>, streams: &mut Streams, batch: Vec<Work>) {
    let attributes = pair.inner.lock().attributes;
    // InfiniBand Architecture Specification 9.7.6.1.3: 4.096 µs times two to the exponent; 0 is for ever.
    let wait = Duration::from_nanos(4096 << attributes.timeout).max(SHORTEST);
    let (mut left, mut tries) = (&batch[..], 0);
    while !left.is_empty() {
        let before = left.len();
        let lost = match attempt(pair, streams, &attributes, &mut left) {
            Ok(()) => continue,
            Err(Trouble::Status(result)) => return fail(pair, left, result),
            Err(Trouble::Lost) => true,
        };
        streams.0.clear();
        tries = if left.len() < before { 0 } else { tries + u32::from(lost) };
        if attributes.timeout != 0 && tries > u32::from(attributes.retry_cnt) {
            return fail(pair, left, ibv_wc_status::IBV_WC_RETRY_EXC_ERR);
        }
        // Requests that are posted meanwhile wake this thread, and make no try.
        let until = Instant::now() + wait;
        let mut inner = pair.inner.lock();
        loop {
            if inner.closed || inner.state != ibv_qp_state::IBV_QPS_RTS {
                drop(inner);
                return fail(pair, left, ibv_wc_status::IBV_WC_WR_FLUSH_ERR);
            }
            if pair.posted.wait_until(&mut inner, until).timed_out() {
                break;
            }
        }
    }
}

/// Why a batch did not go through.
enum Trouble {
    /// A completion says it.
    Status(ibv_wc_status::Type),
    /// Nothing came back.
    Lost,
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

/// Sends a batch and reads its replies; `left` shrinks with every request that is complete.
fn attempt(
    pair: &Arc<Pair>,
    streams: &mut Streams,
    attributes: &Attributes,
    left: &mut &[Work],
) -> Result<(), Trouble> {
    if event::port_down() {
        return Err(Trouble::Lost);
    }
    let (mut out, mut reads, mut local) = (Vec::new(), 0, None);
    let (mut sent, mut passed) = (0, counters::Passed::default());
    let packets = counters::along(pair.device, pair.service, 128 << attributes.path_mtu, &attributes.ah_attr);
    for work in *left {
        if work.length > settings().map_or(0, |settings| u64::from(settings.profile.limits.message)) {
            local = Some(ibv_wc_status::IBV_WC_LOC_LEN_ERR);
            break;
        }
        let bytes = if brings(work.opcode) { Ok(Vec::new()) } else { gather(pair, work) };
        match bytes {
            Ok(bytes) => {
                reads += u32::from(brings(work.opcode));
                put(&mut out, work, &bytes, reads)?;
                sent += 1;
                passed += packets.map(|packets| packets.request(work.opcode, work.length)).unwrap_or_default();
            }
            Err(result) => {
                local = Some(result);
                break;
            }
        }
    }
    let stream = streams.to(pair, attributes.dest_qp_num, &attributes.ah_attr)?;
    stream.get_mut().write_all(&out)?;
    counters::sent(pair.device, passed);
    for _ in 0..sent {
        let Some((work, rest)) = left.split_first() else { break };
        let reply: Reply = wire::get(stream)?;
        match reply.status {
            status::DONE => {}
            status::DROPPED => return Err(Trouble::Lost),
            status::ACCESS => return Err(Trouble::Status(ibv_wc_status::IBV_WC_REM_ACCESS_ERR)),
            status::INVALID => return Err(Trouble::Status(ibv_wc_status::IBV_WC_REM_INV_REQ_ERR)),
            status::NOT_READY => return Err(Trouble::Status(ibv_wc_status::IBV_WC_RNR_RETRY_EXC_ERR)),
            _ => return Err(Trouble::Status(ibv_wc_status::IBV_WC_REM_OP_ERR)),
        }
        let mut brought = vec![0; reply.length as usize];
        stream.read_exact(&mut brought)?;
        if let Payload::Elements(elements) = &work.payload {
            scatter(pair, elements, &brought).map_err(Trouble::Status)?;
        }
        let answer = packets.map(|packets| packets.answer(work.opcode, u64::from(reply.length)));
        counters::received(pair.device, answer.unwrap_or_default());
        if rest.is_empty() || stream.buffer().is_empty() {
            counters::show(pair.device);
        }
        complete(pair, work, ibv_wc_status::IBV_WC_SUCCESS);
        *left = rest;
    }
    local.map_or(Ok(()), |result| Err(Trouble::Status(result)))
}

/// A request that nobody acknowledges: it is complete when it is out, wherever it goes.
fn unreliable(pair: &Arc<Pair>, streams: &mut Streams, work: Work) {
    let attributes = pair.inner.lock().attributes;
    let (path, to) = work.datagram.map_or((attributes.ah_attr, attributes.dest_qp_num), |(path, to, _)| (path, to));
    let most = match pair.service {
        // A datagram is one packet.
        ibv_qp_type::IBV_QPT_UD => settings().map_or(0, |settings| 128 << settings.profile.mtu.1),
        _ => settings().map_or(0, |settings| u64::from(settings.profile.limits.message)),
    };
    let bytes = if work.length > most { Err(ibv_wc_status::IBV_WC_LOC_LEN_ERR) } else { gather(pair, &work) };
    match bytes {
        Err(result) => fail(pair, &[work], result),
        Ok(bytes) => {
            // The reply stands for the last packet's arrival, which on a wire follows its departure by microseconds.
            let sent = (|| {
                let mut out = Vec::new();
                put(&mut out, &work, &bytes, 0)?;
                if event::port_down() {
                    return Ok(());
                }
                let stream = streams.to(pair, to, &path)?;
                stream.get_mut().write_all(&out)?;
                let packets = counters::along(pair.device, pair.service, 128 << attributes.path_mtu, &path);
                let passed = packets.map(|packets| packets.request(work.opcode, work.length));
                counters::sent(pair.device, passed.unwrap_or_default());
                counters::show(pair.device);
                wire::get::<Reply>(stream).map(|_| ())
            })();
            if io::Result::is_err(&sent) {
                streams.0.remove(&to);
            }
            complete(pair, &work, ibv_wc_status::IBV_WC_SUCCESS);
        }
    }
}

//! The half of a queue pair that is asked: a thread per stream of a peer's requests, which looks at each as a device
//! does, puts or takes its bytes, and replies.

use std::{
    io::{self, BufReader, BufWriter, Read, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rdma_sys::*;

use crate::{
    completion::Entry,
    counters::{self, Packets},
    event,
    hostile::{BEHIND, HELD, event as kind},
    memory, port,
    queue_pair::{self, Pair, Receive, blank},
    requester::{brings, scatter},
    settings::{Settings, settings},
    wire::{self, Hello, Reply, Request, status},
};

/// What a request does to the bytes it names at its target.
type Outcome = Result<Vec<u8>, u32>;

/// Bytes in front of a datagram in its receive: room for the global route header.
const HEADER: usize = 40;

/// Serves a stream until it ends.
pub fn serve(stream: &UnixStream) {
    // A peer that is gone, or a request that ends the stream.
    let _ = requests(stream);
}

fn requests(stream: &UnixStream) -> io::Result<()> {
    let mut from = BufReader::with_capacity(256 << 10, stream);
    let mut to = BufWriter::with_capacity(256 << 10, stream);
    let hello: Hello = wire::get(&mut from)?;
    let reliable = hello.service == ibv_qp_type::IBV_QPT_RC;
    let mut bytes = Vec::new();
    loop {
        let request: Request = wire::get(&mut from)?;
        bytes.resize(if brings(request.opcode) { 0 } else { request.length as usize }, 0);
        from.read_exact(&mut bytes)?;
        let hostile = settings().map(|settings| &settings.hostile);
        let datagram = hello.service == ibv_qp_type::IBV_QPT_UD;
        let port = port_of(&hello);
        if let Some((device, packets)) = port {
            counters::received(device, packets.request(request.opcode, u64::from(request.length)));
        }
        let early = !datagram && !brings(request.opcode) && hostile.is_some_and(|hostile| hostile.ack_before_data);
        if early {
            answered(port, &request, 0);
            wire::put(&mut to, &Reply { status: status::DONE, length: 0 })?;
            to.flush()?;
            thread::sleep(BEHIND);
        }
        let outcome = arrived(&hello, &request).and_then(|pair| execute(&pair, &hello, &request, &mut bytes));
        if !early {
            let (status, brought) = match &outcome {
                Ok(brought) => (status::DONE, &brought[..]),
                Err(status) => (*status, &[][..]),
            };
            answered(port.filter(|_| reliable && status != status::DROPPED), &request, brought.len());
            wire::put(&mut to, &Reply { status, length: brought.len() as u32 })?;
            to.write_all(brought)?;
            // What is lost of an unreliable service is lost; a reliable one begins anew.
            if reliable && outcome.is_err() {
                return to.flush();
            }
        }
        if from.buffer().is_empty() {
            to.flush()?;
        }
    }
}

/// The port that packets arrive at, and what is around each; `None` where there is no such queue pair, or its port is down.
fn port_of(hello: &Hello) -> Option<(u8, Packets)> {
    let (pair, settings) = queue_pair::numbered(hello.to).filter(|_| !event::port_down()).zip(settings())?;
    let source = (hello.global != 0).then_some(&hello.source_gid);
    Some((pair.device, Packets::of(settings.profile, hello.service, hello.mtu, source)))
}

/// Counts an answer, before the peer has it.
fn answered(port: Option<(u8, Packets)>, request: &Request, brought: usize) {
    if let Some((device, packets)) = port {
        counters::sent(device, packets.answer(request.opcode, brought as u64));
        counters::show(device);
    }
}

/// The queue pair that a packet reaches, if it reaches any: by address, partition, service and number.
fn arrived(hello: &Hello, request: &Request) -> Result<Arc<Pair>, u32> {
    let dropped = Err(status::DROPPED);
    let (Some(pair), Some(Settings { profile, hostile, .. })) = (queue_pair::numbered(hello.to), settings()) else {
        return dropped;
    };
    if hostile.lost_datagrams && hello.service == ibv_qp_type::IBV_QPT_UD {
        return dropped;
    }
    let inner = pair.inner.lock();
    let attributes = &inner.attributes;
    let ready = matches!(inner.state, ibv_qp_state::IBV_QPS_RTR | ibv_qp_state::IBV_QPS_RTS);
    let iwarp = profile.transport == ibv_transport_type::IBV_TRANSPORT_IWARP;
    let global = hello.global != 0;
    let addressed = match profile.link_layer {
        _ if iwarp => true,
        1 => {
            (!global || port::owns(pair.device, &hello.target_gid))
                && hello.target_lid == u32::from(port::lid(pair.device))
        }
        _ => global && port::owns(pair.device, &hello.target_gid),
    };
    let routed = global || !profile.grh_required;
    let member = iwarp || port::pkey(attributes.pkey_index).is_some_and(|own| same_partition(own, hello.pkey as u16));
    let expected = match pair.service {
        ibv_qp_type::IBV_QPT_UD => request.qkey == attributes.qkey,
        _ => hello.from == attributes.dest_qp_num && hello.psn == attributes.rq_psn,
    };
    if event::port_down() || !ready || !addressed || !routed || !member || !expected || hello.service != pair.service {
        return dropped;
    }
    drop(inner);
    Ok(pair)
}

/// Whether two partition keys let a packet pass (InfiniBand Architecture Specification 10.9.3): one partition, and not
/// both of them limited members.
fn same_partition(one: u16, other: u16) -> bool {
    const FULL: u16 = 0x8000;
    one & !FULL != 0 && one & !FULL == other & !FULL && (one | other) & FULL != 0
}

fn execute(pair: &Arc<Pair>, hello: &Hello, request: &Request, bytes: &mut [u8]) -> Outcome {
    use ibv_wr_opcode as op;
    let outcome = match request.opcode {
        op::IBV_WR_SEND | op::IBV_WR_SEND_WITH_IMM => receive(pair, hello, request, bytes),
        op::IBV_WR_RDMA_WRITE => write(pair, request, bytes),
        op::IBV_WR_RDMA_WRITE_WITH_IMM => write(pair, request, bytes).and_then(|_| receive(pair, hello, request, &[])),
        op::IBV_WR_RDMA_READ => read(pair, request),
        _ => atomic(pair, request),
    };
    if let Err(status::ACCESS | status::INVALID | status::OPERATION) = outcome
        && pair.service == ibv_qp_type::IBV_QPT_RC
    {
        // InfiniBand Architecture Specification 9.9.3: the responder's queue pair errs too, and says so by an event.
        pair.raise(kind::QP_ACCESS_ERR);
        pair.fail();
    }
    outcome
}

/// Whether the peer may do what the queue pair's access flags and the key's say, to so many bytes.
fn allowed(pair: &Pair, request: &Request, access: ibv_access_flags) -> Result<Arc<memory::Region>, u32> {
    let granted = pair.inner.lock().attributes.qp_access_flags & access.0 != 0;
    let region = memory::remote(request.rkey).filter(|_| granted).ok_or(status::ACCESS)?;
    let allows = region.allows(pair.domain, request.remote, u64::from(request.length), access.0);
    if allows { Ok(region) } else { Err(status::ACCESS) }
}

fn write(pair: &Pair, request: &Request, bytes: &mut [u8]) -> Outcome {
    // The key of a write of nothing is not looked at (InfiniBand Architecture Specification 9.7.4.1.4).
    if request.length == 0 {
        return Ok(Vec::new());
    }
    let region = allowed(pair, request, ibv_access_flags::IBV_ACCESS_REMOTE_WRITE)?;
    let alive = region.alive.read();
    if !*alive {
        return Err(status::ACCESS);
    }
    spoil(bytes);
    if let Some((last, rest)) = bytes.split_last()
        && !rest.is_empty()
        && last_byte_first()
    {
        // SAFETY: inside of a region that is held alive.
        unsafe { memory::place_byte(request.remote + rest.len() as u64, *last) };
        thread::sleep(HELD);
        // SAFETY: as above.
        unsafe { memory::place(request.remote, rest) };
        return Ok(Vec::new());
    }
    // SAFETY: as above.
    unsafe { memory::place(request.remote, bytes) };
    Ok(Vec::new())
}

/// Whether this write is one of those whose last byte is placed first.
fn last_byte_first() -> bool {
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let in_order = settings().and_then(|settings| settings.hostile.last_byte_first);
    in_order.is_some_and(|in_order| WRITES.fetch_add(1, Ordering::Relaxed) >= in_order)
}

/// Flips a bit of every so many payloads, where that was asked for.
fn spoil(bytes: &mut [u8]) {
    static PAYLOADS: AtomicU64 = AtomicU64::new(0);
    let every = settings().and_then(|settings| settings.hostile.wrong_byte);
    let hit = every.is_some_and(|every| (PAYLOADS.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every));
    // Words of eight bytes are the agents' own accounts: a link that loses those is another test.
    if hit && bytes.len() > 8 {
        bytes[bytes.len() / 2] ^= 1;
    }
}

/// Whether there are more reads and atomics under way than this side takes.
fn too_many(pair: &Pair, request: &Request) -> bool {
    request.outstanding > u32::from(pair.inner.lock().attributes.max_dest_rd_atomic)
}

fn read(pair: &Pair, request: &Request) -> Outcome {
    if too_many(pair, request) {
        return Err(status::INVALID);
    }
    if request.length == 0 {
        return Ok(Vec::new());
    }
    let region = allowed(pair, request, ibv_access_flags::IBV_ACCESS_REMOTE_READ)?;
    let alive = region.alive.read();
    if !*alive {
        return Err(status::ACCESS);
    }
    let mut bytes = Vec::new();
    // SAFETY: inside of a region that is held alive.
    unsafe { memory::take(request.remote, request.length as usize, &mut bytes) };
    spoil(&mut bytes);
    Ok(bytes)
}

fn atomic(pair: &Pair, request: &Request) -> Outcome {
    if too_many(pair, request) || request.length != 8 || !request.remote.is_multiple_of(8) {
        return Err(status::INVALID);
    }
    let region = allowed(pair, request, ibv_access_flags::IBV_ACCESS_REMOTE_ATOMIC)?;
    let alive = region.alive.read();
    if !*alive {
        return Err(status::ACCESS);
    }
    let add = request.opcode == ibv_wr_opcode::IBV_WR_ATOMIC_FETCH_AND_ADD;
    let how = |was: u64| match add {
        true => was.wrapping_add(request.operand),
        false if was == request.operand => request.swap,
        false => was,
    };
    // SAFETY: inside of a region that is held alive, and aligned.
    Ok(unsafe { memory::change(request.remote, how) }.to_ne_bytes().to_vec())
}

/// Waits for a receive as long as the peer comes back for one.
fn take(pair: &Pair, hello: &Hello) -> Result<Receive, u32> {
    let mut inner = pair.inner.lock();
    let connected = pair.service == ibv_qp_type::IBV_QPT_RC;
    // Table 45 of the specification at the code everyone uses, 12: 0.64 ms; other codes are as good here.
    let limit = Instant::now() + Duration::from_micros(640) * (hello.rnr_retry + 1);
    let endless = hello.rnr_retry == 7;
    loop {
        if let Some(receive) = inner.receives.pop_front() {
            return Ok(receive);
        }
        let over = !connected || inner.closed || (!endless && Instant::now() >= limit);
        if over || !matches!(inner.state, ibv_qp_state::IBV_QPS_RTR | ibv_qp_state::IBV_QPS_RTS) {
            return Err(if connected { status::NOT_READY } else { status::DROPPED });
        }
        pair.received.wait_for(&mut inner, Duration::from_millis(1));
    }
}

/// Consumes a receive: for a send its bytes go there, for a write with immediate data none.
fn receive(pair: &Arc<Pair>, hello: &Hello, request: &Request, bytes: &[u8]) -> Outcome {
    let Receive { wr_id, elements } = take(pair, hello)?;
    let datagram = pair.service == ibv_qp_type::IBV_QPT_UD;
    let written = request.opcode == ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM;
    let mut arrived = if datagram { header(hello).to_vec() } else { Vec::new() };
    arrived.extend_from_slice(bytes);
    if !bytes.is_empty() {
        let start = arrived.len() - bytes.len();
        spoil(&mut arrived[start..]);
    }
    let room: usize = elements.iter().map(|element| element.length as usize).sum();
    let placed =
        if arrived.len() > room { Err(ibv_wc_status::IBV_WC_LOC_LEN_ERR) } else { scatter(pair, &elements, &arrived) };
    let mut wc = blank(pair, wr_id, placed.err().unwrap_or(ibv_wc_status::IBV_WC_SUCCESS));
    wc.opcode = if written { ibv_wc_opcode::IBV_WC_RECV_RDMA_WITH_IMM } else { ibv_wc_opcode::IBV_WC_RECV };
    wc.byte_len = if written { request.length } else { arrived.len() as u32 };
    if matches!(request.opcode, ibv_wr_opcode::IBV_WR_SEND_WITH_IMM | ibv_wr_opcode::IBV_WR_RDMA_WRITE_WITH_IMM) {
        wc.imm_data_invalidated_rkey_union.imm_data = request.immediate;
        wc.wc_flags |= ibv_wc_flags::IBV_WC_WITH_IMM.0;
    }
    if datagram {
        wc.src_qp = hello.from;
        wc.slid = hello.source_lid as u16;
        wc.wc_flags |= if hello.global != 0 { ibv_wc_flags::IBV_WC_GRH.0 } else { 0 };
    }
    pair.receive_queue.push(Entry { wc, frees: None });
    match placed {
        Ok(()) => Ok(Vec::new()),
        Err(ibv_wc_status::IBV_WC_LOC_LEN_ERR) => Err(status::INVALID),
        Err(_) => Err(status::OPERATION),
    }
}

/// A global route header, as far as anyone reads it: addresses.
fn header(hello: &Hello) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[0] = 0x60;
    header[8..24].copy_from_slice(&hello.source_gid);
    header[24..].copy_from_slice(&hello.target_gid);
    header
}

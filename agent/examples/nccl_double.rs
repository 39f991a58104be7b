//! A double of NCCL for tests on hosts without a GPU. Never part of the product. It tells its version,
//! `NCCL_DOUBLE_VERSION` (22803), and can do nothing else by itself.
//!
//! With `NCCL_DOUBLE_STOP` it makes an id, and the group of that id never comes together: the rank of this number stops its
//! process, the others wait for it as those of NCCL do.
//!
//! With `NCCL_DOUBLE_GROUP` groups come together over the loopback interface, if every rank brings the same 128 bytes of an
//! id, and reduce, gather and scatter what lies in the memory of `cuda_double`: sums of `float`, maxima of `uint64_t`. Operations are queued
//! on the driver double's streams. With `NCCL_DOUBLE_RAS` a text, its lines apart by `|`, is what RAS answers to `STATUS`. As NCCL does, it takes
//! ranks for those of one host by `NCCL_HOSTID`, or else by the host's name, and writes to `NCCL_DEBUG_FILE` what
//! NCCL 2.28.3 wrote between two hosts by sockets, and on one host. `NCCL_DOUBLE_FAULT=RANK:SIGNAL:CALL` sends a signal to the
//! process of a rank in its all-reduce of this number. `NCCL_DOUBLE_WRONG` changes the first byte of every sum.
//!
//! Put beside an agent as `librccl.so.1` it is one of RCCL, whose interface is the same.
#![allow(non_snake_case, reason = "the names are NCCL's, and so is their meaning")]
#![allow(clippy::missing_safety_doc, reason = "the contracts are NCCL's")]

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ffi::{CStr, c_char, c_int, c_void},
    fs::OpenOptions,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering},
    },
    time::Duration,
};

use socket2::{Domain, Socket, Type};

const SUCCESS: c_int = 0;
/// `ncclInternalError`.
const INTERNAL: c_int = 3;
/// `ncclInvalidArgument`.
const INVALID: c_int = 4;
/// `ncclRemoteError`: a rank died, or its network did.
const REMOTE: c_int = 6;

/// `ncclUint64` and `ncclMax`, `ncclFloat32` and `ncclSum`.
const LARGEST: (c_int, c_int) = (5, 2);
const SUM: (c_int, c_int) = (7, 0);

/// Bytes of an `ncclUniqueId`.
const ID: usize = 128;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    let told = setting("NCCL_DOUBLE_VERSION").and_then(|text| text.parse().ok()).unwrap_or(22_803);
    // SAFETY: the caller gives a place for the number, as `nccl.h` demands.
    unsafe { version.write(told) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(_status: c_int) -> *const c_char {
    c"said by a double".as_ptr()
}

/// The rank that stops before there is a group.
fn stops() -> Option<c_int> {
    setting("NCCL_DOUBLE_STOP")?.parse().ok()
}

/// Where the others reach the rank that made an id, by that id.
static LISTENERS: Mutex<BTreeMap<[u8; ID], TcpListener>> = Mutex::new(BTreeMap::new());

/// A new id: a port of this host, and bytes that nobody else has.
fn fresh_id() -> io::Result<[u8; ID]> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut id = [0; ID];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut id)?;
    id[..2].copy_from_slice(&listener.local_addr()?.port().to_le_bytes());
    if let Ok(mut listeners) = LISTENERS.lock() {
        listeners.insert(id, listener);
    }
    Ok(id)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(to: *mut [u8; ID]) -> c_int {
    let id = match (stops(), setting("NCCL_DOUBLE_GROUP")) {
        (Some(_), _) => [7; ID],
        (None, Some(_)) => match fresh_id() {
            Ok(id) => id,
            Err(_) => return INTERNAL,
        },
        (None, None) => return INTERNAL,
    };
    // SAFETY: the caller gives a place for an `ncclUniqueId`, which has 128 bytes.
    unsafe { to.write(id) };
    SUCCESS
}

/// Answers every question as RAS does one of `STATUS`.
fn ras() -> Option<()> {
    let (text, address) = (setting("NCCL_DOUBLE_RAS")?.replace('|', "\n"), setting("NCCL_RAS_ADDR")?);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.set_reuse_port(true).ok()?;
    socket.bind(&address.parse::<SocketAddr>().ok()?.into()).ok()?;
    socket.listen(8).ok()?;
    let listener = TcpListener::from(socket);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.read(&mut [0; 256]);
            let _ = client.write_all(format!("SERVER PROTOCOL 2\nOK\n{text}").as_bytes());
        }
    });
    Some(())
}

/// `ncclUniqueId`, which travels by value.
#[repr(C)]
pub struct UniqueId([u8; ID]);

/// A communicator: the first rank has a stream to every other, in the order of their ranks, and every other has one to it.
pub struct Communicator {
    rank: c_int,
    streams: Vec<TcpStream>,
    ranks: c_int,
    /// All-reduces so far.
    calls: AtomicU64,
    /// What a queued operation failed with.
    broken: AtomicI32,
    ended: AtomicBool,
}

impl Communicator {
    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// What NCCL takes for the name of this rank's host.
fn host() -> String {
    let name = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    setting("NCCL_HOSTID").unwrap_or_else(name)
}

fn write_text(mut to: &TcpStream, text: &str) -> io::Result<()> {
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(text.as_bytes())
}

fn read_text(mut from: &TcpStream) -> io::Result<String> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut text = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// The rank that made the id waits for the others, and tells all of them the names of all hosts.
fn gather(listener: &TcpListener, id: &[u8; ID], ranks: c_int) -> io::Result<(Vec<TcpStream>, Vec<String>)> {
    let mut others = BTreeMap::new();
    for _ in 1..ranks {
        let (mut stream, _) = listener.accept()?;
        let (mut theirs, mut rank) = ([0; ID], [0; 4]);
        stream.read_exact(&mut theirs)?;
        stream.read_exact(&mut rank)?;
        if theirs != *id {
            return Err(io::Error::other("another group's id"));
        }
        let host = read_text(&stream)?;
        others.insert(c_int::from_le_bytes(rank), (stream, host));
    }
    let mut hosts = vec![host()];
    hosts.extend(others.values().map(|(_, host)| host.clone()));
    let streams: Vec<TcpStream> = others.into_values().map(|(stream, _)| stream).collect();
    for stream in &streams {
        write_text(stream, &hosts.join("\n"))?;
    }
    Ok((streams, hosts))
}

/// Any other rank goes where the id says.
fn join(id: &[u8; ID], rank: c_int) -> io::Result<(Vec<TcpStream>, Vec<String>)> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, u16::from_le_bytes([id[0], id[1]])))?;
    stream.write_all(id)?;
    stream.write_all(&rank.to_le_bytes())?;
    write_text(&stream, &host())?;
    let hosts = read_text(&stream)?.split('\n').map(str::to_owned).collect();
    Ok((vec![stream], hosts))
}

/// What NCCL says of a ring, in its log.
fn log(rank: usize, hosts: &[String]) -> io::Result<()> {
    let Some(path) = setting("NCCL_DEBUG_FILE") else { return Ok(()) };
    let mut log = OpenOptions::new().append(true).create(true).open(path)?;
    let mut say = |text: &str| writeln!(log, "vm:1:1 [0] NCCL INFO {text}");
    say("NET/Socket : Using [0]lo:127.0.0.1<0>")?;
    say("NET/Socket : GPU Direct RDMA Disabled for HCA 0 'lo'")?;
    say("2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer")?;
    let (next, before) = ((rank + 1) % hosts.len(), (rank + hosts.len() - 1) % hosts.len());
    for channel in 0..2 {
        if hosts[before] != hosts[rank] {
            say(&format!("Channel 0{channel}/0 : {before}[0] -> {rank}[0] [receive] via NET/Socket/0"))?;
        }
        let how = if hosts[next] == hosts[rank] { "via P2P/CUMEM" } else { "[send] via NET/Socket/0" };
        say(&format!("Channel 0{channel}/0 : {rank}[0] -> {next}[0] {how}"))?;
    }
    Ok(())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRank(
    to: *mut *const Communicator,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
) -> c_int {
    ras();
    if let Some(stops) = stops() {
        if stops == rank {
            // SAFETY: no memory is touched; all threads of this process stop.
            unsafe { libc::raise(libc::SIGSTOP) };
        }
        loop {
            std::thread::park();
        }
    }
    let listener = LISTENERS.lock().ok().and_then(|mut listeners| listeners.remove(&id.0));
    let group = match &listener {
        Some(listener) => gather(listener, &id.0, ranks),
        None => join(&id.0, rank),
    };
    let Ok((streams, hosts)) = group else { return REMOTE };
    if log(usize::try_from(rank).unwrap_or(0), &hosts).is_err() {
        return INTERNAL;
    }
    let (calls, broken, ended) = (AtomicU64::new(0), AtomicI32::new(SUCCESS), AtomicBool::new(false));
    let communicator = Arc::new(Communicator { rank, streams, ranks, calls, broken, ended });
    // SAFETY: the caller gives a place for the communicator, as `nccl.h` demands.
    unsafe { to.write(Arc::into_raw(communicator)) };
    SUCCESS
}

/// Sends the signal of `NCCL_DOUBLE_FAULT` to this process, if it is this rank's turn.
fn fail(rank: c_int, call: u64) {
    let text = setting("NCCL_DOUBLE_FAULT").unwrap_or_default();
    let numbers: Vec<i64> = text.split(':').filter_map(|number| number.parse().ok()).collect();
    if let [of, signal, at] = *numbers
        && (i64::from(rank), i64::try_from(call).ok()) == (of, Some(at))
    {
        // SAFETY: no memory is touched.
        unsafe { libc::raise(signal as c_int) };
    }
}

/// Adds the elements of `from` to those of `to`.
fn reduce(to: &mut [u8], from: &[u8], how: (c_int, c_int)) {
    if how == SUM {
        for (to, from) in to.as_chunks_mut::<4>().0.iter_mut().zip(from.as_chunks::<4>().0) {
            *to = (f32::from_le_bytes(*to) + f32::from_le_bytes(*from)).to_le_bytes();
        }
    } else {
        for (to, from) in to.as_chunks_mut::<8>().0.iter_mut().zip(from.as_chunks::<8>().0) {
            *to = u64::from_le_bytes(*to).max(u64::from_le_bytes(*from)).to_le_bytes();
        }
    }
}

/// What all ranks bring, in the order of their ranks: the first rank passes it on.
fn gathered(communicator: &Communicator, mine: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let ranks = communicator.ranks as usize;
    if communicator.rank != 0 {
        let mut first = communicator.streams.first().ok_or_else(|| io::Error::other("no stream"))?;
        first.write_all(mine)?;
        let mut all = vec![vec![0; mine.len()]; ranks];
        all.iter_mut().try_for_each(|one| first.read_exact(one))?;
        return Ok(all);
    }
    let mut all = vec![mine.to_vec()];
    for mut stream in &communicator.streams {
        let mut theirs = vec![0; mine.len()];
        stream.read_exact(&mut theirs)?;
        all.push(theirs);
    }
    communicator.streams.iter().try_for_each(|mut stream| stream.write_all(&all.concat()))?;
    Ok(all)
}

#[derive(Clone, Copy)]
enum What {
    Reduce,
    Gather,
    Scatter,
}

/// Addresses of the caller's memory, which lives until its stream is done.
#[derive(Clone, Copy)]
struct Operation {
    what: What,
    how: (c_int, c_int),
    from: usize,
    to: usize,
    /// Of what this rank brings.
    bytes: usize,
}

/// Operations of this process under way that take a time.
static BUSY: AtomicU64 = AtomicU64::new(0);

/// Takes the time of `NCCL_DOUBLE_PACE`, in microseconds; with `NCCL_DOUBLE_SHARED` twice that while another operation is under way.
fn take_time() {
    let Some(pace) = setting("NCCL_DOUBLE_PACE").and_then(|text| text.parse().ok()).map(Duration::from_micros) else {
        return;
    };
    let before = BUSY.fetch_add(1, Ordering::SeqCst);
    std::thread::sleep(pace);
    if setting("NCCL_DOUBLE_SHARED").is_some() && before.max(BUSY.load(Ordering::SeqCst) - 1) > 0 {
        std::thread::sleep(pace);
    }
    BUSY.fetch_sub(1, Ordering::SeqCst);
}

impl Operation {
    fn run(self, communicator: &Communicator) -> io::Result<()> {
        // SAFETY: host memory, where the driver's double has all memory, of `bytes` that nothing else uses until the stream is done.
        let mine = unsafe { std::slice::from_raw_parts(self.from as *const u8, self.bytes) }.to_vec();
        let all = gathered(communicator, &mine)?;
        if self.how != LARGEST {
            take_time();
        }
        let mut result = match self.what {
            What::Gather => all.concat(),
            What::Reduce | What::Scatter => {
                let mut sum = vec![0; mine.len()];
                all.iter().for_each(|one| reduce(&mut sum, one, self.how));
                let part = mine.len() / all.len();
                let at = part * communicator.rank as usize;
                if matches!(self.what, What::Scatter) { sum[at..at + part].to_vec() } else { sum }
            }
        };
        if let Some(first) = result.first_mut().filter(|_| self.how == SUM && setting("NCCL_DOUBLE_WRONG").is_some()) {
            *first ^= 1;
        }
        // SAFETY: the caller's buffer has room for the result, as `nccl.h` demands.
        unsafe { (self.to as *mut u8).copy_from(result.as_ptr(), result.len()) };
        Ok(())
    }
}

type Work = Box<dyn FnOnce() -> io::Result<()>>;

unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: of `launch`, run once.
    let (communicator, work) = *unsafe { Box::from_raw(work.cast::<(Arc<Communicator>, Work)>()) };
    if work().is_err() {
        communicator.broken.store(REMOTE, Ordering::SeqCst);
        // As in NCCL the operation does not end until its communicator does.
        while !communicator.ended.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

type LaunchHost = unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void), *mut c_void) -> c_int;

/// Queues work on a stream of the driver's double.
unsafe fn launch(communicator: *const Communicator, stream: *mut c_void, work: Work) -> c_int {
    let find = |(library, function): (&CStr, &CStr)| {
        // SAFETY: both are strings; the library is not loaded by this, and stays.
        let found = unsafe {
            let library = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if library.is_null() { library } else { libc::dlsym(library, function.as_ptr()) }
        };
        // SAFETY: the doubles have it with this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, LaunchHost>(found) })
    };
    let drivers = [(c"libcuda.so.1", c"cuLaunchHostFunc"), (c"libamdhip64.so.6", c"hipLaunchHostFunc")];
    let Some(launch) = drivers.into_iter().find_map(find) else { return INTERNAL };
    // SAFETY: the caller's communicator lives, and this keeps it.
    let communicator = unsafe {
        Arc::increment_strong_count(communicator);
        Arc::from_raw(communicator)
    };
    let work = Box::into_raw(Box::new((communicator, work)));
    // SAFETY: `run` takes what is given here.
    unsafe { launch(stream, run, work.cast()) }
}

unsafe fn collective(
    what: What,
    [from, to]: [usize; 2],
    count: usize,
    how: (c_int, c_int),
    communicator: *const Communicator,
    stream: *mut c_void,
) -> c_int {
    let width = match how {
        SUM => 4,
        LARGEST => 8,
        _ => return INVALID,
    };
    // SAFETY: a communicator of `ncclCommInitRank`, which lives.
    let (rank, ranks, calls) =
        unsafe { ((*communicator).rank, (*communicator).ranks as usize, &(*communicator).calls) };
    if matches!(what, What::Reduce) {
        fail(rank, calls.fetch_add(1, Ordering::Relaxed));
    }
    let bytes = count * width * if matches!(what, What::Scatter) { ranks } else { 1 };
    let operation = Operation { what, how, from, to, bytes };
    let place = communicator as usize;
    // SAFETY: `launch` keeps the communicator until this has run.
    let work = move || operation.run(unsafe { &*(place as *const Communicator) });
    // SAFETY: the caller's stream lives.
    unsafe { launch(communicator, stream, Box::new(work)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclAllReduce(
    from: *const u8,
    to: *mut u8,
    count: usize,
    datatype: c_int,
    operation: c_int,
    communicator: *const Communicator,
    stream: *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps to `nccl.h`.
    unsafe {
        collective(What::Reduce, [from as usize, to as usize], count, (datatype, operation), communicator, stream)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclReduceScatter(
    from: *const u8,
    to: *mut u8,
    count: usize,
    datatype: c_int,
    operation: c_int,
    communicator: *const Communicator,
    stream: *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps to `nccl.h`.
    unsafe {
        collective(What::Scatter, [from as usize, to as usize], count, (datatype, operation), communicator, stream)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclAllGather(
    from: *const u8,
    to: *mut u8,
    count: usize,
    datatype: c_int,
    communicator: *const Communicator,
    stream: *mut c_void,
) -> c_int {
    // SAFETY: the caller keeps to `nccl.h`.
    unsafe { collective(What::Gather, [from as usize, to as usize], count, (datatype, SUM.1), communicator, stream) }
}

/// A send or a receive of a group.
struct Block {
    sends: bool,
    at: *mut u8,
    bytes: usize,
    peer: c_int,
    communicator: *const Communicator,
    stream: *mut c_void,
}

thread_local! {
    static GROUP: RefCell<Vec<Block>> = const { RefCell::new(Vec::new()) };
}

/// Bytes of an element by `ncclDataType_t`.
const WIDTHS: [usize; 12] = [1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1];

fn queue(
    sends: bool,
    at: *mut u8,
    count: usize,
    datatype: c_int,
    peer: c_int,
    (communicator, stream): (*const Communicator, *mut c_void),
) -> c_int {
    let Some(width) = usize::try_from(datatype).ok().and_then(|datatype| WIDTHS.get(datatype)) else { return INVALID };
    GROUP.with_borrow_mut(|group| group.push(Block { sends, at, bytes: count * width, peer, communicator, stream }));
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclSend(
    from: *const u8,
    count: usize,
    datatype: c_int,
    peer: c_int,
    communicator: *const Communicator,
    stream: *mut c_void,
) -> c_int {
    queue(true, from.cast_mut(), count, datatype, peer, (communicator, stream))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclRecv(
    to: *mut u8,
    count: usize,
    datatype: c_int,
    peer: c_int,
    communicator: *const Communicator,
    stream: *mut c_void,
) -> c_int {
    queue(false, to, count, datatype, peer, (communicator, stream))
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> c_int {
    let blocks = GROUP.take();
    let Some((place, stream)) = blocks.first().map(|block| (block.communicator, block.stream)) else { return SUCCESS };
    // SAFETY: a communicator of `ncclCommInitRank`, which lives through its group.
    let (rank, calls, streams) = unsafe { ((*place).rank, &(*place).calls, (*place).streams.len()) };
    fail(rank, calls.fetch_add(1, Ordering::Relaxed));
    if streams != 1 {
        return INVALID;
    }
    // SAFETY: both live through the group; `launch` keeps the communicator until it has run.
    unsafe { launch(place, stream, Box::new(move || pass(&*place, blocks))) }
}

/// Between two ranks: the first one sends before it receives, the other receives before it sends.
fn pass(communicator: &Communicator, mut blocks: Vec<Block>) -> io::Result<()> {
    let own: Vec<Block> = blocks.extract_if(.., |block| block.peer == communicator.rank).collect();
    if let [one, other] = &*own {
        let (from, to) = if one.sends { (one, other) } else { (other, one) };
        // SAFETY: buffers of `bytes` in host memory, where `cuda_double` has all memory; they do not overlap.
        unsafe { to.at.copy_from(from.at, from.bytes.min(to.bytes)) };
    }
    blocks.sort_by_key(|block| block.sends != (communicator.rank == 0));
    let mut stream = communicator.streams.first().ok_or_else(|| io::Error::other("no stream"))?;
    blocks.iter().try_for_each(|block| {
        // SAFETY: as above, and nothing else uses them until the group has ended.
        let bytes = unsafe { std::slice::from_raw_parts_mut(block.at, block.bytes) };
        if block.sends { stream.write_all(bytes) } else { stream.read_exact(bytes) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(communicator: *const Communicator, to: *mut c_int) -> c_int {
    // SAFETY: the caller gives a communicator that lives and a place for the error, as `nccl.h` demands.
    unsafe { to.write((*communicator).broken.load(Ordering::SeqCst)) };
    SUCCESS
}

/// Ends what is queued. What this communicator holds stays until the process ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommAbort(communicator: *const Communicator) -> c_int {
    // SAFETY: a communicator of `ncclCommInitRank` that nobody destroyed.
    unsafe { (*communicator).end() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommDestroy(communicator: *const Communicator) -> c_int {
    // SAFETY: a communicator of `ncclCommInitRank`, destroyed once.
    unsafe { Arc::from_raw(communicator) }.end();
    SUCCESS
}

macro_rules! unable {
    ($($name:ident)+) => {
        $(
            #[unsafe(no_mangle)]
            pub extern "C" fn $name() -> c_int {
                INTERNAL
            }
        )+
    };
}

unable! {
    ncclBroadcast ncclReduce ncclRedOpCreatePreMulSum
}

//! Requests and replies over one pipe: numbering, matching, and failing pending requests when it breaks.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use railgauge_model::border::text;
use railgauge_wire::{Answer, Ask, Failure, FromAgent, Kind, Request, Stage, frame, remedy};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf},
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use super::{Gone, Sink, Why, border, explain};

/// How long a request waits for the reason of a broken conversation: longer than it takes to find one.
const REASON: Duration = Duration::from_secs(8);

type Waiting = oneshot::Sender<Result<Answer, Failure>>;

#[derive(Debug)]
pub(crate) struct Conversation {
    host: String,
    state: Mutex<ConversationState>,
    heard: Mutex<Option<Instant>>,
    lost: watch::Sender<Option<Gone>>,
}

#[derive(Debug)]
struct ConversationState {
    next: u64,
    waiting: HashMap<u64, Waiting>,
    /// Frames towards the writer; `None` once hung up.
    frames: Option<mpsc::UnboundedSender<Vec<u8>>>,
    goodbye: Option<u64>,
    has_parted: bool,
}

impl Conversation {
    pub(super) fn new(host: &str) -> (Arc<Self>, mpsc::UnboundedReceiver<Vec<u8>>) {
        let (frames, to_write) = mpsc::unbounded_channel();
        let state = ConversationState {
            next: 1,
            waiting: HashMap::new(),
            frames: Some(frames),
            goodbye: None,
            has_parted: false,
        };
        let (host, state, lost) = (host.to_owned(), Mutex::new(state), watch::Sender::new(None));
        (Arc::new(Self { host, state, heard: Mutex::default(), lost }), to_write)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    fn failure(&self, kind: Kind, cause: impl Into<String>) -> Failure {
        Failure::new(Stage::Converse, kind, cause).at(&self.host)
    }

    pub(super) async fn ask(self: &Arc<Self>, ask: Ask, limit: Duration) -> Result<Answer, Failure> {
        Asked::new(self, ask).within(limit).await
    }

    fn post(&self, ask: Ask) -> Result<(u64, oneshot::Receiver<Result<Answer, Failure>>), Failure> {
        let mut state = self.state.lock();
        let id = state.next;
        let is_goodbye = ask == Ask::Bye;
        let frame = frame::encode(&Request { id, ask })
            .map_err(|error| self.failure(Kind::Internal, format!("cannot write the request: {error}")))?;
        let Some(frames) = state.frames.as_ref() else {
            return Err(self.lost().unwrap_or_else(|| self.closed()));
        };
        if frames.send(frame).is_err() {
            return Err(self.lost().unwrap_or_else(|| self.failure(Kind::Lost, "the agent no longer reads requests")));
        }
        state.next += 1;
        state.goodbye = state.goodbye.or(is_goodbye.then_some(id));
        let (waiting, answer) = oneshot::channel();
        state.waiting.insert(id, waiting);
        Ok((id, answer))
    }

    /// Closes the way to the agent: its standard input ends after all posted frames.
    pub(super) fn hang_up(&self) {
        self.state.lock().frames = None;
    }

    pub(super) fn lose(&self, gone: Gone) {
        let failure = explain::lost(&gone).at(&self.host);
        self.lost.send_replace(Some(gone));
        let mut state = self.state.lock();
        state.frames = None;
        for (_, waiting) in state.waiting.drain() {
            // A waiter that stopped at this moment does not need it.
            let _ = waiting.send(Err(failure.clone()));
        }
    }

    /// Whether the agent answered the goodbye: then its end was requested.
    pub(super) fn has_parted(&self) -> bool {
        self.state.lock().has_parted
    }

    pub(super) fn lost(&self) -> Option<Failure> {
        self.lost.borrow().as_ref().map(|gone| explain::lost(gone).at(&self.host))
    }

    fn closed(&self) -> Failure {
        self.failure(Kind::Aborted, "the conversation was closed")
    }

    pub(super) async fn gone(&self) -> Gone {
        let mut lost = self.lost.subscribe();
        // The sender lives in `self`, so the wait cannot be interrupted.
        let gone = lost.wait_for(Option::is_some).await;
        gone.ok().and_then(|gone| gone.clone()).unwrap_or_default()
    }

    fn deliver(&self, reply: FromAgent) -> Result<(), Why> {
        let FromAgent::Reply { id, outcome } = reply;
        *self.heard.lock() = Some(Instant::now());
        let mut state = self.state.lock();
        if id == 0 || id >= state.next {
            return Err(Why::Unasked(id));
        }
        state.has_parted |= state.goodbye == Some(id) && outcome.is_ok();
        // The request may have timed out.
        if let Some(waiting) = state.waiting.remove(&id) {
            let _ = waiting.send(outcome);
        }
        Ok(())
    }

    /// Resolves when the agent left two questions in a row unanswered, each for a third of `limit`, after a third of silence. The question
    /// is the time, which it always answers. Elapsed time alone is not enough: a stopped controller receives nothing either. Begins with
    /// the agent's first reply: before that the time of the try is the limit.
    pub(super) async fn silent(self: &Arc<Self>, limit: Duration) -> Why {
        let step = limit / 3;
        let mut missed = 0;
        loop {
            let quiet = self.heard.lock().map_or(Duration::ZERO, |heard| heard.elapsed());
            if quiet < step {
                missed = 0;
                tokio::time::sleep(step - quiet).await;
            } else {
                let asked = Instant::now();
                // Any bytes count, also those of an answer that takes long to arrive.
                let _ = self.ask(Ask::Clock, step).await;
                let is_heard = self.heard.lock().is_some_and(|heard| heard >= asked);
                missed = if is_heard { 0 } else { missed + 1 };
                if missed == 2 {
                    return Why::Silent(limit);
                }
                if !is_heard {
                    tokio::time::sleep(step.saturating_sub(asked.elapsed())).await;
                }
            }
            if self.lost().is_some() {
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) async fn read(&self, from: &mut (impl AsyncRead + Unpin)) -> Why {
        let mut from = Noticed { from, heard: &self.heard };
        loop {
            match next(&mut from).await {
                Ok(Some(reply)) => {
                    if let Err(why) = self.deliver(reply) {
                        return why;
                    }
                }
                Ok(None) => return Why::Closed,
                Err(error) => return Why::NotProtocol(error.to_string()),
            }
        }
    }
}

/// A stream that notes when bytes arrive: a large answer over a slow way is not silence.
struct Noticed<'a, R> {
    from: &'a mut R,
    heard: &'a Mutex<Option<Instant>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Noticed<'_, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut *self.from).poll_read(context, into);
        if into.filled().len() > before
            && let Some(heard) = self.heard.lock().as_mut()
        {
            *heard = Instant::now();
        }
        read
    }
}

/// A pending request. Dropping it abandons the answer, not the request.
pub(crate) struct Asked {
    conversation: Arc<Conversation>,
    name: String,
    posted: Result<(u64, oneshot::Receiver<Result<Answer, Failure>>), Failure>,
}

impl Asked {
    pub(super) fn new(conversation: &Arc<Conversation>, ask: Ask) -> Self {
        let (name, posted) = (describe(&ask), conversation.post(ask));
        Self { conversation: Arc::clone(conversation), name, posted }
    }

    /// The answer, however long it takes. Cancel-safe until it has completed once.
    pub(crate) async fn answer(&mut self) -> Result<Answer, Failure> {
        let conversation = &self.conversation;
        match &mut self.posted {
            // The way to the agent has ended and the reason is being determined: new requests get it too.
            Err(failure) if failure.kind != Kind::Internal && conversation.lost().is_none() => {
                let gone = tokio::time::timeout(REASON, conversation.gone()).await;
                Err(gone.map_or_else(|_| failure.clone(), |gone| explain::lost(&gone).at(&conversation.host)))
            }
            Err(failure) => Err(failure.clone()),
            Ok((_, answer)) => match answer.await {
                Ok(outcome) => outcome.map_err(|failure| failure.at(&conversation.host)),
                Err(_) => Err(conversation.lost().unwrap_or_else(|| conversation.closed())),
            },
        }
    }

    pub(crate) async fn within(mut self, limit: Duration) -> Result<Answer, Failure> {
        let posted = self.posted.as_ref().map(drop).map_err(Failure::clone);
        match tokio::time::timeout(limit, self.answer()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(posted.err().unwrap_or_else(|| self.late(limit))),
        }
    }

    /// The failure of a request that was not answered in this time.
    pub(crate) fn late(&self, limit: Duration) -> Failure {
        let cause = format!("no answer to `{}` within {:.1} s", self.name, limit.as_secs_f64());
        self.conversation.failure(Kind::Deadline, cause).remedy(remedy::CHECK_AGENT_HANGS)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Ok((id, _)) = &self.posted {
            self.conversation.state.lock().waiting.remove(id);
        }
    }
}

/// Reads one frame; `None` at the end of the stream, also in the middle of a frame: a killed agent leaves half frames.
async fn next(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Option<FromAgent>> {
    let read = async {
        let mut prefix = [0; 4];
        from.read_exact(&mut prefix).await?;
        let mut bytes = vec![0; frame::length(prefix)?];
        from.read_exact(&mut bytes).await?;
        Ok::<_, std::io::Error>(bytes)
    };
    match read.await {
        Ok(bytes) => border::admit(&bytes).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes frames until the conversation hangs up or the pipe breaks, then closes the pipe.
pub(crate) async fn write(mut frames: mpsc::UnboundedReceiver<Vec<u8>>, mut to: Sink) {
    while let Some(frame) = frames.recv().await {
        // The reader reports a broken pipe, because it knows more.
        if to.write_all(&frame).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Most bytes of other text before the magic line.
const NOISE: usize = 64 << 10;

/// Reads up to and including the magic line. Lines before it go to `noise`.
///
/// # Errors
/// The stream ends first, or more than [`NOISE`] bytes come first.
pub(crate) async fn skip_to_magic(from: &mut (impl AsyncRead + Unpin), mut noise: impl FnMut(&str)) -> Result<(), Why> {
    let mut seen = Vec::new();
    let mut matched = 0;
    let mut byte = [0];
    let outcome = loop {
        match from.read(&mut byte).await {
            Ok(0) => break Err(Why::ClosedEarly),
            Err(error) => break Err(Why::BrokeEarly(error.to_string())),
            Ok(_) => {}
        }
        seen.push(byte[0]);
        // The first byte of the magic line occurs in it only once, so a mismatch restarts at 0 or 1.
        matched = match byte[0] {
            b if b == frame::MAGIC[matched] => matched + 1,
            b if b == frame::MAGIC[0] => 1,
            _ => 0,
        };
        if matched == frame::MAGIC.len() {
            seen.truncate(seen.len() - matched);
            break Ok(());
        }
        if seen.len() > NOISE {
            break Err(Why::OtherText(NOISE));
        }
    };
    seen.split(|byte| *byte == b'\n').map(text::line).filter(|line| !line.is_empty()).for_each(|line| noise(&line));
    outcome
}

fn describe(ask: &Ask) -> String {
    let word = |debug: String| debug.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    match ask {
        Ask::Step { link, step, .. } => format!("{} on link {link}", word(format!("{step:?}"))),
        Ask::Case { link, .. } => format!("case on link {link}"),
        Ask::Open { link, .. } => format!("open link {link}"),
        Ask::Join { link, .. } => format!("join link {link}"),
        Ask::Stop { link } => format!("stop link {link}"),
        Ask::Close { link } => format!("close link {link}"),
        Ask::Counters { device, port } => format!("counters of {device} port {port}"),
        other => word(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::pipe::ProcessEnd;

    #[tokio::test]
    async fn noise_before_the_greeting_is_skipped_and_told() {
        let mut text = b"Welcome to gpu1\n\x01rail\x01".to_vec();
        text.extend_from_slice(frame::MAGIC);
        text.extend_from_slice(b"rest");
        let mut from = text.as_slice();
        let mut noise = Vec::new();
        skip_to_magic(&mut from, |line| noise.push(line.to_owned())).await.unwrap();
        assert_eq!(from, b"rest");
        assert_eq!(noise, ["Welcome to gpu1", "\u{fffd}rail\u{fffd}"]);
    }

    #[tokio::test]
    async fn endless_noise_is_cut_off() {
        let why = skip_to_magic(&mut tokio::io::repeat(b'y'), |_| {}).await.unwrap_err();
        assert_eq!(why, Why::OtherText(NOISE));
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_while_the_reason_is_being_found_is_told_the_reason() {
        // When an agent dies, either may happen first: its writer ends, or the way to it is closed.
        for closed in [false, true] {
            let (conversation, to_write) = Conversation::new("gpu1");
            let _to_write = closed.then_some(to_write);
            if closed {
                conversation.hang_up();
            }
            let gone = Gone { end: Some(ProcessEnd::Signal(Some(9))), ..Gone::default() };
            let reason = explain::lost(&gone).at("gpu1");
            let found = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                conversation.lose(gone);
            };
            let (told, ()) = tokio::join!(conversation.ask(Ask::Facts, Duration::from_secs(60)), found);
            assert_eq!(told, Err(reason));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn where_no_reason_is_found_the_end_is_told() {
        let (conversation, _to_write) = Conversation::new("gpu1");
        conversation.hang_up();
        let failure = conversation.ask(Ask::Facts, Duration::from_millis(20)).await.unwrap_err();
        assert_eq!((failure.kind, failure.cause.as_str()), (Kind::Aborted, "the conversation was closed"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_agent_is_silent_when_it_leaves_questions_unanswered_and_not_by_time_alone() {
        let limit = Duration::from_millis(300);
        let (conversation, mut to_write) = Conversation::new("gpu1");
        // As after a stop of the controller: the last reply came long ago.
        *conversation.heard.lock() = Instant::now().checked_sub(Duration::from_secs(2));
        let answering = async {
            while let Some(frame) = to_write.recv().await {
                let request: Request = serde_json::from_slice(&frame[4..]).unwrap();
                conversation.deliver(FromAgent::Reply { id: request.id, outcome: Ok(Answer::Done) }).unwrap();
            }
        };
        tokio::select! {
            why = conversation.silent(limit) => panic!("it answered, and is told as {why:?}"),
            () = answering => panic!("nobody hung up"),
            () = tokio::time::sleep(3 * limit) => {}
        }
        let silent = tokio::time::timeout(10 * limit, conversation.silent(limit)).await;
        assert_eq!(silent.unwrap(), Why::Silent(limit));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_takes_long_to_arrive_is_no_silence() {
        let limit = Duration::from_millis(300);
        let (conversation, _to_write) = Conversation::new("gpu1");
        *conversation.heard.lock() = Some(Instant::now());
        let (mut from, mut to) = tokio::io::duplex(64);
        let arriving = async {
            to.write_all(&1000_u32.to_be_bytes()).await.unwrap();
            for _ in 0..20 {
                to.write_all(b"{").await.unwrap();
                tokio::time::sleep(limit / 6).await;
            }
        };
        tokio::select! {
            why = conversation.silent(limit) => panic!("it was heard, and is told as {why:?}"),
            why = conversation.read(&mut from) => panic!("it ended: {why:?}"),
            () = arriving => {}
        }
        let silent = async {
            tokio::select! {
                why = conversation.silent(limit) => why,
                why = conversation.read(&mut from) => why,
            }
        };
        assert_eq!(tokio::time::timeout(10 * limit, silent).await.unwrap(), Why::Silent(limit));
    }

    #[tokio::test]
    async fn only_an_answered_goodbye_parts() {
        let (conversation, _to_write) = Conversation::new("gpu1");
        let (clock, _waiting) = conversation.post(Ask::Clock).unwrap();
        let (goodbye, _waiting_too) = conversation.post(Ask::Bye).unwrap();
        conversation.deliver(FromAgent::Reply { id: clock, outcome: Ok(Answer::Done) }).unwrap();
        assert!(!conversation.has_parted());
        conversation.deliver(FromAgent::Reply { id: goodbye, outcome: Ok(Answer::Done) }).unwrap();
        assert!(conversation.has_parted());
    }

    #[test]
    fn requests_have_short_names() {
        assert_eq!(describe(&Ask::Facts), "facts");
        assert_eq!(describe(&Ask::Close { link: 3 }), "close link 3");
        let pattern = railgauge_wire::step::Pattern { size: railgauge_wire::unit::Bytes(8), seed: 1, iteration: 0 };
        let ask = Ask::Step { link: 4, step: railgauge_wire::step::Step::Check(pattern), limit_ms: 1 };
        assert_eq!(describe(&ask), "check on link 4");
    }
}

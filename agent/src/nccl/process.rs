//! A rank's process, as its agent sees it: started with its own environment, asked one thing at a time, ended for good.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use railgauge_wire::{
    failure::{Failure, Kind, Stage},
    frame,
    group::MemberSpec,
    remedy,
};

use super::worker::LOG_FILE;
use crate::collective::message::{RankAnswer, RankAsk, RankRequest, Reply};
use crate::system::wait::{self, Doorbell};

/// How much longer than its own limit a rank may be silent. One that lives answers within a moment, before it aborts;
/// so the controller hears of the one that does not while it still gathers what the others say.
const GRACE: Duration = Duration::from_secs(1);

/// A running rank. Dropping it ends the process.
pub(crate) struct Rank {
    child: Child,
    to: File,
    from: File,
    log: PathBuf,
    name: String,
}

impl Rank {
    pub(crate) fn start(spec: &MemberSpec) -> Result<Self, Failure> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("railgauge-nccl-{}-{number}.log", std::process::id()));
        let started = |error: io::Error| {
            Failure::new(
                Stage::Open,
                Kind::Internal,
                format!("the process of rank {} cannot start: {error}", spec.rank),
            )
        };
        // Nobody else may have put a file or a link there: its words become evidence.
        File::create_new(&log).map_err(started)?;
        // The file may be gone from its place; the running image is not.
        let mut child = Command::new("/proc/self/exe")
            .arg("--rank")
            .envs(&spec.env)
            .env("NCCL_DEBUG", "INFO")
            .env("NCCL_DEBUG_SUBSYS", "INIT,ENV,NET")
            .env(LOG_FILE, &log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(started)?;
        let to = child.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let from = child.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let name = format!("rank {}", spec.rank);
        match (to, from) {
            (Some(to), Some(from)) => Ok(Self { child, to, from, log, name }),
            _ => Err(started(io::Error::other("no pipes"))),
        }
    }

    /// Asks for one thing and waits for the answer, at most `limit` and a little more; ends early once `abort` is set
    /// and the bell rung.
    pub(crate) fn ask(
        &mut self,
        ask: RankAsk,
        limit: Duration,
        abort: &AtomicBool,
        bell: &Doorbell,
    ) -> Result<RankAnswer, Failure> {
        let stage = match &ask {
            RankAsk::Open(_) => Stage::Open,
            RankAsk::Join(_) => Stage::Join,
            RankAsk::Measure(_) => Stage::Measure,
        };
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        if frame::write(&mut self.to, &RankRequest { ask, limit_ms }).is_err() {
            return Err(self.died(stage));
        }
        let until = Instant::now() + limit + GRACE;
        loop {
            bell.quiet();
            if abort.load(Ordering::Relaxed) {
                self.end();
                return Err(Failure::new(stage, Kind::Aborted, format!("{}: ended by the controller", self.name)));
            }
            let left = until.saturating_duration_since(Instant::now());
            let events = wait::wait([(self.from.as_fd(), wait::READABLE), (bell.as_fd(), wait::READABLE)], Some(left));
            match events {
                Ok([0, _]) if left.is_zero() => {
                    self.end();
                    let cause = format!(
                        "{}: its process did not answer within {:.1} s and was killed: it was stopped, or its GPU \
                         hangs",
                        self.name,
                        (limit + GRACE).as_secs_f64()
                    );
                    return Err(Failure::new(stage, Kind::Lost, cause).remedy(remedy::LOOK_AT_GPU));
                }
                Ok([0, _]) => {}
                Ok(_) => break,
                Err(error) => {
                    return Err(Failure::new(stage, Kind::Internal, format!("cannot wait for {}: {error}", self.name)));
                }
            }
        }
        match frame::read::<Reply>(&mut self.from) {
            Ok(Some(reply)) => reply,
            _ => Err(self.died(stage)),
        }
    }

    fn died(&mut self, stage: Stage) -> Failure {
        self.end();
        let how = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        Failure::new(stage, Kind::Lost, format!("{}: its process ended: {how}", self.name)).remedy(remedy::READ_LOG)
    }

    fn end(&mut self) {
        let _ = self.child.kill();
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        self.end();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.log);
    }
}

//! The page of a run while it goes on: a small web server beside the run, on a thread of its own.
//!
//! ```text
//! records.jsonl ─ report::live ─▶ page ─ shelf ─▶ serve ─▶ browser
//! ```
//!
//! | file | does |
//! | --- | --- |
//! | `address` | what `--live=` takes |
//! | `token` | the secret of the URL |
//! | `shelf` | keeps a drawing until it is old enough to be made again |
//! | `serve` | connections: how many, how long, who may ask what |
//!
//! What is shown is read from the records when somebody asks; how far the run is, is the line that the terminal shows. The thread and
//! those that draw have the lowest priority of the scheduler.

mod address;
mod serve;
mod shelf;
mod token;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, mpsc},
    thread,
};

use tokio::sync::oneshot;

pub use address::{NoAddress, address};
use token::Token;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The address cannot be used.
    #[error("the page cannot be served at {address}: {cause}")]
    Bind { address: SocketAddr, cause: io::Error },
    /// The kernel has no random bytes for the secret of the URL.
    #[error("no random bytes for the address of the page: {0}")]
    Token(#[from] getrandom::Error),
    #[error("the page cannot be served: {0}")]
    Thread(#[from] io::Error),
}

pub type Course = Arc<dyn Fn() -> String + Send + Sync>;

/// A place that is taken, before anything is measured.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    token: Token,
    address: SocketAddr,
}

impl Listening {
    /// Takes an address; with port 0 a free port.
    ///
    /// # Errors
    /// The address is not of this machine, or something else listens there.
    pub fn at(address: SocketAddr) -> Result<Self, LiveError> {
        let bind = |cause| LiveError::Bind { address, cause };
        let listener = TcpListener::bind(address).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { listener, token: Token::new()?, address })
    }

    /// Where a browser finds the page. Whoever knows it can read the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token.text())
    }

    /// Whether only programs of this machine reach it.
    pub fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// Serves the page of the run with these records until the answer is dropped.
    ///
    /// # Errors
    /// There can be no thread, or no timer for it.
    pub fn serve(self, records: PathBuf, course: Course) -> Result<Serving, LiveError> {
        let (stop, stopped) = oneshot::channel();
        let (over, all_answered) = mpsc::channel::<Never>();
        self.listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()?;
        thread::Builder::new().name("live".to_owned()).spawn(move || {
            // On Linux this is the priority of the calling thread, and threads that it starts inherit it. Without it all is as before.
            let _ = rustix::process::setpriority_process(None, 19);
            let pages = shelf::Pages::of(records, course);
            runtime.block_on(serve::serve(self.listener, self.token, pages, stopped));
            // A drawing that goes on is not waited for.
            runtime.shutdown_background();
            drop(over);
        })?;
        Ok(Serving { stop: Some(stop), all_answered })
    }
}

/// What is never sent: a channel that tells of an end by being closed.
#[derive(Debug)]
enum Never {}

/// A page that is served; no longer once this is dropped, which waits a moment for answers that are under way.
#[derive(Debug)]
#[must_use = "the page is served as long as this is kept"]
pub struct Serving {
    stop: Option<oneshot::Sender<()>>,
    all_answered: mpsc::Receiver<Never>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The server has its own, shorter bound; a machine that does not let it run must not hold the end up.
        let _ = self.all_answered.recv_timeout(2 * serve::LAST);
    }
}

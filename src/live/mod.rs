//! The page of a run in progress: a small web server on a thread of its own.
//!
//! ```text
//! records.jsonl ─ report::live ─▶ page ─ shelf ─▶ serve ─▶ browser
//! ```
//!
//! | file | does |
//! | --- | --- |
//! | `address` | the value of `--live=` |
//! | `token` | the secret of the URL |
//! | `shelf` | caches rendered pages |
//! | `serve` | connections: their number, duration and permissions |
//!
//! The page is read from the records on request; the progress is the line on the terminal. The thread and those that render have the lowest
//! priority of the scheduler.

mod address;
mod serve;
mod shelf;
mod token;

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    sync::mpsc,
    thread,
};

use tokio::sync::oneshot;

pub use address::{NoAddress, address};
pub use shelf::Course;
use token::Token;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error("the page cannot be served at {address}: {cause}")]
    Bind { address: SocketAddr, cause: io::Error },
    #[error("no random bytes for the address of the page: {0}")]
    Token(#[from] getrandom::Error),
    #[error("the page cannot be served: {0}")]
    Thread(#[from] io::Error),
}

#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    token: Token,
    address: SocketAddr,
}

impl Listening {
    pub fn at(address: SocketAddr) -> Result<Self, LiveError> {
        let bind = |cause| LiveError::Bind { address, cause };
        let listener = TcpListener::bind(address).map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { listener, token: Token::new()?, address })
    }

    /// Anyone with this URL can read the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.address, self.token.text())
    }

    pub fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }

    pub fn serve(self, records: PathBuf, course: Course) -> Result<Serving, LiveError> {
        let (stop, stopped) = oneshot::channel();
        let (over, all_answered) = mpsc::channel::<Never>();
        self.listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()?;
        thread::Builder::new().name("live".to_owned()).spawn(move || {
            // On Linux this sets the priority of the calling thread, inherited by threads that it starts. Failure is harmless.
            let _ = rustix::process::setpriority_process(None, 19);
            let pages = shelf::Pages::of(records, course);
            runtime.block_on(serve::serve(self.listener, self.token, pages, stopped));
            runtime.shutdown_background();
            drop(over);
        })?;
        Ok(Serving { stop: Some(stop), all_answered })
    }
}

/// Never sent: closing the channel signals the end.
#[derive(Debug)]
enum Never {}

/// A served page. Dropping it ends the server, after a short wait for pending answers.
#[derive(Debug)]
#[must_use = "the page is served as long as this is kept"]
pub struct Serving {
    stop: Option<oneshot::Sender<()>>,
    all_answered: mpsc::Receiver<Never>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The server has its own, shorter limit; a machine that does not let it run must not delay the end.
        let _ = self.all_answered.recv_timeout(2 * serve::LAST);
    }
}

//! Keeps what was drawn until it is old enough to be drawn again: many viewers cost no more than one, and a slow drawing is made seldom.

use std::{path::PathBuf, sync::Arc, time::Duration};

use hyper::body::Bytes;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{sync::Mutex as Waiting, task::spawn_blocking, time::Instant};

use super::follow::Follower;
use crate::{analysis::parallel, report::live};

/// Time between two drawings of the page.
pub(super) const EVERY: Duration = Duration::from_secs(2);
/// Time between two drawings of the report, at least.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// What is drawn is kept this many times as long as the drawing took: a twentieth of one core goes into it.
const REST: u32 = 19;

/// Why nothing is drawn. It is kept and told to many, so its causes are words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotDrawn {
    /// The records cannot be read.
    #[error("the records cannot be read: {0}")]
    Records(String),
    /// The page or the report cannot be drawn.
    #[error("{0}")]
    Page(String),
    /// The drawing came to no end.
    #[error("it cannot be drawn: {0}")]
    Dropped(String),
}

/// A drawing, or why there is none.
type Drawing<T> = Result<T, NotDrawn>;

/// One thing that is drawn.
struct Shelf<T> {
    /// The last drawing, and until when it is kept. Who waits for the lock waits for a drawing that goes on.
    kept: Waiting<Option<(Instant, Drawing<T>)>>,
    at_least: Duration,
}

impl<T: Clone + Send + 'static> Shelf<T> {
    const fn new(at_least: Duration) -> Self {
        Self { kept: Waiting::const_new(None), at_least }
    }

    async fn get(&self, draw: impl FnOnce() -> Drawing<T> + Send + 'static) -> Drawing<T> {
        let mut kept = self.kept.lock().await;
        if let Some((until, drawing)) = kept.as_ref()
            && Instant::now() < *until
        {
            return drawing.clone();
        }
        let begun = Instant::now();
        let drawing = spawn_blocking(draw).await.unwrap_or_else(|error| Err(NotDrawn::Dropped(error.to_string())));
        let now = Instant::now();
        let rest = (now.duration_since(begun) * REST).max(self.at_least);
        *kept = Some((now + rest, drawing.clone()));
        drawing
    }
}

/// The page and its JSON.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) html: Bytes,
    pub(super) json: Bytes,
}

/// Everything that can be asked for.
pub(super) struct Pages {
    records: PathBuf,
    follower: Arc<Mutex<Follower>>,
    page: Shelf<Page>,
    report: Shelf<Bytes>,
}

impl Pages {
    pub(super) fn of(records: PathBuf) -> Self {
        Self {
            follower: Arc::new(Mutex::new(Follower::of(records.clone()))),
            records,
            page: Shelf::new(EVERY),
            report: Shelf::new(REPORT_EVERY),
        }
    }

    /// How far the run is.
    pub(super) async fn page(&self) -> Drawing<Page> {
        let follower = Arc::clone(&self.follower);
        let draw = move || {
            let mut follower = follower.lock();
            follower.catch_up().map_err(|error| NotDrawn::Records(error.to_string()))?;
            let (html, json) = live::page(&follower.run, Timestamp::now(), EVERY.as_secs())
                .map_err(|error| NotDrawn::Page(error.to_string()))?;
            Ok(Page { html: html.into(), json: json.into() })
        };
        self.page.get(draw).await
    }

    /// The report as far as the records go.
    pub(super) async fn report(&self) -> Drawing<Bytes> {
        let records = self.records.clone();
        let draw = move || {
            // One thread of its own, however large the run: what measures on this machine has the others.
            parallel::alone(|| live::so_far(&records, Timestamp::now()))
                .map(Bytes::from)
                .map_err(|error| NotDrawn::Page(error.to_string()))
        };
        self.report.get(draw).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::{runtime::Handle, time::advance};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_share_a_drawing_and_a_slow_one_is_kept_longer() {
        let (at_least, slow) = (Duration::from_millis(100), Duration::from_millis(50));
        let shelf = Arc::new(Shelf::new(at_least));
        let drawn = Arc::new(AtomicU32::new(0));
        let all: Vec<_> = (0..50)
            .map(|_| {
                let (shelf, drawn) = (Arc::clone(&shelf), Arc::clone(&drawn));
                tokio::spawn(async move {
                    let draw = move || {
                        Handle::current().block_on(advance(slow));
                        Ok(drawn.fetch_add(1, Ordering::SeqCst))
                    };
                    shelf.get(draw).await
                })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.unwrap(), Ok(0));
        }
        // Kept for 19 times 50 ms, which is longer than 100 ms.
        let kept = slow * REST;
        assert!(kept > at_least);
        advance(kept - Duration::from_millis(1)).await;
        assert_eq!(shelf.get(|| Ok(7)).await, Ok(0));
        advance(Duration::from_millis(1)).await;
        assert_eq!(shelf.get(|| Ok(7)).await, Ok(7));
        // One that takes no time is kept as long as any.
        advance(at_least - Duration::from_millis(1)).await;
        assert_eq!(shelf.get(|| Ok(8)).await, Ok(7));
        advance(Duration::from_millis(1)).await;
        assert_eq!(shelf.get(|| Ok(8)).await, Ok(8));
    }
}

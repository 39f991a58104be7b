//! Caches rendered pages: many viewers cost no more than one, and slow renderings are rare.

use std::{path::PathBuf, sync::Arc, time::Duration};

use hyper::body::Bytes;
use jiff::Timestamp;
use railgauge_analysis::parallel;
use railgauge_report::live;
use tokio::{sync::Mutex as Waiting, task::spawn_blocking, time::Instant};

/// Least time between two renderings of the report.
const EVERY: Duration = Duration::from_secs(10);
/// A page is kept this many times as long as its rendering took: rendering uses a twentieth of one core.
const REST: u32 = 19;

/// The progress line.
pub type Course = Arc<dyn Fn() -> String + Send + Sync>;
pub(super) type NotDrawn = String;

type Drawing<T> = Result<T, NotDrawn>;

struct Shelf<T> {
    /// The last rendering, and until when it is kept. Waiters for the lock wait for a rendering in progress.
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
        let drawing = spawn_blocking(draw).await.unwrap_or_else(|error| Err(error.to_string()));
        let now = Instant::now();
        let rest = (now.duration_since(begun) * REST).max(self.at_least);
        *kept = Some((now + rest, drawing.clone()));
        drawing
    }
}

pub(super) struct Pages {
    records: PathBuf,
    pub(super) course: Course,
    report: Shelf<Bytes>,
}

impl Pages {
    pub(super) const fn of(records: PathBuf, course: Course) -> Self {
        Self { records, course, report: Shelf::new(EVERY) }
    }

    pub(super) async fn report(&self) -> Drawing<Bytes> {
        let (records, course) = (self.records.clone(), (self.course)());
        let draw = move || {
            // One thread of its own, however large the run: measurements on this machine need the others.
            let page = parallel::alone(|| live::page(&records, &course, Timestamp::now()));
            page.map(Bytes::from).map_err(|error| error.to_string())
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
        advance(at_least - Duration::from_millis(1)).await;
        assert_eq!(shelf.get(|| Ok(8)).await, Ok(7));
        advance(Duration::from_millis(1)).await;
        assert_eq!(shelf.get(|| Ok(8)).await, Ok(8));
    }
}

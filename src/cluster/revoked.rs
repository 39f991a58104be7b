use std::sync::LazyLock;

use tokio::sync::watch;

/// Why the allocation of this process has ended. A process runs in at most one.
static REVOKED: LazyLock<watch::Sender<Option<String>>> = LazyLock::new(|| watch::Sender::new(None));

/// The first reason stays.
pub(super) fn revoke(why: &str) {
    REVOKED.send_if_modified(|known| {
        let first = known.is_none();
        if first {
            *known = Some(why.to_owned());
        }
        first
    });
}

pub async fn revoked() -> String {
    let mut known = REVOKED.subscribe();
    // The sender lives as long as the process, so the wait ends with a reason.
    known.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()).unwrap_or_default()
}

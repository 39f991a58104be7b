//! The state of pods, requested for many hosts at once: when a switch or the API server fails, all streams end together. A few questions
//! are asked by themselves, all others share one list.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::Mutex, time::timeout};

use super::{
    client::{Client, NoAnswer},
    pod::{self, Known, List, Pod},
};

/// Questions within a [`BURST`] that are asked by themselves: each is a process here, and a request of its own.
const ALONE: usize = 4;
/// Hosts that are lost for one reason are lost within this time.
const BURST: Duration = Duration::from_secs(5);
/// How much older than a question a request for the list may be and still answer it. A list under way longer than this may not include the
/// latest changes.
const FRESH: Duration = Duration::from_millis(500);
/// Time for the API server to answer, including the wait before the request; it may be busy, far away, or gone. Less than an inquiry may
/// take.
const LIMIT: Duration = Duration::from_secs(4);

/// Questions to one cluster. Clones share their answers.
#[derive(Clone)]
pub(super) struct Inquiry(Arc<Shared>);

struct Shared {
    client: Client,
    /// When the last questions were asked, at most [`ALONE`].
    last: parking_lot::Mutex<VecDeque<Instant>>,
    list: Mutex<Option<Listed>>,
}

struct Listed {
    asked: Instant,
    answered: Instant,
    pods: Result<HashMap<String, Pod>, NoAnswer>,
}

impl Listed {
    /// Whether it answers a question of this moment. A missing answer applies to all who waited for it, however early it was requested.
    fn serves(&self, question: Instant) -> bool {
        self.asked + FRESH >= question || self.pods.is_err() && self.answered >= question
    }
}

impl Inquiry {
    pub(super) fn new(client: Client) -> Self {
        Self(Arc::new(Shared { client, last: parking_lot::Mutex::default(), list: Mutex::new(None) }))
    }

    /// Notes a question; true if there were few recently.
    fn is_alone(&self) -> bool {
        let (mut last, now) = (self.0.last.lock(), Instant::now());
        let is_alone = last.len() < ALONE || last.front().is_some_and(|first| now.duration_since(*first) > BURST);
        last.push_back(now);
        if last.len() > ALONE {
            last.pop_front();
        }
        is_alone
    }

    pub(super) async fn ask(&self, name: &str) -> Known {
        let found = match self.is_alone() {
            true => self.asked_alone(name).await,
            false => match timeout(LIMIT, self.listed(name)).await.unwrap_or(Err(NoAnswer::Late(LIMIT))) {
                // A user who may not list pods may still get a single one.
                Err(NoAnswer::Refused(_)) => self.asked_alone(name).await,
                found => found,
            },
        };
        found.map_or_else(Known::Nothing, |pod| Known::Pod(Box::new(pod)))
    }

    async fn asked_alone(&self, name: &str) -> Result<Pod, NoAnswer> {
        asked(&self.0.client, &["pod", name]).await
    }

    async fn listed(&self, name: &str) -> Result<Pod, NoAnswer> {
        let Shared { client, list, .. } = &*self.0;
        let now = Instant::now();
        let mut list = list.lock().await;
        if !list.as_ref().is_some_and(|listed| listed.serves(now)) {
            let begun = Instant::now();
            let all = asked::<List>(client, &["pods"]).await;
            let named = |pod: Pod| (pod.metadata.name.clone(), pod);
            let pods = all.map(|all| all.items.into_iter().map(named).collect());
            *list = Some(Listed { asked: begun, answered: Instant::now(), pods });
        }
        match list.as_ref().map(|listed| &listed.pods) {
            Some(Ok(pods)) => pods.get(name).cloned().ok_or(NoAnswer::NotThere),
            Some(Err(none)) => Err(none.clone()),
            None => Err(NoAnswer::NotThere),
        }
    }
}

async fn asked<T: serde::de::DeserializeOwned>(client: &Client, words: &[&str]) -> Result<T, NoAnswer> {
    let bytes = client.get(words, LIMIT).await?;
    pod::read(&bytes).map_err(|error| NoAnswer::Refused(error.to_string()))
}

//! Keeps what is not recorded yet next to the journal, so that a killed controller loses seconds of the watch and not a whole part.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use railgauge_model::{
    border::text::path_text,
    journal::{
        event::{Event, Line},
        unrecorded,
    },
};
use tokio::{sync::watch, task};

use super::super::spine::{Spine, now};

/// Time between two writes. With the time between two questions this is what a killed controller loses.
pub(super) const WRITE_EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Changing>>);

#[derive(Default)]
struct Changing {
    of_host: BTreeMap<String, Line>,
    changed: bool,
}

impl Kept {
    pub(super) fn set(&self, host: &str, event: Event) {
        let mut kept = self.0.lock();
        kept.of_host.insert(host.to_owned(), Line { at: now(), event });
        kept.changed = true;
    }

    pub(super) fn recorded(&self, host: &str) {
        let mut kept = self.0.lock();
        kept.changed |= kept.of_host.remove(host).is_some();
    }

    /// Ends the file after the last record: it is removed if the journal has everything, and otherwise keeps the rest.
    pub(super) fn end(&self, spine: &Spine, path: &Path, run: &str) {
        let lines: Vec<Line> = self.0.lock().of_host.values().cloned().collect();
        let ended = match lines.is_empty() {
            true if spine.sync() => unrecorded::remove(path),
            true => Ok(()),
            false => unrecorded::write(path, run, &lines),
        };
        if let Err(error) = ended {
            spine.log("controller", &format!("{}: {error}", path_text(path)));
        }
    }

    pub(super) async fn write(self, spine: Spine, mut stopped: watch::Receiver<bool>, every: Duration) {
        let Some((path, run)) = spine.beside() else { return };
        let mut told = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                _ = stopped.wait_for(|stop| *stop) => return,
            }
            let lines: Vec<Line> = {
                let mut kept = self.0.lock();
                if !std::mem::take(&mut kept.changed) {
                    continue;
                }
                kept.of_host.values().cloned().collect()
            };
            let (to, of) = (path.clone(), run.clone());
            let written = task::spawn_blocking(move || unrecorded::write(&to, &of, &lines)).await;
            if let Ok(Err(error)) = written
                && !std::mem::replace(&mut told, true)
            {
                spine.log("controller", &format!("what ports were seen to do is not kept between records: {error}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::progress::Progress;
    use super::*;
    use railgauge_model::{directory::Directory, journal::line::Tail};
    use std::path::PathBuf;

    fn run(place: &Path) -> (Spine, PathBuf) {
        let (directory, claim) = Directory::create(&place.join("run")).unwrap();
        let journal = claim.go_on(Tail::before("r".into()), &directory.reserve()).unwrap();
        let spine = Spine::new(journal, &directory.log(), Progress::new(true, false)).unwrap();
        (spine, directory.unrecorded())
    }

    #[test]
    fn the_file_goes_only_if_the_journal_has_what_is_in_it() {
        let place = tempfile::tempdir().unwrap();
        let (spine, path) = run(place.path());
        let kept = Kept::default();
        let note = |text: &str| Event::Note { host: "a".into(), text: text.into() };
        kept.set("a", note("early"));
        kept.set("a", note("late"));
        kept.end(&spine, &path, "r");
        let (lines, wrong) = unrecorded::read(&path, "r").unwrap();
        let events: Vec<&Event> = lines.iter().map(|line| &line.event).collect();
        assert_eq!((events, wrong.len()), (vec![&note("late")], 0));
        kept.recorded("a");
        kept.end(&spine, &path, "r");
        assert!(!path.exists());
    }

    /// What a controller that is killed now would leave, each time that it was written.
    #[test]
    fn what_is_not_recorded_yet_lies_beside_the_journal() {
        let place = tempfile::tempdir().unwrap();
        let (spine, path) = run(place.path());
        let lines = || unrecorded::read(&path, "r").unwrap().0.len();
        let until = |wanted: usize| async move {
            for _ in 0..1_000 {
                if lines() == wanted {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            panic!("{} lines, not {wanted}", lines());
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (stop, stopped) = watch::channel(false);
            let kept = Kept::default();
            let note = || Event::Note { host: "a".into(), text: "seen".into() };
            let writing = tokio::spawn(kept.clone().write(spine.clone(), stopped, Duration::from_millis(5)));
            kept.set("a", note());
            kept.set("b", note());
            kept.set("a", note());
            until(2).await;
            kept.recorded("b");
            until(1).await;
            stop.send(true).unwrap();
            writing.await.unwrap();
        });
    }
}

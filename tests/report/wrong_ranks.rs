//! Wrong bytes of a collective: the ranks at which they arrived are named, with their hosts.

use railgauge_analysis::{case::State, journal::Journal, results::results};
use railgauge_wire::{step::Checked, unit::Bytes};

use crate::bisect::{Cluster, run};

/// A run whose ranks saw so many wrong bytes each; the others none.
fn wrong(bytes: &[(u32, u64)]) -> Journal {
    let mut journal = run(&mut Cluster::new(&[]), "");
    let sample = journal.tries[0].result.as_mut().unwrap();
    let verified = sample.checked.verified / sample.ranks.len() as u64;
    for account in &mut sample.ranks {
        let wrong =
            bytes.iter().find(|(rank, _)| *rank == account.rank).map_or(Bytes::ZERO, |(_, wrong)| Bytes(*wrong));
        account.checked = Checked { verified, wrong, first_wrong: (!wrong.is_zero()).then_some(5) };
    }
    let wrong = Bytes(bytes.iter().map(|(_, wrong)| wrong).sum());
    sample.checked = Checked { wrong, first_wrong: Some(5), ..sample.checked };
    journal
}

fn error(journal: &Journal) -> String {
    let results = results(journal).unwrap();
    assert_eq!(results[0].state, State::Wrong);
    results[0].error().unwrap()
}

#[test]
fn the_rank_at_which_wrong_bytes_arrived_is_named_with_its_host() {
    let one = error(&wrong(&[(2, 9)]));
    assert!(one.starts_with("a03: verify: 9 bytes are ") && one.contains("rank 2 on a03"), "{one}");
    let two = error(&wrong(&[(2, 9), (7, 4)]));
    for words in ["13 bytes", "rank 2 on a03 (9)", "rank 7 on a08 (4)"] {
        assert!(two.contains(words), "{words}: {two}");
    }
    let all: Vec<(u32, u64)> = (0..12).map(|rank| (rank, 1)).collect();
    assert!(error(&wrong(&all)).contains("each of the 12 ranks"));
    assert!(error(&wrong(&all[1..])).contains("rank 1 on a02 (1)"));
}

#[test]
fn ranks_that_do_not_add_up_are_no_measurement() {
    let mut journal = wrong(&[]);
    let sample = journal.tries[0].result.as_mut().unwrap();
    sample.checked.first_wrong = None;
    sample.ranks[0].checked = Checked::default();
    assert_eq!(results(&journal).unwrap()[0].state, State::Impossible);
}

//! The circle method: the rounds of a tournament in which every player meets every other once.
//!
//! Player 0 keeps its place, the others move by one place after every round; the player at place `p` meets the one at place `m - 1 - p`.
//! With an odd number of players the last place is a bye, whose pair is omitted.

pub(super) fn rounds(players: usize) -> usize {
    if players < 2 { 0 } else { places(players) - 1 }
}

pub(super) fn round(players: usize, round: usize) -> impl Iterator<Item = (usize, usize)> {
    let places = places(players);
    let at = move |place: usize| if place == 0 { 0 } else { 1 + (place - 1 + round) % (places - 1) };
    (0..places / 2)
        .map(move |place| (at(place), at(places - 1 - place)))
        .filter(move |&(a, b)| a < players && b < players)
}

fn places(players: usize) -> usize {
    players + players % 2
}

//! Members whose book differs from a majority's: one of the copies is wrong, and it is not the majority's.

use std::collections::BTreeMap;
use std::fmt;

use super::types::NodeId;
use crate::replica::DigestAt;

/// A member's book that differs from a majority's, where that shows first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Odd {
    pub(super) node_id: NodeId,
    /// The log index after which it differs.
    pub(super) index: u64,
    pub(super) digest: u128,
    /// What the majority has there.
    pub(super) majority: u128,
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Odd { node_id, index, digest, majority } = self;
        write!(
            f,
            "node {node_id}'s book differs from a majority's after log index {index}: \
             its digest is {digest:032x}, theirs {majority:032x}"
        )
    }
}

/// The odd ones among the voters, by id. Two that differ without a majority tell nothing: nobody is named.
pub(super) fn find_odd(voters: &[NodeId], digests: &BTreeMap<NodeId, Vec<DigestAt>>) -> Vec<Odd> {
    let mut by_index: BTreeMap<u64, Vec<(NodeId, u128)>> = BTreeMap::new();
    for id in voters {
        for at in digests.get(id).into_iter().flatten() {
            by_index.entry(at.index).or_default().push((*id, at.digest));
        }
    }
    let mut odd = BTreeMap::new();
    for (index, known) in by_index {
        let agree = |digest: u128| known.iter().filter(|(_, d)| *d == digest).count() > voters.len() / 2;
        let Some((_, majority)) = known.iter().copied().find(|(_, digest)| agree(*digest)) else { continue };
        for (node_id, digest) in known.into_iter().filter(|(_, digest)| *digest != majority) {
            odd.entry(node_id).or_insert(Odd { node_id, index, digest, majority });
        }
    }
    odd.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(of: &[(NodeId, &[(u64, u128)])]) -> BTreeMap<NodeId, Vec<DigestAt>> {
        let at =
            |(index, digest): &(u64, u128)| DigestAt { index: *index, revision: *index, digest: *digest };
        of.iter().map(|(id, kept)| (*id, kept.iter().map(at).collect())).collect()
    }

    #[test]
    fn the_one_that_differs_is_named_where_it_differs_first() {
        let found = find_odd(
            &[1, 2, 3],
            &digests(&[
                (1, &[(256, 7), (512, 8), (768, 9)]),
                (2, &[(256, 7), (512, 80), (768, 90)]),
                (3, &[(512, 8), (768, 9)]),
            ]),
        );
        assert_eq!(found, [Odd { node_id: 2, index: 512, digest: 80, majority: 8 }]);
        assert!(found[0].to_string().contains("node 2's book differs"), "{}", found[0]);
    }

    #[test]
    fn without_a_majority_of_all_voters_nobody_is_named() {
        // Two of three differ, and the third says nothing of that index.
        let of_two = digests(&[(1, &[(256, 7)]), (2, &[(256, 8)]), (3, &[(512, 1)])]);
        assert_eq!(find_odd(&[1, 2, 3], &of_two), []);
        // Three that agree are not a majority of six.
        let half = digests(&[(1, &[(256, 7)]), (2, &[(256, 7)]), (3, &[(256, 7)]), (4, &[(256, 8)])]);
        assert_eq!(find_odd(&[1, 2, 3, 4, 5, 6], &half), []);
        // A learner has no say, and is not judged.
        let learner = digests(&[(1, &[(256, 7)]), (2, &[(256, 7)]), (4, &[(256, 8)])]);
        assert_eq!(find_odd(&[1, 2, 3], &learner), []);
    }
}

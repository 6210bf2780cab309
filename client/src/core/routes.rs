//! Which member to ask.

use crate::limits::MEMBERS_MAX;

/// The members that a client knows of, and which of them it asks next. Addresses are `host:port`.
///
/// Many calls share one value. A call tells what it saw of the member it asked; only what concerns
/// the present choice changes it, so that a hundred calls that failed at one member move it once.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Never empty. The configured ones stand first and stay.
    members: Vec<String>,
    configured: usize,
    leader: Option<String>,
    next: usize,
}

impl Routes {
    /// Routes that start from the configured members, at least one. `random` spreads clients over them.
    pub fn new(configured: Vec<String>, random: u64) -> Self {
        assert!(!configured.is_empty(), "a client knows at least one member");
        let next = (random % configured.len() as u64) as usize;
        Routes { configured: configured.len(), members: configured, leader: None, next }
    }

    /// The member to ask: the leader, or one after the other until it is known.
    pub fn pick(&self) -> &str {
        self.leader.as_deref().unwrap_or_else(|| &self.members[self.next % self.members.len()])
    }

    /// Whether the leader is thought to be known.
    pub fn has_leader(&self) -> bool {
        self.leader.is_some()
    }

    /// Every member that is known.
    pub fn members(&self) -> &[String] {
        &self.members
    }

    /// The member did what only a leader does.
    pub fn keep(&mut self, asked: &str) {
        if self.leader.is_none() {
            self.leader = Some(asked.to_owned());
        }
    }

    /// The member that was asked says who leads. Its word counts unless the choice has moved on since.
    pub fn follow(&mut self, asked: &str, leader: &str) {
        if self.pick() == asked || self.leader.is_none() {
            self.remember(leader);
            self.leader = Some(leader.to_owned());
        }
    }

    /// The member that was asked does not lead, or does not answer.
    pub fn leave(&mut self, asked: &str) {
        if self.pick() != asked {
            return;
        }
        self.leader = None;
        for _ in 0..self.members.len() {
            self.next = (self.next + 1) % self.members.len();
            if self.members[self.next] != asked {
                return;
            }
        }
    }

    /// A list of all members, from one of them. The configured addresses stay beside it: they
    /// may be the only ones that work from here.
    pub fn learn(&mut self, members: impl IntoIterator<Item = String>) {
        let asked = self.members[self.next % self.members.len()].clone();
        self.members.truncate(self.configured);
        for member in members {
            self.remember(&member);
        }
        self.next = self.members.iter().position(|member| *member == asked).unwrap_or(0);
    }

    fn remember(&mut self, member: &str) {
        if self.members.len() < MEMBERS_MAX && !self.members.iter().any(|known| known == member) {
            self.members.push(member.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(members: &[&str]) -> Routes {
        Routes::new(members.iter().map(|member| (*member).to_owned()).collect(), 0)
    }

    #[test]
    fn one_after_the_other_until_somebody_leads() {
        let mut routes = routes(&["a:1", "b:1", "c:1"]);
        assert_eq!(routes.pick(), "a:1");
        routes.leave("a:1");
        assert_eq!(routes.pick(), "b:1");
        routes.leave("b:1");
        assert_eq!(routes.pick(), "c:1");
        routes.leave("c:1");
        assert_eq!(routes.pick(), "a:1");
        routes.keep("a:1");
        assert!(routes.has_leader());
    }

    #[test]
    fn a_leader_that_was_named_is_asked_even_if_it_was_not_known() {
        let mut routes = routes(&["a:1"]);
        routes.follow("a:1", "z:9");
        assert_eq!(routes.pick(), "z:9");
        routes.leave("z:9");
        assert_ne!(routes.pick(), "z:9", "another one is asked next");
        assert!(routes.members().contains(&"z:9".to_owned()), "but it stays known");
    }

    #[test]
    fn late_news_of_another_member_does_not_move_the_choice() {
        let mut routes = routes(&["a:1", "b:1", "c:1"]);
        routes.follow("a:1", "b:1");
        routes.leave("a:1");
        routes.follow("a:1", "c:1");
        assert_eq!(routes.pick(), "b:1");
        routes.leave("b:1");
        routes.leave("b:1");
        let picked = routes.pick().to_owned();
        routes.leave("b:1");
        assert_eq!(routes.pick(), picked, "a second failure at the old member changes nothing");
    }

    #[test]
    fn a_single_member_is_asked_again() {
        let mut routes = routes(&["a:1"]);
        routes.leave("a:1");
        assert_eq!(routes.pick(), "a:1");
    }

    #[test]
    fn lists_replace_what_was_learnt_but_not_what_was_configured() {
        let mut routes = routes(&["a:1"]);
        routes.learn(["a:1".to_owned(), "b:1".to_owned()]);
        assert_eq!(routes.members(), ["a:1", "b:1"]);
        routes.learn(["c:1".to_owned()]);
        assert_eq!(routes.members(), ["a:1", "c:1"]);
    }
}

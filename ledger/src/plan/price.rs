//! The price book: what a model's tokens cost.

use std::collections::BTreeMap;

use super::matching::pattern_matches;

/// Tokens that a price is for.
pub const TOKENS_PER_PRICE: u64 = 1_000_000;

/// What a million tokens of each class cost, in millionths of the plan's currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Of the prompt.
    pub input: u64,
    /// Of the completion.
    pub output: u64,
    /// Of the part of the prompt that the provider had cached.
    pub cached: u64,
    /// Of the part of the completion that was reasoning.
    pub reasoning: u64,
}

/// How many tokens of each class an operation used, each token in one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenClasses {
    /// Of the prompt, and not cached.
    pub input: u64,
    /// Of the completion, and not reasoning.
    pub output: u64,
    /// Of the prompt, and cached.
    pub cached: u64,
    /// Of the completion, and reasoning.
    pub reasoning: u64,
}

/// What happens to a model that the price book does not name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPrice {
    /// Its requests are refused where money is counted.
    #[default]
    Refuse,
    /// It costs this.
    Ceiling(Price),
}

/// Prices by model. Versioned by the plan that it stands in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceBook {
    /// By pattern on the model's name.
    pub models: BTreeMap<String, Price>,
    /// Of all others.
    pub unknown: UnknownPrice,
}

impl PriceBook {
    /// The price of a model: by its own name, else by the longest pattern that fits, else what is said of unknown
    /// ones. `None`: it has no price and must be refused.
    pub fn price(&self, model: &str) -> Option<Price> {
        if let Some(price) = self.models.get(model) {
            return Some(*price);
        }
        let fits = self.models.iter().filter(|(pattern, _)| pattern_matches(pattern, model));
        let known = fits.max_by_key(|(pattern, _)| pattern.len()).map(|(_, price)| *price);
        known.or(match self.unknown {
            UnknownPrice::Refuse => None,
            UnknownPrice::Ceiling(price) => Some(price),
        })
    }
}

impl Price {
    /// What an operation costs, rounded up to a whole millionth; `u64::MAX` where it would be more.
    pub fn cost(&self, tokens: TokenClasses) -> u64 {
        let TokenClasses { input, output, cached, reasoning } = tokens;
        let pairs =
            [(input, self.input), (output, self.output), (cached, self.cached), (reasoning, self.reasoning)];
        // Four products of two u64 may pass u128 together.
        let sum = pairs
            .into_iter()
            .try_fold(0_u128, |sum, (count, price)| sum.checked_add(u128::from(count) * u128::from(price)));
        let cost = sum.map(|sum| sum.div_ceil(u128::from(TOKENS_PER_PRICE)));
        cost.and_then(|cost| u64::try_from(cost).ok()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64) -> Price {
        Price { input, output: 4 * input, cached: input / 2, reasoning: 8 * input }
    }

    #[test]
    fn the_name_goes_before_the_longest_pattern_before_what_is_unknown() {
        let models = [("large", 10), ("large-*", 20), ("large-x*", 30), ("large-xl", 40)];
        let models = models.map(|(name, input)| (name.to_owned(), price(input))).into();
        let mut book = PriceBook { models, unknown: UnknownPrice::Refuse };
        let input = |book: &PriceBook, model| book.price(model).map(|price| price.input);
        assert_eq!(input(&book, "large"), Some(10));
        assert_eq!(input(&book, "large-a"), Some(20));
        assert_eq!(input(&book, "large-xs"), Some(30));
        assert_eq!(input(&book, "large-xl"), Some(40));
        assert_eq!(input(&book, "larger"), None);
        book.unknown = UnknownPrice::Ceiling(price(1_000));
        assert_eq!(input(&book, "larger"), Some(1_000));
    }

    #[test]
    fn costs_are_rounded_up_and_never_wrap() {
        let tokens = |input, output, cached, reasoning| TokenClasses { input, output, cached, reasoning };
        // 2 a token, per million.
        assert_eq!(price(2_000_000).cost(tokens(3, 5, 2, 1)), 3 * 2 + 5 * 8 + 2 + 16);
        assert_eq!(price(2).cost(tokens(1, 0, 0, 0)), 1);
        assert_eq!(price(2).cost(TokenClasses::default()), 0);
        assert_eq!(Price::default().cost(tokens(u64::MAX, u64::MAX, 0, 0)), 0);
        let dear = Price { input: u64::MAX, output: u64::MAX, cached: u64::MAX, reasoning: u64::MAX };
        assert_eq!(dear.cost(tokens(u64::MAX, u64::MAX, u64::MAX, u64::MAX)), u64::MAX);
    }
}

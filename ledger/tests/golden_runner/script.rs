//! Reading scripts: lines into words, options and documents.

use holdfast_ledger::Amounts;
use holdfast_ledger::Unit;

/// A line of a script with what belongs to it.
#[derive(Clone, Debug)]
pub enum Line {
    /// Comments and empty lines, kept as they are.
    Text(String),
    /// A command, as it stands, and the lines of the document after it.
    Command(String, Vec<String>),
}

/// The lines of a script without the expected answers.
pub fn read(script: &str) -> Vec<Line> {
    let mut lines = script.lines().filter(|line| !line.starts_with('>'));
    let mut read = Vec::new();
    while let Some(line) = lines.next() {
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            read.push(Line::Text(line.to_owned()));
        } else if line.ends_with(':') {
            let document = lines.by_ref().take_while(|line| *line != "end").map(str::to_owned).collect();
            read.push(Line::Command(line.to_owned(), document));
        } else {
            read.push(Line::Command(line.to_owned(), Vec::new()));
        }
    }
    read
}

/// A command's words: what it is, on what, and its options.
#[derive(Clone, Debug)]
pub struct Words {
    pub verb: String,
    pub plain: Vec<String>,
    options: Vec<(String, String)>,
}

impl Words {
    pub fn of(line: &str) -> Words {
        let mut words = line.trim_end_matches(':').split_whitespace().map(str::to_owned);
        let verb = words.next().unwrap();
        let (options, plain): (Vec<_>, Vec<_>) = words.partition(|word| word.contains('='));
        let options = options.iter().map(|word| word.split_once('=').unwrap());
        let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Words { verb, plain, options }
    }

    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    pub fn amounts(&self) -> Amounts {
        self.amounts_with("")
    }

    /// Amounts whose options begin with something before the unit: `min_tokens=10`.
    pub fn amounts_with(&self, prefix: &str) -> Amounts {
        let mut amounts = Amounts::NONE;
        for unit in Unit::ALL {
            let amount = self.option(&format!("{prefix}{unit}"));
            amounts.set(unit, amount.map(|amount| amount.replace('_', "").parse().unwrap()));
        }
        amounts
    }
}

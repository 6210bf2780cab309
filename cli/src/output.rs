//! What goes to stdout: a table for people or one JSON document for programs. Messages go to stderr.

use std::io::{ErrorKind, Write};

use comfy_table::presets::NOTHING;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
pub use holdfast_proto::json::put_u64;
use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Aligned columns for people.
    #[default]
    Table,
    /// One JSON document.
    Json,
}

/// Writes results in the format that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    format: Format,
}

impl Output {
    /// Writes in this format.
    pub fn new(format: Format) -> Self {
        Output { format }
    }

    /// Whether programs read it.
    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Shows one result: the document, or what `text` makes of it.
    pub fn show(self, document: &Value, text: impl FnOnce() -> String) -> Outcome {
        self.show_one(document, text).map(drop)
    }

    /// Shows one result of many. False: the reader went away, and nobody wants more.
    pub fn show_one(self, document: &Value, text: impl FnOnce() -> String) -> Outcome<bool> {
        match self.format {
            Format::Json => write(&format!("{document}\n")),
            Format::Table => write(&text()),
        }
    }
}

/// Writes to stdout. A reader that went away (`holdfast … | head`) is not a failure.
pub fn print(text: &str) -> Outcome {
    write(text).map(drop)
}

/// False: the reader went away.
fn write(text: &str) -> Outcome<bool> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(Failure::failed(format!("cannot write to standard output: {e}"))),
        Ok(()) => Ok(true),
    }
}

/// A table: headers, and rows in which numbers stand to the right.
pub struct Rows {
    table: Table,
}

impl Rows {
    /// An empty table with its column titles.
    pub fn new<const N: usize>(titles: [&str; N]) -> Self {
        let mut table = Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(titles.map(|title| Cell::new(title.to_uppercase())));
        Rows { table }
    }

    /// Adds a row.
    pub fn add<const N: usize>(&mut self, cells: [String; N]) {
        self.table.add_row(cells.map(|text| {
            let numeric = text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains([':', '-', '.']);
            let alignment = if numeric { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(alignment)
        }));
    }

    /// Adds a row of a table that lists one thing's facts: its values are of all kinds, so numbers stand to the left too.
    pub fn add_fact(&mut self, name: &str, value: String) {
        self.table.add_row([name.to_owned(), value]);
    }

    /// The text, without the spaces that would trail at the ends of lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.table.lines() {
            // The preset without borders still pads the first column by one space.
            text.push_str(line.strip_prefix(' ').unwrap_or(&line).trim_end());
            text.push('\n');
        }
        text
    }
}

/// 12345678 as `12 345 678`, for people.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_three() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1 000");
        assert_eq!(grouped(12_345_678), "12 345 678");
    }

    #[test]
    fn facts_stand_to_the_left() {
        let mut rows = Rows::new(["reservation", "01M8Q9Q53R2JJWPWFWMCK9B8MR"]);
        rows.add_fact("generation", "1".into());
        assert_eq!(rows.text(), "RESERVATION  01M8Q9Q53R2JJWPWFWMCK9B8MR\ngeneration   1\n");
    }

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let mut rows = Rows::new(["name", "used"]);
        rows.add(["a".into(), "5".into()]);
        rows.add(["longer".into(), "1 234".into()]);
        assert_eq!(rows.text(), "NAME    USED\na           5\nlonger  1 234\n");
    }
}

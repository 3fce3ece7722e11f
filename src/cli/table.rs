//! Tables that fit the terminal.

use std::io::IsTerminal as _;

use comfy_table::{CellAlignment, ContentArrangement, Row, Table};
use console::Term;

/// Returns a table without lines, with a heading if one is given.
pub(super) fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    if !heading.is_empty() {
        let mut heading = Row::from(heading);
        heading.max_height(1);
        table.set_header(heading);
    }
    table
}

/// Aligns columns of numbers to the right.
pub(super) fn numbers(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// Returns the lines of a table. On a terminal, lines that do not fit are cut and end in `…`.
pub(super) fn rendered(mut table: Table) -> String {
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        // Lines are cut anywhere, not only between words.
        table.set_truncation_indicator("…").set_delimiter('\0');
        for row in table.row_iter_mut() {
            row.max_height(1);
        }
    }
    table.trim_fmt()
}

/// Returns the lines of a table with nothing cut: text that does not fit continues in the next
/// line.
pub(super) fn wrapped(mut table: Table) -> String {
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.trim_fmt()
}

/// Returns the width of the terminal on standard output, if there is one.
fn terminal_width() -> Option<u16> {
    const DEFAULT_COLUMNS: u16 = 80;
    let width = || Term::stdout().size_checked().map(|(_, width)| width);
    let is_terminal = std::io::stdout().is_terminal();
    is_terminal.then(|| width().filter(|width| *width > 0).unwrap_or(DEFAULT_COLUMNS))
}

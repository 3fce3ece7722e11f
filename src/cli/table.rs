//! Tables as the terminal has room for them.

use std::io::IsTerminal as _;

use comfy_table::{CellAlignment, ContentArrangement, Row, Table};
use console::Term;

/// A table without lines, with a heading where there is one.
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

/// Aligns columns of numbers on the right.
pub(super) fn numbers(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// The lines of a table. On a terminal what does not fit is cut, and ends in `…`.
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

/// The same with nothing cut: what does not fit goes on in the next line.
pub(super) fn wrapped(mut table: Table) -> String {
    if let Some(width) = terminal_width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.trim_fmt()
}

/// The columns of the terminal on standard output, if it is one.
fn terminal_width() -> Option<u16> {
    const USUAL: u16 = 80;
    let width = || Term::stdout().size_checked().map(|(_, width)| width);
    let is_terminal = std::io::stdout().is_terminal();
    is_terminal.then(|| width().filter(|width| *width > 0).unwrap_or(USUAL))
}

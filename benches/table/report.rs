//! The table of figures, as it is printed and as JSON.

use serde_json::{Value, json};

pub struct TableRow {
    pub what: String,
    pub found: String,
    pub bar: String,
    pub is_met: bool,
    pub data: Value,
}

impl TableRow {
    /// Creates a row whose figure must not exceed the limit `bar`.
    pub fn at_most(what: impl Into<String>, found: f64, bar: f64, unit: &str, data: Value) -> Self {
        Self {
            what: what.into(),
            found: format!("{found:.2}{unit}"),
            bar: format!("≤ {bar}{unit}"),
            is_met: found <= bar,
            data,
        }
    }

    /// Creates a row whose figure must not fall below the limit `bar`.
    pub fn at_least(
        what: impl Into<String>,
        found: f64,
        bar: f64,
        unit: &str,
        data: Value,
    ) -> Self {
        Self {
            what: what.into(),
            found: format!("{found:.2}{unit}"),
            bar: format!("≥ {bar}{unit}"),
            is_met: found >= bar,
            data,
        }
    }
}

/// Prints a row.
pub fn print(row: &TableRow) {
    let mark = if row.is_met { "met" } else { "MISSED" };
    println!("| {} | {} | {} | {mark} | {} |", row.what, row.found, row.bar, row.data);
}

pub fn as_json(rows: &[TableRow]) -> Value {
    let row = |row: &TableRow| {
        json!({
            "what": row.what,
            "found": row.found,
            "bar": row.bar,
            "met": row.is_met,
            "data": row.data,
        })
    };
    rows.iter().map(row).collect()
}

pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

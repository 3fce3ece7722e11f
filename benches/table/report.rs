//! The table as it is printed, and as JSON.

use serde_json::{Value, json};

pub struct Row {
    pub what: String,
    pub found: String,
    pub bar: String,
    pub is_met: bool,
    pub data: Value,
}

impl Row {
    /// A figure that must not be above its bar.
    pub fn at_most(what: impl Into<String>, found: f64, bar: f64, unit: &str, data: Value) -> Self {
        Self {
            what: what.into(),
            found: format!("{found:.2}{unit}"),
            bar: format!("≤ {bar}{unit}"),
            is_met: found <= bar,
            data,
        }
    }

    /// A figure that must not be below its bar.
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

/// Prints a row as soon as it is known.
pub fn print(row: &Row) {
    let mark = if row.is_met { "met" } else { "MISSED" };
    println!("| {} | {} | {} | {mark} | {} |", row.what, row.found, row.bar, row.data);
}

pub fn as_json(rows: &[Row]) -> Value {
    let row = |row: &Row| json!({"what": row.what, "found": row.found, "bar": row.bar, "met": row.is_met, "data": row.data});
    rows.iter().map(row).collect()
}

pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

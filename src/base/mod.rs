//! Utilities that every layer may use.

mod backoff;
mod blocking;
mod characters;
mod exhaustion;
mod file_lock;
mod files;
mod lock;
mod random_token;
#[cfg(test)]
mod sequences;

pub(crate) use backoff::Backoff;
pub(crate) use blocking::run_blocking;
pub(crate) use characters::{hex, is_hidden, is_invisible, visible};
pub(crate) use exhaustion::is_exhaustion;
pub(crate) use file_lock::lock_file;
pub(crate) use files::{
    ReplaceError, create_file, make_private, make_private_directory, read_at_most, read_bounded,
    read_text, remove_file, replace_file,
};
pub(crate) use lock::Lock;
pub(crate) use random_token::random_token;
#[cfg(test)]
pub(crate) use sequences::{Sequence, check_sequences};

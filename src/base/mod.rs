//! Utilities that every layer may use.

mod backoff;
mod blocking;
mod causes;
mod characters;
mod clock;
mod exhaustion;
mod files;
#[cfg(any(test, fuzzing))]
mod fuzz_input;
mod lock;
mod lock_wait;
mod mark;
mod own_program;
mod random_token;
mod recent;
mod sealing;
#[cfg(test)]
mod sequences;
mod text;
#[cfg(unix)]
mod unix_socket;

pub(crate) use backoff::Backoff;
pub(crate) use blocking::{resolve_name, run_blocking};
pub(crate) use causes::with_causes;
pub(crate) use characters::{hex, is_hidden, is_invisible, visible};
pub(crate) use clock::{now_seconds, since_1970, unix_seconds};
pub(crate) use exhaustion::is_exhaustion;
pub(crate) use files::{
    ReplaceError, StagedFile, WriteOptions, create_file, make_private, make_private_directory,
    read_at_most, read_bounded, read_bounded_text, read_text, remove_file, replace_file,
};
#[cfg(any(test, fuzzing))]
pub(crate) use fuzz_input::{Choices, FuzzInput, run_to_end};
pub(crate) use lock::Lock;
pub(crate) use lock_wait::{
    LockError, lock_file, try_lock_file, wait_for_lock_blocking, wait_for_lock_on_thread,
};
pub(crate) use mark::{is_mark, marks_in, new_mark};
pub(crate) use own_program::own_program;
pub(crate) use random_token::random_token;
pub(crate) use recent::Recent;
pub(crate) use sealing::{MIN_KEY_BYTES, SEAL_MARK_BYTES, SealMark, SealUse, SealingKeys};
#[cfg(test)]
pub(crate) use sequences::{Sequence, check_sequences};
pub(crate) use text::{counted, is_same_ignoring_case, one_line, shell_command, shortened};
#[cfg(unix)]
pub(crate) use unix_socket::{UNNAMED_EXTENSION, bind_private, connect_at_once};

//! The laws of this layer for bytes from outside (see `crate::fuzz`).

use serde::{Serialize, de::DeserializeOwned};

pub(crate) use super::client::fuzz::sessions;
use super::{
    ClientGreeting, ClientNotice, CommandAnswer, DaemonNotice, JoinAnswer, Welcome, read_greeting,
    write_greeting,
};

/// A greeting or notice that can be read is written and read again as the same.
pub(crate) fn greetings(bytes: &[u8]) {
    check_message::<ClientGreeting>(bytes);
    check_message::<Welcome>(bytes);
    check_message::<JoinAnswer>(bytes);
    check_message::<CommandAnswer>(bytes);
    check_message::<DaemonNotice>(bytes);
    check_message::<ClientNotice>(bytes);
}

fn check_message<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(message) = read_greeting::<T>(bytes) else { return };
    let written = written(&message);
    let again: T = read_greeting(&*written).expect("it was written");
    assert_eq!(self::written(&again), written);
}

fn written<T: Serialize>(message: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_greeting(&mut bytes, message).expect("it is short");
    bytes
}

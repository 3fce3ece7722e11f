//! Sealed values: bytes that leave this process, come back, and can be neither read nor changed
//! without a key.

use std::{fmt, sync::Arc};

use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Prk, Salt},
};
use sha2::{Digest as _, Sha256};

/// Minimum length of the text of a key, in bytes.
pub(crate) const MIN_KEY_BYTES: usize = 32;

/// The first byte of a sealed value: the form of the others.
const FORM: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const SALT_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + KEY_ID_BYTES + SALT_BYTES;
/// Number of the first bytes of a sealed value that tell its key.
pub(crate) const SEAL_MARK_BYTES: usize = 1 + KEY_ID_BYTES;

/// The keys of an installation, which all its replicas share. The first one seals; all of them
/// open, so that a key is replaced by writing a new one before it.
#[derive(Clone)]
pub(crate) struct SealingKeys(Arc<[SealingKey]>);

struct SealingKey {
    /// Names the key in the values that it has sealed.
    id: [u8; KEY_ID_BYTES],
    secret: Prk,
}

impl SealingKeys {
    /// Makes keys from their texts. `None` if there is none, or one is shorter than
    /// [`MIN_KEY_BYTES`].
    pub(crate) fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let is_long_enough = |text: &&str| text.len() >= MIN_KEY_BYTES;
        let keys =
            texts.into_iter().map(|text| is_long_enough(&text).then(|| SealingKey::new(text)));
        let keys: Option<Arc<[SealingKey]>> = keys.collect();
        keys.filter(|keys| !keys.is_empty()).map(Self)
    }

    /// Seals a value for this use. `context` must be the same when it is opened, so that a value
    /// cannot take the place of another. The size grows by 37 bytes.
    pub(crate) fn seal(&self, usage: SealUse, context: &[u8], value: &[u8]) -> Vec<u8> {
        let mut salt = [0; SALT_BYTES];
        getrandom::fill(&mut salt).expect("the system has random numbers");
        let key = &self.0[0];
        let mut sealed = value.to_vec();
        let tag = key
            .cipher(usage, &salt)
            .seal_in_place_separate_tag(nonce(), Aad::from(context), &mut sealed)
            .expect("a value is shorter than 64 GB");
        let head: [&[u8]; 3] = [&[FORM], &key.id, &salt];
        [&head.concat(), sealed.as_slice(), tag.as_ref()].concat()
    }

    /// Opens a value that was sealed with one of these keys, for this use, in this context. `None`
    /// for any other bytes.
    pub(crate) fn open(&self, usage: SealUse, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (head, body) = sealed.split_at_checked(HEAD_BYTES)?;
        let (form, head) = head.split_first()?;
        let (id, salt) = head.split_at(KEY_ID_BYTES);
        if *form != FORM {
            return None;
        }
        let mut same = self.0.iter().filter(|key| key.id == id);
        same.find_map(|key| {
            let mut body = body.to_vec();
            let cipher = key.cipher(usage, salt);
            let opened = cipher.open_in_place(nonce(), Aad::from(context), &mut body).ok()?.len();
            body.truncate(opened);
            Some(body)
        })
    }

    /// Returns which key has sealed a value, of which these are the first bytes.
    pub(crate) fn mark(&self, sealed: &[u8]) -> SealMark {
        let Some((FORM, rest)) = sealed.split_first().map(|(form, rest)| (*form, rest)) else {
            return SealMark::Unknown;
        };
        let id = rest.get(..KEY_ID_BYTES);
        match self.0.iter().position(|key| id == Some(key.id.as_slice())) {
            Some(0) => SealMark::FirstKey,
            Some(_) => SealMark::OtherKey,
            None => SealMark::Unknown,
        }
    }
}

/// The key that sealed a value, by the first bytes of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealMark {
    FirstKey,
    OtherKey,
    /// None of the keys, or the bytes are not a sealed value.
    Unknown,
}

/// The use of a key. Values of one use cannot be opened for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealUse {
    /// Values in a store.
    StoredValue,
    /// Ids of sessions of hosts.
    SessionId,
    /// Requests that one replica forwards to another.
    Forwarding,
    /// States that modern hosts give back.
    RequestState,
    /// Cookies of browsers between the steps of a login.
    LoginStep,
}

impl SealUse {
    fn label(self) -> &'static [u8] {
        match self {
            Self::StoredValue => b"dormouse stored value",
            Self::SessionId => b"dormouse session id",
            Self::Forwarding => b"dormouse forwarding",
            Self::RequestState => b"dormouse request state",
            Self::LoginStep => b"dormouse login step",
        }
    }
}

impl SealingKey {
    fn new(text: &str) -> Self {
        let secret = Salt::new(HKDF_SHA256, b"dormouse sealing key").extract(text.as_bytes());
        let digest: [u8; 32] = Sha256::digest(bytes_of(&secret, &[b"id"])).into();
        let (id, _) = digest.split_first_chunk().expect("a digest has 32 bytes");
        Self { id: *id, secret }
    }

    /// Returns a cipher with a key of its own for each salt, so that the one nonce is never used
    /// twice with one key.
    fn cipher(&self, usage: SealUse, salt: &[u8]) -> LessSafeKey {
        let key = bytes_of(&self.secret, &[usage.label(), salt]);
        let key = UnboundKey::new(&AES_256_GCM, &key).expect("the key has 32 bytes");
        LessSafeKey::new(key)
    }
}

fn bytes_of(secret: &Prk, info: &[&[u8]]) -> [u8; 32] {
    let mut bytes = [0; 32];
    let expanded = secret.expand(info, HKDF_SHA256).and_then(|okm| okm.fill(&mut bytes));
    expanded.expect("a digest gives 32 bytes");
    bytes
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

impl fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "an old key that has more than 32 bytes";
    const NEW: &str = "a new key that also has more than 32 bytes";

    #[test]
    fn sealed_value_opens_only_in_its_context_and_unchanged() {
        let keys = SealingKeys::new([NEW]).unwrap();
        let sealed = keys.seal(SealUse::StoredValue, b"logins/a", b"secret");
        let open = |context: &[u8], sealed: &[u8]| keys.open(SealUse::StoredValue, context, sealed);
        assert_eq!(open(b"logins/a", &sealed).as_deref(), Some(&b"secret"[..]));
        assert_eq!(sealed.len(), 6 + 37);
        assert_eq!(open(b"logins/b", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(open(b"logins/a", &changed), None, "byte {at}");
            assert_eq!(open(b"logins/a", &sealed[..at]), None, "{at} bytes");
        }
    }

    #[test]
    fn replaced_key_still_opens_what_it_has_sealed() {
        let (old, new) = (SealingKeys::new([OLD]).unwrap(), SealingKeys::new([NEW]).unwrap());
        let both = SealingKeys::new([NEW, OLD]).unwrap();
        let open = |keys: &SealingKeys, sealed: &[u8]| keys.open(SealUse::StoredValue, b"", sealed);
        let sealed = old.seal(SealUse::StoredValue, b"", b"value");
        assert_eq!(open(&both, &sealed).as_deref(), Some(&b"value"[..]));
        assert_eq!(open(&new, &sealed), None);
        let sealed = both.seal(SealUse::StoredValue, b"", b"value");
        assert_eq!((open(&new, &sealed).is_some(), open(&old, &sealed)), (true, None));
    }

    #[test]
    fn keys_must_be_long() {
        assert!(SealingKeys::new([]).is_none());
        assert!(SealingKeys::new([NEW, "short"]).is_none());
        assert!(!format!("{:?}", SealingKeys::new([NEW])).contains("new key"));
    }
}

//! The signatures of tokens, checked by `ring`.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{Error, ErrorKind},
    signature::{self, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// The algorithms with a public key. Tokens that are signed with a shared secret are refused.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::InvalidAlgorithm.into()),
    verifier_factory: |algorithm, key| {
        let check = check_of(*algorithm).ok_or_else(|| Error::from(ErrorKind::InvalidAlgorithm))?;
        Ok(Box::new(SignatureVerifier { algorithm: *algorithm, check, key: key.clone() }))
    },
    // Only keys of a private key need these.
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has tokens checked in this way. Further calls do nothing.
pub(super) fn install() {
    // Fails only if it is installed already.
    let _ = PROVIDER.install_default();
}

/// The way to check a signature.
#[derive(Clone, Copy)]
enum SignatureCheck {
    Rsa(&'static RsaParameters),
    Key(&'static dyn VerificationAlgorithm),
}

struct SignatureVerifier {
    algorithm: Algorithm,
    check: SignatureCheck,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for SignatureVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let verified = match (self.check, self.key.kind()) {
            (SignatureCheck::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (SignatureCheck::Key(algorithm), DecodingKeyKind::SecretOrDer(key)) => {
                UnparsedPublicKey::new(algorithm, key).verify(message, signature)
            }
            (SignatureCheck::Rsa(_) | SignatureCheck::Key(_), _) => Err(ring::error::Unspecified),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

impl JwtVerifier for SignatureVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

fn check_of(algorithm: Algorithm) -> Option<SignatureCheck> {
    Some(match algorithm {
        Algorithm::RS256 => SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => SignatureCheck::Rsa(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => SignatureCheck::Rsa(&RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => SignatureCheck::Key(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => SignatureCheck::Key(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => SignatureCheck::Key(&ED25519),
        _ => return None,
    })
}

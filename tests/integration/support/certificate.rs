//! A certificate for `localhost` that signs itself, in files.

use std::path::Path;

use super::not_tested;

pub struct TestCertificate {
    /// The path of the certificate in PEM.
    pub certificate: String,
    /// The path of the private key in PEM.
    pub key: String,
}

impl TestCertificate {
    /// Makes a certificate, in place of an earlier one; `None` on a machine without `openssl`.
    pub async fn make(directory: &Path) -> Option<Self> {
        let path = |name: &str| directory.join(name).display().to_string();
        let made = Self { certificate: path("localhost.pem"), key: path("localhost.key") };
        let run = tokio::process::Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
            .args(["-nodes", "-days", "2", "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .args(["-keyout", &made.key, "-out", &made.certificate])
            .output()
            .await;
        if run.is_ok_and(|run| run.status.success()) {
            return Some(made);
        }
        not_tested("there is no openssl");
        None
    }
}

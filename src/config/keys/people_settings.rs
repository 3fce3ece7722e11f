//! The keys about people, who have tokens of an identity provider.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::{
    KeyGroup, KeyProblem,
    key_class::{AT_NEXT_START, AT_ONCE},
    unlimited,
};
use crate::config::{key_path::Step, urls::is_secure};

/// The people who may use dormouse over HTTP, and what each of them may use.
#[derive(Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PeopleSettings {
    /// The URL at which hosts reach dormouse, without a path of an endpoint, such as
    /// `https://mcp.example.com`. Access tokens are for it, and browsers return to it.
    #[schemars(extend("x-class" = AT_NEXT_START.expanded()))]
    pub public_url: Option<String>,
    /// The identity providers whose access tokens open the endpoints of hosts, in addition to
    /// `authTokens`: see docs/reference/people.md.
    #[schemars(extend("x-class" = AT_NEXT_START.secret().expanded()))]
    pub issuers: Vec<IssuerEntry>,
    /// What people may use, by the groups that their tokens name. Without any, everything is open
    /// to all of them; otherwise a person without a group gets nothing.
    #[schemars(extend("x-class" = AT_ONCE))]
    pub groups: BTreeMap<String, GroupEntry>,
}

impl std::fmt::Debug for PeopleSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.fmt_without_secrets("PeopleSettings", f)
    }
}

impl KeyGroup for PeopleSettings {
    fn problems(&self, _: &Value) -> Vec<KeyProblem> {
        let mut problems = Vec::new();
        if self.public_url.as_deref().is_some_and(|url| !may_be_secure(url)) {
            let path = vec![Step::Key("publicUrl".to_owned())];
            problems.push((path, "expected an https URL".to_owned()));
        }
        for (at, issuer) in self.issuers.iter().enumerate() {
            problems.extend(issuer.problems(at, self.public_url.is_some()));
        }
        problems
    }
}

/// An identity provider whose access tokens are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct IssuerEntry {
    /// The name of the provider, as tokens have it in `iss`: a URL.
    pub issuer: String,
    /// The names of this service in `aud`, of which a token must have one; by default `publicUrl`,
    /// and `publicUrl` with `/mcp`.
    pub audience: Vec<String>,
    /// Scopes that a token must have.
    pub scopes: Vec<String>,
    /// The claim with the groups of a person. Dots lead into objects: `realm_access.roles`.
    pub groups_claim: String,
    /// The address of the public keys of the provider; by default the one in its metadata.
    pub jwks_url: Option<String>,
    /// How to ask the provider about tokens that are not JWTs.
    pub introspection: Option<IntrospectionEntry>,
    /// The name of this service at the provider, for servers with `"login": "user"`: people prove
    /// there who they are before they log in to a server.
    pub client_id: Option<String>,
    /// The secret of this service at the provider, if it has one.
    pub client_secret: Option<String>,
}

/// The address at which a provider tells about tokens (RFC 7662).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct IntrospectionEntry {
    pub url: String,
    /// The name of this service at the provider.
    pub client_id: String,
    /// The secret of this service at the provider.
    pub client_secret: String,
}

/// The permissions of the people of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct GroupEntry {
    /// The profiles that they may choose; the first one is theirs if they choose none. Without any,
    /// everything is open to them.
    pub profiles: Vec<String>,
    /// Calls of tools of each person in one minute; 0 for any number. Replicas divide it.
    #[serde(with = "unlimited")]
    #[schemars(with = "usize")]
    pub calls_per_minute: Option<usize>,
    /// Bytes of requests and answers of each person on one day (UTC); 0 for any number. Replicas
    /// divide it.
    #[serde(with = "unlimited")]
    #[schemars(with = "usize")]
    pub bytes_per_day: Option<usize>,
}

impl Default for IssuerEntry {
    fn default() -> Self {
        let (issuer, audience, scopes, jwks_url, introspection) = Default::default();
        let (client_id, client_secret) = Default::default();
        let groups_claim = "groups".to_owned();
        Self {
            issuer,
            audience,
            scopes,
            groups_claim,
            jwks_url,
            introspection,
            client_id,
            client_secret,
        }
    }
}

impl IssuerEntry {
    /// Returns the problems of the entry at this position of the list.
    fn problems(&self, at: usize, has_public_url: bool) -> Vec<KeyProblem> {
        let path = |names: &[&str]| {
            let steps = names.iter().map(|name| Step::Key((*name).to_owned()));
            [Step::Key("issuers".to_owned()), Step::Index(at)].into_iter().chain(steps).collect()
        };
        let mut problems = Vec::new();
        let mut check = |names: &[&str], url: &str| {
            if !may_be_secure(url) {
                problems.push((path(names), "expected an https URL".to_owned()));
            }
        };
        check(&["issuer"], &self.issuer);
        if let Some(url) = &self.jwks_url {
            check(&["jwksUrl"], url);
        }
        if let Some(introspection) = &self.introspection {
            check(&["introspection", "url"], &introspection.url);
        }
        if self.client_secret.is_some() && self.client_id.is_none() {
            let message = "this key needs a \"clientId\"";
            problems.push((path(&["clientSecret"]), message.to_owned()));
        }
        if self.audience.is_empty() && !has_public_url {
            let message = "a token for any service would be accepted: set publicUrl, or audience";
            problems.push((path(&["audience"]), message.to_owned()));
        }
        problems
    }
}

/// Returns whether a text is a secure URL. One with variables may be.
fn may_be_secure(text: &str) -> bool {
    text.contains("${") || Url::parse(text).is_ok_and(|url| is_secure(&url))
}

/// Returns what people lack to log in to servers, if the config has people, and a server with
/// logins of theirs. `root`: the config as written.
pub(super) fn missing_for_logins(root: &Value) -> Vec<KeyProblem> {
    let servers = root["mcpServers"].as_object().into_iter().flatten();
    let mut of_users = servers.filter(|(_, entry)| entry["login"] == "user");
    let Some((server, _)) = of_users.next() else { return Vec::new() };
    let why = format!("server {server:?} has \"login\": \"user\"");
    let issuers = root["issuers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut problems = Vec::new();
    if !issuers.is_empty() && root["publicUrl"].is_null() {
        let message = format!("{why}: set publicUrl, to which browsers return after a login");
        problems.push((vec![Step::Key("issuers".to_owned())], message));
    }
    for (at, _) in issuers.iter().enumerate().filter(|(_, entry)| entry["clientId"].is_null()) {
        let path = vec![Step::Key("issuers".to_owned()), Step::Index(at)];
        let message = format!("{why}: set clientId, so that people can prove who they are");
        problems.push((path, message));
    }
    problems
}

/// Returns the problems of groups that name profiles which the config does not have. `profiles`:
/// the profiles as written.
pub(super) fn unknown_profiles(groups: &Value, profiles: &Value) -> Vec<KeyProblem> {
    let mut problems = Vec::new();
    for (group, entry) in groups.as_object().into_iter().flatten() {
        let names = entry["profiles"].as_array().into_iter().flatten().enumerate();
        for (at, name) in names {
            let Some(name) = name.as_str().filter(|name| profiles.get(name).is_none()) else {
                continue;
            };
            let key = |name: &str| Step::Key(name.to_owned());
            let path = vec![key("groups"), key(group), key("profiles"), Step::Index(at)];
            problems.push((path, format!("unknown profile {name:?}")));
        }
    }
    problems
}

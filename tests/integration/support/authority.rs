//! An authorization server together with the server that it guards, controlled by the test.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard},
};

use axum::{
    http::{Method, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::remote::{RecordedRequest, Remote, json_text};

/// The secret of every client.
pub const SECRET: &str = "canary-client-secret";

pub struct Authority {
    pub remote: Remote,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Overrides of the metadata of the authorization server; `null` removes a member.
    metadata: Value,
    /// Overrides of the metadata of the resource.
    resource_metadata: Value,
    /// Parameters of the redirect in addition to the code, or in place of it.
    redirect_parameters: Vec<(String, String)>,
    /// Overrides of every token response.
    token_members: Value,
    /// Scopes that a tool call needs.
    needed_scopes: Vec<String>,
    /// The scopes of each valid access token.
    valid: HashMap<String, Vec<String>>,
    /// The access tokens that were accepted at least once.
    used: HashSet<String>,
    refreshable: Vec<String>,
    /// The requested scopes of each authorization code.
    codes: HashMap<String, Vec<String>>,
    tokens_given: usize,
    is_approved: bool,
    echoes_token_requests: bool,
    behaviour: Behaviour,
}

/// A deviation from a correct authorization server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    Correct,
    /// Only tool calls need a token.
    GuardsOnlyCalls,
    /// Every token is rejected.
    RejectsTokens,
    /// Token requests fail with status 503.
    IsDown,
    /// A web page answers token requests, as from a gateway in front.
    IsBehindGateway,
    /// Every client is unknown.
    ForgetsClients,
    /// Only refresh tokens can be revoked.
    RevokesOnlyRefreshTokens,
    /// The login page accepts only this client id, which new registrations get.
    KnowsOnlyClient(&'static str),
}

impl Authority {
    pub async fn start() -> Self {
        Self::answering(|_| None).await
    }

    /// Starts one whose server answers authorized requests as `answer` says, or as usual if that
    /// returns `None`.
    pub async fn answering(
        answer: impl Fn(&RecordedRequest) -> Option<Response> + Clone + Send + Sync + 'static,
    ) -> Self {
        let state = Arc::new(Mutex::new(State {
            metadata: json!({}),
            resource_metadata: json!({}),
            redirect_parameters: Vec::new(),
            token_members: json!({"expires_in": 3600}),
            needed_scopes: Vec::new(),
            valid: HashMap::new(),
            used: HashSet::new(),
            refreshable: Vec::new(),
            codes: HashMap::new(),
            tokens_given: 0,
            is_approved: false,
            echoes_token_requests: false,
            behaviour: Behaviour::Correct,
        }));
        let shared = state.clone();
        let remote = Remote::start(move |asked: RecordedRequest| {
            let guarded = lock(&shared).answer(&asked);
            let answer = guarded.or_else(|| answer(&asked));
            async move { answer }
        })
        .await;
        Self { remote, state }
    }

    pub fn url(&self) -> &str {
        &self.remote.url
    }

    pub fn origin(&self) -> &str {
        self.url().trim_end_matches("/mcp")
    }

    /// Sets a member of the metadata.
    pub fn set_metadata(&self, member: &str, value: impl Into<Value>) {
        lock(&self.state).metadata[member] = value.into();
    }

    /// Sets a member of the metadata of the resource.
    pub fn set_resource_metadata(&self, member: &str, value: impl Into<Value>) {
        lock(&self.state).resource_metadata[member] = value.into();
    }

    /// Sets a member of every token response.
    pub fn set_token_member(&self, member: &str, value: impl Into<Value>) {
        lock(&self.state).token_members[member] = value.into();
    }

    /// Sets a parameter of the redirect after a login.
    pub fn set_redirect_parameter(&self, name: &str, value: &str) {
        lock(&self.state).redirect_parameters.push((name.to_owned(), value.to_owned()));
    }

    /// Requires this scope for tool calls.
    pub fn require_scope(&self, scope: &str) {
        lock(&self.state).needed_scopes.push(scope.to_owned());
    }

    /// Approves the device login, as a user who types in the code.
    pub fn approve(&self) {
        lock(&self.state).is_approved = true;
    }

    pub fn set_behaviour(&self, behaviour: Behaviour) {
        lock(&self.state).behaviour = behaviour;
    }

    /// Invalidates all access tokens; refresh tokens stay valid.
    pub fn expire_tokens(&self) {
        lock(&self.state).valid.clear();
    }

    /// Invalidates the access tokens that have been used.
    pub fn expire_used_tokens(&self) {
        let State { valid, used, .. } = &mut *lock(&self.state);
        valid.retain(|token, _| !used.contains(token));
    }

    /// Returns whether the access token that was given last is valid, and has been used.
    pub fn newest_token_is_in_use(&self) -> bool {
        let state = lock(&self.state);
        let newest = state.newest_access_token();
        state.valid.contains_key(&newest) && state.used.contains(&newest)
    }

    /// Invalidates all access tokens, and answers token requests with an error that repeats them.
    pub fn echo_token_requests(&self) {
        let mut state = lock(&self.state);
        state.valid.clear();
        state.echoes_token_requests = true;
    }

    /// Returns the registration requests so far.
    pub fn registrations(&self) -> Vec<Value> {
        let asked = self.remote.requests().into_iter().filter(|asked| asked.path == "/register");
        asked.map(|asked| asked.message).collect()
    }

    /// Returns the token requests so far, with their forms.
    pub fn token_requests(&self) -> Vec<(RecordedRequest, HashMap<String, String>)> {
        let asked = self.remote.requests().into_iter().filter(|asked| asked.path == "/token");
        asked.map(|asked| (asked.clone(), form(&asked.body))).collect()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap()
}

pub fn form(text: &str) -> HashMap<String, String> {
    form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

impl State {
    fn answer(&mut self, asked: &RecordedRequest) -> Option<Response> {
        if asked.path == "/token"
            && let Some(failure) = failure(self.behaviour)
        {
            return Some(failure);
        }
        let origin = format!("http://{}", asked.header("host").unwrap_or_default());
        let answer = match asked.path.as_str() {
            "/mcp" => return self.guard(asked, &origin),
            "/.well-known/oauth-protected-resource/mcp" => {
                let known = json!({
                    "resource": format!("{origin}/mcp"), "authorization_servers": [origin],
                });
                merged(known, &self.resource_metadata)
            }
            "/.well-known/oauth-authorization-server" => merged(metadata(&origin), &self.metadata),
            "/register" => self.register(&asked.message),
            "/authorize" => return Some(self.authorize(asked, &origin)),
            "/device" => json!({
                "device_code": "canary-device-code", "user_code": "ABCD-EFGH", "interval": 1,
                "verification_uri": format!("{origin}/type-it-in"), "expires_in": 60,
            }),
            "/token" if self.echoes_token_requests => {
                let said = json!({"error": "server_error", "error_description": asked.body});
                return Some(
                    (StatusCode::BAD_REQUEST, json_text(&said.to_string())).into_response(),
                );
            }
            "/token" => match self.token(&form(&asked.body)) {
                Ok(given) => given,
                Err(error) => {
                    let refusal = json_text(&json!({"error": error}).to_string());
                    return Some((StatusCode::BAD_REQUEST, refusal).into_response());
                }
            },
            "/revoke"
                if self.behaviour == Behaviour::RevokesOnlyRefreshTokens
                    && form(&asked.body)["token_type_hint"] == "access_token" =>
            {
                let refusal = json_text(r#"{"error": "unsupported_token_type"}"#);
                return Some((StatusCode::BAD_REQUEST, refusal).into_response());
            }
            "/revoke" => {
                let token = &form(&asked.body)["token"];
                self.valid.remove(token);
                self.refreshable.retain(|other| other != token);
                json!({})
            }
            _ => return Some(StatusCode::NOT_FOUND.into_response()),
        };
        Some(json_text(&answer.to_string()))
    }

    fn register(&self, wanted: &Value) -> Value {
        let id = match self.behaviour {
            Behaviour::KnowsOnlyClient(id) => id,
            _ => "registered",
        };
        let method = wanted["token_endpoint_auth_method"].clone();
        let mut client = json!({
            "client_id": id, "redirect_uris": wanted["redirect_uris"],
            "token_endpoint_auth_method": method,
        });
        if method != "none" {
            client["client_secret"] = json!(SECRET);
        }
        client
    }

    /// Rejects requests without a valid token, and tool calls without the required scopes.
    fn guard(&mut self, asked: &RecordedRequest, origin: &str) -> Option<Response> {
        let shown = asked.header("authorization").unwrap_or_default();
        let place = format!("{origin}/.well-known/oauth-protected-resource/mcp");
        if self.behaviour == Behaviour::GuardsOnlyCalls && asked.method_name() != "tools/call" {
            return None;
        }
        let token = shown.trim_start_matches("Bearer ");
        let good = self.valid.get(token).filter(|_| self.behaviour != Behaviour::RejectsTokens);
        let Some(scopes) = good else {
            let challenge = format!("Bearer resource_metadata=\"{place}\"");
            let headers = [(header::WWW_AUTHENTICATE, challenge)];
            return Some((StatusCode::UNAUTHORIZED, headers).into_response());
        };
        self.used.insert(token.to_owned());
        let lacks = self.needed_scopes.iter().any(|needed| !scopes.contains(needed));
        if asked.method_name() == "tools/call" && lacks {
            let challenge = format!(
                "Bearer error=\"insufficient_scope\", scope=\"{}\", resource_metadata=\"{place}\"",
                self.needed_scopes.join(" ")
            );
            let headers = [(header::WWW_AUTHENTICATE, challenge)];
            return Some((StatusCode::FORBIDDEN, headers).into_response());
        }
        (asked.method == Method::GET).then(|| StatusCode::METHOD_NOT_ALLOWED.into_response())
    }

    fn authorize(&mut self, asked: &RecordedRequest, origin: &str) -> Response {
        let wanted = form(&asked.query);
        if matches!(self.behaviour, Behaviour::KnowsOnlyClient(id) if id != wanted["client_id"]) {
            return (StatusCode::BAD_REQUEST, Html("<p>unknown client</p>")).into_response();
        }
        let code = format!("canary-code-{}", self.codes.len());
        let scopes = wanted.get("scope").map(String::as_str).unwrap_or_default();
        self.codes.insert(code.clone(), scopes.split_whitespace().map(str::to_owned).collect());
        let mut back = url::Url::parse(&wanted["redirect_uri"]).unwrap();
        let mut brought =
            vec![("code".to_owned(), code), ("state".to_owned(), wanted["state"].clone())];
        for (name, value) in &self.redirect_parameters {
            brought.retain(|(other, _)| other != name);
            brought.push((name.clone(), value.replace("ORIGIN", origin)));
        }
        back.query_pairs_mut().extend_pairs(brought);
        (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
    }

    fn newest_access_token(&self) -> String {
        format!("canary-access-{}", self.tokens_given)
    }

    fn token(&mut self, form: &HashMap<String, String>) -> Result<Value, &'static str> {
        let of = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let scopes: Vec<String> = match of("grant_type") {
            "authorization_code" => self.codes.remove(of("code")).ok_or("invalid_grant")?,
            "refresh_token" => {
                let position =
                    self.refreshable.iter().position(|token| token == of("refresh_token"));
                self.refreshable.remove(position.ok_or("invalid_grant")?);
                words("renewed")
            }
            "client_credentials" => words(of("scope")),
            _ if self.is_approved => words(of("scope")),
            _ => return Err("authorization_pending"),
        };
        self.tokens_given += 1;
        let access = self.newest_access_token();
        let refresh = format!("canary-refresh-{}", self.tokens_given);
        self.refreshable.push(refresh.clone());
        let known = json!({
            "access_token": access, "refresh_token": refresh, "token_type": "Bearer",
            "scope": scopes.join(" "),
        });
        let given = merged(known, &self.token_members);
        self.valid.insert(access, words(given["scope"].as_str().unwrap_or_default()));
        Ok(given)
    }
}

/// Returns the answer to a token request that the behaviour prevents.
fn failure(behaviour: Behaviour) -> Option<Response> {
    match behaviour {
        Behaviour::IsDown => Some(StatusCode::SERVICE_UNAVAILABLE.into_response()),
        Behaviour::IsBehindGateway => {
            Some((StatusCode::FORBIDDEN, Html("<p>Are you a human?</p>")).into_response())
        }
        Behaviour::ForgetsClients => {
            let said = json_text(r#"{"error": "invalid_client"}"#);
            Some((StatusCode::UNAUTHORIZED, said).into_response())
        }
        Behaviour::Correct
        | Behaviour::GuardsOnlyCalls
        | Behaviour::RejectsTokens
        | Behaviour::RevokesOnlyRefreshTokens
        | Behaviour::KnowsOnlyClient(_) => None,
    }
}

fn metadata(origin: &str) -> Value {
    json!({
        "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
        "revocation_endpoint": format!("{origin}/revoke"),
        "device_authorization_endpoint": format!("{origin}/device"),
        "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post", "private_key_jwt"],
    })
}

fn merged(mut known: Value, more: &Value) -> Value {
    let members = known.as_object_mut().expect("an object");
    for (name, value) in more.as_object().into_iter().flatten() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    known
}

//! The token that the requests to one server carry, and what became of it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::{
    auth::credential::Credential,
    base::Lock,
    store::{CHECK_INTERVAL, StoredVersion},
    wire::credentials::Authorization,
};

/// Delay before another attempt after an early renewal has failed.
const RENEWAL_RETRY_DELAY: Duration = Duration::from_secs(30);
/// Minimum age of a token that the server has never accepted before it is replaced. Without this
/// limit, dormouse would request tokens in an endless loop.
pub(super) const TRIAL_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval of the checks whether a store has lost the login, or another process has changed it.
const LOSS_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum age of the known version of a login that is used without waiting for the store.
const MAX_VERSION_AGE: Duration = Duration::from_secs(5);
pub(super) const LOGIN_EXPIRED: &str = " (the login has expired)";
pub(super) const LOGIN_INVALID: &str = " (the login is no longer valid)";

/// The current credentials of one server, and the history that decides whether to replace them.
pub(super) struct TokenCell {
    state: Lock<TokenState>,
    /// True if a login that the store does not have was not removed, but lost.
    survives_loss: bool,
}

struct TokenState {
    current: CurrentCredential,
    /// The version of the stored login when it was last read.
    version: StoredVersion,
    /// Identifies the stored login that was last read.
    login_id: Option<String>,
    checked_at: Instant,
    /// True if `current` is newer than the stored login because saving it failed, or the store has
    /// lost it.
    is_unsaved: bool,
    /// True if `current` is to be stored again.
    is_restoration_due: bool,
    /// The token that an authorization server granted last, and when; `None` when the server has
    /// accepted it.
    last_grant: Option<(Authorization, Instant)>,
    /// The token that the server accepted last.
    accepted: Option<Authorization>,
}

/// The credentials that requests carry now.
#[derive(Clone)]
pub(super) enum CurrentCredential {
    /// The stored login has to be read.
    Unread,
    /// There is no login, and the server has not asked for one so far.
    NoLogin,
    /// There is no token that the server would accept. `why` ends the sentence that tells the user
    /// to log in.
    LoginRequired {
        why: String,
    },
    Token(Arc<CurrentToken>),
    /// The token has expired and cannot be renewed. It is valid again if the clock was wrong.
    Expired(Arc<CurrentToken>),
}

impl CurrentCredential {
    /// Returns the maximum age of a known version that may be used without a look-up.
    fn max_version_age(&self) -> Duration {
        match self {
            // The user may have logged in since the last request was refused.
            Self::LoginRequired { .. } | Self::Expired(_) => Duration::ZERO,
            Self::Token(_) => MAX_VERSION_AGE,
            // The login is read when the server asks for one.
            Self::Unread | Self::NoLogin => Duration::MAX,
        }
    }
}

pub(super) struct CurrentToken {
    pub(super) login: Credential,
    pub(super) authorization: Authorization,
    pub(super) renew_at: Option<SystemTime>,
}

impl CurrentToken {
    fn of(login: Credential, random: f64) -> Option<Self> {
        let authorization = login.authorization()?;
        let renew_at = login.renew_at(random);
        Some(Self { login, authorization, renew_at })
    }
}

impl TokenCell {
    pub(super) fn new(survives_loss: bool) -> Self {
        let state = Lock::new(TokenState {
            current: CurrentCredential::Unread,
            version: StoredVersion::default(),
            login_id: None,
            checked_at: Instant::now(),
            is_unsaved: false,
            is_restoration_due: false,
            last_grant: None,
            accepted: None,
        });
        Self { state, survives_loss }
    }

    /// Returns the current credentials; `None` if the version of the stored login has to be looked
    /// up first. At intervals, `known` returns the version if it is known and has at most the given
    /// age, so that a change by another process is noticed. `is_looked_up`: true if this request
    /// has just looked up the version.
    pub(super) fn current(
        &self,
        is_looked_up: bool,
        known: impl FnOnce(Duration) -> Option<StoredVersion>,
    ) -> Option<CurrentCredential> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let max_age = state.current.max_version_age();
        // The other replicas wait for a login that the store has lost.
        let interval = if self.survives_loss { LOSS_CHECK_INTERVAL } else { CHECK_INTERVAL };
        if max_age.is_zero() || now.duration_since(state.checked_at) >= interval {
            let accepts_any_age = is_looked_up || max_age == Duration::MAX;
            let stored = match known(if accepts_any_age { Duration::MAX } else { max_age }) {
                Some(stored) => stored,
                // A store that cannot be used has told nothing.
                None if accepts_any_age => state.version,
                None => return None,
            };
            state.checked_at = now;
            if self.survives_loss && matches!(state.current, CurrentCredential::Token(_)) {
                if stored != state.version && stored == StoredVersion::default() {
                    (state.version, state.is_unsaved) = (stored, true);
                }
                state.is_restoration_due = state.is_unsaved;
            }
            if stored != state.version {
                return Some(CurrentCredential::Unread);
            }
        }
        if let CurrentCredential::Expired(token) = &state.current
            && !token.login.is_expired(SystemTime::now())
        {
            state.current = CurrentCredential::Token(token.clone());
        }
        Some(state.current.clone())
    }

    /// Returns, once for each check, whether the current login has to be stored again.
    pub(super) fn is_restoration_due(&self) -> bool {
        std::mem::take(&mut self.state.lock().is_restoration_due)
    }

    /// Returns the current token.
    pub(super) fn token(&self) -> Option<Arc<CurrentToken>> {
        match &self.state.lock().current {
            CurrentCredential::Token(token) => Some(token.clone()),
            _ => None,
        }
    }

    /// Notes that this process has changed the stored login, and goes on with the current one.
    pub(super) fn note_version(&self, version: StoredVersion) {
        self.state.lock().version = version;
    }

    /// Returns the version of the stored login when it was last read.
    pub(super) fn version(&self) -> StoredVersion {
        self.state.lock().version
    }

    /// Returns the id of the stored login that was last read.
    pub(super) fn login_id(&self) -> Option<String> {
        self.state.lock().login_id.clone()
    }

    /// Makes the next request read the stored login again.
    pub(super) fn invalidate(&self) {
        let mut state = self.state.lock();
        (state.current, state.version) = (CurrentCredential::Unread, StoredVersion::default());
    }

    /// Sets the current credentials. `version`: the stored login's version from before it was read.
    pub(super) fn set(&self, login: Option<Credential>, version: StoredVersion) {
        let login = login.filter(Credential::was_granted);
        let token = login.map(|login| CurrentToken::of(login, fastrand::f64()));
        let mut state = self.state.lock();
        state.version = version;
        state.is_unsaved |= self.may_be_lost(version) && matches!(token, Some(Some(_)));
        state.current = match token {
            Some(Some(token)) => CurrentCredential::Token(Arc::new(token)),
            Some(None) => CurrentCredential::LoginRequired { why: LOGIN_INVALID.to_owned() },
            None => CurrentCredential::NoLogin,
        };
    }

    /// Keeps a token that has expired and cannot be renewed. `version`: as for [`Self::set`].
    pub(super) fn set_expired(&self, login: Credential, version: StoredVersion) {
        self.set(Some(login), version);
        let mut state = self.state.lock();
        if let CurrentCredential::Token(token) = &state.current {
            state.current = CurrentCredential::Expired(token.clone());
        }
    }

    pub(super) fn require_login(&self, why: &str, version: StoredVersion) {
        let mut state = self.state.lock();
        (state.current, state.version) =
            (CurrentCredential::LoginRequired { why: why.to_owned() }, version);
    }

    /// Uses the current token for a while longer before it is renewed.
    pub(super) fn postpone_renewal(&self) {
        let mut state = self.state.lock();
        if let CurrentCredential::Token(token) = &state.current {
            let renew_at = Some(SystemTime::now() + RENEWAL_RETRY_DELAY);
            let (login, authorization) = (token.login.clone(), token.authorization.clone());
            state.current =
                CurrentCredential::Token(Arc::new(CurrentToken { login, authorization, renew_at }));
        }
    }

    /// Returns the login in memory if it could not be saved and the stored login has not changed
    /// since, or if the store has lost it.
    pub(super) fn unsaved_login(&self, version: StoredVersion) -> Option<Credential> {
        let state = self.state.lock();
        match &state.current {
            CurrentCredential::Token(token)
                if state.is_unsaved && state.version == version || self.may_be_lost(version) =>
            {
                Some(token.login.clone())
            }
            _ => None,
        }
    }

    /// Returns whether the store may have lost the login, since it has none with this version.
    pub(super) fn may_be_lost(&self, version: StoredVersion) -> bool {
        self.survives_loss && version == StoredVersion::default()
    }

    /// Returns whether the login in memory has to be stored: the store, whose login has this
    /// version, has none or an older one.
    pub(super) fn is_ahead_of(&self, version: StoredVersion) -> bool {
        self.survives_loss && (self.may_be_lost(version) || self.state.lock().is_unsaved)
    }

    /// Returns the login in memory, if it survives a loss of the store.
    pub(super) fn kept_through_loss(&self) -> Option<Credential> {
        self.token().filter(|_| self.survives_loss).map(|token| token.login.clone())
    }

    /// Records whether the current login is also the stored one.
    pub(super) fn note_saved(&self, is_saved: bool) {
        self.state.lock().is_unsaved = !is_saved;
    }

    /// Records which stored login was read last.
    pub(super) fn note_read(&self, login_id: Option<String>) {
        self.state.lock().login_id = login_id;
    }

    /// Records the token that an authorization server granted just now.
    pub(super) fn note_granted(&self, token: Option<Authorization>) {
        self.state.lock().last_grant = token.map(|token| (token, Instant::now()));
    }

    /// Records the token that the server accepted just now.
    pub(super) fn note_accepted(&self, shown: &Authorization) {
        let mut state = self.state.lock();
        if state.accepted.as_ref() != Some(shown) {
            state.accepted = Some(shown.clone());
            // Calls with an earlier token may end later.
            state.last_grant.take_if(|(granted, _)| granted == shown);
        }
    }

    /// Returns whether the server accepted this token last.
    pub(super) fn was_accepted(&self, shown: Option<&Authorization>) -> bool {
        self.state.lock().accepted.as_ref() == shown
    }

    /// Returns whether this token was granted recently and the server has never accepted it.
    pub(super) fn is_on_trial(&self, shown: Option<&Authorization>) -> bool {
        let state = self.state.lock();
        let given = state.last_grant.as_ref().filter(|(token, _)| shown == Some(token));
        given.is_some_and(|(_, since)| since.elapsed() < TRIAL_TIMEOUT)
    }

    /// Returns whether the current token differs from the refused one.
    pub(super) fn is_other(&self, refused: Option<&Authorization>) -> bool {
        self.token().is_some_and(|token| Some(&token.authorization) != refused)
    }
}

//! The handshake with a server, in the era of the host if the server speaks it.

use std::{pin::Pin, sync::Arc, time::Duration};

use super::{AttemptError, ServerObserver};
use crate::{
    catalog::ProtocolSupport,
    config::Protocol,
    peer::{CallError, CallOptions, Peer},
    protocol::{
        DiscoverAnswer, Era, Greeting, discover_params, error, initialize_params, invites_retry,
        is_modern_initialize, method, read_discover, read_initialize,
    },
    wire::{Outcome, Raw},
};

/// Maximum time for a probe before `initialize` follows it (docs/design/eras.md).
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// The handshakes to try, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakePlan {
    Only(Era),
    First(Era),
}

impl HandshakePlan {
    /// Chooses the era of the host that needs the server, if the server can speak it.
    pub(super) fn choose(protocol: Protocol, host_era: Era, spoken: ProtocolSupport) -> Self {
        match protocol {
            Protocol::Legacy => Self::Only(Era::Legacy),
            Protocol::Modern => Self::Only(Era::Modern),
            Protocol::Auto => match (host_era, spoken.legacy, spoken.modern) {
                (Era::Modern, _, Some(true)) | (Era::Legacy, Some(false), _) => {
                    Self::Only(Era::Modern)
                }
                (Era::Legacy, Some(true), _) | (Era::Modern, _, Some(false)) => {
                    Self::Only(Era::Legacy)
                }
                (host_era, _, _) => Self::First(host_era),
            },
        }
    }
}

/// One handshake with a server, on one connection.
pub(super) struct Handshake<'a> {
    peer: &'a Peer,
    /// The capabilities declared in each era, and the client information. Both are fixed when the
    /// handshake begins, since hosts come and go.
    legacy: Raw,
    modern: Raw,
    client_info: Option<Raw>,
}

impl<'a> Handshake<'a> {
    pub(super) fn new(peer: &'a Peer, observer: &Arc<dyn ServerObserver>) -> Self {
        Self {
            peer,
            legacy: observer.capabilities(Era::Legacy),
            modern: observer.capabilities(Era::Modern),
            client_info: observer.client_info(),
        }
    }

    /// Returns the capabilities declared to a server that speaks this era.
    pub(super) fn declared(&self, era: Era) -> &Raw {
        match era {
            Era::Legacy => &self.legacy,
            Era::Modern => &self.modern,
        }
    }
}

impl Handshake<'_> {
    /// Performs the handshake, and notes the eras that the server was seen to speak.
    pub(super) async fn greet(
        &self,
        plan: HandshakePlan,
        spoken: &mut ProtocolSupport,
    ) -> Result<Greeting, AttemptError> {
        match plan {
            HandshakePlan::Only(Era::Legacy) => {
                accept_initialize(self.peer, self.initialize().await?, spoken)
            }
            HandshakePlan::Only(Era::Modern) => match read_discover(&self.discover().await?) {
                DiscoverAnswer::Modern(greeting) => Ok(accept_modern(greeting, spoken)),
                DiscoverAnswer::Legacy => Err(AttemptError::NotModern),
                DiscoverAnswer::Unusable(message) => Err(AttemptError::Incompatible(message)),
            },
            HandshakePlan::First(Era::Legacy) => match self.initialize().await? {
                Ok(result) if !is_modern_initialize(&result) => {
                    accept_initialize(self.peer, Ok(result), spoken)
                }
                refusal => self.discover_after(refusal, spoken).await,
            },
            HandshakePlan::First(Era::Modern) => self.probe(spoken).await,
        }
    }

    /// Tries `server/discover` with a server that has refused `initialize`.
    async fn discover_after(
        &self,
        refusal: Outcome,
        spoken: &mut ProtocolSupport,
    ) -> Result<Greeting, AttemptError> {
        let probe = tokio::time::timeout(PROBE_TIMEOUT, self.discover()).await;
        match probe.map(|answer| answer.map(|answer| read_discover(&answer))) {
            Ok(Ok(DiscoverAnswer::Modern(greeting))) => {
                spoken.legacy = Some(false);
                Ok(accept_modern(greeting, spoken))
            }
            // The refusal of `initialize` says what is wrong.
            _ => accept_initialize(self.peer, refusal, spoken),
        }
    }

    /// Sends `server/discover`, and after a timeout `initialize` as well. The first answer decides.
    async fn probe(&self, spoken: &mut ProtocolSupport) -> Result<Greeting, AttemptError> {
        let mut discover = std::pin::pin!(self.discover());
        let answer = match tokio::time::timeout(PROBE_TIMEOUT, &mut discover).await {
            Ok(answer) => answer?,
            Err(_silence) => return self.initialize_alongside(discover, spoken).await,
        };
        match read_discover(&answer) {
            DiscoverAnswer::Modern(greeting) => Ok(accept_modern(greeting, spoken)),
            DiscoverAnswer::Legacy => {
                spoken.modern = Some(false);
                accept_initialize(self.peer, self.initialize().await?, spoken)
            }
            DiscoverAnswer::Unusable(message) => Err(AttemptError::Incompatible(message)),
        }
    }

    /// Sends `initialize` while the probe is still unanswered.
    async fn initialize_alongside(
        &self,
        mut discover: Pin<&mut impl Future<Output = Result<Outcome, AttemptError>>>,
        spoken: &mut ProtocolSupport,
    ) -> Result<Greeting, AttemptError> {
        let mut initialize = std::pin::pin!(self.initialize());
        tokio::select! {
            // If the connection ends, both fail at once, and the probe is the likely cause.
            biased;
            answer = &mut discover => {
                if let DiscoverAnswer::Modern(greeting) = read_discover(&answer?) {
                    return Ok(accept_modern(greeting, spoken));
                }
                spoken.modern = Some(false);
                accept_initialize(self.peer, initialize.await?, spoken)
            }
            answer = &mut initialize => {
                let greeting = accept_initialize(self.peer, answer?, spoken)?;
                // A server that answers the later request first will never answer the probe.
                spoken.modern = Some(false);
                spoken.is_guessed = true;
                Ok(greeting)
            }
        }
    }

    async fn discover(&self) -> Result<Outcome, AttemptError> {
        let answer = self.discover_once().await?;
        if invites_retry(&answer) { self.discover_once().await } else { Ok(answer) }
    }

    async fn discover_once(&self) -> Result<Outcome, AttemptError> {
        let params = discover_params(&self.modern, self.client_info.clone());
        match call(self.peer, method::SERVER_DISCOVER, params).await {
            // A legacy server behind a URL may refuse an unknown method before it reads the body.
            Err(AttemptError::Call { cause: CallError::Refused { status, .. }, .. })
                if is_not_understood(status) =>
            {
                Ok(Err(error::method_not_found(method::SERVER_DISCOVER)))
            }
            answer => answer,
        }
    }

    async fn initialize(&self) -> Result<Outcome, AttemptError> {
        let params = initialize_params(&self.legacy, self.client_info.as_ref());
        call(self.peer, method::INITIALIZE, params).await
    }
}

/// Returns whether an HTTP status means that the request was not understood, rather than not
/// allowed.
fn is_not_understood(status: u16) -> bool {
    (400..500).contains(&status) && !matches!(status, 401 | 403 | 407 | 408 | 429)
}

/// Sends a request without a deadline of its own; the attempt has one.
async fn call(peer: &Peer, phase: &'static str, params: Raw) -> Result<Outcome, AttemptError> {
    peer.request(phase, Some(params), CallOptions::silent_for(Duration::ZERO))
        .await
        .map_err(|cause| AttemptError::Call { phase, cause })
}

fn accept_modern(greeting: Greeting, spoken: &mut ProtocolSupport) -> Greeting {
    spoken.modern = Some(true);
    greeting
}

fn accept_initialize(
    peer: &Peer,
    answer: Outcome,
    spoken: &mut ProtocolSupport,
) -> Result<Greeting, AttemptError> {
    let result = answer.map_err(|refusal| AttemptError::Refused {
        phase: method::INITIALIZE,
        code: error::code(&refusal),
        message: error::message(&refusal),
    })?;
    let greeting = read_initialize(&result).map_err(AttemptError::Incompatible)?;
    peer.notify(method::INITIALIZED, None);
    spoken.legacy = Some(true);
    Ok(greeting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_prefers_the_host_era_if_the_server_speaks_it() {
        use Era::{Legacy, Modern};
        let unknown = ProtocolSupport::default();
        let spoken = |legacy, modern| ProtocolSupport { legacy, modern, ..unknown };
        let legacy_only = spoken(Some(true), Some(false));
        let modern_only = spoken(Some(false), Some(true));
        let legacy_seen = spoken(Some(true), None);
        for (protocol, host_era, spoken, expected) in [
            (Protocol::Auto, Legacy, unknown, HandshakePlan::First(Legacy)),
            (Protocol::Auto, Modern, unknown, HandshakePlan::First(Modern)),
            (Protocol::Auto, Modern, legacy_only, HandshakePlan::Only(Legacy)),
            (Protocol::Auto, Legacy, modern_only, HandshakePlan::Only(Modern)),
            (Protocol::Auto, Modern, legacy_seen, HandshakePlan::First(Modern)),
            (Protocol::Auto, Legacy, legacy_seen, HandshakePlan::Only(Legacy)),
            (Protocol::Legacy, Modern, modern_only, HandshakePlan::Only(Legacy)),
            (Protocol::Modern, Legacy, legacy_only, HandshakePlan::Only(Modern)),
        ] {
            assert_eq!(HandshakePlan::choose(protocol, host_era, spoken), expected);
        }
    }
}

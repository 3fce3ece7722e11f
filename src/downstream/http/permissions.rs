//! The permissions of a person by groups: profiles, and an amount of calls and bytes.

use axum::{
    body::Body,
    http::{StatusCode, header},
    response::Response,
};
use futures_util::StreamExt as _;

use super::{
    front::HttpFront,
    request::{PostedMessages, refusal},
    sender::Sender,
};
use crate::{
    config::{PermittedProfiles, ProfileName},
    identity::Person,
    protocol::method,
    proxy::{Amount, Endpoint, EndpointChoice, Usage},
    wire::Message,
};

/// Returns the profile of a person: the chosen one if a group of the person permits it, or else the
/// first one of these groups, in the order of their names.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
pub(super) fn permitted_profile(
    front: &HttpFront,
    person: &Person,
    chosen: Option<ProfileName>,
) -> Result<Option<ProfileName>, Response> {
    let settings = front.fleet.settings();
    let refused = |message: &str| refusal(StatusCode::FORBIDDEN, None, message);
    match settings.profiles_of(&person.groups) {
        PermittedProfiles::Any => Ok(chosen),
        PermittedProfiles::None => Err(refused("no group of the token may use this service")),
        PermittedProfiles::These(permitted) if permitted.is_empty() => {
            Err(refused("the profiles of the groups of the token are not in the config any more"))
        }
        PermittedProfiles::These(permitted) => match chosen {
            None => Ok(permitted.into_iter().next()),
            Some(chosen) if permitted.contains(&chosen) => Ok(Some(chosen)),
            Some(_) => Err(refused("no group of the token may use this profile")),
        },
    }
}

/// Returns whether the sender of a request may still use a session with this endpoint. A person may
/// have left a group since it was opened.
pub(super) fn may_use(front: &HttpFront, sender: &Sender, endpoint: &Endpoint) -> bool {
    let Some(person) = &sender.person else { return true };
    let permitted = permitted_profile(front, person, endpoint.profile.clone());
    permitted.is_ok_and(|profile| profile == endpoint.profile)
}

/// Returns whether a profile that a person may choose has a server.
pub(super) fn may_use_server(front: &HttpFront, person: &Person, server: &str) -> bool {
    let has_server = |profile: ProfileName| {
        let choice = EndpointChoice { surface: None, profile: Some(profile) };
        front.fleet.endpoint_of(server, choice).is_some()
    };
    match front.fleet.settings().profiles_of(&person.groups) {
        PermittedProfiles::Any => true,
        PermittedProfiles::None => false,
        PermittedProfiles::These(permitted) => permitted.into_iter().any(has_server),
    }
}

/// Counts the bytes of an answer while it is sent.
pub(super) fn count_answer(usage: Usage, body: Body) -> Body {
    Body::from_stream(body.into_data_stream().inspect(move |part| {
        if let Ok(part) = part {
            usage.count_answered(part.len());
        }
    }))
}

/// Counts the calls of tools and the bytes of a person's request.
///
/// # Errors
/// The response that says which limit is reached.
#[expect(clippy::result_large_err, reason = "the refusal is the response itself")]
pub(super) fn spend(usage: &Usage, posted: &PostedMessages) -> Result<(), Response> {
    let is_call = |message: &&Message| match message {
        Message::Request(request) => request.method == method::TOOLS_CALL,
        Message::Notification(_) | Message::Response(_) => false,
    };
    let calls = posted.messages.iter().filter(is_call).count();
    let amount = Amount { calls, bytes: posted.body.len() };
    usage.spend(amount).map_err(|exceeded| {
        let id = posted.messages.iter().find_map(|message| match message {
            Message::Request(request) => Some(&request.id),
            Message::Notification(_) | Message::Response(_) => None,
        });
        let mut refused = refusal(StatusCode::TOO_MANY_REQUESTS, id, &exceeded.to_string());
        refused.headers_mut().insert(header::RETRY_AFTER, exceeded.wait.as_secs().into());
        refused
    })
}

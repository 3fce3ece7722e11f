//! The stage *authorize*: whether the config allows a request.

use super::forward_error::ForwardError;
use crate::{catalog::ServerId, proxy::servers::Servers};

/// A part of a server that the config can switch off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Feature {
    Tools,
    Resources,
    Prompts,
}

impl Feature {
    /// Returns the part that a method belongs to by its name.
    pub(super) fn of_method(method: &str) -> Option<Self> {
        match method.split_once('/')?.0 {
            "tools" => Some(Self::Tools),
            "resources" => Some(Self::Resources),
            "prompts" => Some(Self::Prompts),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }
}

/// Checks that the config allows this part of a server.
///
/// # Errors
/// [`ForwardError::SwitchedOff`].
pub(super) fn authorize(
    servers: &Servers,
    server: ServerId,
    feature: Option<Feature>,
) -> Result<(), ForwardError> {
    let Some(feature) = feature else { return Ok(()) };
    let config = servers.config(server);
    let features = &config.offer.features;
    let is_on = match feature {
        Feature::Tools => features.tools,
        Feature::Resources => features.resources,
        Feature::Prompts => features.prompts,
    };
    if is_on {
        return Ok(());
    }
    Err(ForwardError::SwitchedOff { server: config.name.clone(), feature: feature.name() })
}

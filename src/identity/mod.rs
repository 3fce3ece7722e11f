//! The people behind hosts over HTTP: access tokens of an identity provider, and what they tell of
//! their owners.
//!
//! This layer does not know what people may use.

mod introspection;
mod issuer;
mod issuer_metadata;
mod issuers;
mod key_set;
mod person;
mod sign_in;
mod signatures;
mod token_problem;

pub(crate) use issuers::Issuers;
pub(crate) use person::{Person, person_fingerprint};
pub(crate) use sign_in::SignInReturn;
pub(crate) use token_problem::TokenProblem;

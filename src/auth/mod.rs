//! Logins: how dormouse obtains, stores and renews tokens for servers (OAuth 2.1 as MCP profiles
//! it: basic/authorization in 2025-11-25 and 2026-07-28).
//!
//! [`Auth`] is shared by all servers of the process. `authorizer` supplies the credentials for a
//! server's requests and renews them; [`Login`] leads a user to a first token. rmcp discovers
//! authorization servers and exchanges codes for tokens; `oauth2` makes the other token requests.
//! Both send them through `guarded_client`, which decides which addresses dormouse may contact.
//! This layer must not know what a request to a server is for, nor who waits for it.

mod auth_client;
mod auth_handle;
mod auth_method;
mod authorization_response;
mod authorizer;
mod browser;
mod browser_login;
mod callback;
mod code_login;
mod configured_client;
mod credential;
mod device;
mod discovery;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod guarded_client;
mod keychain;
mod login_error;
mod login_file;
mod login_key;
mod login_page;
mod login_store;
mod login_store_error;
mod login_target;
mod login_url;
mod person_credentials;
mod preparation;
mod public_address;
mod public_logins;
mod redaction;
mod registration;
mod revocation;
mod scopes;
mod token_request;

pub(crate) use auth_client::ClientError;
pub(crate) use auth_handle::Auth;
pub(crate) use browser::{Browser, has_screen, open_here};
pub(crate) use browser_login::Login;
pub(crate) use credential::LoginSummary;
pub(crate) use device::DeviceLogin;
pub(crate) use guarded_client::GuardedClientError;
pub(crate) use login_error::LoginError;
pub(crate) use login_key::LoginOwner;
pub(crate) use login_page::LoginPage;
pub(crate) use login_store::LoginStore;
pub(crate) use public_address::{LOGIN_PATH, PublicAddress};
pub(crate) use public_logins::{PublicLogins, RETURN_PATH, RETURN_TIMEOUT, login_id_in};
pub(crate) use revocation::LogoutOutcome;

use login_target::LoginTarget;

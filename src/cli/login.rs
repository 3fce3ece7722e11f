//! `dormouse login` and `logout`: the user's part in getting tokens for a server.

use std::{
    io::BufRead as _,
    process::ExitCode,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};
use tokio::sync::mpsc;
use url::Url;

use super::{
    arguments::{LoginArguments, LogoutArguments},
    runtime, settings,
    shared_flags::Options,
    state_stores::StateStores,
};
use crate::{
    auth::{Auth, DeviceLogin, Login, LoginError, LoginOwner, LoginSummary, LogoutOutcome},
    base::visible,
    config::{Config, ServerConfig},
    identity::person_fingerprint,
};

pub(super) fn log_in(options: &Options, typed: &LoginArguments) -> anyhow::Result<ExitCode> {
    let file = settings::find_trusted(options)?;
    settings::say_which(&file);
    let config = settings::parse(&file, options)?;
    let server = settings::server(&config, &typed.server)?;
    let auth = StateStores::of(&config.settings)?.auth(Some(&file), options);
    let runtime = runtime()?;
    let logged_in = runtime.block_on(async {
        let logged_in = if typed.device {
            on_device(&auth, server, typed).await
        } else {
            in_browser(&auth, server, typed).await
        };
        auth.end().await;
        logged_in
    });
    // A thread may remain that waits for a line.
    runtime.shutdown_timeout(Duration::from_millis(50));
    logged_in?;
    let summary = auth.summary(server).context("the login was deleted by another process")?;
    outln!("logged in to {}: {}", visible(&server.name), described(&summary));
    Ok(ExitCode::SUCCESS)
}

async fn in_browser(
    auth: &Auth,
    server: &ServerConfig,
    typed: &LoginArguments,
) -> anyhow::Result<()> {
    let mut login = auth.begin_browser_login(server, &typed.scope).await?;
    let opened = !typed.no_browser && auth.browser().open(login.address()).await;
    errln!("To log in to {}, open this address:", visible(&server.name));
    errln!("\n  {}\n", login.address());
    let asks_for = login.asks_for();
    if !asks_for.is_empty() {
        errln!("{asks_for}");
    }
    if opened {
        errln!("A browser should have opened it.");
    }
    errln!(
        "If the browser runs on another machine, it ends at a page that it cannot load: paste the \
            address of that page here and press Enter."
    );
    let deadline = tokio::time::Instant::now() + typed.timeout;
    let Some(outcome) = wait(&mut login, deadline).await else {
        bail!(
            "no login within {:?}: run the command again, with --timeout for more time, or with \
             --device if the server supports it. If the page reports an unknown client, run \
             `dormouse logout {}` first",
            typed.timeout,
            visible(&server.name)
        );
    };
    Ok(outcome?)
}

/// Waits for the browser, or for a pasted address; `None` if neither arrives in time.
async fn wait(login: &mut Login, deadline: tokio::time::Instant) -> Option<Result<(), LoginError>> {
    let mut lines = lines();
    loop {
        // A response that has arrived is handled to its end.
        let pasted = tokio::select! {
            returned = login.returned() => {
                if let Some(outcome) = login.take(returned).await {
                    return Some(outcome);
                }
                errln!("{}; log in at the address above", LoginError::Foreign);
                continue;
            }
            Some(line) = lines.recv() => line,
            () = tokio::time::sleep_until(deadline) => return None,
        };
        // Mail and chat programs add such characters.
        let pasted = pasted.trim().trim_matches(['"', '\'', '<', '>']);
        let Ok(returned) = Url::parse(pasted) else {
            errln!("This is not the address: it begins with {}", login.redirect_uri());
            continue;
        };
        match login.complete(&returned).await {
            Err(error @ LoginError::Foreign) => {
                errln!("{error}; paste the address at which the browser ended");
            }
            outcome => return Some(outcome),
        }
    }
}

/// Returns the lines of standard input that are not blank; none after its end.
fn lines() -> mpsc::Receiver<String> {
    let (found, lines) = mpsc::channel(1);
    // Without a thread nothing can be pasted, but the browser is still waited for.
    let _ = std::thread::Builder::new().spawn(move || {
        let lines = std::io::stdin().lock().lines().map_while(Result::ok);
        // The receiver is gone once the login has ended.
        lines
            .filter(|line| !line.trim().is_empty())
            .try_for_each(|line| found.blocking_send(line))
            .ok();
    });
    lines
}

async fn on_device(
    auth: &Auth,
    server: &ServerConfig,
    typed: &LoginArguments,
) -> anyhow::Result<()> {
    let login: DeviceLogin = auth.log_in_on_device(server, &typed.scope).await?;
    errln!("To log in to {}, open this address on any device:", visible(&server.name));
    errln!("\n  {}\n", visible(login.address()));
    let code = login.code().split_whitespace().collect::<Vec<_>>().join(" ");
    errln!("and enter this code: {}", visible(&code));
    if let Some(complete) = login.complete_address() {
        errln!("or open this address, which contains the code:\n\n  {}\n", visible(complete));
    }
    Ok(login.finish(typed.timeout).await?)
}

/// Ends a login: that of all hosts, or that of a person, by subject.
pub(super) fn log_out(options: &Options, typed: LogoutArguments) -> anyhow::Result<ExitCode> {
    let LogoutArguments { server: name, person, issuer } = typed;
    let file = settings::find(options)?;
    settings::say_which(&file);
    let config = settings::parse(&file, options)?;
    let server = settings::server(&config, &name)?;
    let owner = match person {
        Some(subject) => Some(login_owner(&config, &subject, issuer)?),
        None => None,
    };
    let auth = StateStores::of(&config.settings)?.auth(Some(&file), options);
    let name = visible(&name);
    match runtime()?.block_on(auth.log_out(server, owner))? {
        LogoutOutcome::Nothing => outln!("{name}: not logged in"),
        LogoutOutcome::Revoked => {
            outln!("logged out of {name}: tokens revoked and deleted");
        }
        LogoutOutcome::RefreshRevoked { why } => {
            outln!("logged out of {name}: refresh token revoked, tokens deleted");
            errln!("the access token stays valid until it expires: {}", visible(&why));
        }
        LogoutOutcome::Forgotten { why: None } => {
            outln!(
                "logged out of {name}: tokens deleted; the authorization server does not support \
                    revocation"
            );
        }
        LogoutOutcome::Forgotten { why: Some(why) } => {
            outln!("logged out of {name}: tokens deleted");
            errln!("the tokens were not revoked: {}", visible(&why));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the person whom an identity provider of the config knows under this subject.
fn login_owner(
    config: &Config,
    subject: &str,
    issuer: Option<String>,
) -> anyhow::Result<LoginOwner> {
    let known = &config.settings.http.people.issuers;
    let all: Vec<&str> = known.iter().map(|issuer| issuer.issuer.as_str()).collect();
    let issuer = match (issuer, known.as_slice()) {
        (None, [only]) => only.issuer.clone(),
        (None, []) => bail!("the config has no issuers, so that no person has a login"),
        (None, _) => bail!("name the provider with --issuer: {}", all.join(", ")),
        (Some(named), _) if all.contains(&named.as_str()) => named,
        (Some(named), _) => bail!("the config has no issuer {named:?}"),
    };
    Ok(LoginOwner(person_fingerprint(&issuer, subject)))
}

/// The last second of the year 9999, the last with four digits for the year.
const LAST: u64 = 253_402_300_799;

/// Returns a description of a login.
pub(super) fn described(login: &LoginSummary) -> String {
    let scopes = match first(&login.scopes) {
        scopes if scopes.is_empty() => "no scopes named".to_owned(),
        scopes => format!("scopes {scopes}"),
    };
    let until = match login.expires_at {
        _ if !login.is_usable => "no longer valid".to_owned(),
        None => "until it is revoked".to_owned(),
        Some(at) => {
            // The file may hold any number.
            let at = UNIX_EPOCH + Duration::from_secs(at.min(LAST));
            let renewed = if login.is_renewable { ", renewed automatically" } else { "" };
            format!("until {}{renewed}", when(at))
        }
    };
    let wanted = match first(&login.wanted) {
        wanted if wanted.is_empty() => String::new(),
        wanted => format!("; the server demands more scopes: {wanted}"),
    };
    visible(&format!("{until}; {scopes}; by {}{wanted}", login.issuer))
}

/// Returns as many scopes as fit on a line.
fn first(scopes: &[String]) -> String {
    const MAX_SHOWN: usize = 10;
    let shown = scopes[..scopes.len().min(MAX_SHOWN)].join(" ");
    match scopes.len().saturating_sub(MAX_SHOWN) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

/// Returns a time in UTC, to the second.
fn when(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}

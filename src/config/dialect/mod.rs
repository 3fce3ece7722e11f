//! The configs of four other proxies, which load unchanged (`docs/reference/migrating.md` maps
//! every key). Each is translated into the tree of a dormouse config in which every value
//! keeps its place in the original file; later code knows nothing of other systems.

mod dynamic_mcp;
mod dynmcp;
mod entries;
mod mcp_proxy;
mod members;
mod multi_mcp;
mod notes;
mod system;

pub(crate) use entries::literal;
pub(super) use entries::literal_strings;
pub(super) use notes::Notes;
pub(crate) use system::Dialect;
pub(super) use system::Translated;

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use serde_json::Value;

    use super::{entries::literal, *};
    use crate::config::{
        ClientProof, ConfigError, Environment, MAX_PROBLEMS, ParsedConfig, Startup, Surface,
        Transport, env_file::EnvFile, parse,
    };

    fn read(text: &str) -> Result<ParsedConfig, ConfigError> {
        let file = EnvFile::absent(Path::new("c.json")).with_lines("SET=file\nONLY=file\n");
        let environment = Environment::from_pairs([("SET", "process"), ("TOKEN", "process")]);
        let environment = environment.with_env_file(&file);
        parse(text, Path::new("c.json"), &environment)
    }

    fn said(notes: &[crate::config::Problem]) -> Vec<String> {
        notes.iter().map(|note| format!("{}: {}", note.key_path, note.message)).collect()
    }

    #[test]
    fn system_is_detected_by_its_keys() {
        for (text, expected) in [
            (r#"{"mcpProxy": {}, "mcpServers": {}}"#, Some(Dialect::McpProxy)),
            (r#"{"mcp": {"a": {"transport": "stdio"}}}"#, Some(Dialect::Dynmcp)),
            (r#"{"mcp": {"a": {"type": "local"}}}"#, None),
            (r#"{"servers": {"a": {"always_on": true}}}"#, Some(Dialect::MultiMcp)),
            (r#"{"servers": {"a": {"command": "x"}}}"#, None),
            (r#"{"mcpServers": {"a": {"timeout": {}}}}"#, Some(Dialect::DynamicMcp)),
            (r#"{"mcpServers": {"a": {"features": {}}}}"#, Some(Dialect::DynamicMcp)),
            (r#"{"mcpServers": {"a": {"features": {}, "tools": {}}}}"#, None),
            (r#"{"mcpServers": {"a": {"timeout": 30, "startup": "lazy"}}}"#, None),
            (r#"{"mcpServers": {"a": {"timeout": 30000}}}"#, None),
            (r#"{"surface": "discover", "mcpServers": {"a": {"features": {}}}}"#, None),
            (r#"{"mcpServers": {"a": {"command": "x", "description": "y"}}}"#, None),
        ] {
            let root = crate::config::format::Format::Json.read(text).unwrap();
            assert_eq!(Dialect::of(&root, false, false), expected, "{text}");
        }
        let ours = r#"{"mcpServers": {"a": {"features": {}}}}"#;
        let root = crate::config::format::Format::Json.read(ours).unwrap();
        assert_eq!(Dialect::of(&root, true, false), None, "dormouse.json is ours");
        let first_run =
            crate::config::format::Format::Yaml.read("servers: {a: {command: x}}").unwrap();
        assert_eq!(Dialect::of(&first_run, false, true), Some(Dialect::MultiMcp));
    }

    #[test]
    fn dynmcp_reads_variables_from_the_chosen_source() {
        for (mode, expected) in [
            ("enable", "file file process"),
            ("dotenv", "file file ${TOKEN:-}"),
            ("process", "process ${ONLY:-} process"),
            ("disable", "${SET} ${ONLY:-} ${TOKEN:-}"),
        ] {
            let text = format!(
                r#"{{"env": "{mode}", "mcp": {{"a": {{"transport": "stdio", 
                    "command": "${{SET}} ${{ONLY:-}} ${{TOKEN:-}}"}}}}}}"#
            );
            let parsed = read(&text).unwrap();
            let Ok(Transport::Stdio(launch)) = &parsed.config.servers[0].transport else {
                panic!()
            };
            let expected = expected.to_owned();
            let expected = match mode {
                "dotenv" => expected.replace("${TOKEN:-}", ""),
                "process" => expected.replace("${ONLY:-}", ""),
                _ => expected,
            };
            assert_eq!(launch.command, expected, "{mode}");
        }
    }

    #[test]
    fn dynamic_mcp_keeps_its_timeouts_and_undefined_variables() {
        let parsed = read(
            r#"{"mcpServers": {
                "a": {"command": "${SET}", "args": ["${SET}", "${NOPE}"], "idle_timeout": 60,
                      "timeout": {"tools": "1min", "resources": 5, "prompts": 7}},
                "b": {"url": "http://x/", "lazy_startup": false, "oauth_client_id": "c"},
                "c": {"command": "x", "lazy_startup": "pure"}
            }}"#,
        )
        .unwrap();
        assert_eq!(parsed.config.settings.lists.surface, Surface::Groups);
        let [a, b, c] = parsed.config.servers.as_slice() else { panic!("{parsed:?}") };
        let Ok(Transport::Stdio(launch)) = &a.transport else { panic!("{a:?}") };
        assert_eq!(
            (launch.command.as_str(), launch.args.join(" ")),
            ("${SET}", "process ${NOPE}".to_owned())
        );
        assert_eq!(
            (a.settings.timeouts.call, a.settings.timeouts.request),
            (Duration::from_mins(1), Duration::from_secs(5))
        );
        assert_eq!(
            (b.settings.timeouts.call, b.settings.timeouts.request),
            (Duration::from_secs(30), Duration::from_secs(10))
        );
        assert_eq!(a.settings.idle_timeout, Some(Duration::from_mins(1)));
        let startups = [a, b, c].map(|server| server.startup);
        assert_eq!(startups, [Startup::Hybrid, Startup::Eager, Startup::Lazy]);
        insta::assert_snapshot!(said(&parsed.warnings).join("\n"));
    }

    #[test]
    fn multi_mcp_expands_nothing_and_splits_commands() {
        let parsed = read(
            r#"{"servers": {"a": {
                "command": "npx -y 'a b' ${SET}", "args": ["z"], "idle_timeout_minutes": 2,
                "type": "stdio", "always_on": false, "triggers": ["x"],
                "tools": {"t": {"enabled": false, "description": "d", "input_schema": {}},
                    "u": null}
            }}, "retrieval": {"enabled": true}, "sources": {}}"#,
        )
        .unwrap();
        let [a] = parsed.config.servers.as_slice() else { panic!("{parsed:?}") };
        let Ok(Transport::Stdio(launch)) = &a.transport else { panic!("{a:?}") };
        assert_eq!(launch.args, ["-y", "a b", "${SET}", "z"]);
        assert_eq!(a.settings.idle_timeout, Some(Duration::from_mins(2)));
        assert!(!a.offer.tools.allow("t") && a.offer.tools.allow("u"));
        insta::assert_snapshot!(said(&parsed.warnings).join("\n"));
    }

    #[test]
    fn mcp_proxy_servers_inherit_its_options() {
        let parsed = read(
            r#"{"mcpProxy": {"addr": ":9090", "options": {"lazyLoad": true,
                "authTokens": ["${TOKEN}"], "panicIfInvalid": true}},
                "mcpServers": {
                    "a": {"command": "x", "timeout": 1500000000},
                    "b": {"transportType": "sse", "url": "http://x/", "options": {
                        "lazyLoad": false, "authTokens": ["b"],
                        "toolFilter": {"mode": "Allow", "list": []}}}
                }}"#,
        )
        .unwrap();
        let [a, b] = parsed.config.servers.as_slice() else { panic!("{parsed:?}") };
        assert_eq!((a.startup, a.endpoint.surface), (Startup::Lazy, Surface::Activate));
        assert_eq!((b.startup, b.endpoint.surface), (Startup::Eager, Surface::Direct));
        assert_eq!(
            (a.endpoint.auth_tokens.join(""), b.endpoint.auth_tokens.join("")),
            ("process".to_owned(), "b".to_owned())
        );
        assert_eq!(a.settings.timeouts.call, Duration::from_millis(1500));
        assert!(b.offer.tools.allow("anything"), "an empty list filters nothing");
        let http = &parsed.config.settings.http.listening;
        assert_eq!(http.listen.as_deref(), Some("0.0.0.0:9090"));
        assert!(parsed.compatibility.serves_at_root);
        insta::assert_snapshot!(said(&parsed.warnings).join("\n"));
    }

    #[test]
    fn login_settings_of_each_system_are_translated() {
        for (text, redirect, scopes, secret) in [
            (
                r#"{"mcp": {"a": {"transport": "sse", "url": "https://x/",
                    "auth": {"client_id": "c", "client_secret": "${TOKEN}", "scope": "r w"}}}}"#,
                None,
                "r w",
                Some("process"),
            ),
            (
                r#"{"mcpServers": {"a": {"url": "https://x/", "lazy_startup": "pure",
                    "oauth_client_id": "c", "oauth_scopes": ["r"]}}}"#,
                Some("http://localhost:0/oauth/callback"),
                "r",
                None,
            ),
            (
                r#"{"mcpProxy": {}, "mcpServers": {"a": {"url": "https://x/", "oauth": {
                    "clientId": "c", "clientSecret": "keychain:n", "scopes": ["r"],
                    "pkceDisabled": false,
                    "authServerMetadataUrl": "https://as.x/.well-known/openid-configuration"}}}}"#,
                Some("http://localhost:8090/oauth/callback"),
                "r",
                Some("keychain n"),
            ),
        ] {
            let parsed = read(text).unwrap();
            let Ok(Transport::Http(remote)) = &parsed.config.servers[0].transport else { panic!() };
            let oauth = remote.oauth.as_ref().unwrap();
            let client = oauth.client.as_ref().unwrap();
            assert_eq!((client.id.as_str(), oauth.scopes.join(" ").as_str()), ("c", scopes));
            assert_eq!(oauth.redirect_uri.as_ref().map(url::Url::as_str), redirect);
            let shown = client.proof.as_ref().map(|proof| match proof {
                ClientProof::Secret(secret) | ClientProof::PrivateKey(secret) => {
                    secret.expose().to_owned()
                }
                ClientProof::Keychain(name) => format!("keychain {name}"),
            });
            assert_eq!(shown.as_deref(), secret);
            assert!(parsed.warnings.is_empty(), "{:?}", parsed.warnings);
        }
    }

    #[test]
    fn unsupported_login_settings_are_ignored() {
        let parsed = read(
            r#"{"mcpProxy": {}, "mcpServers": {
                "a": {"url": "https://x/", "headers": {"authorization": "Bearer t"}, "oauth": {"clientId": "c"}},
                "b": {"url": "https://x/", "oauth": {"clientId": "c", "redirectUri": "https://elsewhere.x/back"}},
                "c": {"url": "https://x/", "oauth": {"clientSecret": "s"}},
                "d": {"command": "x", "oauth": {"clientId": "c"}}
            }}"#,
        )
        .unwrap();
        assert_eq!(parsed.warnings.len(), 3, "{:?}", parsed.warnings);
        let parsed = read(
            r#"{"mcpServers": {"a": {"url": "https://x/", "lazy_startup": "pure",
                "headers": {"Authorization": "Bearer t"}, "oauth_client_id": "c"}}}"#,
        )
        .unwrap();
        assert_eq!(parsed.warnings.len(), 1, "{:?}", parsed.warnings);
    }

    #[test]
    fn problems_use_the_keys_of_the_file() {
        let problems = |text| match read(text) {
            Err(ConfigError::Invalid(problems)) => said(&problems),
            other => panic!("{other:?}"),
        };
        let found = [
            problems(
                r#"{"mcp": {"a": {"transport": "pipe", "comand": "x"}, "b": {}}, "env": "on"}"#,
            ),
            problems(
                r#"{"servers": {"a": {"always_on": "yes", "command": "'"},
                    "b": {"url": 3, "idle_timeout_minutes": -1}}}"#,
            ),
            problems(
                r#"{"mcpServers": {"a": {"command": "x", "lazy_startup": true, "startup": "lazy",
                    "timeout": {"tool": 1}}}}"#,
            ),
            problems(
                r#"{"mcpProxy": {"options": {"authTokens": "t"}}, 
                    "mcpServers": {
                        "a": {"command": "x", "options": {"toolFilter": {"mode": "x"}}},
                        "b": {"command": "x", "options": {"toolFilter":
                            {"mode": "allow", "list": [1]}}}}}"#,
            ),
        ];
        insta::assert_snapshot!(found.map(|problems| problems.join("\n")).join("\n\n"));
    }

    #[test]
    fn notes_are_bounded() {
        let many = |count| (0..count).map(|n| format!("\"k{n}\": 1")).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"{{"mcp": {{"a": {{"transport": "stdio", "command": "x", {}}}}}}}"#,
            many(5000)
        );
        let Err(ConfigError::Invalid(problems)) = read(&text) else { panic!("it is valid") };
        assert_eq!(problems.len(), MAX_PROBLEMS);
        let text = format!(
            r#"{{"mcpProxy": {{}}, "mcpServers": {{"a": {{"command": "x", {}}}}}}}"#,
            many(5000)
        );
        assert_eq!(read(&text).unwrap().warnings.len(), MAX_PROBLEMS);
    }

    #[test]
    fn a_literal_text_expands_to_itself() {
        for text in ["${A}", "$${A}", "a${A", "$${A", "${A ${B", "${A}${B", "${${A}}", "x"] {
            let mut value = Value::from(literal(text));
            crate::config::expand::expand(
                &mut value,
                &crate::config::Environment::default(),
                &mut { usize::MAX },
            );
            assert_eq!(value, text);
        }
    }
}

//! A store that several machines share: a real Redis, and a home for each machine.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use crate::support::{
    Authority, Proxy, Redis, STORE_KEY, Server, TestCertificate, User, free_port, http_client,
    redacted, text_of,
};

/// Returns a machine whose config has a server that needs a login.
fn machine(redis: &Redis, authority: &Authority) -> User {
    User::with_config(
        &redis.config(&json!({"g": {"url": authority.url(), "description": "It wants a login."}})),
    )
}

#[tokio::test]
async fn login_on_one_machine_serves_all_and_is_sealed() {
    for redis in Redis::start_each().await {
        let authority = Authority::start().await;
        let (one, other) = (machine(&redis, &authority), machine(&redis, &authority));
        let (is_in, said) = one.log_in().await;
        assert!(is_in, "{said}");
        assert_eq!(other.host().await.use_g().await, "ordinary");
        assert!(one.stored_logins().is_empty() && other.stored_logins().is_empty());
        let content = redis.content();
        let has = |text: &str| content.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(has("value"), "the names are plain");
        assert!(!has("accessToken") && !has("refresh_token") && !has(authority.origin()));

        let (_, said) = other.run(&["logout", "g"]).await;
        assert!(said.contains("logged out of g"), "{said}");
        assert_eq!(one.host().await.load("g").await["isError"], true);
    }
}

#[tokio::test]
async fn expired_token_is_renewed_once_by_all_machines_together() {
    for redis in Redis::start_each().await {
        let authority = Authority::start().await;
        let machines = [(); 3].map(|()| machine(&redis, &authority));
        assert!(machines[0].log_in().await.0);
        let mut hosts = Vec::new();
        for machine in &machines {
            let mut host = machine.host().await;
            assert_eq!(host.use_g().await, "ordinary");
            hosts.push(host);
        }
        for round in 1..=5 {
            authority.expire_tokens();
            let [one, two, three] = &mut hosts[..] else { unreachable!() };
            let answers = tokio::join!(one.use_g(), two.use_g(), three.use_g());
            assert_eq!(answers, ("ordinary".into(), "ordinary".into(), "ordinary".into()));
            assert_eq!(authority.token_requests().len(), 1 + round, "the login, and the renewals");
        }
    }
}

#[tokio::test]
async fn calls_go_on_without_the_store_and_the_login_survives_its_loss() {
    let Some(mut redis) = Redis::start().await else { return };
    let authority = Authority::start().await;
    let user = machine(&redis, &authority);
    assert!(user.log_in().await.0);
    let program = user.proxy().argument("--http").argument("127.0.0.1:0").start_service();
    let mut host = program.host("/mcp").await;
    host.initialize(json!({})).await;
    assert_eq!(host.use_g().await, "ordinary");
    let readiness = async |query: &str| {
        let asked = http_client().get(program.url(&format!("/readyz{query}")).await).send().await;
        let answer = asked.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    assert_eq!(readiness("?strict").await, (200, "ready\n".to_owned()));

    redis.kill().await;
    for _ in 0..20 {
        assert_eq!(host.use_g().await, "ordinary");
    }
    program.logged("the store cannot be used").await;
    assert_eq!(readiness("").await, (200, "ready, but the store cannot be used\n".to_owned()));
    assert_eq!(readiness("?strict").await.0, 503);

    redis.resume().await;
    program.logged("the store can be used again").await;
    redis.command(&["FLUSHALL"]).await;
    assert!(redis.names().await.iter().all(|name| !name.contains(":logins}")));
    // The next calls notice that the store has no login, and store it again.
    while redis.names().await.iter().all(|name| !name.contains(":logins}:1:value")) {
        assert_eq!(host.use_g().await, "ordinary");
    }
    authority.expire_tokens();
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(authority.token_requests().len(), 2, "the login, and one renewal");
    assert_eq!(machine(&redis, &authority).host().await.use_g().await, "ordinary");
}

#[tokio::test]
async fn token_that_expires_while_the_store_has_lost_the_login_is_renewed() {
    let Some(redis) = Redis::start().await else { return };
    let authority = Authority::start().await;
    let user = machine(&redis, &authority);
    assert!(user.log_in().await.0);
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    redis.command(&["FLUSHALL"]).await;
    authority.expire_tokens();
    assert_eq!(host.use_g().await, "ordinary");
    assert_eq!(authority.token_requests().len(), 2, "the login, and one renewal");
    assert_eq!(machine(&redis, &authority).host().await.use_g().await, "ordinary");
}

#[tokio::test]
async fn newest_token_survives_the_loss_of_the_store() {
    let Some(redis) = Redis::start().await else { return };
    let authority = Authority::start().await;
    let (one, other) = (machine(&redis, &authority), machine(&redis, &authority));
    assert!(one.log_in().await.0);
    let (mut one, mut other) = (one.host().await, other.host().await);
    for host in [&mut one, &mut other] {
        assert_eq!(host.use_g().await, "ordinary");
    }
    authority.expire_tokens();
    assert_eq!(one.use_g().await, "ordinary");
    // The other machine has the token before the renewal, and its refresh token was used.
    redis.command(&["FLUSHALL"]).await;
    let answered = other.use_g();
    tokio::pin!(answered);
    let text = loop {
        tokio::select! {
            text = &mut answered => break text,
            text = one.use_g() => assert_eq!(text, "ordinary"),
        }
    };
    assert_eq!(text, "ordinary");
    assert_eq!(authority.token_requests().len(), 2, "the login, and one renewal");
}

#[tokio::test]
async fn store_is_used_again_after_something_else_had_its_address() {
    let Some(mut redis) = Redis::start().await else { return };
    let authority = Authority::start().await;
    let user = machine(&redis, &authority);
    let program = user.proxy().argument("--http").argument("127.0.0.1:0").start_service();
    program.url("/mcp").await;
    redis.kill().await;
    program.logged("the store cannot be used").await;
    let impostor = tokio::net::TcpListener::bind(redis.address()).await.unwrap();
    let (mut stream, _) = impostor.accept().await.unwrap();
    stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await.unwrap();
    drop((stream, impostor));
    redis.resume().await;
    program.logged("the store can be used again").await;
    assert!(user.log_in().await.0);
}

#[tokio::test]
async fn loads_are_remembered_though_the_store_was_down_at_the_start() {
    let Some(mut redis) = Redis::start().await else { return };
    let home = tempfile::tempdir().unwrap();
    let (url, at) = (redis.url(), home.path().to_owned());
    let proxy = || {
        let proxy = Proxy::with([Server::lazy("a")]).at_home(&at).set("store", url.clone());
        proxy.set("storeKeys", json!([STORE_KEY])).set("rememberLoads", true)
    };
    let mut first = proxy().serve().await;
    first.load("a").await;
    first.end().await;
    assert!(redis.names().await.iter().any(|name| name.contains(":loads}:1:value")));
    redis.kill().await;
    let mut second = proxy().serve().await;
    assert!(second.description().await.contains("- a: "));
    redis.resume().await;
    second.notification("notifications/tools/list_changed").await;
    assert!(!second.description().await.contains("- a: "));
    assert_eq!(second.started("a").len(), 1, "the catalog is stored");
}

#[tokio::test]
async fn store_that_refuses_to_write_is_not_ready() {
    let Some(redis) = Redis::start().await else { return };
    let authority = Authority::start().await;
    let user = machine(&redis, &authority);
    let program = user.proxy().argument("--http").argument("127.0.0.1:0").start_service();
    let url = program.url("/readyz?strict").await;
    assert_eq!(http_client().get(&url).send().await.unwrap().status(), 200);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    program.logged("the store cannot be used").await;
    assert_eq!(http_client().get(&url).send().await.unwrap().status(), 503);
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    program.logged("the store can be used again").await;
}

#[tokio::test]
async fn refresh_waits_for_the_store_and_keeps_the_old_token_out_of_use() {
    let Some(mut redis) = Redis::start().await else { return };
    let authority = Authority::start().await;
    let user = machine(&redis, &authority);
    assert!(user.log_in().await.0);
    let mut host = user.host().await;
    assert_eq!(host.use_g().await, "ordinary");
    redis.kill().await;
    authority.expire_tokens();
    let id = host.send(
        "tools/call",
        json!({
            "name": "use_tool", "arguments": {"tool_name": "g__t", "tool_input": {}},
        }),
    );
    let id = id.await;
    redis.resume().await;
    let answer = host.answer(id).await;
    assert_eq!(text_of(&answer["result"]), "ordinary", "{answer}");
    assert_eq!(authority.token_requests().len(), 2, "the login, and one renewal");
}

#[tokio::test]
async fn catalogs_and_loads_are_known_to_every_machine() {
    for redis in Redis::start_each().await {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::lazy("s").at(directory.path());
        let config = redis.config(&json!({"s": server}));
        let (one, other) = (User::with_config(&config), User::with_config(&config));
        let (is_done, said) = one.run(&["refresh"]).await;
        assert!(is_done, "{said}");
        let (_, listed) = other.run(&["list", "--json"]).await;
        assert!(listed.contains("\"echo\""), "{listed}");
        let (is_done, said) = other.run(&["store", "check"]).await;
        assert!(is_done, "{said}");
        insta::assert_snapshot!(without_numbers(&redacted(&said)));
    }
}

#[tokio::test]
async fn replaced_key_still_opens_and_a_lost_key_is_reported() {
    let Some(redis) = Redis::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::lazy("s").at(directory.path());
    let with_keys = |keys: &[&str]| {
        let mut config = redis.config(&json!({"s": server.clone()}));
        config["storeKeys"] = json!(keys);
        User::with_config(&config)
    };
    let newer = "another key of the tests with 32 bytes";
    assert!(with_keys(&[STORE_KEY]).run(&["refresh"]).await.0);
    let (_, listed) = with_keys(&[newer, STORE_KEY]).run(&["list", "--json"]).await;
    assert!(listed.contains("\"echo\""), "{listed}");
    let check = async |keys: &[&str]| with_keys(keys).run(&["store", "check"]).await.1;
    let said = check(&[newer, STORE_KEY]).await;
    assert!(said.contains("1 of the catalogs were sealed with an older key"), "{said}");
    let said = check(&[newer]).await;
    assert!(said.contains("1 of the catalogs cannot be read"), "{said}");
}

#[tokio::test]
async fn value_of_a_newer_version_is_neither_read_nor_replaced() {
    let Some(redis) = Redis::start().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let server = Server::lazy("s").at(directory.path());
    let user = User::with_config(&redis.config(&json!({"s": server})));
    assert!(user.run(&["refresh"]).await.0);
    let names = redis.names().await;
    let catalog = names.iter().find(|name| name.contains(":catalogs}:1:value")).unwrap();
    redis.command(&["SETRANGE", catalog, "0", "\u{2}"]).await;
    let before = redis.command(&["GET", catalog]).await;
    let (_, said) = user.run(&["refresh"]).await;
    assert!(said.contains("newer version of dormouse"), "{said}");
    assert_eq!(redis.command(&["GET", catalog]).await, before);
    let (_, said) = user.run(&["store", "check"]).await;
    assert!(said.contains("1 of the catalogs were written by a newer dormouse"), "{said}");
    // Servers work all the same.
    let mut host = user.host().await;
    assert_eq!(host.load("s").await["isError"], json!(null));
}

#[tokio::test]
async fn unreachable_store_is_reported_with_its_place_and_without_its_password() {
    let mut said = String::new();
    for store in ["redis://u:hidden@127.0.0.1:1/0", "redis://:hidden@127.0.0.1:1"] {
        let user =
            User::with_config(&json!({"store": store, "storeKeys": [STORE_KEY], "mcpServers": {}}));
        let (is_done, text) = user.run(&["store", "check"]).await;
        assert!(!is_done && !text.contains("hidden"), "{text}");
        said.push_str(&redacted(&text));
    }
    insta::assert_snapshot!(said);
}

/// Replaces the sizes, which differ from run to run, and the spaces that align them.
fn without_numbers(text: &str) -> String {
    let shown =
        |word: &str| if word.parse().is_ok_and(|n: u64| n > 9) { "N" } else { word }.to_owned();
    let line = |line: &str| line.split_whitespace().map(shown).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn store_is_used_over_tls_by_a_user_with_few_rights() {
    let directory = tempfile::tempdir().unwrap();
    let Some(made) = TestCertificate::make(directory.path()).await else { return };
    let TestCertificate { certificate, key } = made;
    let port = free_port().to_string();
    let rights = "on >secret ~{team:* &{team:* +getrange +set +strlen +zadd +zrem +zrevrange \
        +zremrangebyscore +get +del +pexpire +eval +ping +publish +subscribe";
    let options = ["--tls-port", &port, "--tls-cert-file", &certificate, "--tls-key-file", &key]
        .into_iter()
        .chain(["--tls-auth-clients", "no", "--user", "dormouse"])
        .chain(rights.split(' '));
    let options: Vec<&str> = options.collect();
    let Some(redis) = Redis::start_with(&options).await else { return };
    let server = Server::lazy("s").at(directory.path());
    let mut config = redis.config(&json!({"s": server}));
    config["store"] = json!(format!("rediss://dormouse:secret@localhost:{port}/0"));
    config["storePrefix"] = json!("team");
    let untrusting = User::with_config(&config);
    let (is_done, said) = untrusting.run(&["store", "check"]).await;
    assert!(!is_done && said.contains("certificate"), "{said}");
    config["storeCertificates"] = json!(certificate);
    let user = User::with_config(&config);
    assert!(user.run(&["refresh"]).await.0);
    let (is_done, said) = user.run(&["store", "check"]).await;
    assert!(is_done && without_numbers(&said).contains("catalogs 1"), "{said}");
    assert!(said.contains("may not run INFO") && !said.contains("cannot"), "{said}");
    redis.command(&["ACL", "SETUSER", "dormouse", "-subscribe"]).await;
    let (_, said) = user.run(&["store", "check"]).await;
    assert!(said.contains("they cannot use the channel"), "{said}");
}

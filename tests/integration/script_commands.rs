//! `dormouse script`: what people do with scripts.

use serde_json::{Value, json};

use crate::support::{DaemonHome, Server, redacted};

/// Returns a home with a config of these servers, whose tools are known if they can be started.
async fn home(servers: impl IntoIterator<Item = Server>) -> DaemonHome {
    let home = DaemonHome::new();
    home.proxy(servers).serve().await.end().await;
    home.run(&["refresh"]).await;
    home
}

impl DaemonHome {
    /// Runs `dormouse script` with a script of this text. Returns the exit code and the output,
    /// without the paths of the test.
    async fn script(&self, command: &str, code: &str, more: &[&str]) -> (Option<i32>, String) {
        let file = self.path().join("some.ts");
        std::fs::write(&file, code).unwrap();
        let (status, said) =
            self.run(&[&["script", command, file.to_str().unwrap()], more].concat()).await;
        (status, redacted(&said.replace(self.path().to_str().unwrap(), "HOME")))
    }
}

#[tokio::test]
async fn script_of_a_file_runs_with_its_input() {
    let home = home([Server::lazy("a")]).await;
    let code = "const all: string[] = [];
        for (const x of input.all) all.push((await mcp.a.echo({ x })).arguments.x);
        console.log('seen', all.length); return all.join('+')";
    let (status, said) = home.script("run", code, &[r#"{"all": ["b", "c"]}"#]).await;
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("b+c\n[log]\nseen 2"), "{said}");
    let (status, said) = home.script("run", "return nothing.here", &[]).await;
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("at line 1, column 8"), "{said}");
}

#[tokio::test]
async fn value_for_a_person_is_whole() {
    let home = home([Server::lazy("a")]).await;
    let (status, said) = home.script("run", "return 'x'.repeat(300_000)", &[]).await;
    assert_eq!((status, said.matches('x').count() >= 300_000), (Some(0), true));
}

#[tokio::test]
async fn server_that_cannot_be_started_fails_only_its_calls() {
    let home = home([Server::lazy("a"), Server::lazy("bad").set("command", "/nowhere/x")]).await;
    let code = "const said = await mcp.bad.echo().catch((error) => 'caught ' + error.name);
        return [said, await mcp.a.shout()]";
    let (status, said) = home.script("run", code, &[]).await;
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains(r#"["caught ToolError","shouted"]"#), "{said}");
}

#[tokio::test]
async fn check_finds_what_is_misspelt_without_running_it() {
    let unknown = Server::lazy("unknown").set("command", "/nowhere/x");
    let off = Server::lazy("off").set("enabled", false);
    let home = home([Server::lazy("alpha"), unknown, off]).await;
    let mut said = Vec::new();
    for code in [
        "await mcp.alpha.echo({ z: 1 })",
        "await mcp.alpha.echo({ zz: 1 })",
        "await mcp.Alpha.ehco()\nawait mcp.alpa.echo()\nawait tools.call('alpha/shuot', {})",
        "await mcp.off.echo()",
        "await mcp.unknown.a(); await mcp.unknown.b()",
        "const a = ;",
        "namespace A {}",
    ] {
        let (status, text) = home.script("check", code, &[]).await;
        said.push(format!("{code}\n=> {}\n{text}", status.unwrap()));
    }
    insta::assert_snapshot!(said.join("\n"));
    let (status, text) = home.script("check", "await mcp.alpa.echo()", &["--json"]).await;
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &report["ok"]), (Some(1), &json!(false)));
    assert_eq!(report["problems"][0]["line"], 1);
}

#[tokio::test]
async fn declarations_of_the_known_tools_are_printed() {
    let definition = json!({
        "name": "list-issues",
        "description": "Lists issues.\nOf one repository */",
        "inputSchema": {
            "type": "object",
            "properties": {"repo": {"type": "string", "description": "OWNER/NAME"}},
            "required": ["repo"],
        },
        "outputSchema": {"type": "object", "properties": {"total": {"type": "integer"}}},
    });
    let server = Server::lazy("my-server").script("definitions", json!([definition]));
    let home = home([server.set("tools", json!({"*": false, "list-issues": true}))]).await;
    let (status, said) = home.run(&["script", "types"]).await;
    assert_eq!(status, Some(0), "{said}");
    insta::assert_snapshot!(said.replace(home.path().to_str().unwrap(), "HOME"));
}

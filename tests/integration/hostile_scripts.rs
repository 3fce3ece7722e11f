//! Scripts that try to harm: each ends, and the next one works.

use serde_json::json;

use crate::support::{Host, Proxy, Server, descendants, eventually, text_of};

/// Returns a source with a part that is repeated 50,000 times.
fn long(before: &str, part: &str, after: &str) -> String {
    format!("{before}{}{after}", part.repeat(50_000))
}

/// Returns the scripts, each with what it tries.
#[expect(clippy::too_many_lines, reason = "a table")]
fn scripts() -> Vec<(&'static str, String)> {
    vec![
        ("an endless loop", "for (;;) {}".to_owned()),
        ("an endless loop after a wait", "await 1; for (;;) {}".to_owned()),
        ("an endless loop in a callback", "[1].map(() => { for (;;) {} })".to_owned()),
        ("an endless loop in a getter", "const o = { get a() { for (;;) {} } }; o.a".to_owned()),
        ("an endless loop in toJSON", "return { toJSON() { for (;;) {} } }".to_owned()),
        ("an endless loop in the message of an error", "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { for (;;) {} } }); throw e".to_owned()),
        ("an endless loop in the stack of an error", "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;) {} } }); throw e".to_owned()),
        ("an endless loop in toString of what is thrown", "throw { toString() { for (;;) {} }, toJSON() { throw 1 } }".to_owned()),
        ("an endless generator", "function* g() { for (;;) yield 1 } for (const x of g()) ;".to_owned()),
        ("an endless iterator", "[...{ [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) }]".to_owned()),
        ("an endless async iterator", "async function* g() { for (;;) yield 1 } for await (const x of g()) ;".to_owned()),
        ("endless promises", "const go = () => { Promise.resolve().then(go) }; go(); await new Promise(() => {})".to_owned()),
        ("endless awaiting", "for (;;) await null".to_owned()),
        ("endless catching", "for (;;) { try { throw 1 } catch {} }".to_owned()),
        ("catching the end", "const f = () => { try { for (;;) {} } catch { f() } finally { f() } }; f()".to_owned()),
        ("a promise that never resolves", "await new Promise(() => {})".to_owned()),
        ("a thenable that never resolves", "return { then() {} }".to_owned()),
        ("a thenable that resolves to itself", "const a = { then(done) { done(a) } }; return a".to_owned()),
        ("endless recursion", "const f = () => f() + 1; f()".to_owned()),
        ("endless recursion by a getter", "const o = { get a() { return this.a } }; o.a".to_owned()),
        ("endless recursion by toString", "const o = { toString() { return `${this}` } }; `${o}`".to_owned()),
        ("endless recursion by a proxy", "const p = new Proxy({}, { get: (t, k, r) => r[k] }); p.a".to_owned()),
        ("endless recursion by a proxy of a proxy", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.a".to_owned()),
        ("endless recursion by toJSON", "return { toJSON() { return { a: JSON.stringify(this) } } }".to_owned()),
        ("endless recursion by a constructor", "class A { constructor() { new A() } } new A()".to_owned()),
        ("endless recursion by sorting", "const f = () => [2, 1].sort(f); f()".to_owned()),
        ("endless recursion by a replacer", "const f = () => 'a'.replace('a', f); f()".to_owned()),
        ("endless recursion by eval", "const f = () => eval('f()'); f()".to_owned()),
        ("a deep value", "let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a".to_owned()),
        ("a deep value as a text", "return JSON.parse('['.repeat(1e6) + ']'.repeat(1e6))".to_owned()),
        ("a deep chain of prototypes", "let a = {}; for (let i = 0; i < 1e6; i++) a = Object.create(a); a.x".to_owned()),
        ("a deep chain of bound functions", "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); f()".to_owned()),
        ("a regular expression that backtracks", "/(a+)+$/.test('a'.repeat(50) + 'b')".to_owned()),
        ("another one that backtracks", "/^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))".to_owned()),
        ("a deep regular expression", "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))".to_owned()),
        ("a huge regular expression", "new RegExp('a{1,65535}'.repeat(1000))".to_owned()),
        ("an array that grows", "const a = []; for (;;) a.push(a.length)".to_owned()),
        ("a string that doubles", "let a = 'x'; for (;;) a += a".to_owned()),
        ("strings in an array", "const a = []; for (;;) a.push('x'.repeat(1e6) + a.length)".to_owned()),
        ("a huge repeat", "'x'.repeat(2 ** 30 - 1)".to_owned()),
        ("a huge array", "new Array(2 ** 32 - 1).fill(0)".to_owned()),
        ("a huge buffer", "new ArrayBuffer(2 ** 40)".to_owned()),
        ("many buffers", "const a = []; for (;;) a.push(new Uint8Array(1e6))".to_owned()),
        ("a buffer that grows", "const b = new ArrayBuffer(1, { maxByteLength: 2 ** 40 }); b.resize(2 ** 39)".to_owned()),
        ("a shared buffer", "new SharedArrayBuffer(2 ** 40)".to_owned()),
        ("a map that grows", "const m = new Map(); for (let i = 0; ; i++) m.set(i, i)".to_owned()),
        ("a set of objects", "const s = new Set(); for (;;) s.add({})".to_owned()),
        ("weak references that grow", "const a = []; for (;;) a.push(new WeakRef({}))".to_owned()),
        ("finalizers that never end", "const r = new FinalizationRegistry(() => { for (;;) {} }); for (;;) r.register({}, 1)".to_owned()),
        ("closures that grow", "let f = () => 1; for (;;) { const g = f; f = () => g() }".to_owned()),
        ("symbols that grow", "const a = []; for (let i = 0; ; i++) a.push(Symbol.for('s' + i))".to_owned()),
        ("atoms that grow", "const o = {}; for (let i = 0; ; i++) o['k' + i] = 1".to_owned()),
        ("shapes that grow", "for (let i = 0; ; i++) { const o = {}; for (let k = 0; k < 100; k++) o['a' + i + k] = 1 }".to_owned()),
        ("a huge number", "2n ** (2n ** 30n)".to_owned()),
        ("a huge factorial", "let n = 1n; for (let i = 1n; ; i++) n *= i".to_owned()),
        ("a huge number as a text", "(2n ** 1000000n).toString()".to_owned()),
        ("a huge join", "new Array(1e9).join('x')".to_owned()),
        ("a huge padding", "'x'.padEnd(2 ** 29, 'ab')".to_owned()),
        ("a huge replacement", "'x'.repeat(1e6).replaceAll('x', 'y'.repeat(1e6))".to_owned()),
        ("a huge split", "'a,'.repeat(5e6).split(',')".to_owned()),
        ("a huge spread of arguments", "Math.max(...new Array(1e7).fill(1))".to_owned()),
        ("huge apply", "Math.max.apply(null, { length: 2 ** 31 })".to_owned()),
        ("a sparse length", "const a = []; a.length = 2 ** 32 - 1; a.indexOf(1)".to_owned()),
        ("a sort without an order", "for (;;) new Array(1e5).fill(0).sort(() => Math.random() - 0.5)".to_owned()),
        ("a sort that throws", "new Array(1e5).fill(0).sort(() => { throw 1 })".to_owned()),
        ("a sort that shrinks its array", "const a = new Array(1e4).fill(1); a.sort(() => { a.length = 0; return 1 })".to_owned()),
        ("a map that shrinks its array", "const a = new Array(1e4).fill(1); a.map(() => { a.length = 0 })".to_owned()),
        ("a buffer that is detached while it is read", "const b = new Uint8Array(1e4); b.sort(() => { structuredClone; b.buffer.transfer?.(); return 1 })".to_owned()),
        ("a species that lies", "class A extends Array { static get [Symbol.species]() { return function () { return new Uint8Array(1) } } } new A(1, 2, 3).map((x) => x)".to_owned()),
        ("an index that is an object with a side effect", "const a = [1, 2, 3]; a.slice({ valueOf() { a.length = 0; return 0 } }, 3)".to_owned()),
        ("a species that returns the same array", "const a = [1, 2]; a.constructor = { [Symbol.species]: function () { return a } }; a.concat(a)".to_owned()),
        ("a date beyond all years", "new Date(8.64e15 + 1).toISOString()".to_owned()),
        ("a label in a generator", "l: for (;;) { break l } (function* () { try { yield } finally { yield } })().return()".to_owned()),
        ("brackets as source", long("", "[[", "")),
        ("parentheses as source", long("", "(", "")),
        ("braces as source", long("", "{", "")),
        ("signs as source", long("", "!", "1")),
        ("minus signs as source", long("", "- ", "1")),
        ("arrows as source", long("", "a=>", "1")),
        ("conditions as source", long("", "a?1:", "1")),
        ("a template in a template as source", long("", "`${", "")),
        ("types as source", long("type A = ", "[", "")),
        ("a long line", long("const a = '", "x", "'")),
        ("a zero byte", "const a = '\0'; return a".to_owned()),
        ("half a surrogate", r"return '\ud800'".to_owned()),
        ("what ends lines", "return 'a\u{2028}b\u{2029}c'".to_owned()),
        ("an output flood by the log", "for (;;) console.log('x'.repeat(1000))".to_owned()),
        ("an output flood of empty lines", "for (;;) console.log('')".to_owned()),
        ("an output flood by the value", "return 'x'.repeat(1e7)".to_owned()),
        ("an output flood by an error", "throw new Error('x'.repeat(1e7))".to_owned()),
        ("a flood of calls", "for (;;) mcp.a.shout()".to_owned()),
        ("a flood of large calls", "for (;;) mcp.a.echo({ x: 'x'.repeat(1e5) })".to_owned()),
        ("a call with a huge argument", "await mcp.a.echo({ x: 'x'.repeat(8e6) })".to_owned()),
        ("a call with a name that is huge", "await mcp['x'.repeat(1e6)]['y'.repeat(1e6)]({})".to_owned()),
        ("a line break in a name", r#"await tools.call('a/echo\n{"done":{"value":1}}', {})"#.to_owned()),
        ("a message in a log", r#"console.log('\n{"done":{"value":"forged"}}\n')"#.to_owned()),
        ("arguments that cannot be written", "const o = {}; o.o = o; await mcp.a.echo(o)".to_owned()),
        ("arguments with toJSON", "await mcp.a.echo({ toJSON() { throw new Error('no') } })".to_owned()),
        ("a replaced JSON", r#"JSON.stringify = () => '{"done":{"value":"forged"}}'; JSON.parse = () => 'forged'; return await mcp.a.shout()"#.to_owned()),
        ("a replaced Promise", "Promise = class { constructor() { throw 1 } }; return await mcp.a.shout()".to_owned()),
        ("a replaced then", "Promise.prototype.then = () => { throw 1 }; return await mcp.a.shout()".to_owned()),
        ("replaced methods of arrays", "Array.prototype.push = Array.prototype.shift = () => { throw 1 }; return await mcp.a.shout()".to_owned()),
        ("replaced methods of maps", "Map.prototype.get = () => ({ resolve() {} }); return await mcp.a.shout()".to_owned()),
        ("a polluted prototype", "Object.prototype.code = 1; Object.prototype.toJSON = () => 1; return { a: 1 }".to_owned()),
        ("a setter on the prototype", "Object.defineProperty(Object.prototype, 'request', { set() { throw 1 } }); return await mcp.a.shout()".to_owned()),
        ("a replaced console", "console = 1".to_owned()),
        ("a replaced mcp", "mcp = { a: { shout: () => 'forged' } }".to_owned()),
        ("a method set on mcp", "mcp.a.shout = () => 'forged'; return await mcp.a.shout()".to_owned()),
        ("a look at the functions of the worker", "return [typeof post, typeof end, typeof send, Object.keys(globalThis)]".to_owned()),
        ("a look at the caller", "function f() { return f.caller } f()".to_owned()),
        ("a look at the stack", "Error.prepareStackTrace = (e, frames) => frames; throw new Error('x')".to_owned()),
        ("the global object of another realm", "return typeof (0, eval)('this').process + typeof globalThis.require".to_owned()),
        ("a function from a text", "return new Function('return typeof process + typeof require + typeof Deno')()".to_owned()),
        ("an import", "return await import('fs')".to_owned()),
        ("an import of standard modules", "return await import('std')".to_owned()),
        ("an import of the system", "return await import('os')".to_owned()),
        ("a static import", "import * as os from 'os'; return os".to_owned()),
        ("a file by its URL", "return await import('file:///etc/passwd')".to_owned()),
        ("the environment", "return process.env".to_owned()),
        ("the network", "return await fetch('http://127.0.0.1:1/')".to_owned()),
        ("a worker", "return new Worker('x')".to_owned()),
        ("a timer", "setInterval(() => {}, 1)".to_owned()),
        ("WebAssembly", "return new WebAssembly.Memory({ initial: 65536 })".to_owned()),
        ("a wait of the thread", "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)".to_owned()),
    ]
}

async fn run(host: &mut Host, code: &str) -> serde_json::Value {
    host.call("run_script", json!({"code": code})).await
}

#[tokio::test]
async fn hostile_scripts_end_and_harm_nothing() {
    let proxy = Proxy::with([Server::lazy("a")]).set("scripts", true);
    let proxy = proxy.set("scriptTime", "150ms").set("scriptMemory", 16);
    let mut host = proxy.set("scriptOutput", 10_000).serve().await;
    assert_eq!(text_of(&run(&mut host, "return await mcp.a.shout()").await), "shouted");
    let scripts = scripts();
    assert!(scripts.len() >= 100);
    for (what, code) in scripts {
        let result = run(&mut host, &code).await;
        let said = result.to_string();
        assert!(said.len() < 40_000, "{what}: {} bytes", said.len());
        assert!(!said.contains("\"forged\""), "{what}: {said}");
        assert!(!said.contains("root:"), "{what}: {said}");
        let after = run(&mut host, "return await mcp.a.shout()").await;
        assert_eq!(text_of(&after), "shouted", "after {what}");
    }
    // The server, and the watchdog.
    eventually("no worker is left", || descendants(host.serving_id()).len() == 2).await;
}

//! The interpreter: runs a script until it ends, and passes its requests and their answers on.

use std::{io, rc::Rc, time::Duration};

use rquickjs::{
    Context, Ctx, Function, Object, Result, Runtime, Value, context::EvalOptions, prelude::Func,
};

use super::{
    Channel,
    link::{Answer, Link},
    stopwatch::Stopwatch,
    typescript::Source,
};
use crate::script::message::{Bounds, Failure, FromWorker, MAX_MESSAGE_BYTES, Run, ToolUse};

/// Makes what a script finds.
const PRELUDE: &str = include_str!("prelude.js");
/// The name of the script in the stacks of errors. The prelude knows it.
const SCRIPT: &str = "script";
/// Maximum depth of the interpreter's stack, in bytes. The process has more.
const MAX_STACK: usize = 512 * 1024;
/// The text before a script that returns. It has no line break, so that lines stay the same.
const BEGIN: &str = "(async () => {";
/// The text after a script that returns, and after one that is only checked.
const END: &str = "\n})()";
const END_WITHOUT_CALL: &str = "\n})";
/// Maximum length of the arguments of a call, in characters, which have up to six bytes each.
const MAX_ARGUMENTS: usize = MAX_MESSAGE_BYTES / 6 - 4096;
/// Number above any line or column of a script.
const MAX_LINES: u32 = 1_000_000;
/// The refusal of an answer that is too large for the script.
const TOO_LARGE: &str = "its answer does not fit into the memory of the script";

/// Runs a script. The last message that is sent is its value, or the reason of its failure.
///
/// # Errors
/// If the owner of the worker is gone.
pub(super) fn run(run: &Run, source: &Source, channel: Channel) -> io::Result<()> {
    let link = Link::new(channel);
    let failure = match Interpreter::new(run.bounds, run.input.get(), link.clone()) {
        Ok(interpreter) => interpreter.run(source),
        Err(error) => Some(Failure::new(format!("the interpreter cannot start: {error}"))),
    };
    if let Some(failure) = failure {
        link.end(&serde_json::to_string(&FromWorker::Failed(failure))?);
    }
    link.close()
}

/// Compiles a script without running it. The last message that is sent has its calls, or the reason
/// that it cannot be run.
///
/// # Errors
/// If the owner of the worker is gone.
pub(super) fn check(
    bounds: Bounds,
    source: &Source,
    uses: Vec<ToolUse>,
    channel: Channel,
) -> io::Result<()> {
    let link = Link::new(channel);
    let compiled = Interpreter::new(bounds, "null", link.clone()).and_then(|it| it.compile(source));
    if !link.is_over() {
        let last = match compiled {
            Ok(()) => FromWorker::Checked { uses },
            Err(error) => FromWorker::Failed(Failure::new(error.to_string())),
        };
        link.end(&serde_json::to_string(&last)?);
    }
    link.close()
}

struct Interpreter<'a> {
    bounds: Bounds,
    /// The value of the variable `input`, as JSON.
    input: &'a str,
    runtime: Runtime,
    context: Context,
    link: Link,
    stopwatch: Rc<Stopwatch>,
}

impl<'a> Interpreter<'a> {
    fn new(bounds: Bounds, input: &'a str, link: Link) -> Result<Self> {
        let stopwatch = Rc::new(Stopwatch::new(Duration::from_millis(bounds.own_time_ms)));
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(bounds.memory);
        runtime.set_max_stack_size(MAX_STACK);
        let watched = stopwatch.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.is_over())));
        let context = Context::full(&runtime)?;
        Ok(Self { bounds, input, runtime, context, link, stopwatch })
    }

    /// Runs a script to its end. Returns the failure of a script that has not told its end itself.
    fn run(&self, source: &Source) -> Option<Failure> {
        let done = self.context.with(|ctx| self.converse(&ctx, source));
        if self.link.is_over() {
            return None;
        }
        Some(if self.stopwatch.is_over() {
            let limit = Duration::from_millis(self.bounds.own_time_ms);
            Failure::new(format!("the script has run for more than {limit:?}, without its waiting"))
        } else if self.has_no_memory() {
            let megabytes = self.bounds.memory / 1_000_000;
            Failure::new(format!("the script needs more memory than {megabytes} MB"))
        } else if let Err(error) = done {
            Failure::new(format!("the interpreter cannot go on: {error}"))
        } else {
            Failure::new("the script waits for a promise that nothing can resolve")
        })
    }

    /// Begins a script, and passes answers to it while it waits for any.
    fn converse<'js>(&self, ctx: &Ctx<'js>, source: &Source) -> Result<()> {
        let functions = self.prepare(ctx)?;
        if self.link.is_over() {
            return Ok(());
        }
        self.stopwatch.during(|| {
            let (code, first_column) = if source.returns {
                (format!("{BEGIN}{}{END}", source.code), BEGIN.len())
            } else {
                (source.code.clone(), 0)
            };
            let begun = begin(ctx, code, first_column)?;
            // A script that was interrupted cannot tell its end.
            if !self.stopwatch.is_over() {
                begun.follow(&functions)?;
            }
            self.run_jobs(ctx);
            Result::Ok(())
        })?;
        let receive: Function<'js> = functions.get("receive")?;
        while !self.link.is_over() && !self.stopwatch.is_over() && self.link.is_waiting() {
            let Some(answer) = self.link.receive() else { break };
            self.stopwatch.during(|| {
                deliver(ctx, &receive, &answer)?;
                self.run_jobs(ctx);
                Result::Ok(())
            })?;
        }
        Ok(())
    }

    fn compile(&self, source: &Source) -> Result<()> {
        self.context.with(|ctx| {
            let functions = self.prepare(&ctx)?;
            let code = format!("{BEGIN}{}{END_WITHOUT_CALL}", source.code);
            let compiled = self.stopwatch.during(|| begin(&ctx, code, BEGIN.len()))?;
            if compiled.outcome.is_err() { compiled.follow(&functions) } else { Ok(()) }
        })
    }

    /// Makes what the script finds. Returns the functions by which it is run.
    fn prepare<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        let mut options = EvalOptions::default();
        options.filename = Some("dormouse".to_owned());
        let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options)?;
        let (posting, ending) = (self.link.clone(), self.link.clone());
        let post = Func::from(move |message: String, is_request: bool| {
            posting.send(&message, is_request);
        });
        let end = Func::from(move |message: String| ending.end(&message));
        let limits = Object::new(ctx.clone())?;
        limits.set("atOnce", self.bounds.at_once)?;
        limits.set("output", self.bounds.output)?;
        limits.set("arguments", MAX_ARGUMENTS)?;
        limits.set("lines", MAX_LINES)?;
        prelude.call((post, end, limits, self.input))
    }

    /// Runs what was waiting for an answer or a promise.
    fn run_jobs(&self, ctx: &Ctx<'_>) {
        while !self.link.is_over() && !self.stopwatch.is_over() && ctx.execute_pending_job() {}
    }

    fn has_no_memory(&self) -> bool {
        let used = usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0);
        used > self.bounds.memory / 10 * 9
    }
}

/// A script whose first part was run.
struct Begun<'js> {
    /// What it was evaluated to, or what it has thrown.
    outcome: std::result::Result<Value<'js>, Value<'js>>,
    /// The length of the text before it on its first line.
    first_column: usize,
}

/// Gives a script the answer to one of its requests.
fn deliver<'js>(ctx: &Ctx<'js>, receive: &Function<'js>, answer: &Answer) -> Result<()> {
    if let Ok(text) = rquickjs::String::from_str(ctx.clone(), &answer.text) {
        receive.call((answer.id, answer.is_refusal, text))
    } else {
        // The error that it has thrown is not for the script.
        ctx.catch();
        receive.call((answer.id, true, TOO_LARGE))
    }
}

/// Evaluates a script, up to its first wait. `first_column` is the length of what precedes the
/// script on its first line.
fn begin<'js>(ctx: &Ctx<'js>, code: String, first_column: usize) -> Result<Begun<'js>> {
    let mut options = EvalOptions::default();
    (options.strict, options.promise) = (true, true);
    options.filename = Some(SCRIPT.to_owned());
    let outcome = match ctx.eval_with_options(code, options) {
        Ok(evaluated) => Ok(evaluated),
        Err(rquickjs::Error::Exception) => Err(ctx.catch()),
        Err(error) => return Err(error),
    };
    Ok(Begun { outcome, first_column })
}

impl<'js> Begun<'js> {
    /// Passes the outcome to the prelude, which sends the last message.
    fn follow(self, functions: &Object<'js>) -> Result<()> {
        let (name, value) = match self.outcome {
            Ok(evaluated) => ("conclude", evaluated),
            Err(thrown) => ("fail", thrown),
        };
        functions.get::<_, Function<'js>>(name)?.call((value, self.first_column))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufReader, pipe},
        time::Duration,
    };

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::script::message::{Request, ToWorker};

    /// Runs a script that makes no requests. Returns its last message.
    fn ended(code: &str) -> FromWorker {
        conversation(code, |_| unreachable!("it makes no requests")).pop().unwrap()
    }

    fn value(code: &str) -> Json {
        match ended(code) {
            FromWorker::Done { value } => {
                value.map_or(Json::Null, |value| serde_json::from_str(value.get()).unwrap())
            }
            other => panic!("{code}: {other:?}"),
        }
    }

    fn failure(code: &str) -> Failure {
        match ended(code) {
            FromWorker::Failed(failure) => failure,
            other => panic!("{code}: {other:?}"),
        }
    }

    /// Runs a script, whose requests `answer` answers. Returns all messages.
    fn conversation(
        code: &str,
        answer: impl Fn(Request) -> std::result::Result<Json, String>,
    ) -> Vec<FromWorker> {
        let wanted = Run {
            code: code.to_owned(),
            input: serde_json::value::to_raw_value(&json!({"a": 1})).unwrap(),
            bounds: Bounds { memory: 16_000_000, own_time_ms: 300, output: 10_000, at_once: 2 },
        };
        let (to_worker, mut answers) = pipe().unwrap();
        let (messages, from_worker) = pipe().unwrap();
        let working = std::thread::spawn(move || {
            let channel = Channel {
                input: Box::new(BufReader::new(to_worker)),
                output: Box::new(from_worker),
            };
            let source = Source::read(&wanted.code).unwrap();
            run(&wanted, &source, channel)
        });
        let mut all = Vec::new();
        for line in io::BufRead::lines(BufReader::new(messages)) {
            let message = serde_json::from_str(&line.unwrap()).unwrap();
            if let FromWorker::Request { id, request } = message {
                let message = match answer(request) {
                    Ok(value) => {
                        let value = serde_json::value::to_raw_value(&value).unwrap();
                        ToWorker::Answer { id, value }
                    }
                    Err(message) => ToWorker::Refusal { id, message },
                };
                let line = serde_json::to_string(&message).unwrap();
                io::Write::write_all(&mut answers, format!("{line}\n").as_bytes()).unwrap();
            } else {
                all.push(message);
            }
        }
        working.join().unwrap().unwrap();
        all
    }

    #[test]
    fn value_is_that_of_the_return_of_the_last_statement_or_of_a_function() {
        assert_eq!(value("return {a: [1, 'x']}"), json!({"a": [1, "x"]}));
        assert_eq!(value("const a = input.a; a + 1"), json!(2));
        assert_eq!(value("async (input) => input.a"), json!(1));
        assert_eq!(value("await Promise.resolve(3)"), json!(3));
        assert_eq!(value("Promise.all([1, Promise.resolve(2)])"), json!([1, 2]));
        assert_eq!(value("let a"), json!(null));
        let returned =
            "const f = async (a: number): Promise<{\n x: number\n}> => ({ x: a });\nf(1)";
        assert_eq!(value(returned), json!({"x": 1}));
        assert_eq!(value("const f = async <\nT\n>(x: T) => x;\nf(2)"), json!(2));
        assert_eq!(value("declare enum A { B }\ndeclare namespace C {}\nreturn 3"), json!(3));
        assert_eq!(value("const b = input.a as number\n(0, b)\nreturn b"), json!(1));
        assert_eq!(value("return (x: number): string => `${x}`"), json!("[object Object]"));
    }

    #[test]
    fn failures_have_the_place_in_the_script() {
        let thrown =
            failure("const a = 1;\nif (a) {\n  throw new TypeError('no ' + a);\n}\nreturn 1");
        assert_eq!(thrown.message, "TypeError: no 1");
        assert_eq!(thrown.place.map(|place| place.line), Some(3));
        let first = failure("return nothing.here");
        assert_eq!(first.place.map(|place| (place.line, place.column)), Some((1, 8)));
        assert_eq!(failure("throw 'text'").message, "the script has thrown text");
        for code in ["const a = {}; a.a = a; return a", "return 10n", "return 'x'.repeat(20_000)"] {
            assert!(failure(code).message.starts_with("TypeError"), "{code}");
        }
        assert!(failure("await new Promise(() => {})").message.contains("nothing can resolve"));
    }

    #[test]
    fn answer_that_is_too_large_is_an_error_that_can_be_caught() {
        let code = "const said = await mcp.a.b().catch((error) => error.message); return said";
        let large = |_| Ok(json!("x".repeat(17_000_000)));
        let Some(FromWorker::Done { value: Some(value) }) = conversation(code, large).pop() else {
            panic!("it ends")
        };
        assert!(value.get().contains("does not fit into the memory"), "{value}");
    }

    #[test]
    fn checked_script_is_compiled_and_not_run() {
        let check = |code: &str| {
            let (messages, from_worker) = pipe().unwrap();
            let channel = Channel { input: Box::new(io::empty()), output: Box::new(from_worker) };
            let bounds = Bounds { memory: 16_000_000, own_time_ms: 300, output: 0, at_once: 0 };
            let source = Source::read(code).unwrap();
            super::check(bounds, &source, Vec::new(), channel).unwrap();
            let mut lines = io::BufRead::lines(BufReader::new(messages));
            serde_json::from_str::<FromWorker>(&lines.next().unwrap().unwrap()).unwrap()
        };
        for runs in ["return nothing.here", "await x; const a: number = 1; a", "throw 1"] {
            assert!(matches!(check(runs), FromWorker::Checked { .. }), "{runs}");
        }
        let FromWorker::Failed(failure) = check("let a = 1;\nlet a = 2") else {
            panic!("a name is declared twice")
        };
        assert!(failure.message.contains("SyntaxError"), "{failure:?}");
        assert_eq!(failure.place.map(|place| place.line), Some(2));
    }

    #[test]
    fn limits_end_a_script() {
        for code in ["for (;;) {}", "await 1; for (;;) {}", "/(a+)+$/.test('a'.repeat(40) + 'b')"] {
            assert!(failure(code).message.contains("300ms"), "{code}");
        }
        let endless =
            "const go = () => { Promise.resolve().then(go) }; go(); await new Promise(() => {})";
        assert!(failure(endless).message.contains("300ms"));
        assert!(
            failure("const a = []; for (;;) a.push(a.length + 'x'.repeat(100_000))")
                .message
                .contains("memory")
        );
        assert!(failure("const f = () => f() + 1; f()").message.contains("stack"));
    }

    #[test]
    fn calls_get_answers_and_errors_with_their_place() {
        let answer = |request| match request {
            Request::Call { server, tool, arguments } if tool != "bad" => {
                Ok(json!({"server": server, "tool": tool, "given": arguments}))
            }
            Request::CallNamed { name, .. } => Ok(json!(name)),
            Request::Search { query } => Ok(json!([query])),
            _ => Err("no such thing".to_owned()),
        };
        let code = "const one = await mcp['my-server'].get({x: 1});
            const all = await Promise.all([1, 2, 3, 4].map((x) => mcp.a.b({x})));
            let caught;
            try {
              await mcp.a.bad();
            } catch (error) { caught = [error.name, error.message, error.tool] }
            return [one, all.length, caught, await tools.call('a/b'), await tools.search('q')]";
        let Some(FromWorker::Done { value: Some(value) }) = conversation(code, answer).pop() else {
            panic!("it ends")
        };
        let value: Json = serde_json::from_str(value.get()).unwrap();
        let given = json!({"server": "my-server", "tool": "get", "given": {"x": 1}});
        let caught = json!(["ToolError", "a/bad: no such thing", "a/bad"]);
        assert_eq!(value, json!([given, 4, caught, "a/b", ["q"]]));
        let failing = "const a = 1;\nawait mcp.a.bad({a})";
        let Some(FromWorker::Failed(failure)) = conversation(failing, answer).pop() else {
            panic!("it fails")
        };
        assert_eq!(failure.place.map(|place| place.line), Some(2));
        assert!(matches!(
            conversation("await mcp.a.b(1)", answer).pop(),
            Some(FromWorker::Failed(failure)) if failure.message.contains("one object")
        ));
    }

    #[test]
    fn log_is_sent_and_bounded() {
        let said = |code: &str| {
            let messages = conversation(code, |_| Ok(json!(null)));
            let texts = messages.into_iter().filter_map(|message| match message {
                FromWorker::Log { text } => Some(text),
                _ => None,
            });
            texts.collect::<Vec<_>>()
        };
        assert_eq!(
            said("console.log('a', {b: 1}, undefined); console.error(2)"),
            ["a {\"b\":1} undefined", "2"]
        );
        let flood = said("for (let i = 0; i < 1000; i++) console.log('x'.repeat(500))");
        assert!(flood.len() < 25, "{}", flood.len());
        assert_eq!(flood.last().unwrap(), "[more is not kept]");
    }

    #[test]
    fn time_that_a_script_waits_does_not_count() {
        let slow = |_| {
            std::thread::sleep(Duration::from_millis(200));
            Ok(json!(1))
        };
        let code = "for (let i = 0; i < 3; i++) await mcp.a.b(); return 1";
        assert!(matches!(conversation(code, slow).pop(), Some(FromWorker::Done { .. })));
    }
}

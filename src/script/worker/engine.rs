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
use crate::script::message::{Failure, FromWorker, Start};

/// Makes what a script finds.
const PRELUDE: &str = include_str!("prelude.js");
/// The name of the script in the stacks of errors. The prelude knows it.
const SCRIPT: &str = "script";
/// Maximum depth of the interpreter's stack, in bytes. The process has more.
const MAX_STACK: usize = 512 * 1024;
/// Stand around a script that returns, without another line before its own.
const BEGIN: &str = "(async () => {";
const END: &str = "\n})()";

/// Runs a script. The last message that is sent is its value, or the reason of its failure.
///
/// # Errors
/// If the owner of the worker is gone.
pub(super) fn run(start: &Start, source: &Source, channel: Channel) -> io::Result<()> {
    let link = Link::new(channel);
    let stopwatch = Rc::new(Stopwatch::new(Duration::from_millis(start.own_time_ms)));
    let failure = match Interpreter::new(start, link.clone(), stopwatch.clone()) {
        Ok(interpreter) => interpreter.run(source),
        Err(error) => Some(Failure::new(format!("the interpreter cannot start: {error}"))),
    };
    if let Some(failure) = failure {
        link.end(&serde_json::to_string(&FromWorker::Failed(failure))?);
    }
    link.close()
}

struct Interpreter<'a> {
    start: &'a Start,
    runtime: Runtime,
    context: Context,
    link: Link,
    stopwatch: Rc<Stopwatch>,
}

impl<'a> Interpreter<'a> {
    fn new(start: &'a Start, link: Link, stopwatch: Rc<Stopwatch>) -> Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(start.memory);
        runtime.set_max_stack_size(MAX_STACK);
        let watched = stopwatch.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.is_over())));
        let context = Context::full(&runtime)?;
        Ok(Self { start, runtime, context, link, stopwatch })
    }

    /// Runs a script to its end. Returns the failure of a script that has not told its end itself.
    fn run(&self, source: &Source) -> Option<Failure> {
        let done = self.context.with(|ctx| self.converse(&ctx, source));
        if self.link.is_over() {
            return None;
        }
        Some(if self.stopwatch.is_over() {
            let limit = Duration::from_millis(self.start.own_time_ms);
            Failure::new(format!("the script has run for more than {limit:?}, without its waiting"))
        } else if self.has_no_memory() {
            let megabytes = self.start.memory / 1_000_000;
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
        self.stopwatch.during(|| {
            let begun = begin(ctx, source)?;
            // A script that was interrupted cannot tell its end.
            if !self.stopwatch.is_over() {
                begun.follow(&functions)?;
            }
            self.run_jobs(ctx);
            Result::Ok(())
        })?;
        let receive: Function<'js> = functions.get("receive")?;
        while !self.link.is_over() && !self.stopwatch.is_over() && self.link.is_waiting() {
            let Some(Answer { id, is_refusal, text }) = self.link.receive() else { break };
            self.stopwatch.during(|| {
                receive.call::<_, ()>((id, is_refusal, text))?;
                self.run_jobs(ctx);
                Result::Ok(())
            })?;
        }
        Ok(())
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
        limits.set("atOnce", self.start.at_once)?;
        limits.set("output", self.start.output)?;
        prelude.call((post, end, limits, self.start.input.get()))
    }

    /// Runs what was waiting for an answer or a promise.
    fn run_jobs(&self, ctx: &Ctx<'_>) {
        while !self.link.is_over() && !self.stopwatch.is_over() && ctx.execute_pending_job() {}
    }

    fn has_no_memory(&self) -> bool {
        let used = usize::try_from(self.runtime.memory_usage().malloc_size).unwrap_or(0);
        used > self.start.memory / 10 * 9
    }
}

/// A script whose first part was run.
struct Begun<'js> {
    /// What it was evaluated to, or what it has thrown.
    outcome: std::result::Result<Value<'js>, Value<'js>>,
    /// The length of what precedes it on its first line.
    first_column: usize,
}

/// Evaluates a script, up to its first wait.
fn begin<'js>(ctx: &Ctx<'js>, source: &Source) -> Result<Begun<'js>> {
    let (code, first_column) = if source.returns {
        (format!("{BEGIN}{}{END}", source.code), BEGIN.len())
    } else {
        (source.code.clone(), 0)
    };
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
    /// Has the functions of the prelude tell the end of the script.
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
        let start = Start {
            code: code.to_owned(),
            input: serde_json::value::to_raw_value(&json!({"a": 1})).unwrap(),
            memory: 16_000_000,
            own_time_ms: 300,
            output: 10_000,
            at_once: 2,
            is_check: false,
        };
        let (to_worker, mut answers) = pipe().unwrap();
        let (messages, from_worker) = pipe().unwrap();
        let working = std::thread::spawn(move || {
            let channel = Channel {
                input: Box::new(BufReader::new(to_worker)),
                output: Box::new(from_worker),
            };
            let source = Source::read(&start.code).unwrap();
            run(&start, &source, channel)
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
    fn limits_end_a_script() {
        for code in ["for (;;) {}", "await 1; for (;;) {}", "/(a+)+$/.test('a'.repeat(40) + 'b')"] {
            assert!(failure(code).message.contains("300ms"), "{code}");
        }
        let endless =
            "const go = () => { Promise.resolve().then(go) }; go(); await new Promise(() => {})";
        assert!(failure(endless).message.contains("300ms"));
        assert!(
            failure("const a = []; for (;;) a.push(a.length + 'x'.repeat(1000))")
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

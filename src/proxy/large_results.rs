//! Results that are too long for a host: when they are cut, and how the host reads the rest.

use std::sync::Arc;

use serde_json::json;

use super::{
    Caller, Fleet, Host, Viewer,
    host_recall::{recall_result, store_result},
    reaper::reap,
    results::{Cut, Excerpt, PreviewRules, RemovedResults, URI_PREFIX},
};
use crate::{
    base::run_blocking,
    catalog::{Changes, ServerId, Snapshot, Tool, ToolResolution},
    config::{ResultLimit, Surface},
    protocol::{Era, error, method},
    surface::{ReadForm, ResultPart, calling_tool, failed},
    wire::{Outcome, Raw, edit},
};

/// Maximum size of a result where the config has none, in bytes: some 25,000 tokens.
const DEFAULT_MAX_BYTES: usize = 100_000;

/// The member of a modern task that has ended (SEP-2663).
const RESULT: &str = "result";

/// The origin of a result.
#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// A `tools/call` with these `params`, which this server has answered.
    Call(ServerId, &'a Raw),
    /// A call that made a task of this server, whose result the host gets later. The tool is not
    /// known.
    Task(ServerId),
    /// A script of the host.
    Script,
}

impl Source<'_> {
    /// Returns the server of the result.
    fn server(self) -> Option<ServerId> {
        match self {
            Self::Call(server, _) | Self::Task(server) => Some(server),
            Self::Script => None,
        }
    }
}

/// A result that may be too long, and the host for which it is.
struct Bounding<'a> {
    fleet: &'a Fleet,
    viewer: Viewer,
    source: Source<'a>,
}

/// Returns what a host gets of the answer to its `tools/call` with `params`: the preview of a
/// result that is too long, and any other answer unchanged.
pub(super) async fn bound(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    params: &Raw,
    outcome: Outcome,
) -> Outcome {
    if caller.script.is_some() {
        // A script reads the whole, and returns what its host gets.
        return outcome;
    }
    let source = Source::Call(server, params);
    let bounding = Bounding { fleet, viewer: caller.viewer(), source };
    Ok(bounding.answer(caller, outcome?).await)
}

/// Returns what a host gets of the result of its script.
pub(super) async fn bound_script(fleet: &Fleet, caller: &Caller, result: Raw) -> Raw {
    let bounding = Bounding { fleet, viewer: caller.viewer(), source: Source::Script };
    bounding.answer(caller, result).await
}

/// Returns what a host gets of the answer to a request about a task, which may contain the result
/// of a call: as a whole in a legacy `tasks/result`, and as the member `result` in a modern
/// `tasks/get`.
pub(super) async fn bound_in_task(
    fleet: &Fleet,
    caller: &Caller,
    server: ServerId,
    method: &str,
    outcome: Outcome,
) -> Outcome {
    let answer = outcome?;
    let bounding = Bounding { fleet, viewer: caller.viewer(), source: Source::Task(server) };
    match (method, caller.client.era) {
        (method::TASKS_RESULT, Era::Legacy) => Ok(bounding.answer(caller, answer).await),
        (method::TASKS_GET, Era::Modern) if bounding.may_be_cut(&answer) => {
            let Some(result) = edit::get(&answer, RESULT) else { return Ok(answer) };
            let result = bounding.answer(caller, result).await;
            Ok(edit::set(&answer, RESULT, &result))
        }
        _ => Ok(answer),
    }
}

/// Tells a modern host of a task, which has its result when it has ended. `shown` is the id by
/// which the host knows the task.
pub(super) fn tell_of_task(
    fleet: &Fleet,
    host: Arc<dyn Host>,
    server: ServerId,
    shown: &str,
    params: Raw,
) {
    let viewer = Viewer::of(host.as_ref());
    let bounding = Bounding { fleet, viewer, source: Source::Task(server) };
    let result = Some(&params).filter(|params| bounding.may_be_cut(params));
    let Some(result) = result.and_then(|params| edit::get(params, RESULT)) else {
        return host.task_updated(shown, &params);
    };
    let Some(fleet) = fleet.this.upgrade() else { return };
    let (viewer, shown) = (bounding.viewer, shown.to_owned());
    let tasks = fleet.context.tasks.clone();
    tasks.spawn(async move {
        let bounding = Bounding { fleet: &fleet, viewer, source: Source::Task(server) };
        let (result, _) = bounding.cut(result).await;
        host.task_updated(&shown, &edit::set(&params, RESULT, &result));
    });
}

/// Starts to forget results that are too old.
pub(super) fn reap_results(fleet: &Fleet) {
    reap(fleet, fleet.calls.results.added(), |fleet| {
        let (expired, next) = fleet.calls.results.expire();
        discard(fleet, expired);
        next.map(Into::into)
    });
}

/// Closes the files of results without blocking the caller.
pub(super) fn discard(fleet: &Fleet, results: RemovedResults) {
    if !results.is_empty() {
        fleet.context.tasks.spawn(run_blocking(move || drop(results)));
    }
}

impl Bounding<'_> {
    /// Returns what the host gets of a result, after a change of its list that is due to it.
    async fn answer(&self, caller: &Caller, result: Raw) -> Raw {
        if !self.may_be_cut(&result) {
            return result;
        }
        let (result, announced) = Box::pin(self.cut(result)).await;
        if announced {
            // The model's next request has the tool then.
            let settle = self.fleet.settings().loading.settle;
            caller.await_tool_list(caller.host.tool_lists_announced(), settle).await;
        }
        result
    }

    /// Returns whether an answer may contain a result that is too long.
    fn may_be_cut(&self, answer: &Raw) -> bool {
        self.limit().is_some_and(|limit| answer.len() > limit)
    }

    /// Returns the number of bytes above which results of the server are cut for the host.
    fn limit(&self) -> Option<usize> {
        let Some(server) = self.source.server() else {
            let is_for_person = self.fleet.settings().launch.is_for_person;
            return (!is_for_person).then_some(DEFAULT_MAX_BYTES);
        };
        let endpoint = &self.viewer.endpoint;
        let promises_fidelity = endpoint.only.is_some() || endpoint.surface == Surface::Direct;
        match self.fleet.servers.config(server).settings.max_result_bytes {
            ResultLimit::Default => (!promises_fidelity).then_some(DEFAULT_MAX_BYTES),
            ResultLimit::Off => None,
            ResultLimit::Bytes(limit) => Some(limit.get()),
        }
    }

    /// Returns the preview of a result that is too long, or the result. The second value is true if
    /// the host was told that its list has `read_result` now.
    async fn cut(&self, result: Raw) -> (Raw, bool) {
        let Some(limit) = self.limit() else { return (result, false) };
        let rules = self.rules(limit);
        let is_listed = rules.form == ReadForm::Listed;
        let principal = self.viewer.principal;
        let cutting = self.fleet.calls.results.cut(principal, rules, result.clone());
        let Some(Cut { preview, id }) = cutting.await else {
            return (result, false);
        };
        let withheld = result.len().saturating_sub(preview.len());
        let server = self.source.server().map(|server| self.fleet.servers.config(server));
        let name = server.as_ref().map(|config| config.name.as_str());
        tracing::debug!(server = name, bytes = result.len(), withheld, "cut a large result");
        if let Some(name) = name {
            self.fleet.events.cut_result(name, withheld);
        }
        let Some(id) = id else { return (preview, false) };
        let is_first = self.fleet.board.note_cut(principal);
        if is_first {
            self.fleet.memory.hosts.note_unsaved(principal);
        }
        store_result(self.fleet, principal, id);
        let is_new = is_first && is_listed;
        if is_new {
            let changes = Changes { tools: true, ..Changes::default() };
            self.fleet.audience.announce(changes, |host| host.principal() == principal);
        }
        (preview, is_new)
    }

    fn rules(&self, limit: usize) -> PreviewRules {
        let board = &self.fleet.board;
        let snapshot = board.snapshot_for(&self.viewer);
        let calling = match self.source {
            Source::Call(_, params) => calling_tool(params),
            Source::Task(_) | Source::Script => None,
        };
        PreviewRules {
            limit,
            form: board.view(&self.viewer, &snapshot).read_form(calling.as_deref()),
            must_be_structured: calling.is_none() && self.may_declare_output(&snapshot),
        }
    }

    /// Returns whether the tool, which the host knows by its own name, may declare the structure of
    /// its results.
    fn may_declare_output(&self, snapshot: &Snapshot) -> bool {
        let (tools, declares) =
            (snapshot.tools(), |tool: &Tool| edit::get(&tool.raw, "outputSchema").is_some());
        match self.source {
            Source::Call(_, params) => {
                let Some(name) = edit::get_str(params, "name") else { return false };
                let resolved = match snapshot.sole {
                    Some(sole) => tools.resolve_in(sole, &name),
                    None => tools.resolve_tool(&name),
                };
                matches!(resolved, ToolResolution::Tool(at) if declares(tools.tool(at).1))
            }
            Source::Script => false,
            Source::Task(server) => {
                let mut offers = snapshot.offers_of(server);
                offers.any(|(_, offer)| {
                    let exposed = offer.exposed();
                    exposed.is_some_and(|it| it.catalog.tools.iter().any(declares))
                })
            }
        }
    }
}

/// Returns the result of `read_result`.
pub(super) async fn read_part(fleet: &Fleet, caller: &Caller, id: &str, part: &ResultPart) -> Raw {
    match read_kept(fleet, caller, id, part.clone()).await {
        Ok(Excerpt { text, note }) => {
            let texts = [text, note].into_iter().filter(|text| !text.is_empty());
            let content: Vec<_> = texts.map(|text| json!({"type": "text", "text": text})).collect();
            Raw::encode(&json!({"content": content}))
        }
        Err(cause) => failed(format!("cannot read the result: {cause}")),
    }
}

/// Returns a part of a result that was cut for the host, here or at another replica.
async fn read_kept(
    fleet: &Fleet,
    caller: &Caller,
    id: &str,
    part: ResultPart,
) -> Result<Excerpt, String> {
    let principal = caller.host.principal();
    recall_result(fleet, principal, id).await;
    fleet.calls.results.read(principal, id, part).await
}

/// Answers a `resources/read` of a kept result; `None` for any other resource.
pub(super) async fn read_resource(fleet: &Fleet, caller: &Caller, uri: &str) -> Option<Outcome> {
    let name = uri.strip_prefix(URI_PREFIX)?;
    let (id, page) = name.split_once("?page=").unwrap_or((name, "1"));
    let read = match page.parse().map(ResultPart::Page) {
        Ok(part) => read_kept(fleet, caller, id, part).await,
        Err(_) => Err(format!("{page:?} is not the number of a page")),
    };
    Some(match read {
        Ok(Excerpt { text, note }) => {
            // The note is an item of its own, so that the texts of the pages can be joined.
            let contents = [text, note]
                .map(|text| json!({"uri": uri, "mimeType": "text/plain", "text": text}));
            Ok(edit::set(&Raw::empty_object(), "contents", &Raw::encode(&contents)))
        }
        Err(cause) => Err(error::invalid_params(format!("cannot read {uri}: {cause}"))),
    })
}

//! The names of the methods of MCP (2025-11-25 and 2026-07-28, schema; extensions where noted).

// Requests.
pub(crate) const INITIALIZE: &str = "initialize";
pub(crate) const PING: &str = "ping";
pub(crate) const SERVER_DISCOVER: &str = "server/discover";
pub(crate) const SUBSCRIPTIONS_LISTEN: &str = "subscriptions/listen";
pub(crate) const TOOLS_LIST: &str = "tools/list";
pub(crate) const TOOLS_CALL: &str = "tools/call";
pub(crate) const RESOURCES_LIST: &str = "resources/list";
pub(crate) const RESOURCE_TEMPLATES_LIST: &str = "resources/templates/list";
pub(crate) const RESOURCES_READ: &str = "resources/read";
pub(crate) const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
pub(crate) const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
pub(crate) const RESOURCES_DIRECTORY_READ: &str = "resources/directory/read";
pub(crate) const PROMPTS_LIST: &str = "prompts/list";
pub(crate) const PROMPTS_GET: &str = "prompts/get";
pub(crate) const COMPLETION_COMPLETE: &str = "completion/complete";
pub(crate) const LOGGING_SET_LEVEL: &str = "logging/setLevel";
pub(crate) const TASKS_GET: &str = "tasks/get";
pub(crate) const TASKS_LIST: &str = "tasks/list";
pub(crate) const TASKS_RESULT: &str = "tasks/result";
pub(crate) const TASKS_CANCEL: &str = "tasks/cancel";
pub(crate) const TASKS_UPDATE: &str = "tasks/update";
pub(crate) const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
pub(crate) const ELICITATION_CREATE: &str = "elicitation/create";
pub(crate) const ROOTS_LIST: &str = "roots/list";
pub(crate) const SKILLS_LIST: &str = "skills/list";
pub(crate) const SKILLS_GET: &str = "skills/get";

/// The requests that hosts make.
pub(crate) const REQUESTS_OF_HOSTS: [&str; 23] = [
    INITIALIZE,
    PING,
    SERVER_DISCOVER,
    SUBSCRIPTIONS_LISTEN,
    TOOLS_LIST,
    TOOLS_CALL,
    RESOURCES_LIST,
    RESOURCE_TEMPLATES_LIST,
    RESOURCES_READ,
    RESOURCES_SUBSCRIBE,
    RESOURCES_UNSUBSCRIBE,
    RESOURCES_DIRECTORY_READ,
    PROMPTS_LIST,
    PROMPTS_GET,
    COMPLETION_COMPLETE,
    LOGGING_SET_LEVEL,
    TASKS_GET,
    TASKS_LIST,
    TASKS_RESULT,
    TASKS_CANCEL,
    TASKS_UPDATE,
    SKILLS_LIST,
    SKILLS_GET,
];

// Notifications.
pub(crate) const INITIALIZED: &str = "notifications/initialized";
pub(crate) const CANCELLED: &str = "notifications/cancelled";
pub(crate) const PROGRESS: &str = "notifications/progress";
pub(crate) const MESSAGE: &str = "notifications/message";
pub(crate) const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";
pub(crate) const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
pub(crate) const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
pub(crate) const RESOURCE_UPDATED: &str = "notifications/resources/updated";
pub(crate) const ROOTS_LIST_CHANGED: &str = "notifications/roots/list_changed";
pub(crate) const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";
pub(crate) const TASK_UPDATED: &str = "notifications/tasks";
pub(crate) const TASK_STATUS: &str = "notifications/tasks/status";
pub(crate) const SUBSCRIPTIONS_ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

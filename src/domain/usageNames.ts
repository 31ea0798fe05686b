/** Names in usage and records of what has no id of its own. */

/** The one key of all callers' own tokens, so that unknown callers cannot fill the store. */
export const directKey = "direct"
/** The key of requests from within the process. */
export const embeddedKey = "embedded"
/** Stands for a missing key, model, account, app, session or agent. */
export const none = "none"

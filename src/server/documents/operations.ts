/**
 * What the API documents say of each operation: in a line, who may call it, what it may fail with, and an example of its body.
 */
import type { ErrorCode } from "../../domain/GatewayError.ts"

/**
 * Who may call: nobody is asked, a business key, the same in the content-generation style's words, an operator, an operator
 * who is no browser, one with a JWT.
 */
export type Access = "none" | "business" | "generate" | "admin" | "key" | "jwt"

export interface Operation {
  readonly summary: string
  readonly description?: string
  readonly access: Access
  /** Codes of the errors that it may answer with. */
  readonly errors: ReadonlyArray<ErrorCode>
  /** A body that it accepts. */
  readonly example?: unknown
}

const always: ReadonlyArray<ErrorCode> = ["internal_error", "shutting_down"]
const bodies: ReadonlyArray<ErrorCode> = ["invalid_request", "request_too_large", "unsupported_media_type"]
const calling: ReadonlyArray<ErrorCode> = [
  ...always,
  ...bodies,
  "model_not_found",
  "model_not_allowed",
  "authentication_failed"
]
const completing: ReadonlyArray<ErrorCode> = [
  ...calling,
  "context_length_exceeded",
  "content_filter",
  "unknown_reference",
  "tool_choice_violation",
  "rate_limit_exceeded",
  "upstream_rate_limited",
  "no_account_available",
  "upstream_error",
  "upstream_timeout",
  "upstream_empty_output"
]
const reading: ReadonlyArray<ErrorCode> = [...always, "authentication_failed"]
const finding: ReadonlyArray<ErrorCode> = [...reading, "not_found"]
const changing: ReadonlyArray<ErrorCode> = [...reading, ...bodies, "conflict", "config_not_saved"]

const hello = "Say hello in one short sentence."
const weather = { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
const messagesBody = { model: "msgcompat-sonnet-4-5", max_tokens: 1024, messages: [{ role: "user", content: hello }] }
const contents = [{ role: "user", parts: [{ text: hello }] }]

const messages = (summary: string): Operation => ({
  summary,
  description: "Without `max_tokens` it is 8192. With `stream` the reply is a stream of named events.",
  access: "business",
  errors: completing,
  example: messagesBody
})

const messageTokens = (summary: string): Operation => ({
  summary,
  description: "An estimate by the gateway; takes no account and never waits.",
  access: "business",
  errors: calling,
  example: { model: messagesBody.model, messages: messagesBody.messages }
})

const generate = (summary: string): Operation => ({
  summary,
  access: "generate",
  errors: [...completing, "not_found"],
  example: { contents, systemInstruction: { parts: [{ text: "You are brief." }] } }
})

const generateTokens = (summary: string): Operation => ({
  summary,
  description: "An estimate by the gateway; takes no account and never waits.",
  access: "generate",
  errors: [...calling, "not_found"],
  example: { contents }
})

const madeBy = "Made by whom `embeddings.provider` names: the gateway itself, or the upstream."
const embeddingErrors = [...completing, "embeddings_unavailable"] as const

const embedding = (summary: string): Operation => ({
  summary,
  description: madeBy,
  access: "generate",
  errors: [...embeddingErrors, "not_found"],
  example: { content: contents[0], outputDimensionality: 256 }
})

const embeddings = (summary: string): Operation => ({
  ...embedding(summary),
  example: { requests: [{ model: "models/upstream-chat", content: contents[0] }] }
})

/** By operation id: group and endpoint. */
export const operations: Readonly<Record<string, Operation>> = {
  "chat.completions": {
    summary: "Create a chat completion",
    description:
      "With `stream` the reply is a stream of chunks that ends with `data: [DONE]`. Tool calls that the model " +
      "writes as text come as `tool_calls`, in streams as soon as they are certain.",
    access: "business",
    errors: completing,
    example: {
      model: "upstream-chat",
      messages: [{ role: "user", content: hello }],
      tools: [{ type: "function", function: { name: "weather", description: "The weather", parameters: weather } }]
    }
  },
  "responses.create": {
    summary: "Create a response",
    description:
      "A reply that is not a stream is kept for `responses.store_ttl_seconds`, readable by the key that made it.",
    access: "business",
    errors: completing,
    example: { model: "upstream-chat", instructions: "You are brief.", input: hello }
  },
  "responses.retrieve": {
    summary: "Read a stored response",
    access: "business",
    errors: [...finding, "invalid_request"]
  },
  "responses.remove": { summary: "Delete a stored response", access: "business", errors: finding },
  "responses.inputItems": {
    summary: "List the input items of a stored response",
    access: "business",
    errors: [...finding, "invalid_request"]
  },
  "embeddings.create": {
    summary: "Create embeddings",
    description: madeBy,
    access: "business",
    errors: embeddingErrors,
    example: { model: "upstream-chat", input: ["one text", "another"] }
  },
  "messages.create": messages("Create a message"),
  "messages.createV1": messages("Create a message (shortcut)"),
  "messages.createShort": messages("Create a message (shortcut)"),
  "messages.countTokens": messageTokens("Count the tokens of a message"),
  "messages.countTokensV1": messageTokens("Count the tokens of a message (shortcut)"),
  "messages.countTokensShort": messageTokens("Count the tokens of a message (shortcut)"),
  "messages.listModels": { summary: "List the messages style's models", access: "none", errors: always },
  "messages.getModel": {
    summary: "Read one of the messages style's models",
    access: "none",
    errors: [...always, "model_not_found", "not_found"]
  },
  "generate.generateContent": generate("Generate content"),
  "generate.generateContentV1": generate("Generate content (compatible path)"),
  "generate.streamGenerateContent": generate("Generate content as a stream"),
  "generate.streamGenerateContentV1": generate("Generate content as a stream (compatible path)"),
  "generate.countTokens": generateTokens("Count the tokens of contents"),
  "generate.countTokensV1": generateTokens("Count the tokens of contents (compatible path)"),
  "generate.embedContent": embedding("Embed a content"),
  "generate.embedContentV1": embedding("Embed a content (compatible path)"),
  "generate.batchEmbedContents": embeddings("Embed contents"),
  "generate.batchEmbedContentsV1": embeddings("Embed contents (compatible path)"),
  "generate.listModels": { summary: "List the content-generation style's models", access: "none", errors: always },
  "generate.getModel": {
    summary: "Read one of the content-generation style's models",
    access: "none",
    errors: [...always, "model_not_found", "not_found"]
  },
  "models.list": { summary: "List models", access: "none", errors: always },
  "models.get": {
    summary: "Read a model",
    description: "An alias is accepted; the model that it stands for is returned.",
    access: "none",
    errors: [...always, "model_not_found", "not_found"]
  },
  "health.healthz": { summary: "Whether the process answers", access: "none", errors: [] },
  "health.readyz": { summary: "Whether the gateway takes requests", access: "none", errors: ["shutting_down"] },
  "metrics.metrics": {
    summary: "Metrics in the Prometheus text format",
    description: "Needs no credential where `metrics.public` is true.",
    access: "key",
    errors: [...reading, "rate_limit_exceeded"]
  },
  "admin-auth.login": {
    summary: "Log in",
    description: "Exchanges the admin key or the admin password for a JWT.",
    access: "none",
    errors: [...reading, ...bodies, "rate_limit_exceeded"],
    example: { admin_key: "your-admin-key", expire_hours: 24 }
  },
  "admin-auth.verify": { summary: "Check a JWT", access: "jwt", errors: reading },
  "admin-session.create": {
    summary: "Sign a browser in",
    description: "For pages of the gateway's own origin: the login is a cookie that no script can read.",
    access: "none",
    errors: [...finding, ...bodies, "rate_limit_exceeded"],
    example: { admin_key: "your-admin-key", expire_hours: 24 }
  },
  "admin-session.get": {
    summary: "Read whether a browser is signed in",
    access: "none",
    errors: [...always, "not_found"]
  },
  "admin-session.end": {
    summary: "Sign a browser out",
    description: "Ends the login itself, wherever its token is.",
    access: "none",
    errors: finding
  },
  "admin-config.get": { summary: "Read the configuration", access: "admin", errors: reading },
  "admin-config.set": {
    summary: "Replace keys, accounts or the model mapping",
    access: "admin",
    errors: changing,
    example: { keys: ["a-business-key"], msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-reasoner" } }
  },
  "admin-config.import": {
    summary: "Import a configuration",
    description: "All or nothing. `mode` is `merge` (the default) or `replace`. `dry_run=true` changes nothing.",
    access: "admin",
    errors: changing,
    example: { config: { keys: ["another-business-key"] } }
  },
  "admin-config.export": { summary: "Export the configuration, secrets included", access: "admin", errors: reading },
  "admin-config.exportShort": {
    summary: "Export the configuration, secrets included (short path)",
    access: "admin",
    errors: reading
  },
  "admin-config.importLists": {
    summary: "Add keys and accounts",
    access: "admin",
    errors: changing,
    example: { keys: ["one-more-key"], accounts: [{ email: "user@example.com", password: "secret" }] }
  },
  "admin-settings.get": { summary: "Read the runtime settings", access: "admin", errors: reading },
  "admin-settings.fields": {
    summary: "List every setting with its range, default and values",
    description: "Made from the configuration's schemas. `revision` names the configuration that the values are of.",
    access: "admin",
    errors: reading
  },
  "admin-settings.set": {
    summary: "Change runtime settings",
    description:
      "Groups and fields that are left out stay as they are. A 400 lists all `faults`. With `If-Match` and a " +
      "revision of `GET /admin/settings/fields` it is a 409 where the configuration is another one by now.",
    access: "admin",
    errors: changing,
    example: { runtime: { account_max_inflight: 4 }, compat: { strip_reference_markers: true } }
  },
  "admin-settings.password": {
    summary: "Set the admin password",
    description: "Invalidates every JWT that was issued before.",
    access: "admin",
    errors: changing,
    example: { new_password: "a long new password" }
  },
  "admin-keys.list": {
    summary: "List business keys",
    description: "By their ids, with what each may do and has used; never the keys themselves.",
    access: "admin",
    errors: [...reading, "invalid_request"]
  },
  "admin-keys.add": {
    summary: "Add a business key",
    description: "One that is given, or with `generate` a new one, which is shown this once.",
    access: "admin",
    errors: changing,
    example: { generate: true, name: "team a", limits: [{ window: "day", requests: 1000, tokens: 2_000_000 }] }
  },
  "admin-keys.change": {
    summary: "Change what a business key may do",
    description: "Fields that are left out stay as they are, `null` clears one; lists are replaced whole.",
    access: "admin",
    errors: [...changing, "not_found"],
    example: { max_inflight: 4, expires_at: "2030-01-01T00:00:00Z" }
  },
  "admin-usage.query": {
    summary: "Read usage: sums, and rows by key, model, account, style, hour or day",
    description:
      "`from` and `to` are RFC 3339 times, days or Unix seconds, of whole hours; the last 24 hours by default.",
    access: "admin",
    errors: [...reading, "invalid_request"]
  },
  "admin-usage.csv": {
    summary: "Read usage as CSV",
    description: "`x-truncated: true` says that rows were cut off.",
    access: "admin",
    errors: [...reading, "invalid_request"]
  },
  "admin-keys.remove": { summary: "Remove a business key", access: "admin", errors: [...changing, "not_found"] },
  "admin-accounts.list": { summary: "List accounts", access: "admin", errors: [...reading, "invalid_request"] },
  "admin-accounts.add": {
    summary: "Add an account",
    description: "By email or mobile and password, or by a token.",
    access: "admin",
    errors: changing,
    example: { email: "someone@example.com", password: "secret" }
  },
  "admin-accounts.batch": {
    summary: "Add, enable, disable or delete many accounts",
    description: "Each line stands for itself, and all that are ok are saved at once. `dry_run` changes nothing.",
    access: "admin",
    errors: changing,
    example: { action: "add", accounts: [{ email: "another@example.com", password: "secret" }], dry_run: true }
  },
  "admin-accounts.patch": {
    summary: "Take an account out of use, bring it back, or note something of it",
    description: "A disabled account gets no new lease; its running ones finish.",
    access: "admin",
    errors: [...changing, "not_found"],
    example: { disabled: true, note: "on holiday" }
  },
  "admin-accounts.remove": { summary: "Remove an account", access: "admin", errors: [...changing, "not_found"] },
  "admin-accounts.test": {
    summary: "Test an account",
    access: "admin",
    errors: [...finding, ...bodies],
    example: { identifier: "someone@example.com" }
  },
  "admin-accounts.testAll": {
    summary: "Test all accounts, five at a time",
    access: "admin",
    errors: [...reading, ...bodies],
    example: {}
  },
  "admin-accounts.deleteSessions": {
    summary: "Delete all upstream sessions of an account",
    access: "admin",
    errors: [...finding, ...bodies],
    example: { identifier: "someone@example.com" }
  },
  "admin-accounts.queue": { summary: "Read the state of the queue", access: "admin", errors: reading },
  "admin-self-test.test": {
    summary: "Send a request through the gateway itself",
    access: "admin",
    errors: [...reading, ...bodies],
    example: { model: "upstream-chat", message: "Hello" }
  },
  "admin-captures.list": {
    summary: "List captured exchanges with the upstream",
    description: "With `summary=true` sizes stand in the place of the bodies.",
    access: "admin",
    errors: [...reading, "invalid_request"]
  },
  "admin-captures.get": { summary: "Read one captured exchange", access: "admin", errors: finding },
  "admin-captures.clear": { summary: "Clear the captures", access: "admin", errors: reading },
  "admin-requests.list": {
    summary: "List records of requests",
    description:
      "Newest first. `status` is an outcome, an HTTP status, or `4xx` or `5xx`; `model` is the model as asked for " +
      "or as it resolved. Filters are exact, and all of them must fit.",
    access: "admin",
    errors: [...reading, "invalid_request"]
  },
  "admin-requests.get": {
    summary: "Read the record of one request, both sides with their frames",
    description: "By the record's id, or by the request's id: the newest record that has it.",
    access: "admin",
    errors: finding
  },
  "admin-requests.clear": { summary: "Forget the records of requests that are over", access: "admin", errors: reading },
  "admin-events.stream": {
    summary: "Follow what changes, as server-sent events",
    description:
      "`hello`, then `pool`, `queue`, `requests` and `config` as they change, at most four of a kind a second; `reset` " +
      "after a gap, `session_ended` before the end. With `Last-Event-ID` what was missed comes first.",
    access: "admin",
    errors: [...reading, "invalid_request", "rate_limit_exceeded"]
  },
  "admin-samples.list": { summary: "List saved samples", access: "admin", errors: reading },
  "admin-samples.replay": {
    summary: "Play a saved sample in a style",
    description: "The reply is the one that a caller of the style would get, from the sample alone.",
    access: "admin",
    errors: [...finding, ...bodies],
    example: { sample_id: "a-sample", style: "chat", stream: false }
  },
  "admin-samples.remove": { summary: "Delete a saved sample", access: "admin", errors: finding },
  "admin-samples.capture": {
    summary: "Send a chat request and save what the upstream replied",
    description: "The reply is the chat completion's own, with `X-Gateway-Sample-*` headers.",
    access: "admin",
    errors: completing,
    example: { message: "Hello", model: "upstream-chat", stream: false }
  },
  "admin-samples.query": {
    summary: "Search the captures for chains to save",
    access: "admin",
    errors: [...reading, "invalid_request"]
  },
  "admin-samples.save": {
    summary: "Save a captured chain as a sample",
    description: "Exactly one of `chain_key`, `capture_id` and `query` says which.",
    access: "admin",
    errors: [...finding, ...bodies],
    example: { query: "Hello" }
  },
  "admin-host.config": { summary: "Read how the configuration is synced", access: "admin", errors: reading },
  "admin-host.sync": {
    summary: "Sync the configuration to the hosting platform",
    access: "admin",
    errors: [...changing, "upstream_error"],
    example: { host_token: "__USE_PRECONFIG__", auto_validate: true }
  },
  "admin-host.status": { summary: "Read whether the configuration is synced", access: "admin", errors: reading },
  "admin-host.compare": {
    summary: "Compare a draft configuration with the synced one",
    access: "admin",
    errors: [...reading, ...bodies],
    example: { config_override: { keys: ["a-business-key"] } }
  },
  "admin-version.version": {
    summary: "Read the running version and the latest release",
    description: "HTTP 200 with `check_error` where the release could not be looked up.",
    access: "admin",
    errors: reading
  },
  "admin-nodes.nodes": {
    summary: "Read which nodes are this gateway, and how this one finds their store",
    description: "`store` is `null` where there is none; while it is lost, `nodes` has this node only.",
    access: "admin",
    errors: reading
  }
}

/** What the groups are, in the order in which the documents show them. */
export const groups: Readonly<Record<string, string>> = {
  chat: "Chat completions",
  responses: "Responses, stored and streamed",
  embeddings: "Embeddings",
  messages: "The messages style; `/v1/messages` and `/messages` are shortcuts of `/msgcompat/v1/messages`",
  generate: "The content-generation style; `/v1` is a compatible path of `/v1beta`",
  models: "Models of the chat-completions style",
  health: "Health probes",
  metrics: "Metrics",
  "admin-auth": "Operators: login",
  "admin-session": "Operators: sessions of browsers",
  "admin-config": "Operators: configuration",
  "admin-settings": "Operators: runtime settings and password",
  "admin-keys": "Operators: business keys",
  "admin-usage": "Operators: usage",
  "admin-accounts": "Operators: accounts and queue",
  "admin-self-test": "Operators: self-test",
  "admin-captures": "Operators: packet captures",
  "admin-samples": "Operators: raw samples",
  "admin-requests": "Operators: records of requests",
  "admin-events": "Operators: live changes",
  "admin-host": "Operators: sync to the hosting platform",
  "admin-version": "Operators: version",
  "admin-nodes": "Operators: nodes that are one gateway"
}

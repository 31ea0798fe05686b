/**
 * What the API documents say of fields whose names do not say it all (spec "Resources and their fields", "Endpoints").
 */

const model = "A native model id, an alias, or a name of a well-known model family."
const stream = "Answer with server-sent events; false by default."
const tools = "Functions that the model may call."
const sampling = "Accepted; its effect depends on the upstream."
const identifier = "Email, mobile or `token:<hash>` of an account."

/** By schema and field. */
export const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ChatRequest: {
    model,
    stream,
    tools,
    messages: "The conversation so far.",
    tool_choice: "`auto` (the default), `none`, `required`, or one function.",
    stop: "Sequences that end the reply before they appear.",
    response_format: "Asks for JSON, or for JSON that a schema describes.",
    temperature: sampling,
    top_p: sampling,
    seed: sampling
  },
  ResponseRequest: {
    model,
    stream,
    tools,
    input: "What the model is asked; or `messages`.",
    messages: "The conversation in the chat style's shape, in the place of `input`.",
    instructions: "Prepended as a system message.",
    tool_choice: "`auto` (the default), `none`, `required`, or one function.",
    store: "False keeps the response out of the store."
  },
  EmbeddingsRequest: {
    model,
    input: "A text, texts, a token array or token arrays.",
    dimensions: "Length of the vectors; 256 by default where the gateway makes them, else the upstream's.",
    encoding_format: "`float` (the default) or `base64`."
  },
  MessagesRequest: {
    model: "A model of the messages style, or a name that the chat style accepts.",
    stream,
    tools: "Tools that the model may use.",
    system: "System prompt.",
    max_tokens: "8192 when left out; not strictly enforced.",
    stop_sequences: "Sequences that end the reply before they appear."
  },
  GenerateRequest: {
    contents: "The conversation so far.",
    systemInstruction: "System prompt.",
    tools: "Function declarations that the model may call."
  },
  EmbedContentRequest: {
    model: "As in the path, or left out.",
    content: "The text, as one part or more.",
    taskType: "Accepted; the vectors are for every task.",
    title: "Accepted; no part of what is embedded.",
    outputDimensionality: "Length of the vector; 256 by default where the gateway makes it, else the upstream's."
  },
  BatchEmbedContentsRequest: { requests: "Contents to embed; their dimensions and model must be the same." },
  Config: {
    env_backed: "The environment is the source, and changes stay in memory.",
    env_source_present: "`GATEWAY_CONFIG_JSON` is set.",
    env_writeback_enabled: "Changes are written to the file although the environment supplied the configuration.",
    config_path: "Path of the config file.",
    accounts: "Without passwords and tokens.",
    msgcompat_mapping: "Native models behind the messages style's fast and slow models."
  },
  Settings: {
    needs_host_sync: "Only a sync to the hosting platform keeps the latest changes.",
    model_aliases: "Names that callers may use, each with the model that it stands for."
  },
  QueueStatus: {
    available: "Accounts with spare capacity.",
    in_use: "Slots that are taken.",
    total: "Configured accounts that are not disabled.",
    recommended_concurrency: "Those multiplied by `max_inflight_per_account`.",
    waiting: "Requests that wait for an account.",
    max_queue_size: "Requests that may wait."
  },
  Account: {
    identifier,
    mobile: "Empty when there is none.",
    token_preview: "The beginning of the token, then `...`."
  },
  AccountItem: {
    identifier,
    test_status: "What the last test or use showed: `ok`, `failed`, or empty.",
    recovery_seconds: "Until the account is tried again."
  },
  AddKeyRequest: {
    key: "The key; or `generate`.",
    generate: "Make a key: `sk-gw-` and 43 characters.",
    expires_at: "RFC 3339 with its zone; from then on the key is refused.",
    models: "Models that the key may use; every one when left out.",
    max_inflight: "Requests that the key may have under way at once.",
    limits: "What the key may use of a window: requests, tokens, or both."
  },
  KeyItem: {
    id: "The first 16 hex digits of the key's SHA-256.",
    preview: "The beginning of the key, then `...`."
  },
  KeyLimit: { window: "UTC; a week begins on Monday." },
  KeyWindow: { requests: "`used` has in it what is reserved for running requests." },
  UsageRow: {
    key: "A key's id, `direct`, `embedded` or `none`.",
    account: "What stands for the account in the log, or `none`.",
    hour: "When requests began, UTC; days older than 90 stand at their hour 00."
  },
  AddAccountRequest: {
    email: "Login identity; or `mobile`.",
    mobile: "Login identity; or `email`.",
    password: "Never returned.",
    token: "An upstream session token; never returned."
  },
  LoginRequest: {
    admin_key: "The admin key, or the admin password once one is set.",
    expire_hours: "Lifetime of the JWT; 24 by default."
  },
  TestAccountRequest: { identifier, model, message: "With a message, a completion is run too." },
  DeleteSessionsRequest: { identifier },
  HostSyncRequest: {
    host_token: "Empty or `__USE_PRECONFIG__`: the environment's.",
    project_id: "Else `HOST_PROJECT_ID`.",
    team_id: "Else `HOST_TEAM_ID`.",
    auto_validate: "Test the accounts first; true by default.",
    save_credentials: "Keep the credentials for the next sync; true by default."
  },
  CaptureSampleRequest: {
    messages: "The conversation; or `message`.",
    message: "The one user turn, without `messages`.",
    sample_id: "Name of the sample's folder; made up when left out."
  },
  HostStatus: {
    synced: "The configuration is the one that was synced last.",
    last_sync_time: "Unix seconds.",
    draft_differs: "The draft differs from what was synced last."
  },
  Version: { check_error: "Why the latest release is not known.", checked_at: "ISO 8601." }
}

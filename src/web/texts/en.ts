/**
 * The console's texts in English. Other languages have the type of this record: a text that is missing does not compile.
 */

import type { DriverName } from "../../api.ts"
import { adviceTexts, causeNames } from "./advice.ts"

/** A limit of a key with what is used of it. */
interface UsedLimit {
  readonly kind: string
  readonly window: string
  readonly used: number | string
  readonly limit: number | string
}

const separated = (n: number | string): string => typeof n === "string" ? n : n.toLocaleString("en-GB")

const count = (n: number, one: string, many: string): string => `${separated(n)} ${n === 1 ? one : many}`

/** Words that several pages use. */
const words = {
  account: "Account",
  actions: "Actions",
  conversation: "Conversation",
  costIn: (currency: string) => `Cost in ${currency}`,
  copied: (name: string) => `${name} was copied.`,
  copy: "Copy",
  delete: "Delete",
  deleted: (name: string) => `${name} was deleted.`,
  duration: "Duration",
  frame: "Frame",
  key: "Key",
  message: "Message",
  model: "Model",
  note: "Note",
  reload: "Reload",
  requests: "Requests",
  save: "Save",
  show: "Show",
  state: "State",
  status: "Status",
  statusIs: (status: number) => `Status ${status}`,
  style: "API",
  time: "Time",
  tokens: "Tokens",
  upstream: "Upstream"
}

const styleNames: Readonly<Record<string, string>> = {
  chat: "Chat Completions",
  responses: "Responses",
  embeddings: "Embeddings",
  carried: "Passed through",
  messages: "Messages",
  generate: "Gemini"
}

/** Names of styles for narrow columns. */
const shortStyleNames: Readonly<Record<string, string>> = {
  chat: "Chat",
  responses: "Responses",
  embeddings: "Embeddings",
  carried: "Passed",
  messages: "Messages",
  generate: "Gemini"
}

const outcomeNames: Readonly<Record<string, string>> = {
  open: "Open",
  ok: "OK",
  failed: "Failed",
  cancelled: "Cancelled"
}

const stateNames: Readonly<Record<string, string>> = {
  queued: "Waiting for an account",
  upstream: "Waiting for the upstream",
  streaming: "Streaming",
  done: "Done"
}

/** Why a line of a batch was refused. Other reasons are shown as the gateway sends them. */
const lineDetails: Readonly<Record<string, string>> = {
  duplicate: "Already there",
  "unknown account": "No such account",
  "not understood": "Not understood",
  password: "Password or token is missing",
  mobile: "Not a mobile number",
  note: "The note is too long",
  email: "Email, mobile or token is missing"
}

/** The APIs of upstreams. */
const driverNames: Readonly<Record<DriverName, string>> = {
  embedded: "Built-in upstream",
  session: "Session",
  openai: "OpenAI-compatible",
  responses: "OpenAI Responses",
  messages: "Anthropic Messages",
  generate: "Gemini"
}

const roleNames: Readonly<Record<string, string>> = {
  system: "System",
  developer: "Developer",
  user: "User",
  assistant: "Assistant",
  tool: "Tool result"
}

const batchWords = { enable: "enabled", disable: "disabled", delete: "deleted" } as const

/** Names of the configuration's groups. */
const groupNames: Readonly<Record<string, string>> = {
  admin: "Admin sessions",
  runtime: "Pool and limits",
  compat: "Compatibility",
  responses: "Stored responses",
  embeddings: "Embeddings",
  auto_delete: "Session clean-up",
  msgcompat_mapping: "Messages API models",
  model_aliases: "Model aliases",
  captures: "Captures",
  requests: "Request records",
  limits: "Size limits",
  usage: "Usage"
}

const cacheNames: Readonly<Record<string, string>> = {
  hit: "Hit",
  partial: "Partly read",
  miss: "Missed",
  none: "Nothing expected",
  first_turn: "First turn",
  not_reported: "Not counted by the server",
  too_small: "Prompt too short",
  moved: "Another account answered",
  expired: "Expired",
  changed: "Earlier part changed",
  not_kept: "No longer kept"
}

/** Percentiles of requests. */
const percentiles = {
  first_event_p50_ms: "First p50",
  first_event_p95_ms: "First p95",
  duration_p95_ms: "Duration p95",
  queue_p95_ms: "Wait p95",
  tokens_per_second_p50: "Tokens/s p50"
}

/** Keys of usage that are not gateway keys. */
const specialKeys: Readonly<Record<string, string>> = {
  direct: "direct tokens and unknown keys",
  embedded: "the embedding app",
  none: "no valid key"
}

/** Names of the settings that can be changed here, by their path in the configuration. */
const settingNames: Readonly<Record<string, string>> = {
  "runtime.account_max_inflight": "Requests per account",
  "runtime.account_max_queue": "Queue length",
  "runtime.global_max_inflight": "Requests over all accounts",
  "runtime.token_refresh_interval_hours": "Hours between logins",
  "runtime.key_max_inflight": "Requests per key",
  "runtime.sticky": "Keep conversations on one account",
  "compat.wide_input_strict_output": "Accept messages in the Responses API",
  "compat.strip_reference_markers": "Remove reference markers",
  "compat.family_models": "Accept names of well-known models",
  "responses.store_ttl_seconds": "Response retention (seconds)",
  "embeddings.provider": "Embeddings provider",
  "auto_delete.mode": "Upstream sessions to delete",
  "msgcompat_mapping.fast": "Fast model",
  "msgcompat_mapping.slow": "Slow model",
  model_aliases: "Aliases",
  "admin.jwt_expire_hours": "Session length (hours)",
  "captures.enabled": "Capture upstream traffic",
  "captures.limit": "Captures to keep",
  "captures.max_body_bytes": "Size of a captured body",
  "requests.enabled": "Record requests",
  "requests.bodies": "Record bodies",
  "requests.limit": "Records to keep",
  "requests.max_body_bytes": "Size of a recorded body",
  "requests.max_total_bytes": "Size of all records"
}

/** Names of the fields of an upstream, by their path, and of choices behind the path of theirs. */
const upstreamFields: Readonly<Record<string, string>> = {
  driver: "API",
  base_url: "Base URL",
  models: "Models, one per line",
  headers: "Headers, one per line",
  proxy: "Proxy",
  "tls.ca": "Trusted certificates",
  "tls.cert": "Client certificate",
  "tls.key": "Key of the client certificate",
  "tls.server_name": "Server name",
  max_inflight: "Concurrent requests",
  account_max_inflight: "Concurrent requests per account",
  account_max_queue: "Waiting requests",
  "timeouts.connect": "Connect timeout (s)",
  "timeouts.first_byte": "First-byte timeout (s)",
  "timeouts.silence": "Idle timeout (s)",
  api: "Completions API",
  "api.chat": "Chat Completions",
  "api.responses": "Responses",
  "api.auto": "Same as the request",
  tools: "Tools",
  "tools.native": "Sent as API tools",
  "tools.functions": "Sent as functions only",
  "tools.prompt": "Described in the prompt"
}

/** Names of the fields of a price. */
const priceFields: Readonly<Record<string, string>> = {
  input: "Input per 1M",
  cached_input: "Cached per 1M",
  output: "Output per 1M",
  per_request: "Per request",
  cache_write: "Cache write, 5 min, per 1M",
  cache_write_1h: "Cache write, 1 h, per 1M",
  reasoning: "Reasoning per 1M",
  audio_input: "Audio input per 1M",
  audio_cached_input: "Cached audio per 1M",
  audio_output: "Audio output per 1M",
  image_input: "Image input per 1M",
  image_output: "Image output per 1M",
  per_image: "Per image",
  per_input_image: "Per input image",
  per_second: "Per second",
  per_character: "Per character",
  per_query: "Per query",
  per_page: "Per page"
}

/** Names of the fields of a route, and of choices. */
const routeFields: Readonly<Record<string, string>> = {
  spread: "Target selection",
  "spread.order": "First with a free slot",
  "spread.even": "Most free slots",
  "spread.weighted": "Each by its weight",
  wait: "Wait for the first target (s)",
  sticky: "Conversations",
  "sticky.false": "Any account",
  "sticky.auto": "Prefer the last account at servers",
  "sticky.true": "Prefer the last account",
  "sticky.target": "Prefer the last target",
  also_on: "Also fail over on",
  "also_on.context_length": "Context too long",
  "also_on.content_filter": "Content filter"
}

/** Names of the fields of a key. */
const keyFields: Readonly<Record<string, string>> = {
  name: "Name",
  label: "Label",
  note: "Note",
  disabled: "Disabled",
  expires_at: "Expires",
  models: "Models, one per line",
  max_inflight: "Concurrent requests",
  class: "Class",
  "class.interactive": "Interactive",
  "class.background": "Background: leaves what upstreams reserve"
}

/** Names of the fields of a token, and of choices. */
const webhookFields: Readonly<Record<string, string>> = {
  name: "Name",
  url: "URL",
  secret: "Secret",
  secret_previous: "Previous secret",
  headers: "Headers",
  events: "Events"
}

const tokenFields: Readonly<Record<string, string>> = {
  name: "Name",
  role: "Role",
  "role.viewer": "Viewer",
  "role.admin": "Admin",
  expires_at: "Expires"
}

/** What limits count. */
const limitKinds: Readonly<Record<string, string>> = {
  requests: "Requests",
  tokens: "Tokens",
  cost: "Cost",
  strict: "Strict",
  fallback: "Fallback"
}

/** The windows of limits. */
const keyWindows: Readonly<Record<string, string>> = {
  minute: "per minute",
  hour: "per hour",
  day: "per day",
  week: "per week",
  month: "per month"
}

export const en = {
  common: {
    ...words,
    product: "Model Gateway",
    sortBy: "Sort by",
    skip: "Skip to content",
    main: "Main",
    menu: "Menu",
    language: "Language",
    theme: "Theme",
    themes: { system: "System", light: "Light", dark: "Dark" },
    signOut: "Sign out",
    connection: "Connection",
    connections: { connecting: "Connecting", live: "Live", part: "Live in part", reconnecting: "Reconnecting" },
    result: "Result",
    dismiss: "Dismiss",
    pages: {
      overview: "Overview",
      requests: "Requests",
      playground: "Playground",
      keys: "Keys",
      models: "Models",
      accounts: "Accounts",
      upstreams: "Upstreams",
      routes: "Routes",
      settings: "Settings",
      webhooks: "Webhooks",
      usage: "Usage",
      sessions: "Sessions",
      samples: "Samples",
      transfer: "Import and export",
      changes: "Changes",
      about: "About"
    },
    zone: "Times",
    localZone: (name: string) => `Local (${name})`,
    staleness: "Age of what is shown",
    asOf: (time: string) => `Everything here is as of ${time}.`,
    noContact: "The gateway has not answered yet.",
    nextTry: (time: string) => `Trying again in ${time}.`,
    trying: "Trying again…",
    unsaved: "Unsaved changes",
    unsavedAsk: "Leaving this page discards the changes that are not saved.",
    stay: "Stay",
    leave: "Discard and leave",
    undo: "Undo",
    andMore: (n: number) => `and ${separated(n)} more`,
    typeToConfirm: (word: string) => `Type ${word} to confirm`,
    help: "Help",
    goTo: "Go to…",
    toFilter: "Go to the filter of the page",
    toPage: (page: string) => `Go to ${page}`,
    keysOf: "Keys of this page",
    goToHint: "Page, key, model, account or request id",
    nothingFound: "Nothing found.",
    place: "Page",
    request: "Request",
    heldBack: (n: number) => `${count(n, "account needs", "accounts need")} attention`,
    leftOut: (n: number) => `${count(n, "upstream needs", "upstreams need")} attention`,
    nearLimits: (n: number) => `${count(n, "key is", "keys are")} near a limit`,
    loading: "Loading…",
    again: "Try again",
    cancel: "Cancel",
    close: "Close",
    cannotCopy: "The browser does not allow the page to copy. Select the text and copy it yourself.",
    none: "none",
    yes: "yes",
    no: "no",
    of: (part: string, whole: string) => `${part} of ${whole}`,
    actionOn: (action: string, name: string) => `${action} ${name}`,
    deleteAsk: "This cannot be undone.",
    locked: (file: string) => `The configuration is locked: change ${file}.`,
    notLasting:
      "Changes are lost when the process ends: the configuration comes from the environment and is not written back.",
    page: (page: number, pages: number) => `Page ${page} of ${pages}`,
    previous: "Previous page",
    next: "Next page",
    changes: (n: number) => count(n, "change", "changes"),
    shown: (from: number, to: number, of: number) => `${from}–${to} of ${of}`
  },
  failures: {
    unreachable: "The gateway could not be reached.",
    tooLate: "The gateway did not answer within 15 seconds.",
    status: (status: number) => `The gateway answered with status ${status}.`,
    unknown: "Something went wrong."
  },
  signIn: {
    title: "Sign in",
    key: "Admin key or password",
    submit: "Sign in",
    hint: "The gateway prints a generated admin key when it starts.",
    ended: "The session has ended. Sign in again.",
    inMemory: "This page was not opened over https or from this machine, so the sign-in ends with the page."
  },
  overview: {
    ...words,
    lastHour: "Last 60 minutes",
    minutes: "Minutes",
    requestRate: "Requests a minute",
    inHour: (n: number) => `${separated(n)} in the hour`,
    succeeded: "Succeeded",
    failedInHour: (n: number) => `${separated(n)} failed`,
    refusedInHour: (n: number) => `${separated(n)} refused`,
    firstEvent: "First event",
    firstEvents: "First event, p50 · p95",
    onLogScale: "p95 on a log scale",
    costToday: "Cost today",
    tokensToday: "Tokens today",
    today: "Most used today",
    unknownMinute: (since: string) => `Not counted: the gateway started at ${since}.`,
    minuteHint: "Each column is one minute. Hover for values, click for requests.",
    minute: (
      at: string,
      requests: number,
      failed: number,
      left: number,
      p50: string,
      p95: string,
      tokens: number
    ) =>
      `${at}: ${count(requests, "request", "requests")}, ${separated(failed)} failed, ${
        separated(left)
      } cancelled; first event ${p50}, p95 ${p95}; ${count(tokens, "token", "tokens")}`,
    requestsOf: (n: number) => count(n, "request", "requests"),
    okOf: (n: number) => `${separated(n)} OK`,
    failedOf: (n: number) => `${separated(n)} failed`,
    leftOf: (n: number) => `${separated(n)} cancelled`,
    firstEventOf: (p50: string, p95: string) => `first event ${p50}, p95 ${p95}`,
    tokensOf: (n: number) => count(n, "token", "tokens"),
    ok: "OK",
    failed: "Failed",
    left: "Cancelled by client",
    attention: "Needs attention",
    nothing: "Nothing needs attention.",
    kinds: {
      upstreams: "Upstream",
      accounts: "Account",
      keys: "Key",
      requests: "Error",
      settings: "Setting",
      callers: "Clients"
    },
    accountCount: (n: number) => count(n, "account", "accounts"),
    which: "Which ones",
    first: "first",
    hoursOf: (name: string) => `Requests of ${name} in each hour`,
    tryRate: "Attempts/min",
    p95Name: "First, p95",
    day: "Last 24 hours",
    waits: "Waiting",
    warning: "Warning",
    atLimit: "At its limit",
    nearLimit: "Near its limit",
    times: (n: number) => count(n, "time", "times"),
    /** `share` is absent for all. The name follows. */
    mostly: {
      key: (share: string | undefined) => share === undefined ? "· for key" : `· ${share} of them for key`,
      model: (share: string | undefined) => share === undefined ? "· for model" : `· ${share} of them for model`,
      upstream: (share: string | undefined) => share === undefined ? "· at upstream" : `· ${share} of them at upstream`
    },
    lastOne: "last",
    keysLookedAt: (n: string) => `Limits are checked for the first ${n} keys.`,
    pool: "Pool",
    accounts: "Accounts",
    slotsInUse: (used: number, of: number) => `${separated(used)} of ${separated(of)} slots in use`,
    slotsOf: (used: number, of: number) => `${separated(used)} of ${separated(of)} slots`,
    runningNow: (n: number) => `${count(n, "request", "requests")} running`,
    cellHint: "Each cell is one account; the fill shows slots in use.",
    noAccounts: "There are no accounts, so the gateway cannot answer requests.",
    addAccounts: "Add accounts",
    queue: "Queue",
    waitingOf: (waiting: number, of: number) => `${separated(waiting)} of ${separated(of)} waiting`,
    noneWait: "No request is waiting.",
    waited: "Waited",
    wanted: "Requested account",
    any: "any",
    generatedKey:
      "The admin key was generated at startup and changes with the next start. Set GATEWAY_ADMIN_KEY, or set a password in the settings."
  },
  states: {
    ready: "Ready",
    cooling: "Cooling down",
    out: "Out of rotation",
    disabled: "Disabled",
    failed: "Test failed"
  },
  /** Why something does not serve, as the gateway says it. */
  reason: (text: string): string => text,
  requests: {
    ...words,
    outcome: "Outcome",
    first: "First",
    answeredBy: "Answered by",
    in: "In",
    out: "Out",
    columns: "Columns",
    extras: {
      style: words.style,
      finish: "Finish",
      tries: "Attempts",
      rate: "Tokens/s",
      wait: "Wait",
      total: "Tokens"
    },
    histogram: (n: string, failed: string, from: string, to: string) =>
      `${n} requests from ${from} to ${to}, ${failed} of them failed`,
    bucket: (time: string, n: string, failed: string, p95: string | undefined) =>
      [time, `${n} requests, ${failed} failed`, ...p95 === undefined ? [] : [`p95 ${p95}`]].join("\n"),
    dragHint: "Drag over the bars to choose a range.",
    styles: (name: string) => styleNames[name] ?? name,
    shortStyles: (name: string) => shortStyleNames[name] ?? name,
    outcomes: (name: string) => outcomeNames[name] ?? name,
    states: (name: string) => stateNames[name] ?? name,
    /** Keys that are no entries of the list of keys. */
    keyNames: (id: string) => id === "direct" ? "Direct token or unknown key" : id,
    keyId: (name: string) => `the id of ${name}`,
    filters: "Filters",
    filtersUsed: (n: number) => n === 0 ? "Filters" : `Filters (${n})`,
    facets: {
      outcome: "Outcome",
      code: "Error",
      model: "Model",
      key: "Key",
      account: "Account",
      upstream: "Upstream",
      style: "API",
      app: "App",
      session: "Session",
      prompt_cache: "Prompt cache",
      slow: "Slow"
    },
    chosen: (name: string, value: string) => `${name}: ${value}`,
    contains: (name: string) => `${name} contains`,
    containing: (part: string) => `contains “${part}”`,
    slowerThan: (time: string) => `${time} or more`,
    removeFilter: (name: string) => `Remove the filter ${name}`,
    removeAll: "Remove all filters",
    noValues: "No value matches.",
    partialCounts: "The search stopped early: the counts are of the newest requests.",
    ranges: { "15m": "Last 15 minutes", "1h": "Last hour", "24h": "Last 24 hours", "7d": "Last 7 days" },
    between: (from: string, to: string) => to === "" ? `from ${from}` : from === "" ? `until ${to}` : `${from} – ${to}`,
    from: (zone: string) => `From (${zone})`,
    to: (zone: string) => `Until (${zone})`,
    apply: "Apply",
    searchText: "Text in prompt or reply",
    openById: "Open a request by its id",
    compact: "Compact",
    pause: "Pause",
    resume: "Resume",
    fresh: (n: string, more: boolean) => `${n}${more ? "+" : ""} new`,
    searchAgain: "There may be new requests: search again",
    drawer: "Chosen request",
    nextRow: "Next request",
    previousRow: "Previous request",
    closeDrawer: "Close the chosen request",
    drawerKeys: "J and K move, Enter opens the page, Esc closes",
    newest: "Newest",
    newer: "Newer",
    older: "Older",
    position: (from: number, to: number, total: number | undefined) =>
      `${separated(from)}–${separated(to)}${total === undefined ? "" : ` of ${separated(Math.max(to, total))}`}`,
    kept: (n: number, limit: number) => `${count(n, "request", "requests")} kept, at most ${separated(limit)}`,
    empty: "No requests yet. The requests of your clients appear here as they arrive.",
    noneFit: "No request matches. Remove a filter to see more.",
    searchOn: "Nothing found among the newest requests. Select Older to keep searching.",
    nodesMissing: (nodes: string) => `Requests of these nodes are missing: ${nodes}.`,
    switchedOff: "Requests are not recorded: requests.enabled is false."
  },
  inspector: {
    ...words,
    title: (id: string) => `Request ${id}`,
    back: "All requests",
    gone: "This request does not exist or is no longer kept.",
    openInPlayground: "Open in playground",
    clientRequest: "Client request",
    rounds: "Upstream rounds",
    clientReply: "Client reply",
    bill: "Bill",
    unit: "Unit",
    amount: "Amount",
    price: "Price",
    billed: (cost: string, source: string) =>
      source === "server" ? `The server charges ${cost}.` : `The prices make ${cost}.`,
    byPrices: (cost: string) => `By the prices it would be ${cost}.`,
    byServer: (cost: string) => `The server itself says ${cost}.`,
    unpricedUnits: (units: string) => `Without a price: ${units}.`,
    timeLine: "Timeline",
    frames: "Frames",
    upstreamFrames: "Upstream frames",
    clientFrames: "Client frames",
    target: "Target",
    app: "App",
    session: "Session",
    agent: "Agent",
    answered: "Answered",
    trying: "Waiting for the upstream",
    given: "Given up",
    failed: "Failed",
    failedLater: "Failed later",
    causes: (name: string) => causeNames[name] ?? name,
    outcomes: (name: string) => outcomeNames[name] ?? name,
    advice: (name: string): string | undefined => adviceTexts[name],
    whatHappened: "What happened",
    happened: {
      failed: "The request failed.",
      answered: (time: string, account: string) => `Answered in ${time}${account === "" ? "" : ` by ${account}`}.`,
      cut: (time: string, _account: string) => `Answered in ${time}, cut at a limit on the length.`,
      filtered: (time: string, _account: string) => `A content filter ended the reply after ${time}.`,
      left: (time: string, _account: string) => `The client left after ${time}, during the reply.`,
      leftEarly: (time: string, _account: string) => `The client left after ${time}, before the reply began.`
    },
    running: {
      queued: "Waiting for an account for",
      upstream: "Waiting for the upstream; running for",
      streaming: "Streaming for"
    },
    atFault: (who: string) => `At fault: ${who}`,
    faults: { caller: "the client", gateway: "the gateway", upstream: "the upstream", account: "the account" },
    tried: "Tried",
    excluded: (targets: string) => `Left out: ${targets}`,
    exclusions: (reason: string) => reason.replaceAll("_", " "),
    openAccount: "Open the account",
    openKey: "Open the key",
    gateway: "Gateway",
    fromUpstream: "From the upstream",
    toClient: "To the client",
    framesOf: (name: string) => `${name}: frames over time`,
    spans: { queue: "Queue", try: "Waiting for the first event", stream: "Stream", gateway: "Gateway" },
    spanIs: (what: string, place: number | undefined, outcome: string, from: string, to: string, length: string) =>
      `${place === undefined ? "" : `Attempt ${place}: `}${what}${
        outcome === "" ? "" : `, ${outcome}`
      }. ${from} to ${to}, ${length}`,
    binIs: (from: string, to: string, frames: number, rate: string | undefined) =>
      `${from} to ${to}: ${count(frames, "frame", "frames")}${rate === undefined ? "" : `, about ${rate} tokens/s`}`,
    gaps: "Gaps",
    gapKinds: {
      silence: "No frame from the upstream",
      between: "Between two attempts",
      behind: "The client receives the rest"
    },
    gapIs: (what: string, length: string, from: string) => `${what} for ${length}, from ${from}`,
    serverTimingIs: (value: string) => `Server-Timing, at the first byte: ${value}`,
    adds: "Adds",
    roundShort: "Round",
    partKinds: {
      text: "text",
      reasoning: "reasoning",
      call: "call",
      arguments: "arguments",
      finish: "end",
      usage: "tokens",
      error: "error"
    },
    following: "following",
    first: "First",
    last: "Last",
    noFrames: "No frames.",
    asText: "Text",
    asJson: "JSON",
    shownAs: "Shown as",
    reply: "Reply",
    roles: (name: string) => roleNames[name] ?? name,
    reasoningOf: (n: number) => `Reasoning, ${count(n, "character", "characters")}`,
    calls: "Calls",
    emptyReply: "The reply has no text.",
    notEnded: "The end of the reply is missing: it was cut off, or is longer than the record keeps.",
    goesOn: "Still streaming.",
    earlierTurns: (n: number) => `Show ${count(n, "earlier turn", "earlier turns")}`,
    showAll: (n: number) => `Show all ${count(n, "character", "characters")}`,
    lastTurns: (n: number, of: number) => `The last ${n} of ${separated(of)} turns. Copy and JSON include every turn.`,
    asUpstream: "As the upstream wrote it",
    asUpstreamHint: "Struck out: removed by the gateway. Underlined: added.",
    replyTruncated: "The reply is longer than is kept: this is its beginning.",
    notKept: "Not kept.",
    summary: "Summary",
    id: "Request id",
    keyless: (key: string) =>
      key === "direct"
        ? "Direct tokens and unknown keys"
        : key === "none"
        ? "No valid key"
        : key === "embedded"
        ? "Embedded"
        : key,
    nameless: "Key without a name",
    promptTokens: "Prompt tokens",
    completionTokens: "Completion tokens",
    reasoningTokens: (n: string) => `${n} of them reasoning`,
    rate: "Speed",
    perSecond: (n: string) => `${n} tokens/s`,
    cost: "Cost",
    end: "Ended",
    node: "Node",
    notDecoded: "The request could not be decoded, so there is no conversation.",
    noRounds: "No request was sent to the upstream.",
    round: (n: number, label: string) => `Round ${n}: ${label}`,
    tryIs: (n: number) => `Attempt ${n}`,
    noStatus: "no reply yet",
    sent: "Sent",
    received: "Received",
    framesSent: "Sent to the client",
    body: "Body",
    noBody: "No body.",
    requestHeaders: "Request headers",
    replyHeaders: "Reply headers",
    truncated: "Truncated: more was sent than is kept.",
    shownInPart: (n: number) => `Only the beginning of ${separated(n)} characters is shown.`,
    frameCount: (n: number) => count(n, "frame", "frames"),
    framesAbove: (n: number) => `${count(n, "frame", "frames")}, shown above.`,
    noReply: "Nothing has been sent to the client yet.",
    started: "Started",
    queued: "Waited for an account",
    firstEvent: "First event",
    attempts: "Attempts",
    attemptsOf: (attempts: number, failovers: number) =>
      failovers === 0 ? `${attempts}` : `${attempts}, ${count(failovers, "failover", "failovers")}`,
    ignored: "Fields without effect",
    streamed: "streamed",
    whole: "whole",
    finish: (reason: string) => `ended: ${reason}`,
    bodiesGone: "The bodies are no longer kept: newer requests needed the space."
  },
  promptCache: {
    title: "Prompt cache",
    /** Results, and reasons in two or three words. */
    names: (name: string) => cacheNames[name] ?? name,
    read: (read: string, of: string, isExpected: boolean) =>
      `${read} of ${of} ${isExpected ? "expected" : "prompt"} tokens were read`,
    results: { hit: "Read", partial: "Partly read", miss: "Missed", none: "Nothing was read" },
    unknown: "Unknown",
    sentence: (what: string, why?: string) => why === undefined ? `${what}.` : `${what}: ${why}.`,
    /** Why a turn was no hit. */
    reasons: {
      first_turn: "this is the first turn of the conversation",
      not_reported: "the server does not count cached tokens",
      too_small: "the prompt is shorter than those that the server keeps",
      moved: "another account answered than in the last turn",
      expired: "the last turn was longer ago than the server keeps a prompt",
      changed: "an earlier part of the prompt changed",
      not_kept: "the server no longer had the prompt"
    },
    /** Why another account answered. */
    moved: {
      full: "another account answered, because the last one had no free slot",
      out: "another account answered, because the last one had failed or was out of rotation",
      quota: "another account answered, because the last one was at a limit of its server",
      budget: "another account answered, because the last one had used its budget",
      disabled: "another account answered, because the last one was disabled or removed",
      pinned: "another account answered, because the client named it",
      priority: "another account answered, because it comes before the last one",
      target: "another upstream or model answered than in the last turn"
    },
    expiredAfter: (age: string) => `the last turn was ${age} ago, longer than the server keeps a prompt`,
    systemChanged: "the system prompt changed",
    changed: (at: string, tool: string | undefined) =>
      tool === undefined ? `${at} changed` : `the tool "${tool}" changed`
  },
  nouns: {
    day: "Last 24 hours",
    requests: "Requests",
    tokens: (n: string) => `${n} tokens`,
    errors: "Errors",
    failed: (n: string) => `${n} failed`,
    byHour: "Requests of each hour",
    firstWithin: (time: string) => `first event p95 ${time}`,
    slow: (since: string, p95: string, usual: string) =>
      `Slow since ${since}: 95 of 100 requests take up to ${p95}, and usually ${usual}.`,
    phases: {
      wait: (share: string) => `${share} of their time is the wait for a slot.`,
      first: (share: string) => `${share} of their time passes before the first event.`,
      stream: (share: string) => `${share} of their time is the stream after the first event.`
    },
    slowest: "The slowest of them",
    hour: (time: string, n: string, failed: string) => `${time}: ${n} requests, ${failed} failed`,
    failures: "Last failures",
    noFailures: "None of the kept requests failed.",
    gone: "This does not exist, or no longer.",
    used: "Used",
    access: "How to use it"
  },
  windows: {
    /** What windows of a quota count; the others are named by their length. */
    names: {
      requests: "Requests",
      tokens: "Tokens",
      input_tokens: "Input tokens",
      output_tokens: "Output tokens"
    } as Readonly<Record<string, string>>,
    used: (window: string, model: string | null, share: string) =>
      `${window}${model === null ? "" : ` of ${model}`} ${share}`,
    usedUp: "used up",
    resets: (used: string, time: string) => `${used}, resets ${time}`,
    more: (n: number) => count(n, "more window", "more windows")
  },
  playground: {
    ...words,
    rehearsal: "Rehearsal",
    rehearses: (route: string, without: string, time: string) =>
      `The next request for ${route} is a rehearsal, in which ${without} fails. It is valid for ${time}.`,
    rehearsalOver: "The rehearsal has expired. Start it again at Routes.",
    endRehearsal: "End the rehearsal",
    picture: "Picture",
    addPicture: "Add a picture",
    pictureAdded: "Picture added",
    pictureTooLarge: "The picture has more than 8 MiB.",
    json: "JSON mode",
    temperature: "Temperature",
    maxTokens: "Max tokens",
    byModel: "model default",
    ownTools: "Own tools",
    ownToolsLabel: "Declarations as JSON",
    notTools: "This is not a list of functions, each with a name.",
    retry: "Retry",
    firstAfter: (time: string) => `first event after ${time}`,
    tookWhole: (time: string) => `${time} in all`,
    tokensOf: (prompt: string, completion: string) => `${prompt} + ${completion} tokens`,
    speed: (tokens: string) => `${tokens} tokens/s`,
    system: "System",
    placeholder: "Ask something",
    stream: "Stream",
    tools: "Local tools",
    toolsHint: "get_time, get_weather, add and echo run in this page.",
    send: "Send",
    sendHint: "You can also press Ctrl+Enter.",
    stop: "Stop",
    newConversation: "New conversation",
    code: "Code",
    curl: "curl",
    sdk: "SDK",
    reasoning: "Reasoning",
    frames: "Raw frames",
    noFrames: "Nothing has been received yet.",
    round: "Round",
    inspect: "Inspect the request",
    roles: { user: "You", assistant: "Model" },
    call: "Calls",
    toolResult: (name: string) => `${name} answered`,
    empty: "Send a message: the answer comes through the gateway, exactly as your clients get it.",
    waiting: "Waiting for the reply…",
    thinking: "Thinking…",
    finished: (reason: string) => `Ended: ${reason}`,
    notes: { stopped: "Stopped.", rounds: "Stopped after 8 rounds with tools." },
    noKeys: "There is no key to call the gateway with. Add one first."
  },
  sessions: {
    lead:
      "A session is one run of an agent, as its client names it. The agents that it started stand below it. A session leads to its requests.",
    search: "Search sessions, apps and keys",
    hours: "Hours",
    time: "Time in all",
    empty: "No client has named a session in this time.",
    noneFound: "No session matches.",
    total: (n: number) => count(n, "session", "sessions"),
    cut: (n: number) => `The first ${separated(n)} sessions of this order are looked at.`
  },
  usage: {
    ...words,
    range: "Range",
    ranges: { day: "24 hours", week: "7 days", month: "30 days", quarter: "90 days", year: "1 year" },
    session: "Session",
    agent: "agent",
    groupBy: "Group by",
    groups: {
      hour: "Hour",
      day: "Day",
      key: "Key",
      model: "Model",
      account: "Account",
      style: "API",
      upstream: "Upstream",
      target: "Target",
      app: "App",
      session: "Session",
      agent: "Agent",
      parent: "Started by",
      label: "Label"
    },
    csv: "Download CSV",
    unavailable: "Usage is not available on this gateway.",
    notKept: "Usage is currently kept in memory, and is lost at the next start.",
    thenBy: "Then by",
    bars: "Chart shows",
    splitBy: "Split chart by",
    measures: {
      requests: "Requests",
      failed: "Failed requests",
      tokens: "Tokens",
      cache: "Prompts by cache",
      cost: "Cost",
      ...percentiles
    },
    percentiles,
    timesNotKept: "not kept then",
    legend: "Parts of the chart",
    itsRequests: "Its requests",
    itsPage: "Its page",
    rows: (n: number) => count(n, "row", "rows"),
    fromCache: "From cache",
    cacheNames: { cached: "Cached", written: "Written to the cache", fresh: "Fresh" },
    cacheParts: (part: "cached" | "written" | "fresh", n: string) =>
      `${n} ${part === "written" ? "written to the cache" : part}`,
    missReasons: "Why prompts were not cached",
    missReasonsHint: "Of the requests that are kept.",
    reason: "Reason",
    others: "Others",
    notReached: "not reached",
    specialKeys: (key: string): string | undefined => specialKeys[key],
    asOf: (time: string) => `As of ${time}`,
    zone: (name: string) => `Times and days are in ${name}.`,
    utcDays: (before: string) => `Days before ${before} are in UTC.`,
    drag: "Drag over the chart to choose a range.",
    only: "Only this",
    remove: (name: string) => `Remove the filter ${name}`,
    failed: "Failed",
    failedOf: (n: string, codes: ReadonlyArray<string>) => [`${n} failed`, ...codes].join("\n"),
    left: "Cancelled",
    prompt: "Prompt",
    completion: "Completion",
    cachedOf: (n: string) => `${n} of them cached`,
    reasoningOf: (n: string) => `${n} of them reasoning`,
    cost: "Cost",
    unpriced: (n: number) =>
      `${count(n, "request is", "requests are")} not in the cost: no price is configured for the model.`,
    attempts: "Attempts",
    attemptsEach: (n: string) => `${n} for each request`,
    errors: "Errors",
    code: "Code",
    share: "Of all requests",
    all: "All",
    empty: "There were no requests in this time.",
    cut: (n: number) => `The first ${separated(n)} rows are shown; the downloaded file contains all.`
  },
  backIn: (text: string) => `back in ${text}`,
  accounts: {
    ...words,
    allAccounts: "All accounts",
    lastTest: "Last test",
    windows: "Quota and budgets",
    search: "Search accounts",
    all: "All",
    slots: "Slots",
    lastHour: "Last hour",
    success: "Success",
    lastUsed: "Last used",
    lastError: "Last error",
    never: "never",
    failedOf: (failed: string, all: string) => `${failed} of ${all} attempts of the last hour failed`,
    requestsOf: (id: string) => `Requests of ${id}`,
    testFailedAt: (time: string, message: string | null) =>
      message === null ? `Test failed at ${time}` : `Test failed at ${time}: ${message}`,
    selectColumn: "Select",
    selectPage: "Select this page",
    disable: "Disable",
    enable: "Enable",
    test: "Test",
    organization: "Organization",
    organizationHint: "Accounts of one upstream with the same text can read one another's signed reasoning.",
    markOf: (mark: string, id: string) => `${mark} of ${id}`,
    markSaved: (mark: string, id: string) => `${mark} of ${id} was saved.`,
    clear: "Clear sessions",
    clearOf: (id: string) => `Clear sessions of ${id}`,
    cleared: (id: string) => `The sessions of ${id} were cleared.`,
    clearAsk: (id: string) =>
      `All sessions of ${id} are deleted at its provider, with their conversations, including sessions the gateway did not create. This cannot be undone.`,
    clearRunning: (n: number) =>
      n === 1
        ? "1 request runs on the account now. It may lose its session."
        : `${separated(n)} requests run on the account now. They may lose their sessions.`,
    deleteOne: "Delete",
    deleteAsk: (n: number, running: number) => {
      const [them, use] = n === 1 ? ["it", "the account"] : ["them", "the accounts"]
      const now = running === 0
        ? `No request runs on ${them} now.`
        : `${count(running, "request runs", "requests run")} on ${them} now and ${
          running === 1 ? "finishes" : "finish"
        }.`
      return `${now} New requests no longer use ${use}. This cannot be undone.`
    },
    disabled: (id: string) => `${id} is disabled: it receives no more requests.`,
    enabled: (id: string) => `${id} is enabled.`,
    testAll: "Test all",
    stopTests: "Stop tests",
    tests: "Tests",
    failedTests: "Failed tests",
    failedTestsOf: (n: number) => `${count(n, "account", "accounts")} failed the test`,
    showFailed: "Show them in the list",
    allFailed: (n: number) => `and ${separated(n)} more: show all in the list`,
    selected: (n: number) => `${separated(n)} selected`,
    clearSelection: "Clear selection",
    count: (n: number) => count(n, "account", "accounts"),
    total: (n: number) => count(n, "account", "accounts"),
    empty: "There are no accounts yet. Add some to let the gateway answer.",
    emptyBuiltIn:
      "There are no accounts. The built-in upstream needs no account; add some to use an upstream that signs in.",
    emptyServed: "There are no accounts. The upstreams answer without any.",
    noneFound: "No account matches.",
    batchDone: (action: keyof typeof batchWords, changed: number, failed: number) =>
      `${count(changed, "account", "accounts")} ${batchWords[action]}.${failed > 0 ? ` ${failed} refused.` : ""}`,
    testsSoFar: (done: number, total: number, failed: number) =>
      `${done} of ${total} tested${failed > 0 ? `, ${failed} failed` : ""}`,
    testsDone: (passed: number, failed: number) =>
      `${count(passed + failed, "account", "accounts")} tested: ${passed} passed, ${failed} failed.`,
    testsStopped: (passed: number, failed: number, total: number) =>
      `Stopped. ${passed + failed} of ${total} tested: ${passed} passed, ${failed} failed.`,
    testPassed: (id: string, ms: number, message: string) => `${id} passed in ${ms} ms: ${message}`,
    testFailed: (id: string, message: string) => `${id} failed: ${message}`
  },
  addAccounts: {
    ...words,
    title: "Add accounts",
    field: "Accounts, one per line",
    hint:
      "An email or mobile number and its password, separated by spaces, a tab, ----, a comma, a semicolon, | or a colon; or a token; or JSON. Lines that begin with # are skipped.",
    loginToken: "A login's token is its owner's. The vendor may forbid sharing.",
    preview: "Preview",
    results: "Results",
    line: "Line",
    result: "Result",
    noLines: "The text contains no accounts.",
    willAdd: "Will be added",
    added: "Added",
    details: (detail: string) => lineDetails[detail] ?? detail,
    moreLines: (n: number) => `${count(n, "more line", "more lines")} not shown.`,
    add: (n: number) => `Add ${count(n, "account", "accounts")}`,
    done: (n: number) => `${count(n, "account", "accounts")} added.`
  },
  upstreams: {
    ...words,
    fields: (path: string) => upstreamFields[path],
    allUpstreams: "All upstreams",
    budgets: "Budgets",
    proxy: "Proxy",
    add: "Add upstream",
    edit: "Edit",
    test: "Test",
    enable: "Enable",
    disable: "Disable",
    save: "Save",
    saveAnyway: "Save anyway",
    states: {
      ready: "Ready",
      cooled: "Cooling down",
      disabled: "Disabled",
      noAccount: "No account ready",
      found: "Check"
    },
    drivers: (name: string) => (driverNames as Readonly<Record<string, string>>)[name] ?? name,
    modelCount: (n: number) => count(n, "model", "models"),
    through: (proxy: string) => `through the proxy ${proxy}`,
    probed: "tried by the next request",
    slots: "Slots in use",
    accounts: "Accounts",
    ready: (n: number) => `${n} ready`,
    needsNone: "None needed",
    accountsOf: (name: string, n: number) => `${n} ready: accounts of ${name}`,
    inState: (n: number, state: string) => `${n} ${state.toLowerCase()}`,
    waiting: (n: string) => `${n} waiting`,
    errors: "Errors",
    refused: "Refused",
    ofTries: (n: string) => `of ${n}`,
    speed: "First event",
    p95: (time: string) => `p95 ${time}`,
    figuresHint: "Errors and times are from the attempts of the last five minutes: median and 95th percentile.",
    empty: "No upstream is configured.",
    disabled: (name: string) => `${name} is disabled: it receives no more requests.`,
    enabled: (name: string) => `${name} is enabled.`,
    testPassed: (name: string, time: string) => `${name} answered in ${time}.`,
    testFailed: (name: string, message: string) => `${name} failed: ${message}`,
    passed: (time: string) => `The upstream answered in ${time}.`,
    failed: (message: string) => `The test failed: ${message}`,
    added: (name: string) => `${name} was added.`,
    addedWithout: (name: string, reason: string) => `${name} was added, but its account was refused: ${reason}`,
    changed: (name: string) => `${name} was changed.`,
    name: "Name",
    apiKey: "API key",
    noKey: "empty for a server without keys",
    identity: "Email or mobile number",
    password: "Password",
    modelsHint: "The name for clients, =, and the server's name. Other fields follow as JSON: {\"images\": false}.",
    serverModels: "Models of the server",
    searchModels: "Search models",
    noModels: "No model matches.",
    moreModels: (n: number) => `${count(n, "more model", "more models")} not shown.`,
    way: "Headers, proxy and TLS",
    secretsHint: "*** keeps a secret. direct uses no proxy; an empty field uses the environment's.",
    limits: "Limits and tools",
    byDefault: "Default",
    deleteAsk: "Running requests finish; new requests no longer use the upstream. This cannot be undone.",
    deleteRunning: (n: number) => `${count(n, "request runs", "requests run")} on it now.`,
    accountsGo: (n: number) => `${count(n, "account is", "accounts are")} deleted with it:`,
    search: "Search upstreams",
    noneFound: "No upstream matches.",
    loses: (route: string) => `The route ${route} has no other target and is deleted.`,
    keeps: (route: string) => `The route ${route} keeps its other targets.`,
    deleteAll: "Delete with all of this",
    deletedWith: (name: string, accounts: number, targets: number, routes: ReadonlyArray<string>) => {
      const gone = [
        ...(accounts === 0 ? [] : [count(accounts, "account", "accounts")]),
        ...(targets === 0 ? [] : [count(targets, "target", "targets")]),
        ...(routes.length === 0 ? [] : [`${routes.length === 1 ? "the route" : "the routes"} ${routes.join(", ")}`])
      ]
      return gone.length === 0 ? `${name} was deleted.` : `${name} was deleted with ${gone.join(" and ")}.`
    }
  },
  models: {
    ...words,
    fields: (path: string) => priceFields[path],
    lead: "Names that clients may use. Prices are of a million tokens; a missing one counts as 0.",
    prices: { input: "In", cached_input: "Cached", output: "Out" },
    allModels: "All models",
    kind: "Kind",
    everyKind: "All",
    kinds: { model: "Model", route: "Route", alias: "Alias", family: "Family" },
    standsFor: (kind: string, name: string) => `${kind} of ${name}`,
    price: "Price per 1M",
    priceIn: (currency: string) => `Price per 1M in ${currency}`,
    priceParts: {
      input: (n: string) => `${n} in`,
      cached_input: (n: string) => `${n} cached`,
      output: (n: string) => `${n} out`,
      per_request: (n: string) => `${n} a request`
    },
    missingOf: (fields: string) => `${fields}: missing`,
    needed: "a budget needs a price",
    neededHint: "A key with a cost limit may ask for this model, and such requests are refused.",
    since: (day: string) => `since ${day}`,
    nextPrice: (day: string, price: string) => `from ${day}: ${price}`,
    byDate: "Prices by their dates",
    from: "From",
    always: "from the beginning",
    counts: "counts now",
    setPriceOf: (name: string) => `Set the price of ${name}`,
    cost: "Cost",
    p95: "First, p95",
    ofDay: "Requests, cost and the time to the first event are of the last 24 hours.",
    target: "Answered by",
    serverModel: (name: string) => `At the server: ${name}`,
    currency: (code: string) => `Prices are in ${code}.`,
    entry: "Price of",
    listPrice: (day: string) => `List price of ${day}`,
    priceOf: (name: string) => `Price of ${name}`,
    missing: "missing",
    setPrice: "Set price",
    search: "Search models",
    onlyMissing: (n: number) => `Only models with a missing price (${separated(n)})`,
    empty: "There are no models.",
    noneFound: "No model matches.",
    total: (n: number) => count(n, "row", "rows"),
    unused: "Prices that no model uses",
    moreUnused: (n: number) => `${count(n, "more price", "more prices")} not shown.`,
    hint: "Decimal numbers with at most 9 decimals. Empty fields are left out.",
    dated: "This entry has prices by their dates. The configuration file changes them.",
    otherUnits: "Other units",
    deletePrice: "Delete price",
    noPrice: "At least one price is needed.",
    saved: (name: string) => `The price of ${name} was changed.`,
    changedMeanwhile: "The price was changed meanwhile, so nothing was saved. Open it again.",
    known: {
      title: "What is known",
      displayName: "Shown as",
      facts: {
        context_window: "Window",
        max_output_tokens: "Longest reply",
        input: "Reads",
        output: "Writes",
        efforts: "Efforts",
        tools: "Tools"
      },
      sources: {
        entry: "of the configuration",
        server: "of the server",
        model_facts: "of model_facts",
        known: "well known",
        targets: "of all targets"
      },
      hidden: "not in lists",
      none: "none",
      yes: "yes",
      no: "no"
    }
  },
  routes: {
    ...words,
    fields: (path: string) => routeFields[path],
    lead:
      "A route is a model that clients ask for, with its targets in order. A model without a route is served by every upstream that lists it.",
    route: "Route",
    add: "Add route",
    rehearse: "Rehearse",
    rehearseHint:
      "One request of the playground goes to this route as if the chosen targets had no connection. Nothing is sent to them, and other requests notice nothing.",
    failing: "Targets that fail",
    noneFails: "Choose at least one target that fails.",
    toPlayground: "Open the playground",
    edit: "Edit",
    search: "Search routes",
    targets: "Targets",
    now: "Now",
    empty: "There are no routes.",
    noneFound: "No route matches.",
    implied: "Models of several upstreams without a route",
    moreModels: (n: number) => `${count(n, "more model", "more models")} not shown.`,
    total: (n: number) => count(n, "route", "routes"),
    name: "Name",
    noName: "The route needs a name.",
    newTarget: "New target",
    targetHint: "upstream/model",
    addTarget: "Add target",
    noTargets: "Add the first target below.",
    twice: (target: string) => `${target} is already a target.`,
    moveUp: (target: string) => `Move ${target} up`,
    moveDown: (target: string) => `Move ${target} down`,
    remove: (target: string) => `Remove ${target}`,
    moves: "Order of targets",
    movedTo: (target: string, place: number, of: number) => `${target} is target ${place} of ${of} now.`,
    atEnd: (target: string, place: number, of: number) => `${target} stays target ${place} of ${of}.`,
    removed: (target: string) => `${target} was removed.`,
    spreadOf: (name: string) => `Selection: ${name}`,
    stickyOf: (name: string) => `Conversations: ${name}`,
    waits: (seconds: string) => `Waits ${seconds} s for the first target`,
    alsoOnOf: (names: string) => `Also fails over on: ${names}`,
    taken: "Next request",
    free: (free: string, of: string) => `${free} of ${of} slots free`,
    weightIs: (weight: string) => `weight ${weight}`,
    shareOfHour: (share: string, n: string) => `${share} of the last hour (${n})`,
    weightOf: (target: string) => `Weight of ${target}`,
    hindrances: {
      unknown: "no such upstream",
      noModel: "the upstream does not have this model",
      full: "full"
    },
    reasons: {
      first: (target: string) => `Uses ${target}: the first target with a free slot.`,
      even: (target: string) => `Uses ${target}: the target with the largest share of free slots.`,
      weighted: () => "Targets take turns by their weights.",
      probe: (target: string) => `Tries ${target}: its cooling time is over.`,
      cooled: (target: string) => `Tries ${target} although it is cooling down: no other target can serve.`,
      holds: (target: string, wait: string) => `Requests wait up to ${wait} s for ${target}, then for every target.`,
      waits: () => "Requests wait for the first slot of any target.",
      none: () => "Requests are refused: no target can serve."
    },
    exists: (name: string) => `The route ${name} already exists.`,
    changedMeanwhile: "The route was changed meanwhile, so nothing was saved. Open it again.",
    added: (name: string) => `The route ${name} was added.`,
    changed: (name: string) => `The route ${name} was changed.`,
    deleted: (name: string) => `The route ${name} was deleted.`,
    deleteAsk: (targets: string) =>
      `Its targets are ${targets}. Upstreams that list a model of this name still serve it. This cannot be undone.`
  },
  keys: {
    ...words,
    fields: (path: string) => keyFields[path],
    newKey: "New key",
    create: "Create key",
    added: (name: string) => `${name} was added.`,
    nameHint: "Who or what uses it",
    more: "Note, concurrent requests, own key",
    ownKey: "Own key",
    generatedHint: "empty for a generated key",
    hide: "Hide",
    edit: "Edit",
    enable: "Enable",
    disable: "Disable",
    disabledNow: (name: string) => `${name} is disabled: its requests are rejected.`,
    enabledNow: (name: string) => `${name} is enabled.`,
    changed: (name: string) => `${name} was changed.`,
    everyModel: "All models",
    searchModels: "Search models",
    withoutChoice: "Without a choice, all models.",
    chosenModels: (n: number) => `${count(n, "model", "models")} chosen.`,
    otherNames: "Other names",
    neverEnds: "Never",
    endsIn: (days: number) => `In ${days} days`,
    endsAt: "At a time",
    addLimit: "Add a limit",
    atMost: "At most",
    followed: "then",
    refuse: "refuse",
    useModel: (model: string) => `use ${model}`,
    strictly: "Count ahead what requests may use",
    countedOf: (name: string) => `What is limited: ${name}`,
    timeOf: (name: string) => `Time of the limit: ${name}`,
    limits: "Limits",
    noLimits: "No limits",
    kindOf: (kind: string) => limitKinds[kind] ?? kind,
    windowOf: (window: string) => keyWindows[window] ?? window,
    limitOf: (kind: string, window: string) => `${limitKinds[kind] ?? kind}, ${window}`,
    /** Of money, the amounts have their currency. */
    used: ({ kind, window }: UsedLimit, used: string, limit: string) =>
      `${used} of ${limit}${kind === "cost" ? "" : ` ${(limitKinds[kind] ?? kind).toLowerCase()}`}/${window}`,
    rulesOf: (window: string, isStrict: boolean, fallback: string | null) =>
      `${keyWindows[window] ?? window}: ${
        [...isStrict ? ["strict"] : [], ...fallback === null ? [] : [`then ${fallback}`]].join(", ")
      }`,
    background: "Background",
    states: { active: "Active", disabled: "Disabled", expired: "Expired" },
    all: "All",
    search: "Search keys",
    allKeys: "All keys",
    moreLimits: (n: number) => count(n, "more limit", "more limits"),
    modelsOf: "Models",
    noneFound: "No key matches.",
    generated: "Generated at startup. It becomes invalid when a key is added.",
    until: (time: string) => `until ${time}`,
    lastUsed: "Last used",
    neverUsed: "It has not been used.",
    created: "Created",
    inFlight: "Running",
    today: "Requests today",
    costToday: (currency: string) => `Today, ${currency}`,
    idOf: (id: string) => `Id ${id}`,
    ofMost: (n: string, of: string) => `${n} of ${of}`,
    workOf: (running: number, today: number) =>
      `${count(running, "request", "requests")} running, ${separated(today)} today.`,
    total: (n: number) => count(n, "key", "keys"),
    deleteAsk: "Requests with this key are rejected from now on. This cannot be undone.",
    empty: "There are no keys, so the gateway refuses requests to its pool.",
    firstKey: "Create the first key",
    ready: (name: string) => `${name} is ready`,
    copyNow:
      "Copy the key now and give it to its user: the list shows only its first and last characters. Only operators can see it again.",
    theKey: "the key",
    address: "Address",
    clients: "Clients",
    saveAs: (file: string) => `Save it as ${file}.`,
    firstRequest: "First request",
    waiting: "Waiting for its first request…",
    arrived: "The first request has arrived:",
    works: "Works: request",
    failed: (code: string) => `The first request failed${code === "" ? "" : ` with ${code}`}: request`,
    firstRun: "Send the first request",
    firstRunLead:
      "The gateway runs. Clients use this key, which was generated at startup and is valid until a key is added."
  },
  settings: {
    form: "Settings",
    lead: "Changes take effect immediately, including for running traffic. An empty field takes its default.",
    groups: (name: string) => groupNames[name] ?? name,
    search: "Find a setting",
    noneFound: "No setting matches.",
    warnings: "Warnings",
    warningsHint:
      "These settings are valid and do not do what they say. Each line begins with the setting and says what helps.",
    names: (path: string) => settingNames[path],
    effective: (value: string) => `In effect: ${value}`,
    byDefault: (value: string) => `${value} (default)`,
    outOfRange: (from: string, to: string) => `Must be between ${from} and ${to}.`,
    notANumber: "Must be a number.",
    about: "About",
    range: (from: string, to: string) => `${from} to ${to}`,
    changed: "(changed)",
    notSet: "Not set",
    mapPlaceholder: "name = value",
    review: "Review changes",
    changes: "Changes",
    field: "Field",
    now: "Now",
    new: "New",
    noChanges: "There are no changes.",
    discard: "Discard",
    changeCount: (n: number) => `${count(n, "change", "changes")} not saved yet.`,
    saved: "The settings were saved.",
    refused: "The form contains errors.",
    faultyLines: (lines: string) => `Not in the form name = value: line ${lines}.`,
    changedMeanwhile:
      "The configuration was changed meanwhile, so nothing was saved. The form now shows the current configuration with your changes. Review them again.",
    fromFile: "Set in the configuration file",
    fromFileHint: "Change these settings in the file; the gateway applies them without a restart.",
    configured: "Configured",
    inEffect: "In effect",
    password: "Password",
    presentPassword: "Current admin key or password",
    newPassword: "New password",
    changePassword: "Change password",
    passwordHint:
      "The password replaces the admin key and ends all sessions, including this one. It needs at least 8 characters.",
    passwordChanged: "The password was changed."
  },
  tokens: {
    title: "Tokens for the admin API",
    hint: "For machines, and for people who only look. Each has a name, which the history of changes shows.",
    token: "token",
    newToken: "New token",
    fields: (path: string) => tokenFields[path],
    roleHint: "Viewers can see everything except secrets, exports and request bodies. They cannot change anything.",
    expired: "Expired",
    create: "Create token",
    needsName: "The token needs a name.",
    added: (name: string) => `The token ${name} was created.`,
    copyNow: "Copy the token now: it is not shown again.",
    empty: "There are no tokens.",
    deleteAsk: "Requests with this token are rejected immediately, and its sessions end. This cannot be undone."
  },
  webhooks: {
    fields: (path: string) => webhookFields[path],
    lead:
      "The gateway sends events here: budgets, accounts, pools, upstreams, quotas, prices and the store. State and numbers are of this node.",
    add: "Add webhook",
    edit: "Edit",
    test: "Test",
    allEvents: "all",
    wholeGroup: "These events, and those that a later version adds",
    withoutEvents: "Without a choice, all events.",
    generate: "Generate",
    copySecret: "Copy it for the receiver now: it is not shown again.",
    secretHint: "whsec_ and 24 to 64 bytes in Base64, or ${NAME} for a variable of the environment.",
    state: "State",
    active: "Active",
    gone: "Gone: the receiver answered 410",
    last: "Last delivery",
    never: "none yet",
    noAnswer: "No answer",
    waiting: "Waiting",
    dropped: "Dropped",
    empty: "There are no webhooks.",
    incomplete: "Name, URL and secret are required.",
    exists: (name: string) => `The webhook ${name} already exists.`,
    changedMeanwhile: "The webhook was changed meanwhile. Open it again.",
    added: (name: string) => `The webhook ${name} was added.`,
    changed: (name: string) => `The webhook ${name} was changed.`,
    delivered: (name: string, status: number, ms: number) => `${name}: delivered, HTTP ${status} in ${ms} ms.`,
    notDelivered: (name: string, reason: string) => `${name}: ${reason}.`,
    deleteAsk: "Nothing is sent to it any more, and what waits is dropped."
  },
  samples: {
    ...words,
    lead: "A raw sample contains what the upstream sent, byte for byte. It can be viewed, and replayed in any API.",
    capture: "Capture",
    captured: (id: string) => id === "" ? "The reply was captured." : `The reply was captured as ${id}.`,
    search: "Search captures",
    capturedReplies: "Captured replies",
    asked: "Request",
    answered: "Reply",
    rounds: "Rounds",
    saved: (id: string) => `The sample was saved as ${id}.`,
    noneCaptured: "No replies have been captured yet.",
    noneFound: "No captured reply contains this text.",
    savedSamples: "Saved samples",
    sample: "Sample",
    created: "Saved",
    size: "Size",
    noneSaved: "No samples have been saved yet.",
    deleteAsk: (rounds: number, size: string) =>
      `The sample has ${count(rounds, "round", "rounds")}, ${size}. This cannot be undone.`,
    replay: "Replay",
    replayTitle: (id: string) => `Replay of ${id}`,
    replayFailed: "The sample could not be replayed."
  },
  transfer: {
    ...words,
    export: "Export",
    exportHint: "A backup that contains keys, passwords and configured tokens. Keep it secret.",
    exported: "The configuration was exported.",
    exportedField: "Exported configuration",
    copied: "The configuration was copied.",
    import: "Import",
    importHint: "Keys, accounts and settings are imported all together or not at all. Preview the import first.",
    importField: "Configuration to import",
    mode: "Mode",
    merge: "Merge",
    replace: "Replace",
    preview: "Preview import",
    doImport: "Import",
    notJson: (reason: string) => `This is not JSON: ${reason}`,
    notObject: "This is not a configuration, which is a JSON object.",
    previewOnly: "Nothing has changed yet. The import would do this:",
    changes: "What the import changes",
    part: "List",
    added: "Added",
    removed: "Removed",
    changed: "Changed",
    after: "Afterwards",
    settingsChange: (groups: string) => `Settings that change: ${groups}.`,
    doReplace: "Replace everything",
    replaceAsk: "Replace keys, accounts and settings",
    goes: (keys: number, accounts: number) =>
      `${count(keys, "key", "keys")} and ${
        count(accounts, "account", "accounts")
      } are removed. Requests with these keys are rejected immediately. This cannot be undone; an export made before can be imported again.`,
    replaced: (keys: number, accounts: number, keysNow: number, accountsNow: number) =>
      `${count(keys, "key", "keys")} and ${count(accounts, "account", "accounts")} were removed. There are ${
        count(keysNow, "key", "keys")
      } and ${count(accountsNow, "account", "accounts")} now.`,
    imported: (keys: number, accounts: number) =>
      `${count(keys, "key", "keys")} and ${count(accounts, "account", "accounts")} were imported.`,
    hostSync: "Host sync",
    synced: "The configuration is the same as at the last sync.",
    differs: "The configuration has changed since the last sync.",
    never: "The configuration has never been synced.",
    lastSync: "Last sync",
    project: "Project",
    token: "Token",
    tokenThere: "configured",
    hostHint: "Set HOST_TOKEN and HOST_PROJECT_ID to choose where to sync to.",
    syncNow: "Sync now"
  },
  changes: {
    lead:
      "Changes by the admin API and in the configuration file, newest first. Passwords, tokens and keys are shown as ***.",
    when: "Time",
    who: "Who",
    what: "What",
    kinds: { token: "Token", session: "Session", key: "Admin key", file: "Configuration file", system: "Gateway" },
    from: (address: string) => `from ${address}`,
    node: "Node",
    before: "Before",
    after: "After",
    unset: "not set",
    more: (n: number) => `and ${count(n, "field", "fields")} more`,
    older: "Older",
    newest: "Newest",
    empty: "Nothing has been changed yet.",
    notKept: "Changes are currently kept in memory, and are lost at the next start."
  },
  about: {
    version: "Version",
    running: "Running",
    latest: "Latest release",
    release: "Release",
    unknown: "unknown",
    check: "Check for updates",
    upToDate: "This is the latest release.",
    update: (version: string) => `Version ${version} is available.`,
    checkFailed: (reason: string) => `The latest release could not be looked up: ${reason}`,
    documents: "API documents",
    documentsHint: "The console uses the admin API, so a script can do everything that the console does.",
    docs: "Reference, with requests to try",
    openapi: "OpenAPI document"
  }
}

/** The texts of a language. */
export type Texts = typeof en

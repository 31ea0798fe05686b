/**
 * The console's texts in English. Other languages have the type of this record: a text that is missing does not compile.
 */

import type { DriverName } from "../../api.ts"

/** A limit of a key with what is used of it. */
interface UsedLimit {
  readonly kind: string
  readonly window: string
  readonly used: number | string
  readonly limit: number | string
}

export const separated = (n: number | string): string => typeof n === "string" ? n : n.toLocaleString("en-GB")

export const count = (n: number, one: string, many: string): string => `${separated(n)} ${n === 1 ? one : many}`

/** Words that several pages use. */
export const words = {
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
  vendor: "Cloud",
  "vendor.": "None",
  region: "Region",
  project: "Project",
  resource: "Resource",
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
  schemas: "Strict schemas",
  "schemas.preferred": "First to targets that bind them",
  "schemas.required": "Only to targets that bind them",
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
  note: "Owner or note",
  disabled: "Disabled",
  expires_at: "Expires",
  models: "Models, one per line",
  max_inflight: "Concurrent requests",
  class: "Class",
  "class.interactive": "Interactive",
  "class.background": "Background: leaves what upstreams reserve"
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
    adminKey: "Admin key",
    preferences: "Preferences",
    signedInUntil: (time: string) => `Signed in until ${time}`,
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
    since: (time: string) => `since ${time}`,
    shown: (from: number, to: number, of: number) => `${from}–${to} of ${of}`,
    unpriced: (n: number) =>
      `${count(n, "request is", "requests are")} not in the cost: no price is configured for the model.`
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
    at: (host: string) => `at ${host}`,
    show: "Show",
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
    ofP95: "p95",
    figures: "Figures of the last hour",
    toHourBefore: "to the hour before",
    points: (difference: string) => `${difference} points`,
    stateOfAll: "State of the gateway",
    allWell: (ready: number, all: number) =>
      all === 0 ? "All is well." : `All is well: ${separated(ready)} of ${count(all, "account", "accounts")} ready.`,
    needsYou: (n: number) => `${count(n, "thing needs", "things need")} you:`,
    needs: {
      upstream: (name: string, isAway: boolean) => `${name} ${isAway ? "does not answer" : "needs a look"}`,
      upstreams: (n: number) => `${separated(n)} upstreams need a look`,
      out: (n: number) => `${count(n, "account is", "accounts are")} out of rotation`,
      failed: (n: number) => `${count(n, "account", "accounts")} failed the last test`,
      cooling: (n: number) => `${count(n, "account cools", "accounts cool")} down`,
      keys: (n: number) => `${count(n, "key is", "keys are")} near a limit`,
      errors: (n: number) => count(n, "kind of error", "kinds of errors"),
      warnings: (n: number) => `${count(n, "setting has", "settings have")} a warning`
    },
    listed: (parts: ReadonlyArray<string>) => `${parts.join(", ")}.`,
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
    hourOf: (name: string) => `Attempts of ${name} in the last hour`,
    stepOf: (ago: number, attempts: number, failed: number) =>
      `${ago} to ${ago - 5} min ago: ${count(attempts, "attempt", "attempts")}, ${separated(failed)} failed`,
    ofHour: "Last hour",
    tryRate: "Attempts/min",
    p95Name: "First, p95",
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
    idle: (n: number) => `${separated(n)} idle`,
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
    hour: (time: string, n: string, failed: string, p95: string | undefined) =>
      `${time}: ${n} requests, ${failed} failed${p95 === undefined ? "" : `; 95 of 100 within ${p95}`}`,
    hourHint: "Each column is one hour. Hover for values, click for requests.",
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
  backIn: (text: string) => `back in ${text}`,
  accounts: {
    ...words,
    lastTest: "Last test",
    windows: "Quota and budgets",
    search: "Search accounts",
    all: "All",
    slots: "Slots",
    lastHour: "Last hour",
    success: "Success",
    lastUsed: "Last used",
    lastError: "Last error",
    stateAndError: "State and last error",
    setPassword: "Set password",
    setToken: "Set token",
    newPassword: "New password",
    newToken: "New token",
    secretHint: "The account keeps its note, its place and its settings, and the next request uses it.",
    secretSaved: (id: string) => `${id} has it now, and the next request uses it.`,
    credential: "Credential",
    tokenEnds: "Token ends",
    endsAt: (time: string) => `until ${time}`,
    renewed: "Renewed",
    renewalFailed: "Renewal failed",
    renew: "Renew now",
    renewedNow: (id: string) => `${id} has a new token.`,
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
    empty:
      "An account is a login or a key with which the gateway asks an upstream. Without one it cannot answer requests.",
    emptyBuiltIn:
      "An account is a login or a key with which the gateway asks an upstream. The built-in upstream needs none.",
    emptyServed:
      "An account is a login or a key with which the gateway asks an upstream. These upstreams answer without any.",
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
      away: "Does not answer",
      found: "Models missing"
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
    figuresHint: "Attempts a minute, errors and the time to the first event are of the last five minutes.",
    empty: "An upstream is a server whose models the gateway offers. None is configured yet.",
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
    empty: "A model is a name that clients may ask for. Upstreams bring them.",
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
      displayName: "Shown as",
      facts: {
        context_window: "Window",
        max_output_tokens: "Longest reply",
        input: "Reads",
        output: "Writes",
        efforts: "Efforts",
        tools: "Tools",
        schemas: "Schemas"
      },
      bindings: {
        binding: "bound",
        advisory: "advice",
        none: "not read"
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
    schemasOf: (name: string) => `Strict schemas: ${name}`,
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
    noCopy: "The gateway does not show this key to you, so it cannot be copied.",
    copyMessage: "Copy as message",
    message: "The message",
    messageOf: (lines: string) => `Your access to the models:\n\n${lines}\n`,
    hashAll: "Hash all",
    hashAsk: (n: number) =>
      `The configuration keeps ${count(n, "key", "keys")} as ${
        n === 1 ? "a hash" : "hashes"
      }. Clients go on as before. ` +
      "The console cannot show or copy such a key again, and the playground asks for one. This cannot be undone.",
    hashLeft: (n: number) =>
      n === 1
        ? "A key stays as text, since it is so short that its hash does not hide it. Replace it by a generated one:"
        : `${n} keys stay as texts, since they are so short that their hashes do not hide them. Replace them by generated ones:`,
    hashedNow: (n: number, left: number) =>
      `${count(n, "key is", "keys are")} kept as ${n === 1 ? "a hash" : "hashes"}${
        left === 0 ? "." : `; ${count(left, "key stays as text", "keys stay as texts")}, which hashes do not hide.`
      }`,
    rotate: "Rotate",
    rotateOf: (name: string) => `Rotate ${name}`,
    rotateHint:
      "A new key with the same settings is made. The old one serves until the time below, so that its clients can change over.",
    oldServes: "The old key serves for",
    overlaps: { hour: "an hour", day: "a day", week: "7 days" },
    rotated: (name: string) => `${name} has a new key. The old one ends by itself.`,
    notEnded: (name: string, reason: string) => `${name} has a new key, and the old one has no end: ${reason}`,
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
    noneCaptured:
      "No reply has been captured yet. Captures keep the latest replies of upstreams; the field above asks for one.",
    noneFound: "No captured reply contains this text.",
    savedSamples: "Saved samples",
    sample: "Sample",
    created: "Saved",
    size: "Size",
    noneSaved: "No sample has been saved yet. A saved one is replayed in any API, without its upstream.",
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
    download: "Download",
    exported: (file: string) => `The configuration was exported as ${file}.`,
    copied: "The configuration was copied.",
    import: "Import",
    importHint: "Keys, accounts and settings are imported all together or not at all. Preview the import first.",
    importField: "Configuration to import",
    file: "Choose a file",
    dropHint: "Drop a file here, choose one, or paste its text.",
    tooLarge: (most: string) => `The file is larger than ${most}.`,
    removedNames: "Removed",
    unset: "not set",
    hidden: "hidden",
    moreSettings: (n: number) => `and ${separated(n)} more settings`,
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
  about: {
    copyAll: "Copy all of it",
    report: "This installation",
    reportHint: "What a report about a problem needs. It contains no secret.",
    build: "Build",
    runtime: "Runtime",
    forms: { source: "from its sources", bundle: "bundle", package: "package", executable: "executable" },
    node: "Node",
    nodes: "Nodes",
    store: "Shared store",
    storeStates: { up: "connected", lost: "lost" },
    started: "Started",
    upstreams: "Upstreams",
    console: "Browser",
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

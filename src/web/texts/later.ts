/**
 * The English texts of pages that load when they are shown. Those of the first load are in `en.ts`; another language has all of them in one record.
 */
import { adviceTexts, causeNames } from "./advice.ts"
import { count, separated, type Texts, words } from "./en.ts"

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

const roleNames: Readonly<Record<string, string>> = {
  system: "System",
  developer: "Developer",
  user: "User",
  assistant: "Assistant",
  tool: "Tool result"
}

/** Names of the fields of a webhook. */
const webhookFields: Readonly<Record<string, string>> = {
  name: "Name",
  url: "URL",
  secret: "Secret",
  secret_previous: "Previous secret",
  headers: "Headers",
  events: "Events"
}

export const later = {
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
    mostInBar: (n: string) => `at most ${n} in one bar`,
    slowestBar: (time: string) => `p95 up to ${time}`,
    now: "now",
    p95: "p95",
    copyId: "Copy id",
    copyCurl: "Copy as curl",
    curl: "The request as curl",
    noCurl: "The record has no whole body of this request.",
    onlyKey: "Only this key",
    compareWith: (id: string) => `Compare with ${id}`,
    styles: (name: string) => styleNames[name] ?? name,
    shortStyles: (name: string) => shortStyleNames[name] ?? name,
    outcomes: (name: string) => outcomeNames[name] ?? name,
    states: (name: string) => stateNames[name] ?? name,
    /** Keys that are no entries of the list of keys. */
    keyNames: (id: string) => id === "direct" ? "Direct token or unknown key" : id,
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
    empty:
      "No requests yet. Each request of your clients appears here as it arrives, with what went over both wires: what was asked, tried and answered, how long it took and what it cost.",
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
  exports: {
    jsonl: "Download JSONL",
    csv: "Download CSV",
    running: "Reading what is saved",
    rows: (n: number) => count(n, "row", "rows"),
    stop: "Stop",
    done: (n: number, file: string) => `${count(n, "row", "rows")} saved as ${file}.`,
    cut: (n: number, file: string) => `The first ${separated(n)} rows saved as ${file}: narrow the list for the others.`
  },
  compare: {
    title: "Compare two requests",
    choose: "Compare with…",
    compare: "Compare",
    byId: "Request id",
    newest: (model: string | null) => model === null ? "Newest requests" : `Newest requests of ${model}`,
    swap: "Swap",
    facts: "Facts",
    fact: "Fact",
    differs: " (differs)",
    change: "Change",
    body: "Body",
    reply: "Reply",
    same: "Both are the same.",
    nothing: "Neither has one.",
    notKept: "The body of one of them is no longer kept.",
    equal: (n: number) => `⋯ ${count(n, "equal line", "equal lines")}`,
    signs: (first: string, second: string) => `− is in ${first} alone, + in ${second} alone.`,
    amountOf: (id: string) => `Amount, ${id}`,
    costOf: (id: string) => `Cost, ${id}`
  },
  promptCache: {
    fromCache: "From the cache",
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
      "A session is one run of an agent, as its client names it. The agents that it started stand below it. A session leads to its turns.",
    search: "Search sessions, apps and keys",
    models: "Models",
    time: "Time in all",
    title: (name: string) => `Session ${name}`,
    start: "Start",
    end: "End",
    length: "Length",
    after: (length: string) => `after ${length}`,
    failedOf: (n: string) => `${n} of them failed`,
    agents: "Agents",
    main: "main loop",
    turns: "Turns",
    tools: "Tools",
    calls: (n: number) => count(n, "call", "calls"),
    moreTurns: "More turns",
    noTurns: "The requests of this session are no longer kept. What they took in all is above.",
    empty: "No client has named a session in this time.",
    noneFound: "No session matches.",
    total: (n: number) => count(n, "session", "sessions"),
    cut: (n: number) => `There are more sessions: ${separated(n)} of them are looked at.`
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
    finer: "More groups",
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
    speed: "Tokens/s",
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
    more: (n: number) => `${separated(n)} more`,
    less: "Less",
    during: {
      day: "in 24 hours",
      week: "in 7 days",
      month: "in 30 days",
      quarter: "in 90 days",
      year: "in a year",
      custom: "in this time"
    },
    before: {
      day: "the 24 hours before",
      week: "the 7 days before",
      month: "the 30 days before",
      quarter: "the 90 days before",
      year: "the year before",
      custom: "the time before"
    },
    amounts: {
      requests: (n: string) => `${n} requests`,
      failed: (n: string) => `${n} failed requests`,
      tokens: (n: string) => `${n} tokens`,
      cache: (n: string) => `${n} tokens of prompts`
    },
    change: (share: string, sign: number, before: string) =>
      sign === 0 ? `as much as in ${before}` : `${share} % ${sign > 0 ? "more" : "less"} than in ${before}`,
    sentence: (during: string, change: string | undefined) =>
      `${[during, ...change === undefined ? [] : [change]].join(", ")}.`,
    timesMore: (times: string, before: string) => `${times} times as much as in ${before}`,
    topShare: (share: string, name: string) => `${share} of it is ${name}.`,
    cachedShare: (share: string) => `${share} of the tokens of prompts came from caches.`,
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
    attempts: "Attempts",
    attemptsEach: (n: string) => `${n} for each request`,
    errors: "Errors",
    code: "Code",
    share: "Of all requests",
    all: "All",
    empty: "There were no requests in this time.",
    cut: (n: number) => `The first ${separated(n)} rows are shown; the downloaded file contains all.`
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
    empty:
      "There are no webhooks. Add one, and your own program hears when a budget is used up, an account is refused or an upstream fails.",
    deliveries: "Deliveries",
    deliveriesOf: (name: string) => `Deliveries to ${name}`,
    deliveriesHint:
      "The last 100 of this node, in memory. Sent again, an event keeps its id, so that its receiver knows it.",
    noDeliveries: "Nothing has been sent since the start of this node.",
    when: "When",
    event: "Event",
    outcome: "Outcome",
    took: "Took",
    sendAgain: "Send again",
    incomplete: "Name, URL and secret are required.",
    exists: (name: string) => `The webhook ${name} already exists.`,
    changedMeanwhile: "The webhook was changed meanwhile. Open it again.",
    added: (name: string) => `The webhook ${name} was added.`,
    changed: (name: string) => `The webhook ${name} was changed.`,
    delivered: (name: string, status: number, ms: number) => `${name}: delivered, HTTP ${status} in ${ms} ms.`,
    notDelivered: (name: string, reason: string) => `${name}: ${reason}.`,
    deleteAsk: "Nothing is sent to it any more, and what waits is dropped."
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
  }
}

/** The texts of a language: those of the first load, and the later ones. */
export type AllTexts = Texts & typeof later

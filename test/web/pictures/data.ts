/**
 * Replies of the admin API with fixed values: a gateway with 60 accounts, some of them broken, 48 keys and mixed requests.
 */

import { accountName } from "../../../src/web/state/names.ts"

/** The fixed time of all pictures: 2026-11-21 13:10:30 UTC. */
export const now = Date.UTC(2026, 10, 21, 13, 10, 30)

const iso = (at: number): string => new Date(at).toISOString().replace(/\.000Z$/, "Z")

/** Numbers that look random and are the same on each run. */
const makeRandom = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (state + 0x9e37_79b9) >>> 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x85eb_ca6b)
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35)
    return Math.floor((((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32) * below)
  }
}

const pick = <A>(random: (below: number) => number, of: ReadonlyArray<A>): A => of[random(of.length)]!

const people = [
  "ada",
  "alan",
  "barbara",
  "claude",
  "dorothy",
  "edsger",
  "frances",
  "grace",
  "hedy",
  "ivan",
  "jean",
  "katherine",
  "linus",
  "margaret",
  "niklaus"
]
const domains = ["research.example.com", "example.com", "lab.example.org", "studio.example.net"]

const emails = domains.flatMap((domain) => people.map((name) => `${name}@${domain}`))

/** The upstream of all accounts, and what it answers as. */
const upstream = "hosted"
const target = `${upstream}/claude-sonnet-4-5`

const accountOf = (identifier: string, index: number) => {
  const broken = index % 17 === 5
  const cooling = index % 19 === 7
  const tested = index % 23 === 11
  const health = broken ? "out" : cooling ? "cooling" : "ready"
  const random = makeRandom(index + 1)
  const requests = broken ? 0 : 20 + random(240)
  return {
    identifier,
    upstream,
    hash: (0x3f00 + index).toString(16).padStart(16, "0"),
    email: identifier,
    mobile: "",
    has_password: true,
    has_token: !broken,
    token_preview: broken ? "" : "eyJhbGci...",
    test_status: tested ? "failed" : "ok",
    in_use: broken || cooling ? 0 : random(3),
    slots: 2,
    health,
    health_reason: broken
      ? "the login was refused: wrong password"
      : cooling
      ? "the upstream limits its rate"
      : null,
    recovery_seconds: cooling ? 24 + index : null,
    disabled: index === 30,
    note: index % 12 === 0 ? "Research team" : "",
    last_used_at: broken ? now - 3_600_000 * 5 : now - 1_000 * (1 + random(400)),
    requests_hour: requests,
    failed_hour: Math.floor(requests / (index % 9 === 0 ? 3 : 60)),
    last_error: broken
      ? { code: "login_refused", message: "the login was refused: wrong password", at: now - 3_600_000 * 5 }
      : null,
    last_test: tested
      ? { success: false, message: "the session could not be created: HTTP 502 with HTML", at: now - 900_000 }
      : { success: true, message: "the account answered", at: now - 900_000 },
    quota: [],
    budgets: []
  }
}

export const accounts = emails.map(accountOf)

/** Their names among those of all upstreams. */
export const accountNames = accounts.map(accountName)

const nameOf = (identifier: string): string => accountName({ identifier, upstream })

const keyNames = [
  "Mobile app (production)",
  "Mobile app (staging)",
  "Website chat",
  "Data team notebooks",
  "Support desk",
  "Nightly evaluation",
  "Partner integration",
  "Search ranking"
]

const keyOf = (index: number) => {
  const random = makeRandom(1_000 + index)
  const name = keyNames[index] ?? `Workshop seat ${index - keyNames.length + 1}`
  const used = [262, 19_900, 4_821, 310, 88, 17_204, 9_350, 640][index] ?? random(500)
  return {
    id: (0x98c98e5bdd9b + index * 7_919).toString(16).padStart(16, "0"),
    preview: `sk-gw-${"ixPaQzLkVtNb".slice(index % 9, (index % 9) + 3)}${index % 10}...${1_000 + index * 37}`,
    state: index === 5 ? "disabled" : index === 6 ? "expired" : "active",
    name,
    note: index % 6 === 0 ? "Owner: platform team" : null,
    label: null,
    class: null,
    disabled: index === 5,
    expires_at: index === 6 ? "2026-11-01T00:00:00Z" : index === 3 ? "2027-01-01T00:00:00Z" : null,
    models: index % 4 === 1 ? ["upstream-chat", "upstream-reasoner"] : null,
    max_inflight: index < 4 ? 20 : null,
    limits: index < 6
      ? [{ window: "day", requests: 20_000, tokens: 5_000_000, cost: null, strict: false, fallback: null }]
      : [],
    created_at: iso(now - 86_400_000 * (index + 2)),
    usage: {
      in_flight: index === 0 ? 2 : index === 1 ? 7 : 0,
      requests_today: used,
      cost_today: `${Math.floor(used / 240)}.${String(100 + (used % 900))}`,
      max_inflight: index < 4 ? 20 : null,
      last_used_at: index < 12 ? iso(now - 3_000 * (1 + index * index)) : null,
      windows: index < 6
        ? [{
          window: "day",
          started_at: "2026-11-21T00:00:00Z",
          resets_at: "2026-11-22T00:00:00Z",
          requests: { limit: 20_000, used, remaining: 20_000 - used },
          tokens: { limit: 5_000_000, used: used * 220, remaining: Math.max(0, 5_000_000 - used * 220) },
          cost: null
        }]
        : []
    }
  }
}

export const keys = Array.from({ length: 48 }, (_, index) => keyOf(index))

const styles = ["chat", "responses", "messages", "generate"]
const models = ["upstream-chat", "gpt-4o", "claude-sonnet-4-5", "upstream-reasoner", "gemini-2.5-pro"]
const failures = [
  ["rate_limit_exceeded", 429],
  ["upstream_empty_output", 503],
  ["context_length_exceeded", 400],
  ["upstream_unavailable", 503]
] as const

const requestOf = (index: number) => {
  const random = makeRandom(5_000 + index)
  const style = pick(random, styles)
  const model = pick(random, models)
  const key = keys[random(8)]!
  const failure = index % 7 === 3 ? pick(random, failures) : undefined
  const running = index < 3
  const cancelled = !running && failure === undefined && index % 13 === 6
  const begun = now - 1_200 - index * 2_700
  const duration = 600 + random(9_000)
  return {
    id: `r${4_000 - index}`,
    request_id: `req_${(0x5f3a9c1d27 + index * 104_729).toString(16)}`,
    started_at: begun,
    style,
    model,
    native_model: failure?.[0] === "context_length_exceeded"
      ? null
      : model.includes("reason")
      ? model
      : "upstream-chat",
    stream: index % 3 !== 1,
    key: key.id,
    key_name: key.name,
    account: failure?.[0] === "context_length_exceeded" ? "" : accountNames[(index * 7) % accountNames.length]!,
    state: running ? (index === 0 ? "queued" : "streaming") : "done",
    outcome: running ? "open" : failure !== undefined ? "failed" : cancelled ? "cancelled" : "ok",
    status: running && index === 0 ? null : failure?.[1] ?? (cancelled ? null : 200),
    error: failure?.[0] ?? null,
    finish: running || failure !== undefined || cancelled ? null : "stop",
    attempts: failure === undefined ? 1 : 3,
    failovers: failure === undefined ? 0 : 2,
    calls: index % 11 === 4 ? 1 : 0,
    queued_ms: running && index === 0 ? null : random(30),
    first_event_ms: running && index === 0 ? null : 180 + random(900),
    duration_ms: running ? null : duration,
    usage: running || failure !== undefined
      ? null
      : { prompt_tokens: 20 + random(4_000), completion_tokens: 20 + random(900), reasoning_tokens: 0 },
    cost: running || failure !== undefined ? null : (0.0004 + random(90_000) / 1_000_000).toFixed(6),
    ...failure?.[0] === "context_length_exceeded" ? {} : { target },
    bodies_kept: true,
    client: "203.0.113.0/24"
  }
}

export const requests = Array.from({ length: 50 }, (_, index) => requestOf(index))

const countBy = (of: (item: (typeof requests)[number]) => string, scale: number) =>
  [...Map.groupBy(requests, of)].filter(([value]) => value !== "")
    .map(([value, items]) => ({ value, name: null as string | null, count: items.length * scale }))
    .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))

/** The last 100 minutes, a minute each. */
export const histogram = {
  kept_from: now - 6_000_000,
  bucket_ms: 60_000,
  buckets: Array.from({ length: 100 }, (_, index) => {
    const random = makeRandom(9_000 + index)
    return {
      at: now - 6_000_000 + index * 60_000,
      ok: 4 + random(40),
      failed: index % 9 === 4 ? random(20) : random(3),
      cancelled: random(3),
      open: index > 97 ? random(4) : 0,
      p95_ms: 900 + random(8_000)
    }
  }),
  complete: true
}

export const facets = {
  facets: {
    key: countBy(({ key }) => key, 20).map((each) => ({
      ...each,
      name: keys.find(({ id }) => id === each.value)?.name ?? null
    })),
    model: countBy(({ model }) => model, 20),
    style: countBy(({ style }) => style, 20),
    app: [],
    session: [],
    prompt_cache: [],
    upstream: [{ value: upstream, name: null, count: 1_000 }],
    account: countBy(({ account }) => account, 20).slice(0, 12),
    outcome: countBy(({ outcome }) => outcome, 20),
    code: countBy(({ error }) => error ?? "", 20),
    slow: [{ value: "1000", name: null, count: 820 }, { value: "3000", name: null, count: 610 }, {
      value: "10000",
      name: null,
      count: 12
    }]
  },
  total: 1_000,
  kept: 1_000,
  complete: true
}

export const requestPage = {
  enabled: true,
  limit: 1_000,
  kept: 1_000,
  bytes: 18_400_000,
  max_total_bytes: 67_108_864,
  items: requests,
  next_cursor: requests.at(-1)!.id
}

const words = "The capital of Norway is Oslo , which lies at the northern end of the Oslofjord .".split(" ")

const framesOf = (from: number, of: (word: string, index: number) => string) =>
  words.map((word, index) => ({ at_ms: from + index * 42.5, data: of(word, index) }))

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${
    JSON.stringify({
      id: "chatcmpl-5f3a",
      object: "chat.completion.chunk",
      created: Math.floor(now / 1_000),
      model: "upstream-chat",
      choices: [{ index: 0, delta, finish_reason: finish }]
    })
  }`

const question = "What is the capital of Norway, and where does it lie?"

/** A streamed request that one change of account saved. */
export const streamed = {
  ...requests[10]!,
  account: accountNames[0]!,
  id: "r3990",
  style: "chat",
  model: "gpt-4o",
  native_model: "upstream-chat",
  stream: true,
  outcome: "ok",
  state: "done",
  status: 200,
  error: null,
  finish: "stop",
  attempts: 2,
  failovers: 1,
  queued_ms: 64,
  first_event_ms: 812,
  duration_ms: 1_620,
  usage: { prompt_tokens: 31, completion_tokens: 17, reasoning_tokens: 0 },
  fault: null,
  bill: null,
  fallback: null,
  error_message: null,
  request: {
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json", "user-agent": "openai-node/7" },
    body: JSON.stringify({
      model: "gpt-4o",
      stream: true,
      messages: [{ role: "system", content: "Answer briefly." }, { role: "user", content: question }]
    }),
    truncated: false
  },
  conversation: [
    { role: "system", text: "Answer briefly.", calls: [], call_id: null },
    { role: "user", text: question, calls: [], call_id: null }
  ],
  excluded: [],
  tries: [
    {
      upstream,
      model: "upstream-chat",
      account: nameOf("hedy@example.com"),
      cause: "rate_limited",
      status: 429,
      queued_ms: 40,
      began_ms: 40,
      took_ms: 210,
      cost: null
    },
    {
      upstream,
      model: "upstream-chat",
      account: accountNames[0],
      cause: null,
      status: null,
      queued_ms: 24,
      began_ms: 274,
      took_ms: 538,
      cost: null
    }
  ],
  upstream: [{
    capture_id: "",
    label: "reply",
    protocol: "openai",
    attempt: 2,
    url: "http://127.0.0.1:8001/v1/chat/completions",
    account: accountNames[0],
    status: 200,
    request_body: JSON.stringify({ model: "chat", stream: true, messages: [{ role: "user", content: question }] }),
    frames: framesOf(812, (word, index) => chunk({ content: index === 0 ? word : ` ${word}` })),
    truncated: false
  }],
  reply: {
    status: 200,
    headers: { "content-type": "text/event-stream" },
    frames: [
      ...framesOf(813, (word, index) => chunk({ content: index === 0 ? word : ` ${word}` })),
      { at_ms: 1_615, data: chunk({}, "stop") },
      { at_ms: 1_615, data: "data: [DONE]" }
    ],
    truncated: false,
    text: words.join(" "),
    reasoning: "",
    calls: [],
    finish: "stop"
  },
  upstream_reply: { text: words.join(" "), reasoning: "", calls: [], finish: "stop" },
  tool_calls: [],
  server_timing: "queue;dur=64, upstream;dur=748, gateway;dur=1",
  ignored: ["logprobs"],
  ignored_more: 0
}

/** A request that three accounts could not answer. */
export const failed = {
  ...streamed,
  id: "r3997",
  account: nameOf("jean@example.com"),
  request_id: requests[3]!.request_id,
  outcome: "failed",
  status: 503,
  error: "upstream_empty_output",
  bill: null,
  fallback: null,
  error_message: "The reply of the upstream was empty.",
  fault: "upstream",
  finish: null,
  attempts: 3,
  failovers: 2,
  first_event_ms: null,
  usage: null,
  tries: ["grace@lab.example.org", "ivan@example.com", "jean@example.com"].map(nameOf).map((account, index) => ({
    upstream,
    model: "upstream-chat",
    account,
    cause: "empty_reply",
    status: null,
    queued_ms: 2,
    began_ms: 2 + index * 500,
    took_ms: 420,
    cost: null
  })),
  upstream: [],
  upstream_reply: null,
  reply: {
    status: 503,
    headers: { "content-type": "application/json" },
    frames: [{
      at_ms: 1_503,
      data: JSON.stringify({
        error: { message: "The reply of the upstream was empty.", code: "upstream_empty_output" }
      })
    }],
    truncated: false,
    text: "",
    reasoning: "",
    calls: [],
    finish: null
  },
  server_timing: null,
  ignored: []
}

const minute = 60_000

export const minutes = {
  since: now - 3 * 3_600_000,
  minutes: Array.from({ length: 60 }, (_, index) => {
    const random = makeRandom(9_000 + index)
    const count = 18 + random(24) + (index > 40 ? 12 : 0)
    const bad = index > 46 && index < 52 ? 6 + random(6) : random(3)
    return {
      at: Math.floor(now / minute) * minute - (59 - index) * minute,
      requests: count + bad + 1,
      ok: count,
      failed: bad,
      refused: Math.floor(bad / 4),
      left: 1,
      first_event_p50_ms: 320 + random(120),
      first_event_p95_ms: 900 + random(500) + (index > 46 && index < 52 ? 2_400 : 0),
      tokens: count * (300 + random(200)),
      cost: `0.${String(100 + random(400))}`
    }
  }),
  first_event_p50_ms: 372,
  first_event_p95_ms: 1_310,
  answered: [],
  errors: [
    {
      code: "upstream_empty_output",
      fault: "upstream",
      count: 41,
      last_at: now - 512_000,
      last_request_id: failed.request_id,
      key: { value: keys[1]!.id, name: keys[1]!.name, count: 12 },
      model: { value: models[0], name: null, count: 33 },
      upstream: null
    },
    {
      code: "rate_limit_exceeded",
      fault: "gateway",
      count: 18,
      last_at: now - 41_000,
      last_request_id: requests[17]!.request_id,
      key: { value: keys[2]!.id, name: keys[2]!.name, count: 18 },
      model: { value: models[1], name: null, count: 10 },
      upstream: null
    },
    {
      code: "context_length_exceeded",
      fault: "caller",
      count: 3,
      last_at: now - 900_000,
      last_request_id: requests[24]!.request_id,
      key: { value: keys[0]!.id, name: keys[0]!.name, count: 2 },
      model: { value: models[0], name: null, count: 2 },
      upstream: null
    }
  ]
}

const measures = (requestCount: number, seed: number) => {
  const random = makeRandom(20_000 + seed)
  const failedCount = Math.floor(requestCount / (9 + random(30)))
  const prompt = requestCount * (800 + random(400))
  const completion = requestCount * (160 + random(100))
  return {
    requests: requestCount,
    succeeded: requestCount - failedCount - 2,
    failed: failedCount,
    left: Math.min(2, requestCount),
    counted_requests: requestCount,
    prompt_tokens: prompt,
    completion_tokens: completion,
    reasoning_tokens: Math.floor(completion / 6),
    cached_tokens: Math.floor(prompt / 4),
    total_tokens: prompt + completion,
    estimated_requests: 0,
    tool_calls: Math.floor(requestCount / 20),
    attempts: requestCount + failedCount,
    queue_ms: requestCount * 12,
    upstream_ms: requestCount * 480,
    duration_ms: requestCount * 2_400,
    cost: `${(requestCount * 13) % 97}.${String(100 + (requestCount % 900))}`,
    unpriced_requests: 0,
    cache_write_tokens: Math.floor(prompt / 8),
    predicted_tokens: Math.floor(prompt / 3),
    prompt_cache_misses: Math.floor(requestCount / 25),
    wasted_cost: "0",
    prompt_cache_hit_rate: null,
    first_event_p50_ms: 380 + random(200),
    first_event_p95_ms: 900 + random(700),
    duration_p95_ms: 5_000 + random(9_000),
    queue_p95_ms: random(400),
    tokens_per_second_p50: 40 + random(60),
    errors: failedCount === 0 ? {} : { upstream_empty_output: failedCount }
  }
}

const hour = 3_600_000

/** Usage of one hour by one key, model and account. */
interface Used {
  readonly at: number
  readonly requests: number
  readonly seed: number
  readonly names: Readonly<Record<string, object>>
}

/** The start of the running hour. */
const lastHour = Math.floor(now / hour) * hour

/** Everything that was used in the last 60 days: in each hour by three keys, of which there are twelve. */
const used: ReadonlyArray<Used> = Array.from(
  { length: 60 * 24 },
  (_, ago) =>
    Array.from({ length: 3 }, (_, part): Used => {
      const seed = ago * 3 + part
      const random = makeRandom(30_000 + seed)
      const at = lastHour - ago * hour
      const [key, model, account] = [keys[random(12)]!, models[random(models.length)], random(20)]
      return {
        at,
        seed,
        // Less at night, and a little less in earlier weeks.
        requests: 20 + random(60) + Math.round(120 * Math.max(0, Math.sin(((at / hour) % 24 - 6) / 24 * 2 * Math.PI))) -
          Math.min(15, Math.floor(ago / 96)),
        names: {
          hour: { hour: iso(at) },
          day: { day: iso(at).slice(0, 10) },
          key: { key: key.id, key_name: key.name },
          account: { account: `hash${account}`, account_identifier: accountNames[account] },
          model: { model },
          style: { style: pick(random, styles) },
          upstream: { upstream },
          target: { target }
        }
      }
    })
).flat()

type UsedMeasures = ReturnType<typeof measures>

/** The sums of what was used; percentiles and shares are of the largest part. */
const sumOf = (all: ReadonlyArray<Used>): UsedMeasures => {
  const parts = all.map(({ requests, seed }) => ({
    ...measures(requests, seed),
    cost: (requests * (1 + seed % 7) / 250).toFixed(4)
  }))
  const sum: Record<string, unknown> = { ...parts[0] ?? measures(0, 1) }
  for (const [name, value] of Object.entries(sum)) {
    if (typeof value !== "number" || /_p\d\d/.test(name)) continue
    sum[name] = parts.reduce((total, part) => total + Number(part[name as keyof UsedMeasures]), 0)
  }
  const failed = Number(sum["failed"])
  return {
    ...sum as UsedMeasures,
    cost: parts.reduce((total, { cost }) => total + Number(cost), 0).toFixed(4),
    errors: failed === 0 ? {} : { upstream_empty_output: failed }
  }
}

/** Sessions of agents, some with agents that they started, by what they are grouped by. */
const sessionRows = (by: ReadonlyArray<string>): Array<Record<string, unknown>> =>
  Array.from({ length: 14 }, (_, index) => {
    const key = keys[index % 5]!
    const run = {
      key: key.id,
      key_name: key.name,
      app: index % 3 === 2 ? "codex" : "claude-code",
      session: `${(0x5f3aa0e8 + index * 7_919).toString(16)}-1c4e-4b7a`
    }
    const own = { agent: "none", parent: "none" }
    const agents = index % 4 === 0
      ? [own, { agent: "explorer", parent: "none" }, { agent: "reviewer", parent: "explorer" }]
      : [own]
    const names = by.includes("agent")
      ? agents
      : by.includes("hour")
      ? [index + 2, Math.floor(index / 2)].map((ago) => ({ hour: iso(Math.floor(now / hour) * hour - ago * hour) }))
      : [{}]
    return names.map((each, part) => ({
      ...run,
      ...each,
      ...measures(Math.max(3, 420 - 29 * index - 90 * part), index)
    }))
  }).flat()

/** The sums of rows. */
const sumOfRows = (rows: ReadonlyArray<Record<string, unknown>>): UsedMeasures => {
  const sum: Record<string, unknown> = measures(0, 1)
  for (const name of Object.keys(sum)) {
    if (typeof sum[name] !== "number" && name !== "cost") continue
    const total = rows.reduce((all, row) => all + Number(row[name] ?? 0), 0)
    sum[name] = name === "cost" ? total.toFixed(4) : Math.round(total)
  }
  return sum as UsedMeasures
}

/** The sessions of the kept requests. */
export const recordedSessions = (query: URLSearchParams) => ({
  sessions: sessionRows([]).map((row, index) => ({
    key: row["key"],
    app: row["app"],
    session: row["session"],
    models: [models[index % models.length], ...index % 3 === 0 ? [models[(index + 2) % models.length]] : []],
    from: now - (index + 3) * hour - 1_234_000,
    to: now - Math.floor(index / 2) * hour - 61_000,
    requests: row["requests"]
  })).filter(({ session }) => [null, session].includes(query.get("session") as string | null)),
  complete: true
})

/** A reply of the usage endpoint for a query. */
export const usage = (query: URLSearchParams) => {
  const by = (query.get("by") ?? "").split(",").filter((name) => name !== "")
  const [from, to] = [query.get("from") ?? iso(now - 24 * hour), query.get("to") ?? iso(lastHour + hour)]
  const only = ["key", "model", "style"].filter((name) => (query.get(name) ?? "") !== "")
  const asked = used.filter(({ at, names }) =>
    at >= Math.floor(Date.parse(from) / hour) * hour && at < Date.parse(to) &&
    only.every((name) => Object.values(names[name]!).includes(query.get(name)))
  )
  const rows: Array<Record<string, unknown>> = by.length === 0
    ? []
    : by.includes("session")
    ? sessionRows(by).filter((row) => ["session", "key"].every((name) => [null, row[name]].includes(query.get(name))))
    : [...Map.groupBy(asked, ({ names }) => JSON.stringify(by.map((name) => names[name] ?? { [name]: "default" })))]
      .map(([, all]) =>
        Object.assign({}, ...by.map((name) => all[0]!.names[name] ?? { [name]: "default" }), sumOf(all)) as Record<
          string,
          unknown
        >
      )
  const [sort, sign] = [query.get("sort"), query.get("order") === "asc" ? 1 : -1]
  if (sort !== null) rows.sort((a, b) => (Number(a[sort]) - Number(b[sort])) * sign)
  else if (by.includes("hour") || by.includes("day")) rows.reverse()
  else rows.sort((a, b) => Number(b["total_tokens"]) - Number(a["total_tokens"]))
  return {
    from,
    to,
    by,
    zone: query.get("zone") ?? "UTC",
    utc_days_before: null,
    currency: "USD",
    rows,
    totals: by.includes("session") ? sumOfRows(rows) : sumOf(asked),
    truncated: false,
    store: { kind: "sqlite", persistent: true, detail: null }
  }
}

const inState = (state: string): number =>
  accounts.filter(({ disabled, health }) => health === state && !disabled).length

/** How many accounts are in each state. */
export const counts = {
  all: accounts.length,
  ready: inState("ready"),
  cooling: inState("cooling"),
  out: inState("out"),
  disabled: accounts.filter(({ disabled }) => disabled).length,
  failed: accounts.filter(({ test_status }) => test_status === "failed").length
}

export const pool = {
  total: counts.all - counts.disabled,
  available: counts.ready,
  in_use: accounts.reduce((sum, { in_use }) => sum + in_use, 0),
  cooling: counts.cooling,
  out: counts.out,
  disabled: counts.disabled,
  failed_tests:
    accounts.filter(({ disabled, health, test_status }) => test_status === "failed" && health === "ready" && !disabled)
      .length,
  max_inflight_per_account: 2,
  global_max_inflight: 120
}

export const queue = {
  waiting: 2,
  max_queue_size: 120,
  oldest_wait_ms: 3_400,
  waiters: [{ age_ms: 3_400, style: "chat", account: null }, {
    age_ms: 1_200,
    style: "messages",
    account: nameOf("hedy@example.com")
  }]
}

export const changes = {
  changes: [
    {
      id: "c3",
      at: iso(now - 240_000),
      who: { kind: "token", name: "deploy" },
      address: "203.0.113.0/24",
      action: "a business key was changed",
      fields: [{ path: "keys[Mobile app (production)].max_inflight", before: "10", after: "20" }],
      more_fields: 0,
      node: "gateway-1"
    },
    {
      id: "c2",
      at: iso(now - 5_400_000),
      who: { kind: "session", name: "5f3a9c1d" },
      address: "198.51.100.0/24",
      action: "the settings were changed",
      fields: [
        { path: "runtime.sticky", before: null, after: "true" },
        { path: "runtime.account_max_queue", before: "60", after: "120" }
      ],
      more_fields: 0,
      node: "gateway-1"
    },
    {
      id: "c1",
      at: iso(now - 90_000_000),
      who: { kind: "file", name: "config.json" },
      address: null,
      action: "the file was edited",
      fields: [{ path: "accounts[ada@example.com].password", before: "***", after: "***" }],
      more_fields: 0,
      node: "gateway-1"
    }
  ],
  next: null,
  store: { kind: "sqlite", persistent: true, detail: null }
}

/**
 * Every failure of the session protocol, as seen by callers and by the upstream: streamed and whole, with one account,
 * with two, pinned to one of two, and with the caller's own token.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import type { CallName } from "../../src/contracts/session/readRequest.ts"
import { Captures } from "../../src/recordings/Captures.ts"
import type { Report } from "../../src/testing/CallLog.ts"
import type { FaultOrder } from "../../src/testing/Provider.ts"
import { type Fault, usualCall } from "../../src/testing/provider/faults.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import {
  account,
  admin,
  isQuiet,
  readSaid,
  type Said,
  send,
  type Site,
  startSite,
  textOf,
  untilQueue
} from "./support.ts"

const ownToken = "a-token-of-my-own"

/** Who sends the request, and the accounts of the gateway. */
const settings = {
  one: { names: ["a"], target: undefined, direct: false },
  two: { names: ["a", "b"], target: undefined, direct: false },
  pinned: { names: ["a", "b"], target: "b", direct: false },
  direct: { names: ["a"], target: undefined, direct: true }
} as const
type Setting = keyof typeof settings
const settingNames = Object.keys(settings) as ReadonlyArray<Setting>

/** The account of each failed call, in order: `a` and `b`, or the caller's own token (`-`). */
type Tries = Readonly<Record<Setting, string>>

/** A fault of the request fails on every account. */
const once: Tries = { one: "a", two: "a", pinned: "b", direct: "-" }
/** A fault that does not concern the account: without another account, the same one is retried. */
const thrice: Tries = { one: "aaa", two: "aba", pinned: "b", direct: "-" }
/** The server may still be working on the request: only another account is tried. */
const onceEach: Tries = { one: "a", two: "aba", pinned: "b", direct: "-" }
/** A fault that takes the account out of rotation. */
const each: Tries = { one: "a", two: "ab", pinned: "b", direct: "-" }
/** A fresh token first, then the next account. */
const refreshed: Tries = { one: "aa", two: "aab", pinned: "bb", direct: "-" }

/** The error that a caller receives. */
interface Told {
  readonly status: number
  readonly code: string
  readonly words: RegExp
}

const types: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  429: "rate_limit_error",
  503: "service_unavailable_error"
}

const told = (status: number, code: string, words: RegExp): Told => ({ status, code, words })

const trouble = (words = /^The upstream failed\.$/) => told(503, "upstream_error", words)
const limited = told(429, "upstream_rate_limited", /^The upstream limits the rate of requests: /)
const late = told(503, "upstream_timeout", /^The upstream did not answer in time\.$/)
const unreachable = told(
  503,
  "upstream_error",
  /^The connection to the upstream "default" failed: the connection was reset\. Retry later/
)
const cutOff = told(503, "upstream_error", /^The reply of the upstream was cut off and could not be resumed\.$/)
const refusedToken = told(503, "no_account_available", /^The upstream refused an account's token/)
const refusedOwn = told(
  401,
  "authentication_failed",
  /^The credential is no key of this gateway, and the upstream refused it as a token/
)
const refusedLogin = told(503, "no_account_available", /^The login of an account was refused by the upstream/)
const suspended = told(503, "no_account_available", /^The upstream has suspended the account/)
const tooLong = told(400, "context_length_exceeded", /^The prompt is too long for the upstream/)
const withdrawn = told(400, "content_filter", /filter|withdr/)

interface Before {
  readonly fault: Fault & { readonly call?: CallName }
  readonly told: Told
  readonly tries: Tries
  /** The different error for a caller's own token. */
  readonly direct?: Told
  readonly retryAfter?: RegExp
  /** Whether the upstream receives a stop. */
  readonly stops?: boolean
  /** The failure is a timeout. */
  readonly silence?: Silence
}

const row = (fault: Before["fault"], told: Told, tries: Tries, rest: Partial<Before> = {}): Before => ({
  fault,
  told,
  tries,
  ...rest
})

/** What precedes the upstream's silence. */
interface Silence {
  /** The part of the reply that the gateway has received. */
  readonly heard?: string
  /** Whether the caller of a stream has received it too. */
  readonly shown?: boolean
}

/** Failures before any output, at every attempt. */
const before: ReadonlyArray<Before> = [
  row({ name: "no-token" }, refusedToken, refreshed, { direct: refusedOwn }),
  row({ name: "token-invalid" }, refusedToken, refreshed, { direct: refusedOwn }),
  row({ name: "token-expired" }, refusedToken, refreshed, { direct: refusedOwn }),
  row({ name: "token-expired", status: 401 }, refusedToken, refreshed, { direct: refusedOwn }),
  row({ name: "token-expired", call: "create" }, refusedToken, refreshed, { direct: refusedOwn }),
  row({ name: "rate-limited" }, limited, each, { retryAfter: /^[12]$/ }),
  row({ name: "rate-limited", status: 429, retryAfter: 7 }, limited, each, { retryAfter: /^7$/ }),
  row({ name: "rate-limited", call: "create", retryAfter: 7 }, limited, each, { retryAfter: /^7$/ }),
  row({ name: "trouble", message: "word of the server" }, trouble(/: word of the server$/), thrice),
  row({ name: "trouble", status: 500 }, trouble(/: service unavailable$/), thrice),
  row({ name: "busy" }, told(429, "upstream_rate_limited", /has too many completions running/), each, {
    retryAfter: /^1$/
  }),
  row({ name: "too-long" }, tooLong, once),
  row({ name: "too-long", status: 400 }, tooLong, once),
  row({ name: "refused" }, trouble(/: refused$/), thrice),
  row({ name: "no-session" }, trouble(/^The upstream has lost the session/), thrice),
  row({ name: "html" }, trouble(/: what answered is not a model server \(HTTP \d+\)\.$/), thrice),
  row({ name: "html", status: 200 }, trouble(/: what answered is not a model server \(HTTP 200\)\.$/), thrice),
  row({ name: "html", call: "create" }, trouble(/: what answered is not a model server \(HTTP \d+\)\.$/), thrice),
  row({ name: "empty" }, trouble(), thrice),
  row({ name: "broken-json" }, trouble(), thrice),
  row({ name: "no-data" }, trouble(), thrice),
  row({ name: "no-data", call: "create" }, trouble(), thrice),
  row({ name: "not-a-stream" }, trouble(), thrice),
  row({ name: "wrong-content-type" }, trouble(/: what answered is not a model server \(HTTP 200\)\.$/), thrice),
  row({ name: "reset-before-headers" }, unreachable, thrice),
  row({ name: "reset-before-headers", call: "create" }, unreachable, thrice),
  row({ name: "empty-stream" }, cutOff, thrice),
  row({ name: "reset-before-events" }, cutOff, thrice),
  row({ name: "broken-line", after: 0 }, trouble(/not JSON$/), thrice, { stops: true }),
  row({ name: "hint", after: 0 }, limited, each, { retryAfter: /^[12]$/ }),
  row({ name: "hint", after: 0, reason: "input_exceeds_limit" }, tooLong, once),
  row({ name: "hint", after: 0, reason: "other", message: "Not today" }, trouble(/: Not today$/), thrice),
  row({ name: "toast", after: 0 }, limited, each, { retryAfter: /^[12]$/ }),
  row({ name: "content-filter", after: 0 }, withdrawn, once),
  row({ name: "timeout-status", after: 0 }, trouble(), thrice),
  row({ name: "error-status", after: 0 }, trouble(), thrice)
]

/** The same for silence, which the test ends by moving the clock. */
const silent: ReadonlyArray<Before> = [
  row({ name: "hang-before-headers", call: "create" }, late, onceEach, { silence: {} }),
  row({ name: "hang-before-headers" }, late, onceEach, { silence: {} }),
  row({ name: "hang-before-events" }, late, onceEach, { silence: {} }),
  row({ name: "hang-mid-stream", after: 0 }, late, onceEach, {
    stops: true,
    silence: { heard: "response_message_id" }
  })
]

/** Failures of the login, which a caller's own token does not need. */
const atLogin: ReadonlyArray<Before> = [
  row({ name: "wrong-credentials", call: "login" }, refusedLogin, each),
  row({ name: "suspended", call: "login" }, suspended, each),
  row({ name: "rate-limited", call: "login", retryAfter: 7 }, limited, each, { retryAfter: /^7$/ }),
  row({ name: "trouble", call: "login" }, trouble(/service unavailable$/), thrice),
  row({ name: "html", call: "login" }, trouble(/: what answered is not a model server \(HTTP \d+\)\.$/), thrice),
  row({ name: "no-data", call: "login" }, trouble(), thrice),
  row({ name: "reset-before-headers", call: "login" }, unreachable, thrice)
]

/** A failure after the first word of "one two three", or while a reply that was cut off there is resumed. */
interface After {
  readonly about: string
  readonly faults: ReadonlyArray<Fault & { readonly call?: CallName }>
  /** The error in the stream, and of a whole reply. */
  readonly told: Told
  readonly direct?: Told
  /** The attempts for a whole reply; a stream has one attempt. */
  readonly tries: Tries
  /** Continues of each attempt; `mostResumes` bounds their sum. */
  readonly continues?: number
  readonly stops?: number
  readonly retryAfter?: RegExp
  /** The failure is a timeout. */
  readonly silence?: Silence
}

/** The maximum of resumes of one request, over all its attempts. */
const mostResumes = 8

const cut: Fault = { name: "reset-mid-stream" }

const after: ReadonlyArray<After> = [
  {
    about: "silence",
    faults: [{ name: "hang-mid-stream" }],
    told: late,
    tries: onceEach,
    stops: 1,
    silence: { heard: "one", shown: true }
  },
  {
    about: "a line that is not JSON",
    faults: [{ name: "broken-line" }],
    told: trouble(/not JSON$/),
    tries: thrice,
    stops: 1
  },
  { about: "status TIMEOUT", faults: [{ name: "timeout-status", after: 1 }], told: trouble(), tries: thrice },
  { about: "status ERROR", faults: [{ name: "error-status", after: 1 }], told: trouble(), tries: thrice },
  {
    about: "a snapshot that contradicts the text already sent",
    faults: [cut, { name: "disagree" }],
    told: told(503, "upstream_error", /^The upstream changed what it had already sent of the reply\.$/),
    tries: thrice,
    continues: 1,
    stops: 1
  },
  {
    about: "a rejected continue",
    faults: [cut, { name: "trouble", call: "continue" }],
    told: trouble(/: service unavailable$/),
    tries: thrice,
    continues: 1,
    stops: 1
  },
  {
    about: "a rate-limited continue",
    faults: [cut, { name: "rate-limited", call: "continue", status: 429, retryAfter: 7 }],
    told: limited,
    tries: each,
    continues: 1,
    stops: 1,
    retryAfter: /^7$/
  },
  {
    about: "a token that is rejected twice",
    faults: [cut, { name: "token-expired", call: "continue" }],
    told: refusedToken,
    direct: refusedOwn,
    tries: refreshed,
    continues: 2,
    stops: 1
  },
  {
    about: "three continues without new output",
    faults: [{ name: "cut-off" }, { name: "nothing-new" }],
    told: cutOff,
    tries: thrice,
    continues: 3
  },
  {
    about: "a hint",
    faults: [{ name: "hint", after: 1, message: "Too much" }],
    told: limited,
    tries: each,
    retryAfter: /^[12]$/
  },
  {
    about: "a hint in reply to a continue",
    faults: [cut, { name: "hint", call: "continue", after: 0, message: "Too much" }],
    told: limited,
    tries: each,
    continues: 1,
    retryAfter: /^[12]$/
  },
  {
    about: "three continues whose connection fails",
    faults: [cut, { name: "reset-before-headers", call: "continue" }],
    told: unreachable,
    tries: thrice,
    continues: 3,
    stops: 1
  }
]

const callOf = ({ call, name }: Before["fault"]): CallName => call ?? usualCall(name)

const titleOf = ({ fault }: Pick<Before, "fault">): string => {
  const { name, ...options } = fault
  return [name, ...Object.entries(options).map(([key, value]) => `${key}=${value}`)].join(" ")
}

/** One gateway for each setting, streamed and whole. */
interface Stand {
  readonly setting: Setting
  readonly stream: boolean
  readonly site: Site
  /** The gateway's clock, which stands still until a test moves it, so that no other limit is reached. */
  readonly clock: MovedClock
}

/**
 * The timeout for silence in seconds; short enough that three attempts end before a waiting stream gets a keep-alive
 * comment.
 */
const patience = 2

const startStands = (wanted: ReadonlyArray<Setting> = settingNames) =>
  Promise.all(wanted.flatMap((setting) =>
    [false, true].map(async (stream): Promise<Stand> => {
      const clock = makeMovedClock({ still: true })
      const timeouts = { queue: 0, first_byte: patience, silence: patience }
      return { setting, stream, clock, site: await startSite({}, { timeouts, clock }) }
    })
  ))

/** Waits until the gateway has received `part` of a reply that is still open. */
const untilHeard = async ({ site }: Stand, part: string): Promise<void> => {
  const captures = Context.get(site.gateway.services, Captures)
  for (;;) {
    const replies = await Effect.runPromise(captures.list)
    if (replies.some(({ bytes, closed }) => !closed && Buffer.from(bytes).includes(part))) return
    await new Promise(setImmediate)
  }
}

/**
 * Moves the clock past the silence timeout whenever the upstream is silent and `ready` confirms that the previous
 * output has arrived; returns with the answer.
 */
const passSilences = async ({ clock, site }: Stand, answer: Promise<unknown>, ready: () => Promise<unknown>) => {
  let answered = false
  const end = answer.then(() => {
    answered = true
  })
  for (let count = 1; !answered; count++) {
    await Promise.race([end, site.until(({ silences }) => silences >= count).then(ready)])
    if (!answered) clock.move(patience * 1_000)
  }
}

/** Gives each row its own account names, so that rows do not affect each other. */
let rows = 0

interface Asked {
  readonly said: Said
  readonly report: Report
  /** Accounts of the calls of this kind, in the notation of `Tries`. */
  readonly triesOf: (call: CallName) => string
  /** Accounts in rotation, in the same notation. */
  readonly inRotation: () => Promise<string>
}

/** Sends a request with fresh accounts and the given faults (`account` by its letter); returns once the upstream is idle. */
const ask = async (
  stand: Stand,
  prompt: string,
  faults: ReadonlyArray<FaultOrder>,
  silence?: Silence
): Promise<Asked> => {
  const { setting, site, stream } = stand
  const { direct, names, target } = settings[setting]
  const suffix = ++rows
  const emailOf = (letter: string) => account(`${letter}${suffix}`).email
  await site.change({ accounts: names.map((name) => account(`${name}${suffix}`)) })
  await Effect.runPromise(site.reference.forget)
  for (const { account, ...fault } of faults) {
    await Effect.runPromise(
      site.reference.fail(account === undefined ? fault : { ...fault, account: emailOf(account) })
    )
  }
  const response = send(site.url, prompt, {
    stream,
    ...(direct ? { key: ownToken } : {}),
    ...(target === undefined ? {} : { target: emailOf(target) })
  })
  const answer = response.then(readSaid)
  if (silence !== undefined) {
    const { heard, shown = false } = silence
    await passSilences(stand, answer, async () => {
      if (shown && stream) await response
      else if (heard !== undefined) await untilHeard(stand, heard)
    })
  }
  const said = await answer
  await site.until(isQuiet)
  // An upstream that must receive a stop has received it once the account is free.
  await untilQueue(site, { in_use: 0 })
  const report = await site.report()
  return {
    said,
    report,
    triesOf: (call) =>
      report.requests.filter((request) => request.call === call)
        .map(({ account }) => account === ownToken ? "-" : account[0]).join(""),
    inRotation: async () => {
      const { available_accounts } = await admin(site.url, "GET", "/admin/queue/status")
      return names.filter((name) => JSON.stringify(available_accounts).includes(emailOf(name))).join("")
    }
  }
}

const always = 1_000

/** A plain error: no success, no text, and only the fields that a caller may see. */
const checkPlain = ({ said }: Asked, { code, status, words }: Told, retryAfter: RegExp | undefined) => {
  const { message, ...error } = said.error ?? { message: "no error" }
  assert.match(message, words)
  // A server that cannot be reached states no time.
  const wait = words === unreachable.words ? /^5$/ : retryAfter
  if (wait !== undefined) assert.match(said.retryAfter ?? "", wait)
  // If every account is out: the time until the pool retries the first of them, or that of an unknown time.
  const isOutage = code === "no_account_available" && said.retryAfter !== undefined
  if (isOutage) assert.match(said.retryAfter ?? "", /^(?:5|5\d|6\d|7[0-5])$/)
  assert.deepStrictEqual({ ...said, error }, {
    status,
    text: "",
    finish: undefined,
    error: { code, type: types[status], param: null },
    retryAfter: wait === undefined && !isOutage ? undefined : said.retryAfter,
    shouldRetry: status === 400 || status === 401 ? "false" : undefined,
    ending: "whole"
  })
}

const checkBefore = async (stand: Stand, expected: Before) => {
  const { direct, fault, told, tries, silence, stops = false } = expected
  const asked = await ask(stand, "!say one", [{ ...fault, times: always }], silence)
  checkPlain(asked, stand.setting === "direct" ? direct ?? told : told, expected.retryAfter)
  const made = tries[stand.setting]
  assert.strictEqual(asked.triesOf(callOf(fault)), made)
  assert.strictEqual(asked.report.calls.continue, 0)
  assert.strictEqual(asked.report.calls.stop_stream, stops ? made.length : 0)
}

/** Runs on every stand concurrently, and waits for all of them even if one fails. */
const onEach = async (stands: ReadonlyArray<Stand>, check: (stand: Stand) => Promise<void>) => {
  const results = await Promise.allSettled(stands.map(check))
  results.forEach((result, i) => {
    const { setting, stream } = stands[i]!
    if (result.status === "rejected") {
      throw new Error(`${setting}${stream ? ", streamed" : ""}: ${String(result.reason)}`, { cause: result.reason })
    }
  })
}

const stopStands = (stands: ReadonlyArray<Stand>) => Promise.all(stands.map(({ site }) => site.stop()))

describe("a fault before any output", () => {
  let stands: ReadonlyArray<Stand>
  beforeAll(async () => {
    stands = await startStands()
  })
  afterAll(() => stopStands(stands))

  for (const expected of [...before, ...silent]) {
    it(`${titleOf(expected)}: ${expected.told.status} ${expected.told.code}`, () =>
      onEach(stands, (stand) => checkBefore(stand, expected)))
  }

  for (const expected of atLogin) {
    it(`${titleOf(expected)}: ${expected.told.status} ${expected.told.code}`, () =>
      onEach(stands.filter(({ setting }) => setting !== "direct"), (stand) => checkBefore(stand, expected)))
  }
})

describe("an upstream reply without text", () => {
  it("is an error: 503 upstream_empty_output", async () => {
    const stands = await startStands()
    await onEach(stands, async (stand) => {
      const asked = await ask(stand, "!say \"\"", [])
      checkPlain(asked, told(503, "upstream_empty_output", /^The reply of the upstream was empty\.$/), undefined)
      assert.strictEqual(asked.triesOf("completion"), thrice[stand.setting])
    }).finally(() => stopStands(stands))
  })
})

describe("failover to a second account", () => {
  let stands: ReadonlyArray<Stand>
  beforeAll(async () => {
    stands = await startStands(["two"])
  })
  afterAll(() => stopStands(stands))

  const passing = [...before, ...atLogin].filter(({ tries }) => tries !== once)
  for (const { fault, tries } of passing) {
    it(`${titleOf({ fault })}: the caller gets the complete reply`, () =>
      onEach(stands, async (stand) => {
        const asked = await ask(stand, "!say one", [{ ...fault, account: "a", times: always }])
        assert.strictEqual(textOf(asked.said), "one")
        assert.strictEqual(asked.triesOf(callOf(fault)), tries === refreshed ? "aab" : "ab")
        assert.strictEqual(await asked.inRotation(), tries === thrice ? "ab" : "b")
      }))
  }
})

const checkAfter = async (
  stand: Stand,
  { continues = 0, direct, faults, retryAfter, silence, stops = 0, told, tries }: After
) => {
  const asked = await ask(
    stand,
    "!say one two three",
    faults.map((fault) => ({ call: usualCall(fault.name), ...fault, times: always })),
    silence
  )
  const { setting, stream } = stand
  const expected = setting === "direct" ? direct ?? told : told
  if (!stream) checkPlain(asked, expected, retryAfter)
  else {
    const { error, ...said } = asked.said
    assert.match(error?.message ?? "", expected.words)
    assert.deepInclude(error, { code: expected.code, type: types[expected.status] ?? "" })
    assert.deepStrictEqual(said, {
      status: 200,
      text: "one",
      finish: undefined,
      retryAfter: undefined,
      shouldRetry: undefined,
      ending: "error"
    })
  }
  const made = stream ? tries[setting].slice(0, 1) : tries[setting]
  assert.strictEqual(asked.triesOf("completion"), made)
  const { calls } = asked.report
  const renewable = setting !== "direct" || told !== refusedToken
  assert.deepStrictEqual({ continues: calls.continue, stops: calls.stop_stream }, {
    continues: Math.min(mostResumes, made.length * (renewable ? continues : 1)),
    stops: made.length * stops
  })
}

describe("a fault after the first text, in a stream and in a whole reply", () => {
  let stands: ReadonlyArray<Stand>
  beforeAll(async () => {
    stands = await startStands()
  })
  afterAll(() => stopStands(stands))

  for (const expected of after) {
    it(`${expected.about}: ${expected.told.code}`, () => onEach(stands, (stand) => checkAfter(stand, expected)))
  }

  const works: ReadonlyArray<
    readonly [about: string, faults: ReadonlyArray<FaultOrder>, text: string, finish: string, continues: number]
  > = [
    ["a connection that breaks", [cut], "one two three", "stop", 1],
    ["an early end", [{ name: "cut-off" }], "one two three", "stop", 1],
    ["a missing final status", [{ name: "no-status" }], "one two three", "stop", 1],
    ["a cut-off before the first text", [{ name: "cut-off", after: 0 }], "one two three", "stop", 1],
    ["a token that has expired", [cut, { name: "token-expired", call: "continue" }], "one two three", "stop", 2],
    ["a continue that is cut off", [cut, { name: "cut-off", call: "continue" }], "one two three", "stop", 2],
    ["a withdrawn reply", [{ name: "content-filter", after: 1 }], "one", "content_filter", 0]
  ]
  for (const [about, faults, text, finish, continues] of works) {
    it(`${about}: 200 without an error`, () =>
      onEach(stands.filter(({ setting }) => setting !== "direct"), async (stand) => {
        const { report, said, triesOf } = await ask(stand, "!say one two three", faults)
        assert.deepInclude(said, { status: 200, error: undefined, text, finish })
        assert.strictEqual(said.ending, stand.stream ? "finish" : "whole")
        assert.lengthOf(triesOf("completion"), 1)
        assert.deepInclude(report.calls, { continue: continues, stop_stream: 0 })
      }))
  }

  it("endless cuts at the output limit: the reply ends with finish reason length after 16 continues", () =>
    onEach(stands, async (stand) => {
      const { report, said } = await ask(stand, "!say one", [{ name: "endless-incomplete" }])
      assert.deepInclude(said, { status: 200, error: undefined, finish: "length" })
      assert.strictEqual(said.text, Array.from({ length: 17 }, (_, i) => `${i} `).join(""))
      assert.deepInclude(report.calls, { completion: 1, continue: 16 })
    }))
})

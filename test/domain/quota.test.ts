/** Windows of accounts' quotas, as the servers of each vendor state them. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  countsModel,
  decodeWindow,
  encodeKey,
  encodeWindow,
  pacificMidnight,
  pausesOf,
  type QuotaWindow,
  resetOfError,
  windowAt,
  windowsOfError,
  windowsOfEvent,
  windowsOfHeaders
} from "../../src/domain/quota.ts"
import { runs } from "../support/effort.ts"

const now = Date.UTC(2026, 10, 27, 12)
const seconds = (count: number) => now + count * 1_000

/** Windows without the times at which they were seen. */
const shown = (windows: ReadonlyArray<QuotaWindow>) =>
  windows.map(({ room_at, seen_at, ...window }) => ({
    ...window,
    ...(room_at === window.resets_at ? {} : { room_at }),
    ...(seen_at === now ? {} : { seen_at })
  }))

const whole = { model: null, limit: null, remaining: null }

const headerCases: ReadonlyArray<readonly [string, Record<string, string>, ReadonlyArray<object>]> = [
  ["unified windows", {
    "anthropic-ratelimit-unified-status": "allowed",
    "anthropic-ratelimit-unified-5h-utilization": "0.42",
    "anthropic-ratelimit-unified-5h-reset": String(seconds(3_600) / 1_000),
    "anthropic-ratelimit-unified-5h-status": "allowed",
    "anthropic-ratelimit-unified-7d-utilization": "0.85",
    "anthropic-ratelimit-unified-7d-reset": String(seconds(86_400) / 1_000),
    "anthropic-ratelimit-unified-7d-status": "allowed_warning",
    "anthropic-ratelimit-unified-7d_opus-utilization": "1.02",
    "anthropic-ratelimit-unified-7d_opus-reset": String(seconds(86_400) / 1_000),
    "anthropic-ratelimit-unified-7d_opus-status": "rejected"
  }, [
    { ...whole, window: "5h", used: 0.42, resets_at: seconds(3_600), status: "ok" },
    { ...whole, window: "7d", used: 0.85, resets_at: seconds(86_400), status: "low" },
    { ...whole, window: "7d_opus", model: "opus", used: 1, resets_at: seconds(86_400), status: "exhausted" }
  ]],
  ["a full window that the server still allows", {
    "anthropic-ratelimit-unified-5h-utilization": "1",
    "anthropic-ratelimit-unified-5h-reset": String(seconds(60) / 1_000),
    "anthropic-ratelimit-unified-5h-status": "allowed_warning"
  }, [{ ...whole, window: "5h", used: 1, resets_at: seconds(60), status: "low" }]],
  ["windows of a model with times", {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2026-11-27T12:00:01Z",
    "anthropic-ratelimit-input-tokens-limit": "30000",
    "anthropic-ratelimit-input-tokens-remaining": "0",
    "anthropic-ratelimit-input-tokens-reset": "2026-11-27T13:00:30+01:00"
  }, [
    { window: "requests", model: "m", used: 0.02, limit: 50, remaining: 49, resets_at: seconds(1), status: "ok" },
    {
      window: "input_tokens",
      model: "m",
      used: 1,
      limit: 30_000,
      remaining: 0,
      resets_at: seconds(30),
      status: "exhausted"
    }
  ]],
  ["windows that refill steadily", {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "6m0s",
    "x-ratelimit-limit-tokens": "1000",
    "x-ratelimit-remaining-tokens": "100",
    "x-ratelimit-reset-tokens": "12ms"
  }, [
    {
      window: "requests",
      model: "m",
      used: 1,
      limit: 500,
      remaining: 0,
      resets_at: seconds(360),
      status: "exhausted",
      room_at: seconds(0.72)
    },
    {
      window: "tokens",
      model: "m",
      used: 0.9,
      limit: 1_000,
      remaining: 100,
      resets_at: seconds(0.012),
      status: "low",
      room_at: seconds(0.001)
    }
  ]],
  ["a reset in seconds", {
    "x-ratelimit-limit-tokens": "10",
    "x-ratelimit-remaining-tokens": "5",
    "x-ratelimit-reset-tokens": "1.5"
  }, [{
    window: "tokens",
    model: "m",
    used: 0.5,
    limit: 10,
    remaining: 5,
    resets_at: seconds(1.5),
    status: "ok",
    room_at: seconds(0.15)
  }]],
  ["windows of a subscription", {
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": String(seconds(7_200) / 1_000),
    "x-codex-primary-reset-after-seconds": "1",
    "x-codex-secondary-used-percent": "12.5",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-after-seconds": "90"
  }, [
    { ...whole, window: "5h", used: 1, resets_at: seconds(7_200), status: "exhausted" },
    { ...whole, window: "7d", used: 0.125, resets_at: seconds(90), status: "ok" }
  ]],
  ["another length", {
    "x-codex-primary-used-percent": "5",
    "x-codex-primary-window-minutes": "60",
    "x-codex-primary-reset-after-seconds": "90"
  }, [{ ...whole, window: "60m", used: 0.05, resets_at: seconds(90), status: "ok" }]],
  ["a window whose reset has passed", {
    "x-codex-primary-used-percent": "100",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-at": String(seconds(-5) / 1_000)
  }, [{ ...whole, window: "5h", used: 0, resets_at: seconds(-5), status: "ok" }]],
  ["resets beyond the length of their windows", {
    "x-codex-primary-used-percent": "1",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-after-seconds": "99999999",
    "x-codex-secondary-used-percent": "100",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-at": String(seconds(400 * 86_400) / 1_000),
    "anthropic-ratelimit-unified-7d_opus-utilization": "1",
    "anthropic-ratelimit-unified-7d_opus-reset": String(seconds(400 * 86_400) / 1_000),
    "x-ratelimit-limit-requests": "10",
    "x-ratelimit-remaining-requests": "5",
    "x-ratelimit-reset-requests": "400d"
  }, [
    { ...whole, window: "5h", used: 0.01, resets_at: seconds(5 * 3_600), status: "ok" },
    { ...whole, window: "7d", used: 1, resets_at: seconds(7 * 86_400), status: "exhausted" },
    { ...whole, window: "7d_opus", model: "opus", used: 1, resets_at: seconds(7 * 86_400), status: "exhausted" },
    {
      window: "requests",
      model: "m",
      used: 0.5,
      limit: 10,
      remaining: 5,
      resets_at: seconds(25 * 3_600),
      room_at: seconds(2.5 * 3_600),
      status: "ok"
    }
  ]],
  ["milliseconds in place of seconds", {
    "x-codex-primary-used-percent": "1",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-after-seconds": "7200000",
    "x-codex-secondary-used-percent": "1",
    "x-codex-secondary-window-minutes": "10080",
    "x-codex-secondary-reset-at": String(seconds(7_200)),
    "anthropic-ratelimit-unified-5h-utilization": "0.5",
    "anthropic-ratelimit-unified-5h-reset": String(seconds(90)),
    "x-ratelimit-limit-requests": "2",
    "x-ratelimit-remaining-requests": "1",
    "x-ratelimit-reset-requests": String(seconds(60)),
    "x-ratelimit-limit-tokens": "2",
    "x-ratelimit-remaining-tokens": "1",
    "x-ratelimit-reset-tokens": String(seconds(60) / 1_000)
  }, [
    { ...whole, window: "5h", used: 0.01, resets_at: seconds(7_200), status: "ok" },
    { ...whole, window: "7d", used: 0.01, resets_at: seconds(7_200), status: "ok" },
    { ...whole, window: "5h", used: 0.5, resets_at: seconds(90), status: "ok" },
    ...["requests", "tokens"].map((window) => ({
      window,
      model: "m",
      used: 0.5,
      limit: 2,
      remaining: 1,
      resets_at: seconds(60),
      room_at: seconds(30),
      status: "ok" as const
    }))
  ]]
]

/** Headers that state no window: one value of each is nonsense or missing. */
const nonsense: ReadonlyArray<readonly [string, Record<string, string>]> = [
  ["a share that is no number", {
    "anthropic-ratelimit-unified-5h-utilization": "much",
    [unifiedReset()]: "1800000000"
  }],
  ["a negative share", { "anthropic-ratelimit-unified-5h-utilization": "-0.5", [unifiedReset()]: "1800000000" }],
  ["no reset", { "anthropic-ratelimit-unified-5h-utilization": "0.5" }],
  ["a reset in other words", { "anthropic-ratelimit-unified-5h-utilization": "0.5", [unifiedReset()]: "soon" }],
  ["a limit of 0", {
    "x-ratelimit-limit-requests": "0",
    "x-ratelimit-remaining-requests": "0",
    "x-ratelimit-reset-requests": "1s"
  }],
  ["an empty reset", {
    "x-ratelimit-limit-requests": "5",
    "x-ratelimit-remaining-requests": "1",
    "x-ratelimit-reset-requests": " "
  }],
  ["no rest", { "x-ratelimit-limit-requests": "5", "x-ratelimit-reset-requests": "1s" }],
  ["no length", { "x-codex-primary-used-percent": "5", "x-codex-primary-reset-after-seconds": "9" }],
  ["other headers", { "x-ratelimit-limit": "5", "retry-after": "3" }]
]

function unifiedReset() {
  return "anthropic-ratelimit-unified-5h-reset"
}

describe("the headers of an answer", () => {
  it.each(headerCases)("state %s", (_, headers, expected) => {
    assert.deepStrictEqual(shown(windowsOfHeaders(headers, "m", now)), expected)
  })

  it.each(nonsense)("state nothing with %s", (_, headers) => {
    assert.deepStrictEqual(windowsOfHeaders(headers, "m", now), [])
  })

  it("state windows within their bounds, whatever their values are", () => {
    const names = fc.constantFrom(
      ...new Set([...headerCases, ...nonsense].flatMap(([, headers]) => Object.keys(headers)))
    )
    const value = fc.oneof(
      fc.string(),
      fc.double().map(String),
      fc.integer().map(String),
      fc.constantFrom("0", "1", "1e9", "6m0s", "12ms", "NaN", "Infinity", "-1", "2026-11-27T12:00:01Z", "9".repeat(40))
    )
    fc.assert(
      fc.property(fc.dictionary(names, value), (headers) => {
        const windows = windowsOfHeaders(headers, "m", now)
        assert.isAtMost(windows.length, 16)
        for (const { limit, remaining, resets_at, room_at, used } of windows) {
          assert.isTrue(used >= 0 && used <= 1, `used ${used}`)
          assert.isTrue(Number.isFinite(resets_at) && resets_at <= seconds(30 * 86_400), `reset ${resets_at}`)
          assert.isAtMost(room_at, resets_at)
          for (const amount of [limit, remaining]) assert.isTrue(amount === null || amount >= 0, `amount ${amount}`)
        }
      }),
      { numRuns: runs(300) }
    )
  })
})

describe("an event of a stream", () => {
  const primary = { used_percent: 40, window_minutes: 300, reset_after_seconds: 60 }

  it("states the windows of a subscription", () => {
    const event = { type: "codex.rate_limits", rate_limits: { primary, secondary: null } }
    assert.deepStrictEqual(shown(windowsOfEvent(event, now)), [
      { ...whole, window: "5h", used: 0.4, resets_at: seconds(60), status: "ok" }
    ])
  })

  it("states nothing in another form", () => {
    for (
      const event of [
        null,
        [],
        { type: "codex.rate_limits" },
        { type: "codex.rate_limits", rate_limits: { primary: { ...primary, used_percent: "much" } } },
        { type: "response.created", rate_limits: { primary } }
      ]
    ) assert.deepStrictEqual(windowsOfEvent(event, now), [])
  })
})

describe("the body of a refusal", () => {
  const daily = (quotaId: string) => ({
    error: {
      code: 429,
      status: "RESOURCE_EXHAUSTED",
      details: [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ quotaId }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "12.5s" }
      ]
    }
  })
  const midnight = Date.UTC(2026, 10, 28, 8)

  it.each<[string, unknown, number | undefined]>([
    ["a time", { error: { resets_at: seconds(90) / 1_000 } }, 90],
    ["a number of seconds", { error: { resets_in_seconds: 4_000 } }, 4_000],
    ["both, of which the later one counts", {
      error: { resets_at: seconds(90) / 1_000, resets_in_seconds: 91 }
    }, 91],
    ["a time to wait", daily("GenerateRequestsPerMinute"), 12.5],
    ["a limit of the day", daily("GenerateRequestsPerDay"), (midnight - now) / 1_000],
    ["a list of errors", [{ error: { resets_in_seconds: 7 } }], 7],
    ["a time in milliseconds", { error: { resets_at: seconds(90) } }, 90],
    ["a time in place of seconds", { error: { resets_in_seconds: seconds(90) / 1_000 } }, 90],
    ["milliseconds of more than 30 days of seconds", { error: { resets_in_seconds: 3_600_000 } }, 3_600],
    ["a time beyond 30 days", { error: { resets_at: seconds(400 * 86_400) / 1_000 } }, 30 * 86_400],
    ["a time that has passed", { error: { resets_at: seconds(-90) / 1_000 } }, undefined],
    ["words", { error: { resets_at: "soon", resets_in_seconds: "-5" } }, undefined],
    ["nothing", null, undefined]
  ])("states %s", (_, body, expected) => {
    assert.strictEqual(resetOfError(body, now), expected)
  })

  it("states a used-up window for a limit of the day, of the account or of a model", () => {
    const window = { ...whole, window: "day", used: 1, resets_at: midnight, status: "exhausted" as const }
    assert.deepStrictEqual(shown(windowsOfError(daily("GenerateRequestsPerDayPerProject"), "m", now)), [window])
    assert.deepStrictEqual(
      shown(windowsOfError(daily("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), "m", now)),
      [
        { ...window, model: "m" }
      ]
    )
    assert.deepStrictEqual(windowsOfError(daily("GenerateRequestsPerMinute"), "m", now), [])
  })

  it.each([
    ["in winter", Date.UTC(2026, 0, 5, 7, 59, 59, 999), Date.UTC(2026, 0, 5, 8)],
    ["at midnight", Date.UTC(2026, 0, 5, 8), Date.UTC(2026, 0, 6, 8)],
    ["in summer", Date.UTC(2026, 6, 5, 12), Date.UTC(2026, 6, 6, 7)],
    ["on a day of 23 hours", Date.UTC(2026, 2, 8, 9), Date.UTC(2026, 2, 9, 7)],
    ["on a day of 25 hours", Date.UTC(2026, 10, 1, 8), Date.UTC(2026, 10, 2, 8)]
  ])("of a day lasts until midnight in Pacific time: %s", (_, from, until) => {
    assert.strictEqual(pacificMidnight(from), until)
  })
})

describe("windows", () => {
  const [opus, requests] = [headerCases[0]![1], headerCases[3]![1]].map((headers) =>
    windowsOfHeaders(headers, "m", now)
  )
  const model = (id: string, name = id) => ({ id, name })

  it("pause the account, a model, or a class of models, until the latest of them has something left", () => {
    assert.deepStrictEqual(pausesOf(requests!, model("m"), now), { account: 0, model: seconds(0.72) })
    assert.deepStrictEqual(pausesOf(requests!, model("other"), now), { account: 0, model: 0 })
    assert.deepStrictEqual(pausesOf(opus!, model("best", "vendor-opus-5"), now), { account: 0, model: seconds(86_400) })
    assert.deepStrictEqual(pausesOf(opus!, model("sonnet"), now), { account: 0, model: 0 })
    const full = [3_600, 60].map((after, i) => ({
      ...opus![i]!,
      status: "exhausted" as const,
      room_at: seconds(after)
    }))
    assert.deepStrictEqual(pausesOf(full, model("m"), now), { account: seconds(3_600), model: 0 })
    assert.deepStrictEqual(pausesOf(full, model("m"), seconds(3_600)), { account: 0, model: 0 })
    assert.isTrue(countsModel({ window: "input_tokens", model: "m" }, model("m")))
    assert.isFalse(countsModel({ window: "input_tokens", model: "m" }, model("m2")))
  })

  it("are empty after their reset, and have something left once they have refilled", () => {
    const [first] = requests!
    assert.deepInclude(windowAt(first!, seconds(0.5)), { used: 1, status: "exhausted" })
    assert.deepInclude(windowAt(first!, seconds(1)), { used: 1, status: "low" })
    assert.deepInclude(windowAt(first!, seconds(360)), { used: 0, remaining: 500, status: "ok" })
  })

  it("are the same after the store", () => {
    for (const [, headers] of headerCases) {
      for (const window of windowsOfHeaders(headers, "a model, with; signs%", now)) {
        assert.deepStrictEqual(decodeWindow(encodeKey(window), encodeWindow(window)), window)
      }
    }
    for (
      const [key, value] of [["", ""], ["5h", "1"], ["%", ",,"], ["5h,", "a,,,1,ok,1,1"], ["5h,", "1,,,1,bad,1,1"]]
    ) {
      assert.isUndefined(decodeWindow(key!, value!))
    }
  })
})

/**
 * The list of requests: its filters, and how events update a page of it.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  exactly,
  exactValue,
  fieldOf,
  filterOf,
  fits,
  narrowed,
  readTime,
  timeOf
} from "../../../src/web/pages/requests/filter.ts"
import {
  freshOf,
  holdPage,
  mostHeld,
  pageSize,
  releasePage,
  type ShownPage,
  updatePage
} from "../../../src/web/pages/requests/updatePage.ts"
import type { RequestItem } from "../../../src/web/state/client.ts"
import type { RequestFilter } from "../../../src/web/state/requests.ts"

const everything = {}

const itemAt = (started_at: number, change: Partial<RequestItem> = {}): RequestItem => ({
  id: `r${started_at}`,
  request_id: `req_${started_at}`,
  started_at,
  style: "chat",
  model: "upstream-chat",
  native_model: "upstream-chat",
  stream: true,
  key: "direct",
  key_name: null,
  account: "",
  state: "streaming",
  outcome: "open",
  status: null,
  error: null,
  finish: null,
  attempts: 1,
  failovers: 0,
  calls: 0,
  queued_ms: null,
  first_event_ms: null,
  duration_ms: null,
  usage: null,
  cost: null,
  bodies_kept: true,
  ...change
})

const pageOf = (items: ReadonlyArray<RequestItem>, next_cursor: string | null = null): ShownPage => ({
  enabled: true,
  limit: 1_000,
  kept: items.length,
  bytes: 0,
  max_total_bytes: 0,
  items,
  next_cursor,
  cut: false,
  held: new Map(),
  outdated: false
})

const timesOf = (page: ShownPage) => page.items.map((item) => item.started_at)

describe("updatePage, which applies an event to a page of requests", () => {
  it("removes a request that no longer matches the filter", () => {
    const page = pageOf([itemAt(2), itemAt(1)])
    const ended = itemAt(1, { state: "done", outcome: "ok", status: 200 })
    for (const isNewest of [true, false]) {
      assert.deepStrictEqual(timesOf(updatePage(page, [ended], { ...everything, status: "open" }, isNewest)), [2])
      assert.deepStrictEqual(updatePage(page, [ended], everything, isNewest).items, [itemAt(2), ended])
    }
  })

  it("matches parts of values in any case, and whole ones in double quotes, as the server does", () => {
    const item = itemAt(1, { key: "aa01", key_name: "Mobile app", account: "ann@x.org" })
    const joins = (filter: object) => updatePage(pageOf([]), [item], { ...everything, ...filter }, true).items.length
    for (const filter of [{ model: "CHAT" }, { key: "mobile" }, { key: "\"aa01\"" }, { account: "@x" }]) {
      assert.strictEqual(joins(filter), 1, JSON.stringify(filter))
    }
    for (const filter of [{ model: "\"chat\"" }, { key: "desktop" }, { account: "bob" }]) {
      assert.strictEqual(joins(filter), 0, JSON.stringify(filter))
    }
  })

  it("keeps the order of time when a request begins to match", () => {
    const failed = { state: "done", outcome: "failed", status: 502 } as const
    const page = pageOf([itemAt(5, failed), itemAt(2, failed)])
    const now = updatePage(page, [itemAt(3, failed), itemAt(7, failed), itemAt(1, failed)], {
      ...everything,
      status: "5xx"
    }, true)
    assert.deepStrictEqual(timesOf(now), [7, 5, 3, 2, 1])
  })

  it("marks a page whose rows were pushed off, and ignores requests of later pages", () => {
    const full = pageOf(Array.from({ length: pageSize }, (_, i) => itemAt(100 - i)))
    assert.isFalse(updatePage(full, [itemAt(100)], everything, true).cut)
    const cut = updatePage(full, [itemAt(101)], everything, true)
    assert.isTrue(cut.cut)
    assert.deepStrictEqual([timesOf(cut)[0], timesOf(cut).at(-1), cut.items.length], [101, 52, pageSize])
    assert.deepStrictEqual(timesOf(updatePage(cut, [itemAt(1)], everything, true)), timesOf(cut))
    assert.isTrue(updatePage(cut, [], everything, true).cut)
  })

  it("adds new requests to the newest page alone", () => {
    const page = pageOf([itemAt(2)], "r2")
    assert.deepStrictEqual(updatePage(page, [itemAt(3)], everything, false), page)
  })

  it("updates requests of which only the server knows whether they match, and adds none of them", () => {
    const page = pageOf([itemAt(2), itemAt(1)])
    const ended = itemAt(1, { state: "done", outcome: "ok", status: 200 })
    const now = updatePage(page, [ended, itemAt(3)], { text: "hello" }, true)
    assert.deepStrictEqual(now.items, [itemAt(2), ended])
    assert.isTrue(now.outdated)
  })

  it("holds rows still and counts the new ones until the page is released", () => {
    const page = pageOf([itemAt(2), itemAt(1)])
    const failed = itemAt(1, { state: "done", outcome: "failed", status: 502 })
    const filter = { outcome: "open" }
    const held = holdPage(page, [failed, itemAt(3), itemAt(4)], filter, true, false)
    // The row no longer matches, and keeps its place.
    assert.deepStrictEqual(held.items, [itemAt(2), failed])
    assert.strictEqual(freshOf(held), 2)
    // A held request that ends no longer matches, and is no longer counted.
    const fewer = holdPage(held, [itemAt(4, { state: "done", outcome: "ok" })], filter, true, false)
    assert.strictEqual(freshOf(fewer), 1)
    assert.deepStrictEqual(timesOf(releasePage(fewer, filter, true)), [3, 2])
    assert.deepStrictEqual(holdPage(page, [failed, itemAt(3)], filter, true, true).items, page.items)
    assert.strictEqual(freshOf(holdPage(page, [itemAt(3)], filter, false, false)), 0)
  })

  it("holds a limited number of changes", () => {
    const page = pageOf([itemAt(1)])
    const many = Array.from({ length: mostHeld + 1 }, (_, i) => itemAt(10 + i))
    const held = holdPage(page, many.slice(0, mostHeld), everything, true, false)
    assert.isFalse(held.outdated)
    const full = holdPage(held, many, everything, true, false)
    assert.isTrue(full.outdated)
    assert.strictEqual(full.held.size, mostHeld)
  })
})

describe("fits, which applies the filters of the list of requests to an event", () => {
  const item = itemAt(1_795_405_956_926, {
    key: "f1f688ce41f4a800",
    key_name: "Mobile app (production)",
    model: "qwen3",
    native_model: "upstream-chat",
    account: "ada@example.com",
    target: "gpu/Qwen/Qwen3-8B",
    outcome: "failed",
    state: "done",
    status: 502,
    error: "upstream_error",
    duration_ms: 1_500,
    prompt_cache: {
      prompt: 100,
      read: 0,
      written: 0,
      predicted: 90,
      result: "miss",
      reason: "moved",
      at: null,
      because: "full",
      age_s: null
    }
  })

  it.each<[string, RequestFilter]>([
    ["everything", {}],
    ["an empty filter", { model: "", status: "" }],
    ["a part of the key's name in any case", { key: "mobile APP" }],
    ["a part of the key's id", { key: "f1f688" }],
    ["the whole key's id in quotes", { key: `"f1f688ce41f4a800"` }],
    ["a part of the model as it was asked for", { model: "QWEN" }],
    ["the whole model as it resolved", { model: `"upstream-chat"` }],
    ["a part of the account", { account: "@example" }],
    ["a part of the error's code", { code: "upstream" }],
    ["the upstream", { upstream: "gpu" }],
    ["the outcome", { outcome: "failed" }],
    ["a status", { status: "502" }],
    ["a class of statuses", { status: "5xx" }],
    ["the style", { style: "chat" }],
    ["a least duration", { min_ms: "1500" }],
    ["a result of the prompt cache", { prompt_cache: "miss" }],
    ["a reason of the prompt cache", { prompt_cache: "moved" }],
    ["its own millisecond as the beginning", { from: "1795405956926" }],
    ["a later end", { to: "2026-11-23T23:59:59Z" }],
    ["several of them", { outcome: "failed", model: "qwen", from: "2026-11-23" }]
  ])("matches %s", (_, filter) => assert.isTrue(fits(filter, item)))

  it.each<[string, RequestFilter]>([
    ["a part of a model in quotes", { model: `"qwen"` }],
    ["another upstream of which its own is the beginning", { upstream: "gpu2" }],
    ["a part of the upstream's name", { upstream: "gp" }],
    ["another class of statuses", { status: "4xx" }],
    ["a longer duration", { min_ms: "1501" }],
    ["another reason of the prompt cache", { prompt_cache: "expired" }],
    ["its own millisecond as the end", { to: "1795405956926" }],
    ["one of several", { outcome: "failed", model: "gpt" }],
    ["a text beside a filter that excludes it", { text: "hello", outcome: "ok" }]
  ])("does not match %s", (_, filter) => assert.isFalse(fits(filter, item)))

  it("leaves texts, and durations of running requests, to the server", () => {
    assert.isUndefined(fits({ text: "hello" }, item))
    assert.isUndefined(fits({ min_ms: "1000" }, itemAt(1)))
  })

  it("reads the whole values that facets ask for", () => {
    for (const filter of ["key", "model", "account", "code", "upstream", "style"]) {
      fc.assert(fc.property(fc.string({ minLength: 1 }), (value) => {
        assert.strictEqual(exactValue(filter, exactly(filter, value)), value)
      }))
    }
  })
})

describe("the address of the list of requests", () => {
  it("leaves out values that no request can have", () => {
    assert.deepStrictEqual(
      narrowed({
        style: "chat",
        outcome: "well",
        status: "9xx",
        min_ms: "long",
        range: "1y",
        model: "",
        open: "req_1"
      }),
      { style: "chat" }
    )
  })

  it("turns a range into a time", () => {
    assert.deepStrictEqual(filterOf({ range: "1h", model: "gpt" }, 3_600_000_000), { model: "gpt", from: "3596400000" })
  })

  it("reads times as the server does", () => {
    const time = Date.UTC(2026, 10, 21, 13)
    for (const text of [String(time), String(time / 1000), "2026-11-21T13:00:00Z", "2026-11-21T14:00:00+01:00"]) {
      assert.strictEqual(readTime(text), time)
    }
    assert.isUndefined(readTime("yesterday"))
  })

  it("gives the same time back from the fields of a range, in both zones", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 4_000_000_000 }), (seconds) => {
      assert.strictEqual(timeOf(fieldOf(seconds * 1000, "utc"), "utc"), seconds * 1000)
    }))
    const summer = Date.UTC(2026, 6, 1, 12)
    assert.strictEqual(timeOf(fieldOf(summer, "local"), "local"), summer)
    assert.isUndefined(timeOf("", "utc"))
  })
})

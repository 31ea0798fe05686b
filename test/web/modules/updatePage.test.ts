/**
 * How events update a page of the list of requests.
 */
import { assert, describe, it } from "@effect/vitest"
import { pageSize, type ShownPage, updatePage } from "../../../src/web/pages/requests/updatePage.ts"
import type { RequestItem } from "../../../src/web/state/client.ts"

const everything = { status: "", style: "", model: "", key: "", account: "" }

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
  cut: false
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
})

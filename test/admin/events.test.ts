/** The event stream over HTTP: access, number of readers, and end. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller } from "./support.ts"

let gateway: RunningGateway
const call = caller(() => gateway)

beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.stop())

const bearer = { authorization: `Bearer ${adminKey}` }

interface Event {
  readonly id: string
  readonly event: string
  readonly data: Record<string, unknown>
}

/** Opens the stream and reads it event by event. */
const open = async (query = "", headers: Record<string, string> = bearer, at = gateway) => {
  const abort = new AbortController()
  const response = await fetch(`${at.url}/admin/events${query}`, { headers, signal: abort.signal })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  /** The next event, or `undefined` at the end. */
  const next = async (): Promise<Event | undefined> => {
    for (;;) {
      const end = text.indexOf("\n\n")
      if (end !== -1) {
        const frame = text.slice(0, end)
        text = text.slice(end + 2)
        const [, id, event, data] = /^id: (\S+)\nevent: (\w+)\ndata: (.*)$/.exec(frame) ?? []
        if (id !== undefined) return { id, event: event!, data: JSON.parse(data!) }
        continue
      }
      const { done, value } = await reader.read()
      if (done) return undefined
      text += value
    }
  }
  /** The next event of a kind. */
  const until = async (event: string, fits: (data: Event["data"]) => boolean = () => true): Promise<Event> => {
    for (;;) {
      const told = await next()
      if (told === undefined) throw new Error(`the stream ended before ${event}`)
      if (told.event === event && fits(told.data)) return told
    }
  }
  return { response, next, until, close: () => abort.abort() }
}

const chat = (content: string) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content }] })
  })

describe("GET /admin/events", () => {
  it("requires an operator, and rejects unknown topics", async () => {
    assert.strictEqual((await call("GET", "/admin/events", { bearer: null })).status, 401)
    assert.strictEqual((await call("GET", "/admin/events", { bearer: businessKey })).status, 401)
    const refused = await call("GET", "/admin/events?topics=pool,weather")
    assert.deepEqual([refused.status, refused.detail], [400, "topics: must be of pool, queue, requests, config"])
    const { close, response } = await open("?topics=queue")
    assert.match(response.headers.get("content-type") ?? "", /^text\/event-stream/)
    assert.strictEqual(response.headers.get("cache-control"), "no-store")
    close()
  })

  it("sends a request from its start to its end, and changes of the configuration", async () => {
    const { close, until } = await open("?topics=requests,config")
    const hello = await until("hello")
    await until("config", ({ revision }) => revision === hello.data["revision"])
    const response = await chat("!say hello")
    const id = response.headers.get("x-request-id")
    await response.arrayBuffer()
    const { data, id: eventId } = await until(
      "requests",
      ({ items }) =>
        (items as ReadonlyArray<Record<string, unknown>>).some((item) =>
          item["request_id"] === id && item["outcome"] === "ok"
        )
    )
    assert.isFalse(data["more"])
    await call("POST", "/admin/keys", { body: { key: "one-more-key" } })
    const { data: config } = await until("config")
    assert.notStrictEqual(config["revision"], hello.data["revision"])
    close()
    const later = await chat("!say again")
    await later.arrayBuffer()
    const again = await open("?topics=requests", { ...bearer, "last-event-id": eventId })
    const missed = await again.until("requests")
    const names = (missed.data["items"] as ReadonlyArray<Record<string, unknown>>).map(({ request_id }) => request_id)
    assert.deepStrictEqual(names, [later.headers.get("x-request-id")])
    again.close()
  })

  it("has at most 32 readers concurrently", async () => {
    const streams = await Promise.all(Array.from({ length: 32 }, () => open("?topics=queue")))
    for (const { response } of streams) assert.strictEqual(response.status, 200)
    const refused = await call("GET", "/admin/events")
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "10"])
    for (const { close } of streams) close()
    for (;;) {
      const { close, response } = await open("?topics=queue")
      close()
      if (response.status === 200) break
    }
  })

  it("leaves streams for the admin, however many the viewers open: a credential has at most 8, viewers together 24", async () => {
    const keys = await Promise.all(["a", "b", "c", "d"].map(async (name) => {
      const { json } = await call("POST", "/admin/tokens", { body: { name: `viewer-${name}`, role: "viewer" } })
      return { authorization: `Bearer ${(json as { readonly secret: string }).secret}` }
    }))
    const statusOf = async (headers: Record<string, string>) => {
      const stream = await open("?topics=queue", headers)
      if (stream.response.status === 200) streams.push(stream)
      return stream.response.status
    }
    const streams: Array<Awaited<ReturnType<typeof open>>> = []
    for (const key of keys.slice(0, 3)) {
      for (let i = 0; i < 8; i++) assert.strictEqual(await statusOf(key), 200)
      assert.strictEqual(await statusOf(key), 429)
    }
    assert.strictEqual(await statusOf(keys[3]!), 429)
    for (let i = 0; i < 8; i++) assert.strictEqual(await statusOf(bearer), 200)
    assert.strictEqual(await statusOf(bearer), 429)
    for (const { close } of streams) close()
    for (;;) {
      const { close, response } = await open("?topics=queue", keys[3])
      close()
      if (response.status === 200) break
    }
  })

  it("ends with session_ended after a logout", async () => {
    const sameOrigin = { "sec-fetch-site": "same-origin" }
    const login = await fetch(`${gateway.url}/admin/session`, {
      method: "POST",
      headers: { ...sameOrigin, "content-type": "application/json" },
      body: JSON.stringify({ admin_key: adminKey })
    })
    await login.arrayBuffer()
    const cookie = login.headers.get("set-cookie")!.split(";")[0]!
    const { next, until } = await open("?topics=queue", { ...sameOrigin, cookie })
    await until("queue")
    const logout = await fetch(`${gateway.url}/admin/session`, { method: "DELETE", headers: { ...sameOrigin, cookie } })
    await logout.arrayBuffer()
    const last = await until("session_ended")
    assert.deepStrictEqual(last.data, {})
    assert.isUndefined(await next())
  })

  it("ends immediately after a password change and at a drain, which does not wait for a stuck reader", async () => {
    const other = await startGateway()
    const first = await open("?topics=queue", bearer, other)
    await first.until("queue")
    const changed = await fetch(`${other.url}/admin/settings/password`, {
      method: "POST",
      headers: { ...bearer, "content-type": "application/json" },
      body: JSON.stringify({ new_password: "correct horse" })
    })
    assert.strictEqual(changed.status, 200)
    await changed.arrayBuffer()
    await first.until("session_ended")
    const readers = [
      await open("?topics=queue", { authorization: "Bearer correct horse" }, other),
      await open("?topics=queue", { authorization: "Bearer correct horse" }, other)
    ]
    await readers[0]!.until("queue")
    // The second one never reads.
    await other.stop()
    assert.isUndefined(await readers[0]!.next())
  })
})

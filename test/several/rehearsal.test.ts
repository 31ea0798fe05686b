/**
 * Rehearsals over sockets: the targets that are named fail for one request alone, and neither their servers nor their state see it.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { admin } from "../gateway/support.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { chat, type Farm, json, queueOf, send, startFarm, type Told, type Way, wayName } from "./support.ts"

let farm: Farm
let gateway: RunningGateway

const route = (...names: ReadonlyArray<string>): RawConfig => ({ targets: names.map((name) => `${name}/m`) })

beforeAll(async () => {
  farm = await startFarm()
  const names = ["one", "two", "three"]
  gateway = await startGateway({
    upstreams: Object.fromEntries(names.map((name) => [name, farm.upstream(name)])),
    accounts: names.map((name) => ({ upstream: name, token: `key-of-${name}` })),
    routes: { smart: route("one", "two", "three"), lone: route("one") },
    runtime: { sticky: "target" }
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})

interface Token {
  readonly token: string
  readonly route: string
  readonly expires_at: number
}

const rehearse = async (without: ReadonlyArray<string>, of = "smart"): Promise<string> =>
  (await admin(gateway.url, "POST", "/admin/routes/rehearse", { route: of, without }) as unknown as Token).token

const rehearsed = (token: string) => ({ headers: { "x-gateway-rehearsal": token } })

const refusal = ({ body, status }: Told) => [status, JSON.parse(body).error.param, JSON.parse(body).error.code]

/** What operators see of the state of upstreams and accounts. */
const stateOf = async () => {
  const { upstreams } = await admin(gateway.url, "GET", "/admin/upstreams") as {
    readonly upstreams: ReadonlyArray<Readonly<Record<string, unknown>>>
  }
  return {
    upstreams: upstreams.map(({ name, reason, state }) => ({ name, reason, state })),
    queue: (await queueOf(gateway)).of["one"],
    accounts: await admin(gateway.url, "GET", "/admin/accounts?upstream=one")
  }
}

const record = async (told: Told) =>
  await admin(gateway.url, "GET", `/admin/requests/${told.headers.get("x-request-id")}`) as {
    readonly rehearsal?: boolean
    readonly attempts: number
    readonly target?: string
    readonly tries: ReadonlyArray<Readonly<Record<string, unknown>>>
  }

describe("a rehearsed request", () => {
  const ways: ReadonlyArray<Way> = [
    { style: "chat", stream: false },
    { style: "chat", stream: true },
    { style: "messages", stream: true },
    { style: "responses", stream: false },
    { style: "generate", stream: true }
  ]

  it.each(ways)("goes past the target that is named, without a byte to it ($style, streamed $stream)", async (way) => {
    const before = farm.seen("one").length
    const told = await send(gateway, way, "smart", rehearsed(await rehearse(["one/m"])))
    assert.strictEqual(told.status, 200, told.body)
    assert.deepStrictEqual([told.text, told.upstream], ["two", "two"], wayName(way))
    assert.strictEqual(farm.seen("one").length, before)
  })

  it("leaves health, cooling and metrics of that target as they were", async () => {
    const attempts = async () =>
      (await (await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })).text())
        .split("\n").filter((line) => /^gateway_(?:attempts|failovers|retries)_total\b/.test(line))
    await chat(gateway, "smart")
    const [state, counts] = [await stateOf(), await attempts()]
    for (let i = 0; i < 4; i++) {
      const told = await chat(gateway, "smart", rehearsed(await rehearse(["one/m", "two/m"])))
      assert.strictEqual(told.upstream, "three", told.body)
    }
    assert.deepStrictEqual(await stateOf(), state)
    const isOfOther = (line: string) => line.includes(`upstream="three"`)
    assert.deepStrictEqual(
      (await attempts()).filter((line) => !isOfOther(line)),
      counts.filter((line) => !isOfOther(line))
    )
    assert.isNotEmpty(counts)
    assert.strictEqual((await chat(gateway, "smart")).upstream, "one")
  })

  it("has a record that says so, with the try that failed", async () => {
    const told = await chat(gateway, "smart", rehearsed(await rehearse(["one/m"])))
    const { attempts, rehearsal, target, tries } = await record(told)
    assert.deepStrictEqual({ attempts, rehearsal, target }, { attempts: 2, rehearsal: true, target: "two/m" })
    assert.deepStrictEqual(tries.map(({ account, cause, upstream }) => [upstream, cause, account === ""]), [
      ["one", "unreachable", true],
      ["two", null, false]
    ])
    assert.notProperty(await record(await chat(gateway, "smart")), "rehearsal")
  })

  it("counts at the target that answered alone", async () => {
    const requestsOf = async () => {
      const { rows } = await admin(gateway.url, "GET", "/admin/usage?by=upstream") as {
        readonly rows: ReadonlyArray<
          { readonly upstream: string; readonly requests: number; readonly attempts: number }
        >
      }
      return new Map(rows.map(({ attempts, requests, upstream }) => [upstream, [requests, attempts]]))
    }
    const before = await requestsOf()
    await chat(gateway, "smart", rehearsed(await rehearse(["one/m"])))
    const after = await requestsOf()
    assert.deepStrictEqual(after.get("one"), before.get("one"))
    const [requests = 0, attempts = 0] = before.get("two") ?? []
    assert.deepStrictEqual(after.get("two"), [requests + 1, attempts + 1])
  })

  it("leaves its conversation at the target that answered it before", async () => {
    const body = {
      messages: [{ role: "user", content: "one" }, { role: "assistant", content: "a" }, { role: "user", content: "b" }]
    }
    assert.strictEqual((await chat(gateway, "smart", { body })).upstream, "one")
    assert.strictEqual(
      (await chat(gateway, "smart", { body, ...rehearsed(await rehearse(["one/m"])) })).upstream,
      "two"
    )
    assert.strictEqual((await chat(gateway, "smart", { body })).upstream, "one")
  })

  it("fails as without a connection if all targets are named, each of which fails once", async () => {
    const told = await chat(gateway, "smart", rehearsed(await rehearse(["one/m", "two/m", "three/m"])))
    assert.strictEqual(told.status, 503, told.body)
    assert.include(
      told.body,
      String
        .raw`The connection to the upstream \"three\" failed: the connection was refused. Retry later, or ask the gateway's operator. (3 targets were tried)`
    )
    assert.strictEqual((await record(told)).tries.length, 3)
    const alone = await chat(gateway, "lone", rehearsed(await rehearse(["one/m"], "lone")))
    assert.deepStrictEqual([alone.status, (await record(alone)).tries.length], [503, 1])
  })

  it("sees what really fails behind the target that is named", async () => {
    farm.answer("two", () => json(500, { error: { message: "broken" } }))
    const told = await chat(gateway, "smart", rehearsed(await rehearse(["one/m"])))
    assert.strictEqual(told.upstream, "three", told.body)
    assert.strictEqual(farm.seen("two").length, 1)
  })
})

describe("the token of a rehearsal", () => {
  it("counts for one request", async () => {
    const token = await rehearse(["one/m"])
    assert.strictEqual((await chat(gateway, "smart", rehearsed(token))).status, 200)
    assert.deepStrictEqual(refusal(await chat(gateway, "smart", rehearsed(token))), [
      400,
      "x-gateway-rehearsal",
      "invalid_request"
    ])
  })

  it("is refused if no node has made it, in the format of each style", async () => {
    const token = await rehearse(["one/m"])
    const invented = [`${token}x`, token.slice(0, token.lastIndexOf(".") + 1), "", "x", "n9.x", "y".repeat(300)]
    for (const text of invented) {
      const told = await chat(gateway, "smart", rehearsed(text))
      assert.deepStrictEqual(refusal(told), [400, "x-gateway-rehearsal", "invalid_request"], text)
    }
    const told = await send(gateway, { style: "messages", stream: true }, "smart", rehearsed("x"))
    assert.include(told.body, "X-Gateway-Rehearsal")
    assert.strictEqual(JSON.parse(told.body).type, "error")
  })

  it("is refused for another route, and stays secret of callers without a key", async () => {
    const told = await chat(gateway, "lone", rehearsed(await rehearse(["one/m"])))
    assert.deepStrictEqual(refusal(told), [400, "x-gateway-rehearsal", "invalid_request"])
    const token = await rehearse(["one/m"])
    assert.strictEqual((await chat(gateway, "smart", { key: "wrong", ...rehearsed(token) })).status, 401)
    assert.strictEqual((await chat(gateway, "smart", rehearsed(token))).status, 200)
  })

  it("needs a route and targets of it", async () => {
    const asked = async (body: object) => {
      const response = await fetch(`${gateway.url}/admin/routes/rehearse`, {
        method: "POST",
        headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      const { detail } = await response.json() as { readonly detail: string }
      return [response.status, /^[\w.[\]]+/.exec(detail)?.[0]]
    }
    assert.deepStrictEqual(await asked({ route: "nothing", without: ["one/m"] }), [400, "route"])
    assert.deepStrictEqual(await asked({ route: "smart", without: ["one/m", "four/m"] }), [400, "without.1"])
    assert.deepStrictEqual(await asked({ route: "smart", without: [] }), [400, "without"])
    assert.deepStrictEqual(await asked({ route: "smart", without: ["one/m"], more: 1 }), [400, "more"])
  })
})

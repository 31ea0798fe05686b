/**
 * Why a request did not go to a target of its route: its record says it, as the list of upstreams does at that moment.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { exclusionReasons } from "../../src/placement/reasons.ts"
import { admin } from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { untilHolds } from "../support/until.ts"
import { chat, type Farm, held, json, nameOf, said, type SendOptions, startFarm, type Told } from "./support.ts"

/** What stands in the way of each upstream, beside the default one, which serves. */
const entries: Readonly<Record<string, RawConfig>> = {
  free: {},
  off: { enabled: false },
  bare: {},
  cooled: {},
  spent: { budgets: [{ window: "day", requests: 1 }] },
  full: { account_max_inflight: 1 },
  limited: {},
  small: { context_window: 500 },
  blind: { input: ["text"] },
  loose: { schemas: "advisory" },
  staged: {},
  login: { driver: "messages", credential: "caller" }
}
const names = Object.keys(entries)

let farm: Farm
let gateway: RunningGateway

beforeAll(async () => {
  farm = await startFarm()
  const upstream = (name: string, { context_window, input, schemas, ...rest }: RawConfig) => {
    const facts = Object.entries({ context_window, input, schemas }).filter(([, value]) => value !== undefined)
    return { ...farm.upstream(name, rest), models: { m: { model: "m", ...Object.fromEntries(facts) } } }
  }
  gateway = await startGateway({
    upstream: upstream("default", { context_window: 100_000, schemas: "binding" }),
    upstreams: Object.fromEntries(names.map((name) => [name, upstream(name, entries[name]!)])),
    accounts: ["default", ...names].filter((name) => name !== "limited" && name !== "login").map((name) => ({
      upstream: name,
      token: `key-of-${name}`,
      disabled: name === "bare"
    })),
    routes: Object.fromEntries(
      names.map((name) => [`by-${name}`, {
        targets: [`${name}/m`, "default/m"],
        ...(name === "loose" ? { schemas: "required" } : {})
      }])
    ),
    auth: { direct_tokens: true },
    runtime: { sticky: false }
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})

const detailOf = (told: Told) =>
  admin(gateway.url, "GET", `/admin/requests/${told.headers.get("x-request-id")}`) as unknown as Promise<{
    readonly target: string
    readonly excluded: ReadonlyArray<{ readonly target: string; readonly reason: string }>
  }>

const stateOf = async (name: string) => {
  const { upstreams } = await admin(gateway.url, "GET", "/admin/upstreams") as unknown as {
    readonly upstreams: ReadonlyArray<{
      readonly name: string
      readonly state: string
      readonly reason: string | null
      readonly accounts: { readonly ready: number }
      readonly in_use: number
    }>
  }
  return upstreams.find((each) => each.name === name)!
}

const ask = (name: string, options: SendOptions = {}) => chat(gateway, `by-${name}`, options)

const seen = new Set<string>()

/** Asks by the route whose first target is left out. Returns the reason that the record has. */
const reasonFor = async (name: string, options: SendOptions = {}): Promise<string | undefined> => {
  const told = await ask(name, options)
  assert.strictEqual(told.status, 200, told.body)
  const { excluded, target } = await detailOf(told)
  assert.strictEqual(target, "default/m")
  const reason = excluded.find((each) => each.target === `${name}/m`)?.reason
  seen.add(reason ?? "")
  return reason
}

describe("a record says of a target that was left out", () => {
  it("nothing where the first target serves", async () => {
    const { excluded, target } = await detailOf(await ask("free"))
    assert.deepStrictEqual([target, excluded], ["free/m", []])
  })

  it("that it is disabled", async () => {
    assert.strictEqual(await reasonFor("off"), "disabled")
    assert.strictEqual((await stateOf("off")).state, "disabled")
  })

  it("that no account of it is in rotation", async () => {
    assert.strictEqual(await reasonFor("bare"), "no_account")
    assert.strictEqual((await stateOf("bare")).accounts.ready, 0)
  })

  it("that it is cooling down", async () => {
    farm.answer("cooled", () => json(503, {}))
    for (let i = 0; i < 3; i++) assert.strictEqual((await ask("cooled")).status, 200)
    assert.strictEqual(await reasonFor("cooled"), "cooling")
    assert.strictEqual((await stateOf("cooled")).state, "cooled")
  })

  it("that its budget is used up", async () => {
    assert.strictEqual((await detailOf(await ask("spent"))).target, "spent/m")
    assert.strictEqual(await reasonFor("spent"), "over_budget")
    assert.strictEqual((await stateOf("spent")).reason, "its budget is used up")
  })

  it("that it is full", async () => {
    const first = held((request) => said(nameOf(request), request))
    farm.answer("full", first.behaviour)
    const running = ask("full")
    await untilHolds(async () => (await stateOf("full")).in_use === 1)
    assert.strictEqual(await reasonFor("full"), "full")
    first.releaseAll()
    assert.strictEqual((await running).status, 200)
  })

  it("that its server limits the model", async () => {
    farm.answer("limited", () => json(429, { error: { message: "slow down" } }, { "retry-after": "30" }))
    assert.strictEqual((await ask("limited")).status, 200)
    assert.strictEqual(await reasonFor("limited"), "model_paused")
  })

  it("that its window is too small, or that it reads no pictures", async () => {
    const long = { messages: [{ role: "user", content: "word ".repeat(2_000) }] }
    assert.strictEqual(await reasonFor("small", { body: long }), "too_long")
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }
    const content = [{ type: "text", text: "What is it?" }, picture]
    assert.strictEqual(await reasonFor("blind", { body: { messages: [{ role: "user", content }] } }), "cannot_serve")
  })

  it("that it does not bind a strict schema, which the route requires", async () => {
    const json_schema = { name: "any", schema: { type: "object" }, strict: true }
    const body = { response_format: { type: "json_schema", json_schema } }
    assert.strictEqual(await reasonFor("loose", { body }), "not_binding")
  })

  it("that it fails in a rehearsal", async () => {
    const { token } = await admin(gateway.url, "POST", "/admin/routes/rehearse", {
      route: "by-staged",
      without: ["staged/m"]
    }) as unknown as { readonly token: string }
    assert.strictEqual(await reasonFor("staged", { headers: { "x-gateway-rehearsal": token } }), "rehearsed")
  })

  it("that it takes the callers' own logins alone, or that the caller's own token belongs elsewhere", async () => {
    assert.strictEqual(await reasonFor("login"), "login_required")
    assert.strictEqual(await reasonFor("staged", { key: "a-token-of-my-own" }), "not_allowed")
  })

  it("each reason but those of targets that it tried", () => {
    assert.sameMembers([...seen, "failed", "out"], [...exclusionReasons])
  })
})

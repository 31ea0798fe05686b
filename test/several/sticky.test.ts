/** Conversations that go on where they were answered before, over sockets. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { adminKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { type Farm, post, startFarm } from "./support.ts"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())
afterEach(() => gateway.stop())

const start = async (name: string, route: RawConfig, runtime: RawConfig = {}) => {
  gateway = await startGateway({
    upstreams: { [name]: farm.upstream(name) },
    accounts: ["k1", "k2", "k3"].map((token) => ({ upstream: name, token })),
    routes: { r: { targets: [`${name}/m`], ...route } },
    runtime
  })
}

const keys = (name: string) => farm.seen(name).map(({ key }) => key)

const user = (content: string) => ({ role: "user", content })
const assistant = (content: string) => ({ role: "assistant", content })

const counted = async () => {
  const response = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
  const lines = (await response.text()).split("\n")
  return lines.filter((line) => line.startsWith("gateway_sticky_")).sort()
}

describe("a sticky conversation", () => {
  it("meets its account again, while others rotate, and is counted", async () => {
    await start("one", { sticky: true })
    const turns = [user("a"), assistant("b"), user("c"), assistant("d"), user("e")]
    await post(gateway, "/v1/chat/completions", { model: "r", messages: turns.slice(0, 1) })
    await post(gateway, "/v1/chat/completions", { model: "r", messages: [user("another")] })
    await post(gateway, "/v1/chat/completions", { model: "r", messages: turns.slice(0, 3) })
    await post(gateway, "/v1/chat/completions", { model: "r", messages: turns })
    assert.deepStrictEqual(keys("one"), ["k1", "k2", "k1", "k1"])
    assert.deepStrictEqual(await counted(), ["gateway_sticky_hits_total 2", "gateway_sticky_moves_total 0"])
  })

  it("is known by a stored response too, which counts with its whole conversation", async () => {
    await start("two", {}, { sticky: true })
    const first = await post(gateway, "/v1/responses", { model: "r", input: "Hi", store: true })
    await post(gateway, "/v1/responses", { model: "r", input: "Something else" })
    const { id } = JSON.parse(first.body) as { readonly id: string }
    await post(gateway, "/v1/responses", { model: "r", input: "And now?", previous_response_id: id })
    assert.deepStrictEqual(keys("two"), ["k1", "k2", "k1"])
  })

  it("is one at servers, without any setting, and is cold after the time of the prompt's cache", async () => {
    const clock = makeMovedClock()
    gateway = await startGateway({
      upstreams: { four: farm.upstream("four", { prompt_cache: { ttl: 60 } }) },
      accounts: ["k1", "k2", "k3"].map((token) => ({ upstream: "four", token }))
    }, { clock })
    const turns = [user("a"), assistant("b"), user("c")]
    const ask = (messages: ReadonlyArray<object>) =>
      post(gateway, "/v1/chat/completions", { model: "four/m", messages })
    await ask(turns.slice(0, 1))
    await ask([user("another")])
    await ask(turns)
    clock.move(61_000)
    await ask(turns)
    assert.deepStrictEqual(keys("four"), ["k1", "k2", "k1", "k3"])
  })

  it("rotates where the route says so", async () => {
    await start("three", { sticky: false }, { sticky: true })
    await post(gateway, "/v1/chat/completions", { model: "r", messages: [user("a")] })
    await post(gateway, "/v1/chat/completions", { model: "r", messages: [user("a"), assistant("b"), user("c")] })
    assert.deepStrictEqual(keys("three"), ["k1", "k2"])
  })
})

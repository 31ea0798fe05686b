/** Where a request goes by the windows and the input of the targets, over sockets. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { type Farm, json, post, said, startFarm } from "./support.ts"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
  const upstream = (name: string, facts: object) => ({
    ...farm.upstream(name),
    models: { m: { model: "m", ...facts } }
  })
  gateway = await startGateway({
    upstreams: {
      small: upstream("small", { context_window: 1_000, input: ["text"] }),
      large: upstream("large", { context_window: 8_000, input: ["text", "image"] }),
      unknown: upstream("unknown", {})
    },
    routes: {
      up: ["small/m", "large/m"],
      down: ["large/m", "small/m"],
      open: ["small/m", "unknown/m"],
      alone: ["small/m"]
    }
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})
beforeEach(() => {
  for (const name of ["small", "large", "unknown"]) farm.answer(name, (request) => said(name, request))
})

const ask = (model: string, content: unknown, more: object = {}) =>
  post(gateway, "/v1/chat/completions", { model, messages: [{ role: "user", content }], ...more })
const words = (count: number) => "word ".repeat(count)
const seen = () => ["small", "large", "unknown"].map((name) => farm.seen(name).length)
const tooLong = () => json(400, { error: { message: "too many tokens", code: "context_length_exceeded" } })

describe("a request", () => {
  it("goes to the first target that holds it: a short one to the first, a long one past a small window", async () => {
    assert.strictEqual((await ask("up", "Hi")).upstream, "small")
    assert.strictEqual((await ask("up", words(3_000))).upstream, "large")
    assert.strictEqual((await ask("down", words(3_000))).upstream, "large")
    assert.strictEqual((await ask("open", words(3_000))).upstream, "unknown")
    assert.strictEqual((await ask("alone", words(3_000))).upstream, "small")
  })

  it("that asks for much output needs a window for it", async () => {
    assert.strictEqual((await ask("up", "Hi", { max_tokens: 5_000 })).upstream, "large")
    assert.strictEqual((await ask("up", "Hi", { max_tokens: 100 })).upstream, "small")
  })

  it("that nothing holds goes to the largest window, once", async () => {
    farm.answer("large", tooLong)
    const { status } = await ask("up", words(30_000))
    assert.strictEqual(status, 400)
    assert.deepStrictEqual(seen(), [0, 1, 0])
  })

  it("that a server refuses as too long goes to a larger window, and not to a smaller or an unknown one", async () => {
    farm.answer("small", tooLong)
    assert.strictEqual((await ask("up", "Hi")).upstream, "large")
    assert.strictEqual((await ask("open", "Hi")).status, 400)
    farm.answer("large", tooLong)
    farm.answer("small", tooLong)
    assert.strictEqual((await ask("down", "Hi")).status, 400)
    assert.deepStrictEqual(seen(), [0, 1, 0])
  })

  it("with a picture goes to a target that reads pictures, or that may", async () => {
    const picture = [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } }]
    assert.strictEqual((await ask("up", picture)).upstream, "large")
    assert.strictEqual((await ask("open", picture)).upstream, "unknown")
    assert.strictEqual((await ask("alone", picture)).upstream, "small")
  })
})

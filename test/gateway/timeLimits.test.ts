/** Time limits of a reply, in total and without a new character, as callers of each style see them. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context } from "effect"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { chunk, frames, type OpenAiServer, startOpenAiServer } from "../support/openaiServer.ts"
import { type Failed, type Got, styleClients, styleNames } from "../support/styleClients.ts"
import { admin } from "./support.ts"

const limits = { reply_seconds: 30, progress_seconds: 20 }
const clock = makeMovedClock()
const move = (seconds: number) => clock.move(seconds * 1000)

let server: OpenAiServer
let gateway: RunningGateway

beforeAll(async () => {
  server = await startOpenAiServer()
  gateway = await startGateway({
    accounts: [{ token: "sk-a" }],
    upstream: { driver: "openai", base_url: server.baseUrl },
    limits
  }, { clock })
})
afterAll(async () => {
  await gateway.stop()
  await server.stop()
})

const says = (text: string) => frames(chunk({ content: text }))

/** Sends another request: when its reply arrives, a reply whose time is over has ended. */
const others = () => admin(gateway.url, "GET", "/admin/queue/status")

const isRunning = () => assert.strictEqual(server.requests[0]?.outcome, "open")

const failed = (reply: Got | Failed): Failed => {
  assert(reply._tag === "Failed", JSON.stringify(reply))
  return reply
}

describe.each(styleNames)("a %s reply", (style) => {
  const streamed = (onText: () => void) => styleClients(gateway.url)[style].streamed({ content: "Hi", onText })

  it("fails after progress_seconds without a new character, even if comments arrive", async () => {
    const texts = Promise.withResolvers<void>()
    const comment = Promise.withResolvers<void>()
    server.answer(() => ({ pieces: [says("a"), comment.promise, ": alive\n\n"], after: "hang" }))
    const reply = streamed(texts.resolve)
    await texts.promise
    move(10)
    comment.resolve()
    await others()
    move(9)
    await others()
    isRunning()
    move(2)
    const { message, shown } = failed(await reply)
    assert.strictEqual(shown, "a")
    assert.include(message, "nothing new for 20 s")
    await server.until(([request]) => request?.outcome === "aborted")
  })

  it("fails after reply_seconds, even if characters arrive", async () => {
    const texts = Promise.withResolvers<void>()
    const more = Promise.withResolvers<void>()
    server.answer(() => ({ pieces: [says("a"), more.promise, says("b"), says("c")], after: "hang" }))
    const reply = streamed(texts.resolve)
    await texts.promise
    move(15)
    more.resolve()
    await others()
    move(14)
    await others()
    isRunning()
    move(2)
    const { message, shown } = failed(await reply)
    assert.strictEqual(shown, "abc")
    assert.include(message, "not complete after 30 s")
  })

  it("fails after progress_seconds also as a whole reply, and releases its buffered bytes", async () => {
    const started = Promise.withResolvers<void>()
    server.answer(() => {
      started.resolve()
      return { pieces: [says("x".repeat(100_000))], after: "hang" }
    })
    const reply = styleClients(gateway.url)[style].whole({ content: "Hi" })
    await started.promise
    await server.until(([request]) => request !== undefined)
    move(21)
    const { message, status } = failed(await reply)
    assert.strictEqual(status, 503)
    assert.include(message, "nothing new for 20 s")
    assert.strictEqual(Context.get(gateway.services, CurrentBufferedBytes).used, 0)
    assert.deepInclude(await others(), { in_use: 0, waiting: 0 })
  })
})

/**
 * Silence and departure in all four styles: what keeps a stream alive, and what becomes of a reply whose reader has gone.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isQuiet, type Site, startSite } from "../gateway/support.ts"
import { type Way, ways } from "../support/sameReply.ts"
import { styleClients, type StyleName, styleNames } from "../support/styleClients.ts"
import { overheard, webGateway } from "../support/webGateway.ts"
import { base, letTimePass } from "./support.ts"

const comment = ": keep-alive"
const ping = "event: ping\ndata: {\"type\":\"ping\"}"

/** What is sent in the silence after a frame; before the first one it is a comment everywhere. */
const keepAlives: Readonly<Record<StyleName, string>> = {
  chat: comment,
  responses: comment,
  messages: ping,
  generate: comment
}

const isKeepAlive = (frame: string) => frame === comment || frame === ping

describe("a silent stream is kept alive in every style", () => {
  it.effect.each(styleNames)("%s", (style) =>
    Effect.gen(function*() {
      const { fetch, said } = overheard(yield* webGateway())
      const client = styleClients(base, { fetch })[style]
      const reading = yield* Effect.forkScoped(
        Effect.promise(() => client.streamed({ content: "!wait 21s\n!say one\n!wait 12s\n!say  two" }))
      )
      const result = yield* letTimePass(reading)
      assert(result._tag === "Got")
      assert.deepStrictEqual(result.blocks, [{ _tag: "Text", text: "onetwo" }])

      const frames = said().split("\n\n").slice(0, -1)
      const first = frames.findIndex((frame) => !isKeepAlive(frame))
      const before = frames.slice(0, first)
      const after = frames.slice(first).filter(isKeepAlive)
      // With the headers after 10 s, then every 5 s.
      assert.isAtLeast(before.length, 2)
      assert.deepStrictEqual(new Set(before), new Set([comment]))
      assert.isAtLeast(after.length, 2)
      assert.deepStrictEqual(new Set(after), new Set([keepAlives[style]]))
    }))
})

describe("a client that disconnects stops the upstream and frees the account, in every style", () => {
  let site: Site
  beforeAll(async () => {
    // One slot: whatever a request leaves behind would make the next one wait.
    site = await startSite({
      accounts: [{ email: "a@x.org", password: "a" }],
      runtime: { account_max_inflight: 1 }
    })
  })
  afterAll(() => site.stop())

  const cases = styleNames.flatMap((style) => ways.map((way): readonly [StyleName, Way] => [style, way]))

  it.each(cases)("%s, %s", async (style, way) => {
    const client = styleClients(site.url)[style]
    await Effect.runPromise(site.reference.forget)
    const controller = new AbortController()
    const leave = () => controller.abort()
    const asking = client[way]({
      content: "!say one\n!wait 60s\n!say two",
      signal: controller.signal,
      onText: leave
    })
    if (way === "whole") {
      await site.until((report) => report.streams === 1)
      leave()
    }
    const left = await asking
    assert(left._tag === "Failed", JSON.stringify(left))
    assert.strictEqual(left.type, "aborted")
    await site.until((report) => {
      const at = report.requests.findIndex(({ call }) => call === "completion")
      // What has shown something is known by its id, and is told to stop.
      const told = way === "whole" || report.requests.slice(at).some(({ call }) => call === "stop_stream")
      return isQuiet(report) && report.requests[at]?.outcome === "aborted" && told
    })
    const next = await client[way]({ content: "!say next" })
    assert(next._tag === "Got", JSON.stringify(next))
    assert.deepStrictEqual(next.blocks, [{ _tag: "Text", text: "next" }])
  })
})

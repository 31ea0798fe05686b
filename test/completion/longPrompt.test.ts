/** The tokens of a long prompt are estimated in slices, and only if the upstream does not report them. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { estimateTokens } from "../../src/domain/estimateTokens.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"

const prompt = "The quick brown fox jumps over the lazy dog. ".repeat(23_300)

let tellsUsage = false
let slices = 0
let server: Server
let gateway: RunningGateway

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const say = (chunk: object) => response.write(`data: ${JSON.stringify({ id: "c", ...chunk })}\n\n`)
      say({ choices: [{ index: 0, delta: { content: "Yes." } }] })
      say({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })
      if (tellsUsage) say({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 } })
      response.end("data: [DONE]\n\n")
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  gateway = await startGateway({
    accounts: [{ token: "token" }],
    upstream: { driver: "openai", base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
  }, { watchSlices: () => slices++ })
})
afterAll(async () => {
  await gateway.stop()
  server.close()
})

/** Sends the long prompt; returns the reported prompt tokens and the number of slices of the request. */
const ask = async () => {
  slices = 0
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${businessKey}` },
    body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: prompt }] })
  })
  const { usage } = await response.json() as { usage: { prompt_tokens: number } }
  return { tokens: usage.prompt_tokens, slices }
}

describe("a prompt of a megabyte", () => {
  it("is counted in slices, and only if the upstream does not report its tokens", async () => {
    tellsUsage = true
    const reported = await ask()
    tellsUsage = false
    const counted = await ask()
    assert.strictEqual(reported.tokens, 7)
    assert.approximately(counted.tokens, estimateTokens(prompt), 100)
    assert.isAbove(counted.slices, reported.slices)
  })
})

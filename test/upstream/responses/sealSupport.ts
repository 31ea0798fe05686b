/** A gateway in front of a server that refuses what the vendor refuses. */
import { afterEach, assert, beforeEach } from "@effect/vitest"
import { sha256Hex } from "../../../src/config/json.ts"
import { identifierOf } from "../../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../../support/gateway.ts"
import type { OpenAiServer } from "../../support/openaiServer.ts"
import { type Answer, said, type SeenRequest, startResponsesServer } from "../../support/responsesServer.ts"
import { type StrictOptions, strictResponses } from "../../support/strictResponses.ts"

export type Fields = { readonly [field: string]: unknown }

interface Reply {
  readonly body: Fields
  readonly output: ReadonlyArray<Fields>
  readonly ignored: string | null
}

/** The names of accounts by their keys. */
const accountNames = new Map(["sk-1", "sk-2", "sk-3"].map((token) => [token, identifierOf({ token }, sha256Hex)]))

/** The name of the account with a key. */
export const accountOf = (key: string): string => accountNames.get(key)!

export const question = { role: "user", content: "Where?" }

/** A server for each test of a file, and a gateway for each that starts one. */
export const useStrictServer = () => {
  let server: OpenAiServer
  let gateway: RunningGateway
  beforeEach(async () => {
    server = await startResponsesServer()
  })
  afterEach(async () => {
    await gateway.stop()
    await server.stop()
  })

  const start = async (options: StrictOptions = {}, more: object = {}) => {
    const strict = strictResponses(options)
    server.answer(strict.answer)
    gateway = await startGateway(JSON.parse(JSON.stringify({
      accounts: [{ token: "sk-1" }],
      upstream: { driver: "responses", base_url: server.baseUrl, timeouts: { queue: 0 } },
      ...more
    })))
    return strict
  }

  const send = (method: string, path: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(gateway.url + path, {
      method,
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })

  const post = (body: object, path = "/v1/responses", headers: Record<string, string> = {}) =>
    send("POST", path, { model: "upstream-chat", ...body }, headers)

  /** The reply, whole or from the last event of a stream. */
  const ask = async (body: object, headers: Record<string, string> = {}): Promise<Reply> => {
    const response = await post(body, "/v1/responses", headers)
    const text = await response.text()
    assert.strictEqual(response.status, 200, text)
    const isStream = response.headers.get("content-type")?.includes("event-stream") === true
    assert.strictEqual(text.split("event: response.created\n").length - 1, isStream ? 1 : 0)
    const last = isStream ? text.split("\n\n").at(-3)!.split("\ndata: ")[1]! : text
    const parsed = JSON.parse(last) as Fields
    const whole = isStream ? parsed["response"] as Fields : parsed
    assert.strictEqual(whole["status"], "completed", text)
    return {
      body: whole,
      output: whole["output"] as ReadonlyArray<Fields>,
      ignored: response.headers.get("x-gateway-ignored")
    }
  }

  /** Holds accounts by unfinished replies, and forgets the requests so far; returns what ends them. */
  const holding = async (keys: ReadonlyArray<string>, answer: (request: SeenRequest) => Answer) => {
    const held = new Map<string, () => void>()
    server.answer((request) => {
      if (request.body["user"] !== "holds") return answer(request)
      const open = new Promise<void>((resolve) => held.set(request.key!, resolve))
      const { pieces } = said("Held")
      return { pieces: [open, ...pieces!] }
    })
    const pending: Array<Promise<Response>> = []
    for (const key of keys) {
      const body = { input: "Hold", user: "holds", stream: true, store: false }
      const response = post(body, "/v1/responses", { "x-gateway-target-account": accountOf(key) })
      pending.push(response)
      await server.until((requests) =>
        requests.some((request) => request.body["user"] === "holds" && request.key === key)
      )
    }
    return async () => {
      for (const end of held.values()) end()
      for (const response of pending) await (await response).text()
    }
  }

  return {
    start,
    send,
    post,
    ask,
    holding,
    get url() {
      return gateway.url
    },
    get server() {
      return server
    }
  }
}

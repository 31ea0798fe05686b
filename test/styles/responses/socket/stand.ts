/** The gateway in front of a scripted server, and clients of its WebSocket connections. */
import { Context, Effect } from "effect"
import { isDeepStrictEqual } from "node:util"
import { ConfigStore } from "../../../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../../../src/config/json.ts"
import { CurrentBufferedBytes } from "../../../../src/config/limits.ts"
import {
  adminKey,
  businessKey,
  type GatewayOptions,
  type RunningGateway,
  startGateway
} from "../../../support/gateway.ts"
import {
  type Answer,
  chunk,
  frames,
  type OpenAiServer,
  startOpenAiServer,
  usage
} from "../../../support/openaiServer.ts"
import { untilHolds, untilValue } from "../../../support/until.ts"
import { Client } from "./client.ts"

export interface Stand {
  readonly gateway: RunningGateway
  readonly server: OpenAiServer
  readonly open: (headers?: Readonly<Record<string, string>>) => Promise<Client>
  /** Changes groups of the configuration, like an operator's edit. */
  readonly change: (groups: RawConfig) => Promise<void>
  /** Bytes that requests hold. */
  readonly held: () => number
  /** Waits until so many connections are open, and those that have ended had these outcomes. */
  readonly counted: (open: number, ended?: Readonly<Record<string, number>>) => Promise<void>
  readonly admin: (method: string, path: string, body?: unknown) => Promise<{ readonly [field: string]: unknown }>
  readonly stop: () => Promise<void>
}

export const startStand = async (config: RawConfig = {}, options: GatewayOptions = {}): Promise<Stand> => {
  const server = await startOpenAiServer()
  const gateway = await startGateway({
    upstream: { driver: "openai", base_url: server.baseUrl },
    runtime: { account_max_inflight: 100 },
    ...config
  }, options)
  const clients: Array<Client> = []
  const store = Context.get(gateway.services, ConfigStore)
  return {
    gateway,
    server,
    open: async (headers) => {
      const client = await Client.open(gateway.url, headers)
      clients.push(client)
      return client
    },
    change: (groups) => Effect.runPromise(Effect.asVoid(store.update((raw) => Effect.succeed({ ...raw, ...groups })))),
    held: () => Context.get(gateway.services, CurrentBufferedBytes).used,
    counted: async (open, ended = {}) => {
      const read = async () => {
        const text = await (await fetch(`${gateway.url}/metrics`, { headers: bearer(adminKey) })).text()
        const series = [...text.matchAll(/^gateway_websockets_(?:open|total\{outcome="(\w+)"\}) (\d+)$/gm)]
        return Object.fromEntries(series.map(([, outcome = "open", value]) => [outcome, Number(value)]))
      }
      const expected = { open, ...ended }
      await untilValue("the connections are counted", read, (counts) => isDeepStrictEqual(counts, expected))
    },
    admin: async (method, path, body) => {
      const response = await fetch(`${gateway.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${adminKey}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      return await response.json() as { readonly [field: string]: unknown }
    },
    stop: async () => {
      for (const client of clients) client.socket.terminate()
      await gateway.stop()
      await server.stop()
    }
  }
}

/** Replies that wait until the test lets each of them end, by the text of their request's last message. */
export class HeldReplies {
  readonly #ends = new Map<string, () => void>()

  constructor(server: OpenAiServer) {
    server.answer(({ body }) => this.#answer(lastText(body)))
  }

  /** The requests that have begun and not ended. */
  get open(): ReadonlyArray<string> {
    return [...this.#ends.keys()]
  }

  /** Lets the reply to this request end, once the request has arrived. */
  async end(text: string): Promise<void> {
    await untilHolds(() => this.#ends.has(text))
    this.#ends.get(text)!()
    this.#ends.delete(text)
  }

  #answer(text: string): Answer {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#ends.set(text, resolve)
    return {
      pieces: [
        frames(chunk({ role: "assistant", content: `${text} begins.` })),
        promise,
        frames(chunk({ content: " It ends." }), chunk({}, "stop"), { ...chunk({}), choices: [], usage }, "[DONE]")
      ]
    }
  }
}

interface Message {
  readonly content: string | ReadonlyArray<{ readonly text?: string }>
}

/** The messages of a request to the server. */
export const messagesOf = (body: { readonly [key: string]: unknown }) => body["messages"] as ReadonlyArray<Message>

const textIn = ({ content }: Message): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text = "" }) => text).join("")

export const lastText = (body: { readonly [key: string]: unknown }): string => textIn(messagesOf(body).at(-1)!)

export const bearer = (key = businessKey) => ({ authorization: `Bearer ${key}` })

/** Opens no WebSocket: the status, the headers and the JSON of the refusal. */
export const refusal = async (
  url: string,
  { headers = bearer(), path = "/v1/responses" }: {
    readonly headers?: Readonly<Record<string, string>>
    readonly path?: string
  } = {}
) => {
  const { get } = await import("node:http")
  return await new Promise<{ status: number; headers: Record<string, unknown>; error: Record<string, unknown> }>(
    (resolve, reject) => {
      const request = get(`${url}${path}`, {
        agent: false,
        headers: {
          connection: "upgrade",
          upgrade: "websocket",
          "sec-websocket-version": "13",
          "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
          ...headers
        }
      })
      request.on("error", reject)
      request.on("upgrade", (_, socket) => {
        socket.destroy()
        reject(new Error("The gateway opened a WebSocket"))
      })
      request.on("response", (response) => {
        let text = ""
        response.on("data", (piece: Buffer) => text += piece.toString())
        response.on("end", () => {
          const { error } = JSON.parse(text) as { readonly error: Record<string, unknown> }
          resolve({ status: response.statusCode!, headers: response.headers, error })
        })
      })
    }
  )
}

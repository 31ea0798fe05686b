/**
 * A gateway in front of several upstreams, over real sockets. One server stands for all upstreams: the first segment of the path names the
 * upstream, so that each of many cases has upstreams of its own and a state of its own.
 */
import { Context, Effect } from "effect"
import { Accounts } from "../../src/accounts/Accounts.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { businessKey, type RunningGateway } from "../support/gateway.ts"
import * as Generate from "../support/generateServer.ts"
import * as Messages from "../support/messagesServer.ts"
import {
  type Answer,
  json,
  type OpenAiServer,
  type SeenRequest,
  startOpenAiServer,
  streamed,
  usage
} from "../support/openaiServer.ts"
import { plainRequests, question } from "../support/plainRequests.ts"
import * as Responses from "../support/responsesServer.ts"
import { parseFrames } from "../support/sse.ts"
import { styleNames } from "../support/styleClients.ts"
import { untilHolds } from "../support/until.ts"

export { type Answer, json, type SeenRequest } from "../support/openaiServer.ts"

export const drivers = ["openai", "responses", "messages", "generate"] as const
export type DriverName = typeof drivers[number]

/** Every style, whole and streamed. */
export const ways = styleNames.flatMap((style) => [false, true].map((stream) => ({ style, stream })))
export type Way = typeof ways[number]

export const wayName = ({ stream, style }: Way): string => `${style}-${stream ? "streamed" : "whole"}`

/** Waits until the sockets that have ended are closed, so that a request which is over does not count as running. */
export const settled = async (turns = 5): Promise<void> => {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** What a server does with a request. */
export type Behaviour = (request: SeenRequest, index: number) => Answer

/** The upstreams behind one server. */
export interface Farm {
  readonly server: OpenAiServer
  /** The group of an upstream in the configuration. Its models go by the same names at the server. */
  readonly upstream: (name: string, rest?: RawConfig) => RawConfig
  /** What an upstream answers from now on; without it, it says its name. */
  readonly answer: (name: string, behaviour: Behaviour) => void
  /** The requests that an upstream got, the oldest first. */
  readonly seen: (name: string) => ReadonlyArray<SeenRequest>
  /**
   * The most requests that ran at once: `all`, by upstream, and by upstream and key. A request that the gateway has left counts until
   * the server sees that the connection is closed, which can be after the next request.
   */
  readonly most: { readonly get: (label: string) => number | undefined }
  readonly stop: () => Promise<void>
}

/** The upstream of a request. */
export const nameOf = ({ path }: SeenRequest): string => path.split("/")[1]!

/** A regular reply with a text, as the contract of the request has it. */
export const said = (text: string, { path }: Pick<SeenRequest, "path">): Answer => {
  if (path.endsWith("/embeddings")) {
    return json(200, { object: "list", model: "m", data: [{ object: "embedding", index: 0, embedding: [0.5] }], usage })
  }
  if (path.endsWith("/count_tokens")) return json(200, { input_tokens: text.length })
  if (path.endsWith("/v1/completions")) return json(200, { object: "text_completion", model: "m", choices: [{ text }] })
  if (path.endsWith("/responses")) {
    return text === "" ? Responses.streamed(Responses.responseOf([])) : Responses.said(text)
  }
  if (path.endsWith("/messages")) return Messages.streamedMessage([Messages.textBlock(text)])
  return /:(?:streamG|g)enerateContent/.test(path) ? Generate.said(text) : streamed({ content: text })
}

/** Starts a server that has a list of models, and answers requests of every kind. */
export const startAnswering = async (): Promise<OpenAiServer> => {
  const server = await startOpenAiServer()
  server.list(() => json(200, { data: [{ id: "listed" }], models: [{ name: "models/listed" }] }))
  server.answer((request) =>
    request.path.includes(":batchEmbedContents")
      ? json(200, { embeddings: [{ values: [0.5] }] })
      : request.path.includes(":countTokens")
      ? json(200, { totalTokens: 3 })
      : request.path.endsWith("/rerank")
      ? json(200, { results: [] })
      : said("Hello", request)
  )
  return server
}

const baseUrls: Readonly<Record<DriverName, (root: string) => string>> = {
  openai: (root) => `${root}/v1`,
  responses: (root) => `${root}/v1`,
  messages: (root) => root,
  generate: (root) => `${root}/v1beta`
}

/** Starts the server of all upstreams. */
export const startFarm = async (): Promise<Farm> => {
  const server = await startOpenAiServer()
  const root = server.baseUrl.replace(/\/v1$/, "")
  const behaviours = new Map<string, Behaviour>()
  const seen = new Map<string, Array<SeenRequest>>()
  /** The requests that ran at the same time, at each look. */
  const looks = new Map<string, Array<ReadonlyArray<SeenRequest>>>()
  const measure = (label: string, isOf: (request: SeenRequest) => boolean) => {
    const own = looks.get(label) ?? []
    looks.set(label, own)
    own.push(server.requests.filter((request) => request.outcome === "open" && isOf(request)))
  }
  const most = {
    get: (label: string) =>
      looks.get(label)?.reduce(
        (most, seen) => Math.max(most, seen.filter(({ outcome }) => outcome !== "aborted").length),
        0
      )
  }
  server.answer((request) => {
    const name = nameOf(request)
    const own = seen.get(name) ?? []
    seen.set(name, own)
    const behaviour = behaviours.get(name) ?? (() => said(name, request))
    const answer = behaviour(request, own.push(request) - 1)
    // The server learns that a client has left, or that it has read all, some turns after the next request may have come.
    const measured = settled(25).then(() => {
      measure("all", () => true)
      measure(name, (other) => nameOf(other) === name)
      measure(`${name} ${request.key}`, (other) => nameOf(other) === name && other.key === request.key)
    })
    return answer.headless === true ? answer : { ...answer, pieces: [measured, ...answer.pieces ?? []] }
  })
  return {
    server,
    upstream: (name, { driver = "openai", models = ["m"], ...rest } = {}) => ({
      driver,
      base_url: baseUrls[driver as DriverName](`${root}/${name}`),
      models: Object.fromEntries((models as ReadonlyArray<string>).map((id) => [id, id])),
      ...rest
    }),
    answer: (name, behaviour) => {
      behaviours.set(name, behaviour)
      seen.set(name, [])
    },
    seen: (name) => seen.get(name) ?? [],
    most,
    stop: server.stop
  }
}

/** Answers that wait until the test lets them go. */
export interface Held {
  readonly behaviour: Behaviour
  /** Lets the oldest of the held answers go, or the one of an index. */
  readonly release: (index?: number) => void
  readonly releaseAll: () => void
}

/** Holds the answers of an upstream, whose heads have left. */
export const held = (answer: Behaviour = (request) => said(nameOf(request), request)): Held => {
  const gates: Array<PromiseWithResolvers<void> | undefined> = []
  const open = (index: number) => {
    gates[index]?.resolve()
    gates[index] = undefined
  }
  return {
    behaviour: (request, index) => {
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      const own = answer(request, index)
      return { ...own, pieces: [gate.promise, ...own.pieces ?? []] }
    },
    release: (index) => open(index ?? gates.findIndex((gate) => gate !== undefined)),
    releaseAll: () => gates.forEach((_, index) => open(index))
  }
}

/** What operators see of the queue, whose upstreams are by name. */
export const queueOf = async ({ services }: RunningGateway) => {
  const { upstreams = [], ...status } = await Effect.runPromise(Context.get(services, Accounts).status)
  return { ...status, of: Object.fromEntries(upstreams.map((upstream) => [upstream.name, upstream])) }
}

/** Resolves once so many requests wait. */
export const waiting = (gateway: RunningGateway, count: number): Promise<void> =>
  untilHolds(async () => (await queueOf(gateway)).waiting === count)

/** Changes the configuration while the gateway runs. */
export const change = (
  gateway: RunningGateway,
  edit: (config: RawConfig) => RawConfig
): Promise<unknown> =>
  Effect.runPromise(Context.get(gateway.services, ConfigStore).update((raw) => Effect.succeed(edit(raw))))

/** A port of this machine to which nothing listens: a free port may get a listener of another test. */
export const closedPort = 1

/** A reply of the gateway. */
export interface Told {
  readonly status: number
  readonly headers: Headers
  /** What the body says the model is. */
  readonly model: string | undefined
  /** The text of the reply. */
  readonly text: string
  /** The whole body. */
  readonly body: string
  readonly upstream: string | null
  readonly target: string | null
}

/** The places of text in the replies and events of the styles. */
const textPaths = [
  "choices.0.delta.content",
  "choices.0.message.content",
  "choices.0.text",
  "output.0.content.0.text",
  "content.0.text",
  "delta.text",
  "candidates.0.content.parts.0.text"
].map((path) => path.split("."))

const at = (value: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (inner, name) => typeof inner === "object" && inner !== null ? Reflect.get(inner, name) : undefined,
    value
  )

/** The text of a reply of any style, whole or streamed. */
const textOf = (body: string, isStream: boolean): string => {
  const values: ReadonlyArray<unknown> = isStream
    ? parseFrames(body).flatMap(({ data }) => data === "[DONE]" ? [] : [JSON.parse(data)])
    : [body.startsWith("{") ? JSON.parse(body) : {}]
  return values.map((value) => {
    if (at(value, ["type"]) === "response.output_text.delta") return at(value, ["delta"])
    return textPaths.map((path) => at(value, path)).find((text) => typeof text === "string") ?? ""
  }).join("")
}

const modelOf = (body: string): string | undefined => /"(?:model|modelVersion)":\s*"([^"]*)"/.exec(body)?.[1]

export interface SendOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  readonly key?: string
  readonly body?: Readonly<Record<string, unknown>>
}

/** Sends JSON to a path of the gateway. */
export const post = async (
  { url }: RunningGateway,
  path: string,
  body: object,
  { headers = {}, key = businessKey, signal }: SendOptions = {}
): Promise<Told> => {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal })
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    model: modelOf(text),
    text: textOf(text, response.headers.get("content-type")?.includes("event-stream") === true),
    body: text,
    upstream: response.headers.get("x-gateway-upstream"),
    target: response.headers.get("x-gateway-model")
  }
}

/** Sends the shortest request of a style for a model. */
export const send = (
  gateway: RunningGateway,
  { stream, style }: Way,
  model: string,
  options: SendOptions = {}
): Promise<Told> => {
  const { body, path } = plainRequests[style]
  const named = style === "generate" ? {} : { model }
  return post(
    gateway,
    path(stream).replace("upstream-chat", model),
    { ...body(stream), ...named, ...options.body },
    options
  )
}

/** Requests in each style, of a caller that reads no stream. */
export const chat = (gateway: RunningGateway, model: string, options?: SendOptions): Promise<Told> =>
  send(gateway, { style: "chat", stream: false }, model, options)

export { question }

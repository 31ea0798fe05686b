/** The gateway in front of the reference upstream, both on sockets, and chat callers that read every frame. */
import { assert } from "@effect/vitest"
import { Context, Effect, Exit, Scope } from "effect"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { Report } from "../../src/testing/CallLog.ts"
import type { ReferenceOptions } from "../../src/testing/Provider.ts"
import { make, type Reference } from "../../src/testing/Reference.ts"
import { adminKey, businessKey, type GatewayOptions, type RunningGateway, startGateway } from "../support/gateway.ts"
import { parseFrames } from "../support/sse.ts"

/** A gateway and its upstream. */
export interface Site {
  readonly url: string
  readonly gateway: RunningGateway
  /** The address of the reference upstream; the configuration may name another one. */
  readonly baseUrl: string
  readonly reference: Reference["Service"]
  readonly report: () => Promise<Report>
  readonly until: (predicate: (report: Report) => boolean) => Promise<Report>
  /** Changes groups of the configuration, like an operator's edit. */
  readonly change: (groups: RawConfig) => Promise<void>
  readonly stop: () => Promise<void>
}

export interface SiteOptions extends GatewayOptions {
  readonly reference?: ReferenceOptions
  /** Timeouts in seconds, by their names in the configuration. */
  readonly timeouts?: Readonly<Record<string, number>>
}

/** An account with a password, by the local part of its email. */
export const account = (name: string) => ({ email: `${name}@x.org`, password: `password of ${name}` })
export const accounts = (...names: ReadonlyArray<string>) => names.map(account)
export const emailOf = (name: string) => account(name).email

export const times = <A>(count: number, f: (i: number) => A): Array<A> => Array.from({ length: count }, (_, i) => f(i))

/** Starts both. */
export const startSite = async (
  config: RawConfig,
  { reference: options, timeouts = {}, ...rest }: SiteOptions = {}
): Promise<Site> => {
  const scope = Scope.makeUnsafe()
  const reference = await Effect.runPromise(make(options))
  const baseUrl = await Effect.runPromise(Scope.provide(reference.listen(), scope))
  const gateway = await startGateway(
    { upstream: { driver: "session", base_url: baseUrl, timeouts }, ...config },
    rest
  )
  const store = Context.get(gateway.services, ConfigStore)
  return {
    url: gateway.url,
    gateway,
    baseUrl,
    reference,
    report: () => Effect.runPromise(reference.report),
    until: (predicate) => Effect.runPromise(reference.until(predicate)),
    change: (groups) => Effect.runPromise(Effect.asVoid(store.update((raw) => Effect.succeed({ ...raw, ...groups })))),
    stop: async () => {
      await gateway.stop()
      await Effect.runPromise(Scope.close(scope, Exit.void))
    }
  }
}

/** Whether the upstream is idle. */
export const isQuiet = (report: Report): boolean => report.open === 0 && report.streams === 0

export interface ChatOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly stream?: boolean
  /** A business key, or the caller's own upstream token. */
  readonly key?: string
  /** The account to which the request is pinned. */
  readonly target?: string
  readonly model?: string
  readonly signal?: AbortSignal
}

/** Sends a question in the chat style. */
export const send = (url: string, prompt: string, options: ChatOptions = {}): Promise<Response> => {
  const { headers = {}, key = businessKey, model = "upstream-chat", signal, stream = false, target } = options
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...headers,
      ...(target === undefined ? {} : { "x-gateway-target-account": target })
    },
    body: JSON.stringify({ model, stream, messages: [{ role: "user", content: prompt }] }),
    signal: signal ?? null
  })
}

/** The reply to a caller, parsed from its frames. */
export interface Said {
  readonly status: number
  /** The text of the reply. */
  readonly text: string
  readonly finish: string | undefined
  readonly error:
    | { readonly code: string; readonly type: string; readonly message: string; readonly param: string | null }
    | undefined
  readonly retryAfter: string | undefined
  readonly shouldRetry: string | undefined
  /**
   * How the reply ended: `whole` for a body; for a stream its last frame, `finish` or `error`, followed by `[DONE]`;
   * otherwise the unexpected end itself.
   */
  readonly ending: string
}

/** The fields of a chat frame, or of a whole reply, that tests read. */
interface ChatFrame {
  readonly error?: Said["error"]
  readonly choices?: ReadonlyArray<{
    readonly delta?: { readonly content?: string }
    readonly message?: { readonly content?: string | null }
    readonly finish_reason?: string | null
  }>
}

const read = (data: string): ChatFrame => JSON.parse(data)

const kindOf = (data: string): string => {
  if (data === "[DONE]") return data
  const { choices, error } = read(data)
  return error !== undefined ? "error" : typeof choices?.[0]?.finish_reason === "string" ? "finish" : "text"
}

/** Reads a reply to its end. */
export const readSaid = async (response: Response): Promise<Said> => {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true
  const body = await response.text()
  const frames = isStream ? parseFrames(body).map(({ data }) => data) : [body]
  const values = frames.filter((data) => data !== "[DONE]").map(read)
  const last = isStream ? frames.slice(-2).map(kindOf).join(" ") : "whole"
  const choices = values.flatMap((value) => value.choices?.[0] ?? [])
  return {
    status: response.status,
    text: choices.map(({ delta, message }) => delta?.content ?? message?.content ?? "").join(""),
    finish: choices.map((choice) => choice.finish_reason).findLast((reason) => typeof reason === "string") ?? undefined,
    error: values.map(({ error }) => error).find((error) => error !== undefined),
    retryAfter: response.headers.get("retry-after") ?? undefined,
    shouldRetry: response.headers.get("x-should-retry") ?? undefined,
    ending: last === "finish [DONE]" ? "finish" : last === "error [DONE]" ? "error" : last
  }
}

/** Sends a request in the chat style and reads the whole reply. */
export const chat = async (url: string, prompt: string, options: ChatOptions = {}): Promise<Said> =>
  readSaid(await send(url, prompt, options))

/** The text of a successful reply. */
export const textOf = (said: Said): string => {
  assert.strictEqual(said.error, undefined)
  assert.deepInclude(said, { status: 200, finish: "stop" })
  return said.text
}

/** Calls the admin API as the operator; returns the reply's JSON. */
export const admin = async (
  url: string,
  method: string,
  path: string,
  body?: unknown
): Promise<Record<string, unknown>> => {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${adminKey}`, "content-type": "application/json" },
    body: body === undefined ? null : JSON.stringify(body)
  })
  const text = await response.text()
  assert.strictEqual(response.status, 200, text)
  return JSON.parse(text)
}

/** The queue as the admin API reports it. */
export const queueOf = ({ url }: Site) => admin(url, "GET", "/admin/queue/status")

/** Polls until the queue matches, because a change of the queue causes no event. */
export const untilQueue = async (site: Site, expected: Readonly<Record<string, unknown>>): Promise<void> => {
  for (;;) {
    const status = await queueOf(site)
    if (Object.entries(expected).every(([field, value]) => status[field] === value)) return
    await new Promise(setImmediate)
  }
}

/** Keeps a reference to open responses: an unreferenced one is aborted when it is collected. */
const going = new Set<Response>()

/** A stream that has sent a word and runs until `end`. */
export const hold = async ({ url }: Site, options: ChatOptions = {}) => {
  const abort = new AbortController()
  const response = await send(url, "!say one\n!fault hang-mid-stream after=1", {
    ...options,
    stream: true,
    signal: abort.signal
  })
  assert.strictEqual(response.status, 200, response.status === 200 ? "" : await response.text())
  going.add(response)
  return {
    response,
    end: () => {
      going.delete(response)
      abort.abort()
    }
  }
}

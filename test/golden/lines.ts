/**
 * An exchange as lines of JSON: what was asked, what the server received, what the client got. Bodies that are JSON and frames whose data is
 * JSON stand as values where writing them again yields the same bytes; all else stands as text.
 */
import { Effect, type Scope } from "effect"
import type { Received } from "./stand.ts"

/** What a client got. */
export interface Got {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  /** The body, or the messages of a WebSocket. */
  readonly body: string | ReadonlyArray<string>
}

/** An exchange. */
export interface Recorded {
  readonly name: string
  /** What the client asked, where no other file says it. */
  readonly asked: { readonly method: string; readonly path: string; readonly body: string } | undefined
  readonly received: ReadonlyArray<Received>
  readonly got: Got
}

/** Headers that are the same for all, or times. */
const isLeftOut = (name: string): boolean =>
  name.startsWith("access-control-") || name === "content-length" || name === "server-timing"

const usual: ReadonlyArray<readonly [name: string, value: string]> = [
  ["content-security-policy", "frame-ancestors 'none'"],
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"]
]

const usualInStreams: typeof usual = [
  ["x-accel-buffering", "no"],
  ["cache-control", "no-cache, no-transform"]
]

const anyKey = /\bsk-\d+\b/g

const randomId = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{20,}(?![0-9a-z])/g

/** A seal of the gateway, which is another one each time. */
const seal = /\b(gw[a-z]\d_)([\w-]+)/g

/** Numbers by which values are named, in the order in which they appear. */
const numbers = () => {
  const known = new Map<string, number>()
  return (value: string): string => {
    const number = known.get(value) ?? known.size + 1
    known.set(value, number)
    return String(number)
  }
}

/** Each id by its number, in as many characters as it has; seals and keys of accounts by theirs. */
const withNumberedIds = (text: string): string => {
  const [idOf, sealOf, keyOf] = [numbers(), numbers(), numbers()]
  return text
    .replaceAll(seal, (_, prefix: string, sealed: string) => `${prefix}${sealOf(sealed)}`)
    .replaceAll(anyKey, (key) => `sk-${keyOf(key)}`)
    .replaceAll(randomId, (id) => {
      const number = idOf(id.replaceAll("-", ""))
      return id.replaceAll(/[0-9a-f]/g, "0").slice(0, -number.length) + number
    })
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value of a text that JSON writes so, else the text. */
const valueOf = (text: string): { readonly json: unknown } | { readonly text: string } => {
  const json = parsed(text)
  return json !== undefined && JSON.stringify(json) === text ? { json } : { text }
}

/** A frame as a line. The name of an event that its data has too is left out. */
const frameOf = (frame: string): string => {
  if (!frame.includes("\n") && frame.startsWith("data: ")) return frame
  const [, event, data = ""] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? []
  const value = parsed(data)
  const type = typeof value === "object" && value !== null && "type" in value ? value.type : undefined
  return event !== undefined && event === type ? `event: ${data}` : `frame: ${JSON.stringify(frame)}`
}

/** The frames of a stream, a line each; what follows the last blank line is the `rest`. */
const framesOf = (body: string): ReadonlyArray<string> => {
  const texts = body.split("\n\n")
  const last = texts.pop() ?? ""
  return [...texts.map(frameOf), ...(last === "" ? [] : [`rest: ${JSON.stringify(last)}`])]
}

const bodyLines = (body: Got["body"]): ReadonlyArray<string> => {
  if (typeof body !== "string") return body.map((message) => `message: ${message}`)
  if (body === "") return []
  if (/^(?:event|data|:)/.test(body)) return framesOf(body)
  const value = valueOf(body)
  return "json" in value ? [`body: ${body}`] : [`text: ${JSON.stringify(body)}`]
}

/** Headers of requests that the client for HTTP adds. */
const isOfTransport: ReadonlySet<string> = new Set([
  "content-length",
  "b3",
  "traceparent",
  "host",
  "connection"
])

const requestText = ({ body, headers, method, path }: Received): string => {
  const { json, text } = { json: undefined, text: undefined, ...valueOf(body) }
  return JSON.stringify({
    request: `${method} ${path}`,
    headers: Object.fromEntries(
      Object.entries(headers).filter(([name]) => !isOfTransport.has(name)).toSorted(([a], [b]) => a < b ? -1 : 1)
    ),
    ...(json === undefined ? text === "" ? {} : { text } : { body: json })
  })
}

/** Headers of every reply, which are written only where they are not so. */
const usualOf = (headers: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  headers.get("content-type") === "text/event-stream" ? new Map([...usual, ...usualInStreams]) : new Map(usual)

const headersOf = ({ headers }: Got): { readonly [name: string]: string | null } => {
  const all = new Map(headers)
  const common = usualOf(all)
  return Object.fromEntries([
    ...[...common.keys()].filter((name) => !all.has(name)).map((name) => [name, null] as const),
    ...headers.filter(([name, value]) => !isLeftOut(name) && common.get(name) !== value)
  ])
}

/** A part of an exchange, and how a line begins that names an exchange which had it before. */
interface Part {
  readonly mark: string
  readonly text: string
}

/** An exchange in parts: `>` what the client asked, `»` what the server received each time, `<` what the client got, and its body. */
const partsOf = ({ asked, got, received }: Recorded): ReadonlyArray<Part> => {
  const parts: ReadonlyArray<Part> = [
    ...(asked === undefined ? [] : [{ mark: ">", text: `> ${asked.method} ${asked.path} ${asked.body}`.trimEnd() }]),
    ...received.map((request) => ({ mark: "»", text: `» ${requestText(request)}` })),
    { mark: "<", text: `< ${got.status} ${JSON.stringify(typeof got.body === "string" ? headersOf(got) : {})}` },
    { mark: "body", text: bodyLines(got.body).join("\n") }
  ]
  const texts = withNumberedIds(parts.map(({ text }) => text).join("\u0000")).split("\u0000")
  return parts.flatMap(({ mark }, i) => texts[i] === "" ? [] : [{ mark, text: texts[i]! }])
}

/** Parts of so many characters are written once in a file. */
const longEnough = 120

/** The text of a file. A part that an exchange before has, but for the account's key, is named by it. */
const written = (exchanges: ReadonlyArray<Recorded>): string => {
  const names = new Set<string>()
  const first = new Map<string, string>()
  const shown = (name: string) => ({ mark, text }: Part): string => {
    if (text.length < longEnough) return text
    const keys = text.match(anyKey) ?? []
    const same = text.replaceAll(anyKey, "sk")
    const before = first.get(same)
    if (before !== undefined) return [`${mark} as in: ${before}`, ...keys].join("; ")
    first.set(same, name)
    return text
  }
  return exchanges.map((exchange) => {
    const { name } = exchange
    if (names.has(name)) throw new Error(`Two exchanges have the name ${name}`)
    names.add(name)
    return [`# ${name}`, ...partsOf(exchange).map(shown(name))].join("\n")
  }).join("\n\n") + "\n"
}

/** A golden file. */
export interface File {
  readonly path: string
  readonly exchanges: Effect.Effect<ReadonlyArray<Recorded>, unknown, Scope.Scope>
  readonly text: Effect.Effect<string>
}

/** A file below the folder of the golden data. */
export const fileOf = (name: string, exchanges: File["exchanges"]): File => ({
  path: `${name}.txt`,
  exchanges,
  text: Effect.orDie(Effect.scoped(Effect.map(exchanges, written)))
})

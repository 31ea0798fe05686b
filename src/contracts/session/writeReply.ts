/**
 * Writes what a provider answers (upstream-protocol, "Envelope" and "The event stream"): envelopes, and the patches that make the document of a
 * reply grow.
 */
import type { Json } from "../../domain/json.ts"
import type { LoginBody } from "./readRequest.ts"

/** An HTTP response. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const envelope = (value: Json, status: number, headers: Answer["headers"] = {}): Answer => ({
  status,
  headers: { "content-type": "application/json; charset=utf-8", ...headers },
  body: JSON.stringify(value)
})

/** The service accepted the call. */
export const accepted = (data: Json): Answer =>
  envelope({ code: 0, msg: "", data: { biz_code: 0, biz_msg: "", biz_data: data } }, 200)

/** The service refused the call. */
export const refused = (bizCode: number, text: string, status = 200): Answer =>
  envelope({ code: 0, msg: "", data: { biz_code: bizCode, biz_msg: text, biz_data: null } }, status)

/** The call was refused before it reached the service. */
export const turnedAway = (code: number, text: string, status = 200, headers: Answer["headers"] = {}): Answer =>
  envelope({ code, msg: text, data: null }, status, headers)

/** Answers a login with its token. */
export const loggedIn = ({ account, email = "", mobile = "" }: LoginBody, token: string): Answer =>
  accepted({ user: { id: account, token, email, mobile_number: mobile } })

export type JsonObject = { [key: string]: Json }

/** A part of a reply as its document first shows it: its `type` and fields. */
export type Fragment = { readonly [key: string]: Json } & { readonly type: string }

/** A change of the document; `undefined` for an operation that older servers leave out. */
export type Patch = readonly [path: string, operation: "SET" | "APPEND" | "BATCH" | undefined, value: Json]

/** Writes patches as data of events. A path or operation that a patch shares with the one before it is omitted. */
export class PatchWriter {
  private path: string | undefined = undefined
  private operation: string | undefined = undefined

  /** Replaces the document. */
  snapshot(response: JsonObject): string {
    this.path = undefined
    this.operation = "SET"
    return JSON.stringify({ v: { response } })
  }

  /** The first patch of a stream without a snapshot is complete. */
  write([path, operation, value]: Patch): string {
    const patch: JsonObject = path === this.path ? {} : { p: path }
    if (operation !== undefined && operation !== this.operation) patch["o"] = operation
    patch["v"] = value
    this.path = path
    this.operation = operation ?? this.operation
    return JSON.stringify(patch)
  }
}

/** The fragments of a reply. */
export class Fragments {
  protected fragments: Array<JsonObject> = []
  private readonly references: Array<Json> = []
  /** Pieces of the open reasoning; each counts as a tenth of a second. */
  private thoughts = 0

  /** The fields of a snapshot. */
  body(): JsonObject {
    return { fragments: this.fragments }
  }

  /** Ends open reasoning. */
  close(): ReadonlyArray<Patch> {
    const open = this.fragments.at(-1)
    return open?.["type"] === "THINK" ? [["response/fragments/-1/elapsed_secs", "SET", this.thoughts / 10]] : []
  }

  /** Adds a piece: text of the open fragment's type continues it. */
  grow(piece: Fragment): ReadonlyArray<Patch> {
    const { content, type } = piece
    const open = this.fragments.at(-1)
    if (open?.["type"] === type && (type === "THINK" || type === "RESPONSE")) {
      open["content"] = `${String(open["content"])}${String(content)}`
      this.thoughts++
      return [["response/fragments/-1/content", "APPEND", content ?? ""]]
    }
    const closed = this.close()
    const id = this.fragments.length + 1
    if (type === "TOOL_SEARCH" || type === "TOOL_OPEN") this.references.push({ id, type })
    this.thoughts = 1
    const fields = type === "THINK"
      ? { elapsed_secs: null }
      : type === "RESPONSE"
      ? { references: [...this.references] }
      : {}
    const fragment = { id, ...piece, ...fields }
    this.fragments.push(fragment)
    return [...closed, ["response/fragments", "APPEND", [fragment]]]
  }

  /** The patches at the end of a reply: its token counts and its status. */
  finish(status: string, fields: JsonObject): ReadonlyArray<Patch> {
    const batch = Object.entries({ ...fields, quasi_status: status }).map(([p, v]) => ({ p, v }))
    return [...this.close(), ["response", "BATCH", batch], ["response/status", "SET", status]]
  }
}

/** The ids of a question and its reply. */
export interface MessageIds {
  readonly request: number
  readonly response: number
}

export interface Flags {
  readonly thinking: boolean
  readonly search: boolean
}

/** The data of `ready`. */
export const readyOf = ({ request, response }: MessageIds): Json => ({
  request_message_id: request,
  response_message_id: response
})

/** The document of a reply that is not complete. `usage` are its token counts, `body` what it says. */
export const unfinished = (
  ids: MessageIds,
  { search, thinking }: Flags,
  usage: JsonObject,
  body: JsonObject
): JsonObject => ({
  message_id: ids.response,
  parent_id: ids.request,
  role: "ASSISTANT",
  status: "WIP",
  thinking_enabled: thinking,
  ...(search ? { search_enabled: true } : {}),
  ...usage,
  ...(search ? { search_status: null, search_results: [] } : {}),
  ...body
})

/** The data of `close`. */
export const closed: Json = { click_behavior: "none" }

/** The headers of a stream. */
export const streamHeaders = { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" }

const event = (data: string, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${data}\n\n`

/** The ids of the first question of a session and its reply. */
const firstIds: MessageIds = { request: 1, response: 2 }

/** Writes the stream of a session's first reply, complete with `tokens` tokens. */
export const writeReply = (pieces: ReadonlyArray<Fragment>, tokens: number, flags: Flags): string => {
  const writer = new PatchWriter()
  const document = new Fragments()
  const [first, ...rest] = pieces
  if (first !== undefined) document.grow(first)
  const snapshot = writer.snapshot(unfinished(firstIds, flags, { accumulated_token_usage: 0 }, document.body()))
  const patches = [
    ...rest.flatMap((piece) => document.grow(piece).map((patch) => writer.write(patch))),
    ...document.finish("FINISHED", { accumulated_token_usage: tokens }).map((patch) => writer.write(patch))
  ]
  return [
    event(JSON.stringify(readyOf(firstIds)), "ready"),
    event(snapshot),
    ...patches.map((patch) => event(patch)),
    event(JSON.stringify(closed), "close")
  ].join("")
}

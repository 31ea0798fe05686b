/**
 * The calls of the session protocol as the embedded upstream serves them: paths, request bodies, and the envelope of every
 * reply that is not an event stream.
 */
import * as Schema from "effect/Schema"
import type { Json } from "../../domain/json.ts"
import { Chunk, Head, type Steps } from "./Call.ts"

/** Routes by the last part of their path. */
const routes = {
  login: "POST /api/v0/users/login",
  current: "GET /api/v0/users/current",
  create: "POST /api/v0/chat_session/create",
  fetch_page: "GET /api/v0/chat_session/fetch_page",
  delete: "POST /api/v0/chat_session/delete",
  delete_all: "POST /api/v0/chat_session/delete_all",
  completion: "POST /api/v0/chat/completion",
  continue: "POST /api/v0/chat/continue",
  stop_stream: "POST /api/v0/chat/stop_stream"
} as const

/** A call of the reference upstream's protocol. */
export type CallName = keyof typeof routes

/** Every call of the protocol, in the order of its page. */
export const callNames = Object.keys(routes) as ReadonlyArray<CallName>

const byRoute: ReadonlyMap<string, CallName> = new Map(callNames.map((name) => [routes[name], name]))

/** The call of a method and a path without its query. */
export const callOf = (method: string, path: string): CallName | undefined => byRoute.get(`${method} ${path}`)

/** Every field is required that the protocol requires, so that a driver that omits one is refused. */
const bodies = {
  login: Schema.Struct({
    email: Schema.optional(Schema.String),
    mobile: Schema.optional(Schema.String),
    password: Schema.String,
    device_id: Schema.String,
    os: Schema.String
  }),
  create: Schema.Struct({ agent: Schema.String }),
  session: Schema.Struct({ chat_session_id: Schema.String }),
  completion: Schema.Struct({
    chat_session_id: Schema.String,
    parent_message_id: Schema.NullOr(Schema.Number),
    prompt: Schema.String,
    ref_file_ids: Schema.Array(Schema.String),
    thinking_enabled: Schema.Boolean,
    search_enabled: Schema.Boolean
  }),
  continue: Schema.Struct({
    chat_session_id: Schema.String,
    message_id: Schema.Number,
    fallback_to_resume: Schema.Boolean
  }),
  stop_stream: Schema.Struct({ chat_session_id: Schema.String, message_id: Schema.Number })
}

const decoder = <A>(body: Schema.Decoder<A>) => Schema.decodeUnknownOption(Schema.fromJsonString(body))

/** Decode a body from text; `None` for a body of another form. */
export const decodeBody = {
  login: decoder(bodies.login),
  create: decoder(bodies.create),
  session: decoder(bodies.session),
  completion: decoder(bodies.completion),
  continue: decoder(bodies.continue),
  stop_stream: decoder(bodies.stop_stream)
}

export type LoginBody = typeof bodies.login.Type
export type CompletionBody = typeof bodies.completion.Type

const json = "application/json; charset=utf-8"

/** A whole reply that is not a stream. */
export const plainReply = (
  status: number,
  contentType: string,
  body: string,
  headers: Readonly<Record<string, string>> = {}
): Steps => {
  const bytes = Buffer.from(body)
  return [
    Head(status, { "content-type": contentType, "content-length": String(bytes.length), ...headers }),
    ...(bytes.length === 0 ? [] : [Chunk(bytes, 0)])
  ]
}

/** The service accepted the call. */
export const accepted = (data: Json): Steps =>
  plainReply(200, json, JSON.stringify({ code: 0, msg: "", data: { biz_code: 0, biz_msg: "", biz_data: data } }))

/** The service refused the call. */
export const refused = (bizCode: number, message: string, status = 200): Steps =>
  plainReply(
    status,
    json,
    JSON.stringify({ code: 0, msg: "", data: { biz_code: bizCode, biz_msg: message, biz_data: null } })
  )

/** The call was rejected before it reached the service. */
export const turnedAway = (
  code: number,
  message: string,
  status = 200,
  headers: Readonly<Record<string, string>> = {}
): Steps => plainReply(status, json, JSON.stringify({ code, msg: message, data: null }), headers)

/**
 * The calls of the session protocol and the envelope that every reply without an event stream wears.
 */
import type { Json } from "../domain/Conversation.ts"
import { Chunk, Head, type Step } from "./Step.ts"

/** A call of the protocol, by the last part of its path. */
export type CallName =
  | "login"
  | "current"
  | "create"
  | "fetch_page"
  | "delete"
  | "delete_all"
  | "completion"
  | "continue"
  | "stop_stream"

const routes: ReadonlyArray<readonly [route: string, call: CallName]> = [
  ["POST /api/v0/users/login", "login"],
  ["GET /api/v0/users/current", "current"],
  ["POST /api/v0/chat_session/create", "create"],
  ["GET /api/v0/chat_session/fetch_page", "fetch_page"],
  ["POST /api/v0/chat_session/delete", "delete"],
  ["POST /api/v0/chat_session/delete_all", "delete_all"],
  ["POST /api/v0/chat/completion", "completion"],
  ["POST /api/v0/chat/continue", "continue"],
  ["POST /api/v0/chat/stop_stream", "stop_stream"]
]

/** Every call of the protocol, in the page's order. */
export const callNames: ReadonlyArray<CallName> = routes.map(([, call]) => call)

const byRoute = new Map(routes)

/** The call that a method and a path without its query stand for. */
export const callOf = (method: string, path: string): CallName | undefined => byRoute.get(`${method} ${path}`)

const json = "application/json; charset=utf-8"

/** A whole reply that is no stream. */
export const plainReply = (
  status: number,
  contentType: string,
  body: string,
  headers: Readonly<Record<string, string>> = {}
): ReadonlyArray<Step> => {
  const bytes = Buffer.from(body)
  return [
    Head(status, { "content-type": contentType, "content-length": String(bytes.length), ...headers }),
    ...(bytes.length === 0 ? [] : [Chunk(bytes, 0)])
  ]
}

/** The service took the call. */
export const accepted = (data: Json): ReadonlyArray<Step> =>
  plainReply(200, json, JSON.stringify({ code: 0, msg: "", data: { biz_code: 0, biz_msg: "", biz_data: data } }))

/** The service refused the call. */
export const refused = (bizCode: number, message: string, status = 200): ReadonlyArray<Step> =>
  plainReply(
    status,
    json,
    JSON.stringify({ code: 0, msg: "", data: { biz_code: bizCode, biz_msg: message, biz_data: null } })
  )

/** The call did not reach the service. */
export const turnedAway = (
  code: number,
  message: string,
  status = 200,
  headers: Readonly<Record<string, string>> = {}
): ReadonlyArray<Step> => plainReply(status, json, JSON.stringify({ code, msg: message, data: null }), headers)

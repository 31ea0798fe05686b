/**
 * Reads the calls of the session protocol as a provider receives them (upstream-protocol, "Calls").
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

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

/** A call of the session protocol. */
export type CallName = keyof typeof routes

/** Every call of the protocol, in the order of its page. */
export const callNames = Object.keys(routes) as ReadonlyArray<CallName>

const byRoute: ReadonlyMap<string, CallName> = new Map(callNames.map((name) => [routes[name], name]))

/** The call of a method and a path without its query. */
export const callOf = (method: string, path: string): CallName | undefined => byRoute.get(`${method} ${path}`)

const reader = <A>(body: Schema.Decoder<A>) => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(body))
  return (text: string): A | undefined => Option.getOrUndefined(decode(text))
}

const message = { chat_session_id: Schema.String, message_id: Schema.Number }

/** Read a body from text; `undefined` for another form. Fields are required that the protocol requires. */
export const readBody = {
  login: reader(Schema.Struct({
    email: Schema.optional(Schema.String),
    mobile: Schema.optional(Schema.String),
    password: Schema.String,
    device_id: Schema.String,
    os: Schema.String
  })),
  create: reader(Schema.Struct({ agent: Schema.String })),
  session: reader(Schema.Struct({ chat_session_id: Schema.String })),
  completion: reader(Schema.Struct({
    chat_session_id: Schema.String,
    parent_message_id: Schema.NullOr(Schema.Number),
    prompt: Schema.String,
    ref_file_ids: Schema.Array(Schema.String),
    thinking_enabled: Schema.Boolean,
    search_enabled: Schema.Boolean
  })),
  continue: reader(Schema.Struct({ ...message, fallback_to_resume: Schema.Boolean })),
  stop_stream: reader(Schema.Struct(message))
}

type Body<Name extends keyof typeof readBody> = NonNullable<ReturnType<(typeof readBody)[Name]>>
export type CompletionBody = Body<"completion">

/** A login; `account` is the email or the mobile number. */
export type LoginBody = Body<"login"> & { readonly account: string }

/** Reads a login, which has either an email or a mobile number. */
export const readLogin = (text: string): LoginBody | undefined => {
  const login = readBody.login(text)
  const { email, mobile } = login ?? {}
  const account = email ?? mobile
  if (login === undefined || account === undefined || (email !== undefined && mobile !== undefined)) return undefined
  return { ...login, account }
}

/** The token in an `Authorization` header; empty without one. */
export const readToken = (authorization = ""): string => /^Bearer\s+(.*)$/i.exec(authorization)?.[1]?.trim() ?? ""

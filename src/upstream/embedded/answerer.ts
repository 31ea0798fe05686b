/**
 * A provider of the session protocol within the process: it accepts every login and every token, and gives the default answer.
 *
 * `answerCall` has the rules of the protocol's calls. The reference server for tests has logins and replies of its own.
 */
import {
  type CallName,
  callOf,
  type CompletionBody,
  readBody,
  readLogin,
  readToken
} from "../../contracts/session/readRequest.ts"
import {
  accepted,
  type Answer,
  type Fragment,
  loggedIn,
  refused,
  streamHeaders,
  turnedAway,
  writeReply
} from "../../contracts/session/writeReply.ts"
import { readPrompt } from "../../contracts/session/writeRequest.ts"
import { estimateTokens } from "../../domain/estimateTokens.ts"
import type { ExchangeRequest } from "../ExchangeRequest.ts"
import { answerByDefault, cutWords } from "./defaultAnswer.ts"
import { type Session, Sessions } from "./Sessions.ts"

export const unknownCall = turnedAway(40400, "no such call", 404)
export const badRequest = turnedAway(40000, "the request does not have the form of this call", 400)
const noSession = refused(3, "no such session")
export const noMessage = refused(4, "no such message")

/** A call of an account that may make it. */
export interface AccountCall {
  readonly name: Exclude<CallName, "login">
  readonly account: string
  readonly query: string
  readonly body: string
  /** Milliseconds. */
  readonly now: number
}

/** What a provider does with the replies of a session. `A` is its form of answers. */
export interface Replies<A> {
  readonly answer: (answer: Answer) => A
  readonly complete: (session: Session, body: CompletionBody) => A
  /** Continues a reply. */
  readonly resume: (session: Session, message: number) => A
  /** Stops a reply. */
  readonly stop: (session: Session, message: number) => void
}

/** Answers a call of an account. */
export const answerCall = <A>(call: AccountCall, sessions: Sessions, replies: Replies<A>): A => {
  const { account, name, now } = call
  const within = <B extends { readonly chat_session_id: string }>(
    body: B | undefined,
    answer: (session: Session, body: B) => A
  ): A => {
    if (body === undefined) return replies.answer(badRequest)
    const session = sessions.find(account, body.chat_session_id)
    return session === undefined ? replies.answer(noSession) : answer(session, body)
  }
  switch (name) {
    case "current":
      return replies.answer(accepted({ id: account, email: account, mobile_number: "" }))
    case "create":
      if (readBody.create(call.body) === undefined) return replies.answer(badRequest)
      return replies.answer(accepted({ id: sessions.create(account, now).id }))
    case "fetch_page": {
      const count = Number(new URLSearchParams(call.query).get("count") ?? "100")
      if (!Number.isInteger(count) || count < 1) return replies.answer(badRequest)
      const all = sessions.list(account)
      const page = all.slice(0, count).map(({ id, title, updatedAt }) => ({ id, title, updated_at: updatedAt / 1000 }))
      return replies.answer(accepted({ chat_sessions: page, has_more: all.length > count }))
    }
    case "delete_all":
      for (const session of sessions.list(account)) sessions.delete(session)
      return replies.answer(accepted({}))
    case "delete":
      return within(readBody.session(call.body), (session) => {
        sessions.delete(session)
        return replies.answer(accepted({}))
      })
    case "stop_stream":
      return within(readBody.stop_stream(call.body), (session, body) => {
        replies.stop(session, body.message_id)
        return replies.answer(accepted({}))
      })
    case "completion":
      return within(readBody.completion(call.body), replies.complete)
    case "continue":
      return within(readBody.continue(call.body), (session, body) => replies.resume(session, body.message_id))
  }
}

/** Tokens of logins name their account, so that none has to be kept. A token without this prefix is an account of its own. */
const tokenOf = "embedded-token-of-"

/** The account of callers without a token. */
const anonymous = "anonymous"

/** Characters of a part of a reply; a longer one is left out. */
const longestPart = 1024 * 1024

const textOf = (parts: ReadonlyArray<Fragment>, type: string): string =>
  parts.map((part) => part.type === type ? part["content"] : "").join("")

/** The whole stream of the default answer. */
const answerTo = ({ prompt, search_enabled: search, thinking_enabled: thinking }: CompletionBody): Answer => {
  const parts = answerByDefault(readPrompt(prompt), search).filter(({ content = "", type }) =>
    (thinking || type !== "THINK") && String(content).length <= longestPart
  )
  const tokens = estimateTokens(textOf(parts, "THINK")) + estimateTokens(textOf(parts, "RESPONSE"))
  const pieces = parts.flatMap(cutWords)
  return { status: 200, headers: streamHeaders, body: writeReply(pieces, tokens, { thinking, search }) }
}

/** Makes a provider. `newId` makes ids of sessions; `now` is the time in milliseconds. */
export const makeAnswerer = (newId: () => string, now: () => number) => {
  const sessions = new Sessions(newId)
  // Replies leave complete, so stopping does nothing and a reply has no rest. Sessions keep no turns.
  const replies: Replies<Answer> = {
    answer: (answer) => answer,
    complete: (session, body) => {
      if (body.parent_message_id !== null) return noMessage
      sessions.asked(session, body.prompt, now())
      return answerTo(body)
    },
    resume: () => noMessage,
    stop: () => {}
  }
  return ({ body, headers, method, path }: ExchangeRequest): Answer => {
    const [route = "", query = ""] = path.split("?", 2)
    const name = callOf(method, route)
    const text = typeof body === "string" ? body : ""
    if (name === undefined) return unknownCall
    if (name === "login") {
      const login = readLogin(text)
      return login === undefined ? badRequest : loggedIn(login, `${tokenOf}${login.account}`)
    }
    const token = readToken(headers["authorization"]) || anonymous
    const account = token.startsWith(tokenOf) ? token.slice(tokenOf.length) : token
    return answerCall({ name, account, query, body: text, now: now() }, sessions, replies)
  }
}

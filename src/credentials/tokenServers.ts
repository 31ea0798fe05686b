/**
 * Asks servers for tokens: those of vendors, and the metadata servers of clouds.
 *
 * The one thing to know: nothing that a server writes is shown but its status and its code of an error.
 */
import { Agent, EnvHttpProxyAgent } from "@effect/platform-node/Undici"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type IssuedToken, sourceFailed, tokenIn } from "./CredentialSource.ts"

/** A request to a token server. */
export interface TokenRequest {
  readonly method: "GET" | "POST" | "PUT"
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Empty for none. */
  readonly body: string
  /** The server is of this computer's own network: proxies of the environment do not carry the request. */
  readonly isNear: boolean
}

/** The answer of a token server. */
export interface TokenReply {
  readonly status: number
  /** The server's time in Unix milliseconds, as its header `date` says; `undefined` without one. */
  readonly date: number | undefined
  readonly text: string
}

/** The most bytes of an answer. */
const longestReply = 256 * 1024

/** Milliseconds of one answer. The sources ask three servers at most. */
const longestAnswer = 8_000

const read = async (body: AsyncIterable<Uint8Array>): Promise<string> => {
  const pieces: Array<Uint8Array> = []
  let length = 0
  for await (const piece of body) {
    length += piece.length
    if (length > longestReply) throw new Error("long")
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString("utf8")
}

const dateOf = (header: string | ReadonlyArray<string> | undefined): number | undefined => {
  const date = typeof header === "string" ? Date.parse(header) : NaN
  return Number.isNaN(date) ? undefined : date
}

/** Sends a request; fails without an answer. Redirects are not followed. */
type Ask = (request: TokenRequest) => Effect.Effect<TokenReply, "no answer">

const ask: Ask = ({ body, headers, isNear, method, url }) =>
  Effect.tryPromise({
    try: async (signal) => {
      // Renewals are rare, so that no connection is kept.
      const dispatcher = isNear ? new Agent() : new EnvHttpProxyAgent()
      try {
        const { origin, pathname, search } = new URL(url)
        const target = { origin, path: pathname + search, method, headers, signal, ...(body === "" ? {} : { body }) }
        const answer = await dispatcher.request(target)
        return { status: answer.statusCode, date: dateOf(answer.headers["date"]), text: await read(answer.body) }
      } finally {
        await dispatcher.destroy()
      }
    },
    catch: () => "no answer" as const
  })

/** The token servers that can be reached. */
export const CurrentTokenServers = Context.Reference<Ask>("model-gateway/credentials/TokenServers", {
  defaultValue: () => ask
})

export const isLoopback = (hostname: string): boolean => /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)

/** Whether secrets may go to an address: over TLS, or within this computer. */
export const isPrivate = (url: string): boolean =>
  URL.canParse(url) && (url.startsWith("https://") || (url.startsWith("http://") && isLoopback(new URL(url).hostname)))

const ErrorReply = Schema.fromJsonString(
  Schema.Struct({ error: Schema.Union([Schema.String, Schema.Struct({ status: Schema.String })]) })
)
const decodeError = Schema.decodeUnknownResult(ErrorReply)

/** The code of an error, in JSON or in the XML of AWS, if it looks like one. */
const codeIn = (text: string): string => {
  const decoded = decodeError(text)
  const error = Result.isFailure(decoded) ? /<Code>([^<]{1,64})<\/Code>/.exec(text)?.[1] ?? "" : decoded.success.error
  const code = typeof error === "string" ? error : error.status
  return /^[A-Za-z][\w.-]{0,63}$/.test(code) ? ` ${code}` : ""
}

/** The difference of two clocks that servers may not accept, in milliseconds. */
const mostSkew = 60_000

/** Whether a server's time differs from the time that it was asked at so much that it may have refused because of it. */
export const isSkewed = (date: number | undefined, now: number): date is number =>
  date !== undefined && Math.abs(now - date) > mostSkew

const skewIn = (date: number | undefined, now: number): string | undefined => {
  if (!isSkewed(date, now)) return undefined
  const seconds = Math.round(Math.abs(now - date) / 1_000)
  return `this computer's clock is ${seconds} seconds ${now > date ? "ahead of" : "behind"} the server's`
}

/** Asks a server of a source, whose name `server` is, and returns its answer of any status. */
export const replyOf = (
  kind: string,
  server: string,
  request: TokenRequest
): Effect.Effect<TokenReply, UpstreamFailure> =>
  Effect.gen(function*() {
    const send = yield* CurrentTokenServers
    return yield* Effect.timeoutOrElse(send(request), {
      duration: longestAnswer,
      orElse: () => Effect.fail("no answer" as const)
    }).pipe(Effect.mapError(() => sourceFailed(kind, `${server} cannot be reached`)))
  })

/** Asks a server of a source, whose name `server` is, and returns its answer of status 200. */
export const answerOf = (
  kind: string,
  server: string,
  request: TokenRequest
): Effect.Effect<TokenReply, UpstreamFailure> =>
  Effect.flatMap(replyOf(kind, server, request), (reply) => accepted(kind, server, reply))

/** An answer, which fails unless its status is 200. */
export const accepted = (
  kind: string,
  server: string,
  reply: TokenReply
): Effect.Effect<TokenReply, UpstreamFailure> =>
  Effect.gen(function*() {
    const { date, status, text } = reply
    if (status === 200) return reply
    const skew = skewIn(date, yield* Clock.currentTimeMillis)
    const step = `${server} answered with HTTP ${status}${codeIn(text)}`
    return yield* sourceFailed(kind, skew === undefined ? step : `${step}; ${skew}`)
  })

const seconds = Schema.Union([Schema.Finite, Schema.FiniteFromString])
const TokenDocument = Schema.fromJsonString(
  Schema.Struct({
    access_token: Schema.String,
    expires_in: Schema.optionalKey(seconds),
    /** Unix time in seconds, by the server's clock. */
    expires_on: Schema.optionalKey(seconds)
  })
)
const decodeToken = Schema.decodeUnknownResult(TokenDocument)

/** Seconds that a token serves whose server does not say it. */
const unknownLife = 300

/** Issues the token of an OAuth answer. */
export const issueBy = (
  kind: string,
  server: string,
  request: TokenRequest
): Effect.Effect<IssuedToken, UpstreamFailure> =>
  Effect.gen(function*() {
    const { date, text } = yield* answerOf(kind, server, request)
    const decoded = decodeToken(text)
    const token = Result.isSuccess(decoded) ? tokenIn(decoded.success.access_token) : undefined
    if (Result.isFailure(decoded) || token === undefined) {
      return yield* sourceFailed(kind, `${server} answered without a token`)
    }
    const { expires_in, expires_on } = decoded.success
    const now = date ?? (yield* Clock.currentTimeMillis)
    const life = expires_in ?? (expires_on === undefined ? unknownLife : expires_on - now / 1_000)
    return { token, lives: Math.max(1, life) * 1_000, renewAfter: undefined }
  })

/** A form that is sent to a vendor's token server. */
export const formTo = (url: string, fields: Readonly<Record<string, string>>): TokenRequest => ({
  method: "POST",
  url,
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams(fields).toString(),
  isNear: isLoopback(new URL(url).hostname)
})

/** A question to a metadata server. */
export const nearTo = (
  url: string,
  headers: TokenRequest["headers"],
  method: TokenRequest["method"] = "GET"
): TokenRequest => ({
  method,
  url,
  headers,
  body: "",
  isNear: true
})

/**
 * What a server answers other than a reply: its refusals as failures, with advice for the operator.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { keyless } from "../../config/Account.ts"
import type { Contract } from "../../contracts/Contract.ts"
import { errorBody } from "../../contracts/shared/errorBody.ts"
import { parseJson } from "../../contracts/shared/json.ts"
import { refusesModel } from "../../domain/failureReasons.ts"
import { isRecord } from "../../domain/json.ts"
import { secretsOfToken } from "../../domain/ownLogin.ts"
import { resetOfError, resetOfHeaders } from "../../domain/quota.ts"
import { type FailurePhase, UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import { isUnnamed, placeOfUpstream } from "../../domain/upstreamNames.ts"
import { type Exchange, type Exchanges, secretsWith } from "../Exchange.ts"
import { retryAfterMsOf, retryAfterOf } from "../retryAfter.ts"
import type { RoundRecorder } from "../Upstream.ts"

/** Bytes, and milliseconds, that are read of a body other than a reply. */
export const longestBody = 1024 * 1024
export const slowestBody = 5_000

/** Characters of a request's id. */
const longestId = 200

/** True for a page, which no API sends. */
const isPage = (contentType = ""): boolean => /\bx?html\b|\bxml\b/i.test(contentType)

/** True for a key to send; accounts of servers without keys have a placeholder. */
export const isKey = (token: string | undefined): token is string => token !== undefined && token !== keyless

/** What of a key must not be shown. */
export const secretsOfKey = (token: string | undefined): ReadonlyArray<string> =>
  isKey(token) ? secretsOfToken(token) : []

/** The requested model: the caller's id, and the name sent to the server. */
export interface RequestedModel {
  readonly id: string
  readonly name: string
}

/** The server whose answers are read. */
interface AnsweringServer {
  readonly contract: Pick<Contract, "readError">
  /** The name of the upstream. */
  readonly upstream: string
  /** The prefix that an address of such a server ends with, such as `/v1`; `undefined` if the driver adds it. */
  readonly versionPrefix: string | undefined
  /** True for an address with the version of the API, or one that needs none. */
  readonly isVersioned: boolean
  /** Learns from a refusal. `now`: Unix milliseconds. */
  readonly heard: ((exchange: Exchange, now: number) => void) | undefined
}

/** Reads the answers of one server. */
export const makeServerAnswers = (
  exchanges: Exchanges["Service"],
  { contract: { readError }, heard, isVersioned, upstream, versionPrefix }: AnsweringServer
) => {
  const place = placeOfUpstream(upstream)

  /** Advice for the operator, and the message, if a refusal looks like a configuration mistake. */
  const advice = (
    failure: UpstreamFailure,
    token: string | undefined,
    model: RequestedModel | undefined
  ): { readonly message?: string; readonly advice?: string } | undefined => {
    const { kind, message = "", status = 0 } = failure
    if (status === 401 && !isKey(token)) {
      const of = isUnnamed(upstream) ? "" : ` of the upstream ${upstream}`
      return { advice: `add an account${of} with the key as its token` }
    }
    if (status >= 300 && status < 400) {
      return { message: "it redirects", advice: `${place}.base_url must be the address itself` }
    }
    if (model !== undefined && refusesModel(failure)) {
      return {
        message: message.trim() || `it has no model ${model.name}`,
        advice: `${place}.models.${model.id} says which model of the server is meant`
      }
    }
    const isUnknown = kind === "malformed" || status === 405 || (status === 404 && !refusesModel(failure)) ||
      /unexpected endpoint/i.test(message)
    return isUnknown && !isVersioned
      ? { advice: `${place}.base_url may lack its version prefix, such as ${versionPrefix}` }
      : undefined
  }

  const readBody = (exchange: Exchange, round?: RoundRecorder) =>
    Effect.map(exchange.text(longestBody, slowestBody), (text) => {
      round?.bytes(Buffer.from(text))
      return text
    })

  /** The failure of an answer: its JSON error, otherwise its status. Pages are never quoted. */
  const refusal = Effect.fnUntraced(function*(
    phase: FailurePhase,
    exchange: Exchange,
    text: string,
    token: string | undefined,
    model?: RequestedModel
  ) {
    const { status } = exchange
    const now = yield* Clock.currentTimeMillis
    heard?.(exchange, now)
    const retryAfterMs = retryAfterMsOf((name) => exchange.header(name))
    const shouldRetry = /^\s*(?:(true)|false)\s*$/i.exec(exchange.header("x-should-retry") ?? "")
    const requestId = exchange.header("request-id") ?? exchange.header("x-request-id") ??
      exchange.header("x-amzn-requestid")
    // AWS says the code of an error in a header.
    const code = exchange.header("x-amzn-errortype")?.split(/[:;,]/, 1)[0]
    const body = parseJson(text)
    const stated = readError(body)
    const times = [
      retryAfterOf((name) => exchange.header(name), now),
      stated.retryAfter,
      resetOfError(body, now),
      status === 429 ? resetOfHeaders((name) => exchange.header(name), now) : undefined
    ]
    // Of several times the latest one is when the server takes requests again.
    const retryAfter = Math.max(...times.map((seconds) => seconds ?? 0))
    const facts = {
      phase,
      kind: isPage(exchange.header("content-type")) && status < 300 ? "malformed" : "refused",
      ...(code === undefined ? {} : { reason: code.slice(0, longestId) }),
      ...stated,
      ...(status < 300 ? {} : { status }),
      ...(exchange.isWhole ? { isWhole: true } : {}),
      ...errorBody(body, Buffer.byteLength(text)),
      ...(requestId === undefined ? {} : { requestId: requestId.slice(0, longestId) }),
      ...(retryAfter === 0 ? {} : { retryAfter }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(shouldRetry === null ? {} : { shouldRetry: shouldRetry[1] !== undefined }),
      ...(isKey(token) ? {} : { anonymous: true }),
      // A page or plain text comes from something other than the server.
      ...(isRecord(body) || Array.isArray(body)
        ? {}
        : { cause: exchange.unexpectedAnswer(text, secretsWith(exchanges, secretsOfKey(token))) })
    } as const
    const failure = new UpstreamFailure(facts)
    const found = advice(failure, token, model)
    return found === undefined ? failure : new UpstreamFailure({ ...facts, ...found })
  })

  const isAnswer = (exchange: Exchange): boolean =>
    exchange.status >= 200 && exchange.status < 300 && !isPage(exchange.header("content-type"))

  return { isAnswer, readBody, refusal }
}

export type ServerAnswers = ReturnType<typeof makeServerAnswers>

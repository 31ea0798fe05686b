/**
 * The session protocol's calls: one request each, answered by an envelope or, for completions, by an event stream.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Scope from "effect/Scope"
import type { FailurePhase } from "../../domain/UpstreamFailure.ts"
import { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { Connection, ConnectionLimits } from "../connection.ts"
import { openConnection, parseRetryAfter, readShortBody } from "../connection.ts"
import { readEnvelope } from "./envelope.ts"
import type { JsonRecord } from "./patchDocument.ts"

/** The most that is read of an envelope: none of the protocol is near it. */
const envelopeLimit = 16 * 1024 * 1024

/** The calls over one client. */
export interface Calls {
  /** A call that is answered by an envelope; gives its `biz_data`. Without a body it is a GET. */
  readonly call: (
    phase: FailurePhase,
    path: string,
    token: string | undefined,
    body?: JsonRecord
  ) => Effect.Effect<JsonRecord, UpstreamFailure>
  /** A call that is answered by an event stream; an envelope in its place is the failure that it tells. */
  readonly open: (
    phase: FailurePhase,
    path: string,
    token: string | undefined,
    body: string,
    opened?: (status: number) => void
  ) => Effect.Effect<Connection, UpstreamFailure, Scope.Scope>
}

const isEventStream = (contentType: string | undefined): boolean => /^\s*text\/event-stream\b/i.test(contentType ?? "")

/** Where and how calls go. */
export interface CallOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly limits: ConnectionLimits
  /** Sent where a call has no token of its own. */
  readonly anonymousToken: string | undefined
}

/** Makes the calls. */
export const makeCalls = (client: HttpClient.HttpClient, options: CallOptions): Calls => {
  const { anonymousToken, baseUrl, limits } = options
  const authorized = (request: HttpClientRequest.HttpClientRequest, token: string | undefined) => {
    const bearer = token ?? anonymousToken
    return bearer === undefined ? request : HttpClientRequest.bearerToken(request, bearer)
  }

  const envelope = Effect.fnUntraced(function*(phase: FailurePhase, connection: Connection) {
    const { headers, status } = connection.response
    const body = yield* readShortBody(connection, envelopeLimit, limits.firstByte)
    const retryAfter = parseRetryAfter(headers["retry-after"], yield* Clock.currentTimeMillis)
    const read = readEnvelope(body, { phase, status, retryAfter })
    return read instanceof UpstreamFailure ? yield* read : read
  })

  return {
    call: Effect.fnUntraced(function*(phase, path, token, body) {
      const request = body === undefined
        ? HttpClientRequest.get(`${baseUrl}${path}`)
        : HttpClientRequest.post(`${baseUrl}${path}`).pipe(
          HttpClientRequest.bodyText(JSON.stringify(body), "application/json")
        )
      const connection = yield* openConnection(client, authorized(request, token), phase, limits)
      return yield* envelope(phase, connection)
    }, Effect.scoped),

    open: Effect.fnUntraced(function*(phase, path, token, body, opened) {
      const request = HttpClientRequest.post(`${baseUrl}${path}`).pipe(
        HttpClientRequest.setHeader("accept", "text/event-stream"),
        HttpClientRequest.bodyText(body, "application/json")
      )
      const connection = yield* openConnection(client, authorized(request, token), phase, limits)
      const { headers, status } = connection.response
      opened?.(status)
      if (status === 200 && isEventStream(headers["content-type"])) return connection
      yield* envelope(phase, connection)
      // An envelope without a complaint is no reply either.
      return yield* new UpstreamFailure({ phase, kind: "malformed", status })
    })
  }
}
